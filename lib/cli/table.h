#pragma once

/// Columns of text, as kubectl prints them.

#include <string>
#include <vector>

namespace fl::cli {

struct Table {
  struct Column {
    std::string title;   ///< "NAME"
    bool wide = false;   ///< only with -o wide
    bool right = false;  ///< numbers that are compared down the column
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< as many cells as columns

  /// The text, each line with its end; "" where there are no rows. Empty cells are "-".
  std::string ToText(bool wide) const;
};

}  // namespace fl::cli
