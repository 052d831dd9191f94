#pragma once

/// Labelled data for the built-in trainers, from CSV and IDX files, whole or one client's part.
///
/// `file:PATH.csv`: a header line; the column `label` (or `?label=NAME`) holds integers from 0, all
/// other columns are features, numeric, in their order. RFC 4180 quoting, LF or CRLF.
/// `file:FOLDER`: MNIST-style IDX files, `train-images-idx3-ubyte` with `train-labels-idx1-ubyte`,
/// and the `t10k-` pair for testing (`?split=train|test` chooses). Pixels are divided by 255.
/// `#partition=KIND,parts=N,index=I,seed=S`: one part of N, as partition.h splits. KIND is `iid`,
/// `shards=K` or `dirichlet=A`.
/// Paths are relative to the working directory (`file:a/b`) or absolute (`file:///a/b`); '?', '#'
/// and '%' in them are percent-encoded.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "trainer/partition.h"

namespace fl::trainer {

enum class Split { kTrain, kTest };

/// Where data is and which part of it is meant.
struct DatasetSpec {
  base::Path path;
  std::string label = "label";    ///< name of the label's column; CSV only
  std::optional<Split> split;     ///< IDX only; none: the caller's default
  std::optional<Partition> part;  ///< none: everything

  /// kInvalidArgument says which part of the URI is wrong; kUnimplemented for another scheme.
  static base::Result<DatasetSpec> Parse(std::string_view uri);
  /// The text form, which Parse reads.
  std::string ToString() const;
  /// The same with a relative path taken from `folder` instead of the working directory.
  DatasetSpec RelativeTo(const base::Path& folder) const;
};

/// Rows in memory.
struct Dataset {
  int64_t features = 0;         ///< columns
  std::vector<float> values;    ///< row-major [rows, features]
  std::vector<int32_t> labels;  ///< [rows], ≥ 0

  int64_t rows() const { return static_cast<int64_t>(labels.size()); }
};

/// Reads the rows of `spec`. Of a partition, only its rows are kept: one pass reads the labels,
/// which decide about the split, and a second the values. `default_split` is what a folder without
/// `?split=` means; where a folder has one pair of files only, it is that.
///
/// kNotFound; kInvalidArgument for data that is not as described, with file, line and column, or
/// for a file that changed between the passes.
base::Result<Dataset> LoadDataset(const DatasetSpec& spec, Split default_split = Split::kTrain);

/// Some rows, valid during the call that gives them.
struct Batch {
  int64_t features = 0;
  std::span<const float> values;    ///< row-major [rows, features]
  std::span<const int32_t> labels;  ///< [rows]
};

/// Gives the rows of `spec` in order, `batch_rows` at a time (the last may be fewer), without
/// holding more in memory. Stops at the first error of `visit` and returns it. Codes as
/// LoadDataset.
base::Status ForEachBatch(const DatasetSpec& spec, int64_t batch_rows, Split default_split,
                          const std::function<base::Status(const Batch&)>& visit);

/// Rows and number of classes (largest label + 1), from the labels alone. Codes as LoadDataset.
struct LabelSummary {
  int64_t rows = 0;
  int64_t classes = 0;
};
base::Result<LabelSummary> SummarizeLabels(const DatasetSpec& spec,
                                           Split default_split = Split::kTrain);

}  // namespace fl::trainer
