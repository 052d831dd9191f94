#include "trainer/dataset.h"

#include <algorithm>

#include "trainer/internal/source.h"

namespace fl::trainer {
namespace {

using base::InvalidArgument;
using base::Result;
using base::Status;
using internal::RowSource;

Result<std::unique_ptr<RowSource>> Open(const DatasetSpec& spec, Split default_split) {
  std::error_code error;
  const auto status = std::filesystem::status(spec.path, error);
  if (!std::filesystem::exists(status)) {
    return base::NotFound("dataset " + spec.path.string() + " does not exist");
  }
  if (std::filesystem::is_directory(status)) return internal::OpenIdx(spec, default_split);
  return internal::OpenCsv(spec);
}

/// Labels of all rows, whatever the partition.
Result<std::vector<int32_t>> ReadLabels(const DatasetSpec& spec, Split default_split) {
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> source, Open(spec, default_split));
  std::vector<int32_t> labels;
  while (true) {
    FL_ASSIGN_OR_RETURN(const bool found, source->Next());
    if (!found) return labels;
    labels.push_back(source->label());
  }
}

/// Rows that `spec` means, ascending; none: all of them.
Result<std::optional<std::vector<int64_t>>> WantedRows(const DatasetSpec& spec,
                                                       Split default_split) {
  if (!spec.part) return std::optional<std::vector<int64_t>>();
  FL_ASSIGN_OR_RETURN(const std::vector<int32_t> labels, ReadLabels(spec, default_split));
  Result<std::vector<int64_t>> rows = RowsOfPart(*spec.part, labels);
  if (!rows.ok()) return rows.status().WithContext(spec.path.string());
  return std::optional(std::move(rows).value());
}

/// Calls `take(source)` on each row that `spec` means.
template <typename Take>
Status ForEachRow(const DatasetSpec& spec, const std::optional<std::vector<int64_t>>& wanted,
                  RowSource& source, Take take) {
  size_t taken = 0;
  for (int64_t row = 0; !wanted || taken < wanted->size(); ++row) {
    FL_ASSIGN_OR_RETURN(const bool found, source.Next());
    if (!found) {
      if (!wanted) break;
      return InvalidArgument("dataset " + spec.path.string() + " changed while it was read");
    }
    if (wanted && (*wanted)[taken] != row) continue;
    ++taken;
    FL_RETURN_IF_ERROR(take(source));
  }
  return base::OkStatus();
}

}  // namespace

Result<Dataset> LoadDataset(const DatasetSpec& spec, Split default_split) {
  FL_ASSIGN_OR_RETURN(const auto wanted, WantedRows(spec, default_split));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> source, Open(spec, default_split));
  Dataset dataset;
  dataset.features = source->features();
  const size_t width = static_cast<size_t>(dataset.features);
  if (wanted) {
    dataset.values.reserve(wanted->size() * width);
    dataset.labels.reserve(wanted->size());
  }
  FL_RETURN_IF_ERROR(ForEachRow(spec, wanted, *source, [&dataset, width](RowSource& row) {
    const size_t at = dataset.values.size();
    dataset.values.resize(at + width);
    dataset.labels.push_back(row.label());
    return row.ReadValues(dataset.values.data() + at);
  }));
  return dataset;
}

Status ForEachBatch(const DatasetSpec& spec, int64_t batch_rows, Split default_split,
                    const std::function<Status(const Batch&)>& visit) {
  FL_CHECK(batch_rows > 0);
  FL_ASSIGN_OR_RETURN(const auto wanted, WantedRows(spec, default_split));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> source, Open(spec, default_split));
  const size_t width = static_cast<size_t>(source->features());
  std::vector<float> values;
  std::vector<int32_t> labels;
  const auto flush = [&] {
    const Status status = visit({source->features(), values, labels});
    values.clear();
    labels.clear();
    return status;
  };
  const auto take = [&](RowSource& row) {
    const size_t at = values.size();
    values.resize(at + width);
    labels.push_back(row.label());
    const Status read = row.ReadValues(values.data() + at);
    return read.ok() && labels.size() == static_cast<size_t>(batch_rows) ? flush() : read;
  };
  FL_RETURN_IF_ERROR(ForEachRow(spec, wanted, *source, take));
  return labels.empty() ? base::OkStatus() : flush();
}

Result<LabelSummary> SummarizeLabels(const DatasetSpec& spec, Split default_split) {
  FL_ASSIGN_OR_RETURN(const std::vector<int32_t> labels, ReadLabels(spec, default_split));
  LabelSummary summary;
  const auto add = [&summary](int32_t label) {
    ++summary.rows;
    summary.classes = std::max(summary.classes, int64_t{label} + 1);
  };
  if (!spec.part) {
    std::for_each(labels.begin(), labels.end(), add);
    return summary;
  }
  Result<std::vector<int64_t>> rows = RowsOfPart(*spec.part, labels);
  if (!rows.ok()) return rows.status().WithContext(spec.path.string());
  for (const int64_t row : *rows) add(labels[static_cast<size_t>(row)]);
  return summary;
}

}  // namespace fl::trainer
