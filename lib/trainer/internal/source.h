#pragma once

/// A dataset's rows in their order, from whatever file format.

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "trainer/dataset.h"

namespace fl::trainer::internal {

/// One pass over a dataset. One thread.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// Columns besides the label.
  virtual int64_t features() const = 0;
  /// Goes to the next row; false at the end.
  virtual base::Result<bool> Next() = 0;
  /// Label of the row.
  virtual int32_t label() const = 0;
  /// Writes the `features()` values of the row to `target`. At most once a row.
  virtual base::Status ReadValues(float* target) = 0;
};

base::Result<std::unique_ptr<RowSource>> OpenCsv(const DatasetSpec& spec);
/// `spec.path` is a folder.
base::Result<std::unique_ptr<RowSource>> OpenIdx(const DatasetSpec& spec, Split default_split);

}  // namespace fl::trainer::internal
