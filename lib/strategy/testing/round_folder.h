#pragma once

/// A folder with the files of one round, and an aggregation of them, for tests.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/testing/temporary_directory.h"
#include "strategy/aggregate/aggregate.h"
#include "tensor/safetensors.h"

namespace fl::strategy {

/// A tensor of any floating dtype from F64 values (rounded to it).
inline tensor::Tensor FloatTensor(std::string name, tensor::DType dtype,
                                  std::vector<uint64_t> shape, const std::vector<double>& values) {
  tensor::Tensor result{{std::move(name), dtype, std::move(shape)}, {}};
  result.bytes.resize(values.size() * tensor::ElementSize(dtype));
  tensor::EncodeFromDouble(dtype, values.data(), values.size(), result.bytes.data());
  return result;
}

/// The one-tensor F32 model "w".
inline std::vector<tensor::Tensor> F32Model(const std::vector<double>& values) {
  return {FloatTensor("w", tensor::DType::kF32, {values.size()}, values)};
}

class RoundFolder {
 public:
  /// Writes a file of `tensors` and opens it; it lives as long as this object.
  const tensor::SafetensorsFile& Add(const std::vector<tensor::Tensor>& tensors) {
    const base::Path path = folder_ / ("file" + std::to_string(files_.size()));
    const auto written = tensor::WriteSafetensors(path, tensors, {}, false);
    FL_CHECK_MSG(written.ok(), written.status().ToString());
    return Open(path);
  }
  const tensor::SafetensorsFile& Open(const base::Path& path) {
    auto file = tensor::SafetensorsFile::Open(path);
    FL_CHECK_MSG(file.ok(), file.status().ToString());
    files_.push_back(*std::move(file));
    return files_.back();
  }
  void SetGlobal(const std::vector<tensor::Tensor>& tensors) { request.global = &Add(tensors); }
  void AddUpdate(const std::string& client, double weight,
                 const std::vector<tensor::Tensor>& tensors, int64_t steps = 0) {
    request.updates.push_back({base::ClientName(client), weight, steps, &Add(tensors)});
  }

  base::Path output() const { return folder_ / "output"; }
  base::Path state() const { return folder_ / "state"; }
  const base::Path& path() const { return folder_.path(); }

  /// Aggregates the request; the report is kept in `report`.
  base::Status Run(const AlgorithmSpec& spec = {}) {
    FL_ASSIGN_OR_RETURN(const Rule rule, MakeRule(spec));
    request.output = output();
    request.state_output = state();
    request.durable = false;
    return Aggregate(rule, request, report);
  }
  /// The output's tensors by name, floating ones as F64, after Run.
  std::vector<double> Values(const std::string& name) { return ValuesOf(output(), name); }
  std::vector<double> ValuesOf(const base::Path& path, const std::string& name) {
    const auto file = tensor::SafetensorsFile::Open(path);
    FL_CHECK_MSG(file.ok(), file.status().ToString());
    const tensor::TensorInfo* info = file->header().Find(name);
    FL_CHECK_MSG(info != nullptr, name);
    std::vector<double> values(info->element_count());
    tensor::DecodeToDouble(info->dtype, file->Data(*info).data(), values.size(), values.data());
    return values;
  }
  std::string OutputBytes() {
    const auto content = base::ReadFile(output());
    FL_CHECK_MSG(content.ok(), content.status().ToString());
    return *content;
  }

  AggregateRequest request;
  AggregateReport report;

 private:
  base::TemporaryDirectory folder_;
  std::deque<tensor::SafetensorsFile> files_;
};

}  // namespace fl::strategy
