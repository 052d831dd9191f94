#include <algorithm>
#include <charconv>
#include <cmath>

#include "trainer/internal/csv.h"
#include "trainer/internal/source.h"

namespace fl::trainer::internal {
namespace {

using base::InvalidArgument;
using base::Result;
using base::Status;

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Field text for a message: short, whatever is in the file.
std::string Quote(std::string_view text) {
  return "\"" + std::string(text.substr(0, 40)) + (text.size() > 40 ? "…\"" : "\"");
}

class CsvSource final : public RowSource {
 public:
  static Result<std::unique_ptr<RowSource>> Open(const DatasetSpec& spec) {
    FL_ASSIGN_OR_RETURN(CsvReader reader, CsvReader::Open(spec.path));
    auto source = std::unique_ptr<CsvSource>(new CsvSource(std::move(reader)));
    FL_RETURN_IF_ERROR(source->ReadHeader(spec));
    return std::unique_ptr<RowSource>(std::move(source));
  }

  int64_t features() const override { return static_cast<int64_t>(names_.size()) - 1; }

  Result<bool> Next() override {
    FL_ASSIGN_OR_RETURN(const bool found, reader_.Next(fields_));
    if (!found) return false;
    if (fields_.size() != names_.size()) {
      return reader_.Error(std::to_string(fields_.size()) + " fields, the header has " +
                           std::to_string(names_.size()));
    }
    FL_RETURN_IF_ERROR(ReadLabel());
    return true;
  }

  int32_t label() const override { return label_; }

  Status ReadValues(float* target) override {
    for (size_t column = 0; column < fields_.size(); ++column) {
      if (column == label_column_) continue;
      const std::string_view text = Trim(fields_[column]);
      const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
      const auto [end, error] = std::from_chars(begin, text.data() + text.size(), *target);
      if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(*target)) {
        return reader_.Error("column \"" + names_[column] + "\" is " + Quote(fields_[column]) +
                                 ", not a finite number",
                             "features are numeric; leave out other columns and rows with gaps");
      }
      ++target;
    }
    return base::OkStatus();
  }

 private:
  explicit CsvSource(CsvReader reader) : reader_(std::move(reader)) {}

  Status ReadHeader(const DatasetSpec& spec) {
    FL_ASSIGN_OR_RETURN(const bool found, reader_.Next(fields_));
    if (!found) {
      return InvalidArgument(spec.path.string() + ": empty",
                             "the first line names the columns, one of them \"label\"");
    }
    for (const std::string_view field : fields_) names_.emplace_back(Trim(field));
    const auto count = std::count(names_.begin(), names_.end(), spec.label);
    if (count != 1) {
      std::string names;
      for (size_t i = 0; i < names_.size() && i < 5; ++i) {
        names += (i > 0 ? ", " : "") + names_[i].substr(0, 40);
      }
      return reader_.Error(
          (count == 0 ? "no column is named \"" : "more than one column is named \"") + spec.label +
              "\"",
          "the header starts with " + names + "; name the label's column by ?label=NAME");
    }
    label_column_ =
        static_cast<size_t>(std::find(names_.begin(), names_.end(), spec.label) - names_.begin());
    if (names_.size() < 2) return reader_.Error("no column besides the label");
    return base::OkStatus();
  }

  Status ReadLabel() {
    const std::string_view text = Trim(fields_[label_column_]);
    // Tools that know only one kind of number write 3.0 for class 3.
    const std::string_view whole = text.substr(0, text.find('.'));
    const bool fraction_is_zero =
        text.find_first_not_of('0', std::min(whole.size() + 1, text.size())) ==
        std::string_view::npos;
    const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), label_);
    if (error != std::errc() || end != whole.data() + whole.size() || !fraction_is_zero ||
        label_ < 0) {
      return reader_.Error("column \"" + names_[label_column_] + "\" is " +
                               Quote(fields_[label_column_]) + ", not a class number",
                           "labels are whole numbers from 0");
    }
    return base::OkStatus();
  }

  CsvReader reader_;
  std::vector<std::string> names_;
  std::vector<std::string_view> fields_;
  size_t label_column_ = 0;
  int32_t label_ = 0;
};

}  // namespace

Result<std::unique_ptr<RowSource>> OpenCsv(const DatasetSpec& spec) {
  return CsvSource::Open(spec);
}

}  // namespace fl::trainer::internal
