#pragma once

/// Where data lies: "file:PATH", "file:///PATH", with "?label=NAME" for CSV.

#include <string>
#include <string_view>

#include "base/status.h"

namespace fl::spec {

struct DatasetUri {
  enum class Kind {
    kCsv,     ///< a file that ends in ".csv"
    kFolder,  ///< anything else: a folder with IDX files
  };
  std::string path;             ///< as in the URI, percent escapes decoded; may be relative
  std::string label = "label";  ///< the column with the classes
  Kind kind = Kind::kFolder;

  /// kInvalidArgument for another scheme or host, an empty path, an unknown or repeated query key,
  /// a broken escape, a NUL.
  static base::Result<DatasetUri> Parse(std::string_view uri);
  /// "file:PATH[?label=NAME]" that Parse reads back.
  std::string ToString() const;

  friend bool operator==(const DatasetUri&, const DatasetUri&) = default;
};

}  // namespace fl::spec
