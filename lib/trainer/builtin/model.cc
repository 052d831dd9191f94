#include "trainer/builtin/model.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "tensor/dtype.h"

namespace fl::trainer::builtin {
namespace {

using base::FailedPrecondition;
using base::Result;
using base::Status;

constexpr char kLayout[] =
    "built-in trainers need F32 tensors layers.N.weight [out, in] and layers.N.bias [out], N from "
    "0";

std::string NameOf(size_t layer, const char* part) {
  return "layers." + std::to_string(layer) + "." + part;
}

Status NotOurs(const std::string& problem) {
  return FailedPrecondition("the model is none of the built-in networks: " + problem, kLayout);
}

}  // namespace

Result<std::vector<Layer>> Model::LayersOf(const tensor::Header& header) {
  std::vector<Layer> layers;
  size_t parameters = 0;
  while (2 * layers.size() < header.tensors().size()) {
    const size_t n = layers.size();
    const tensor::TensorInfo* const weight = header.Find(NameOf(n, "weight"));
    const tensor::TensorInfo* const bias = header.Find(NameOf(n, "bias"));
    if (weight == nullptr || bias == nullptr) {
      return NotOurs("it has no tensor \"" + NameOf(n, weight == nullptr ? "weight" : "bias") +
                     "\"");
    }
    for (const tensor::TensorInfo* tensor : {weight, bias}) {
      if (tensor->dtype != tensor::DType::kF32) {
        return NotOurs("tensor \"" + tensor->name + "\" is " +
                       std::string(tensor::Name(tensor->dtype)));
      }
    }
    const bool fits = weight->shape.size() == 2 && weight->element_count() > 0 &&
                      bias->shape == std::vector<uint64_t>{weight->shape[0]} &&
                      (n == 0 || weight->shape[1] == static_cast<uint64_t>(layers.back().outputs));
    if (!fits) {
      return NotOurs(
          "tensors \"" + weight->name + "\" and \"" + bias->name + "\" have shapes " +
          tensor::ShapeToString(weight->shape) + " and " + tensor::ShapeToString(bias->shape) +
          (n == 0 ? "" : " after " + std::to_string(layers.back().outputs) + " outputs"));
    }
    Layer layer;
    layer.outputs = static_cast<int64_t>(weight->shape[0]);
    layer.inputs = static_cast<int64_t>(weight->shape[1]);
    layer.weight = parameters;
    layer.bias = parameters + weight->element_count();
    parameters = layer.bias + bias->element_count();
    layers.push_back(layer);
  }
  if (layers.empty() || 2 * layers.size() != header.tensors().size()) {
    return NotOurs("it has " +
                   base::Count(static_cast<int64_t>(header.tensors().size()), "tensor"));
  }
  return layers;
}

Result<Model> Model::Load(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile file, tensor::SafetensorsFile::Open(path));
  Model model;
  model.header_ = file.header();
  FL_ASSIGN_OR_RETURN(model.layers_, LayersOf(model.header_));
  const Layer& last = model.layers_.back();
  model.parameters_.resize(last.bias + static_cast<size_t>(last.outputs));
  for (size_t i = 0; i < model.layers_.size(); ++i) {
    const auto read = [&](const char* part, size_t offset) {
      const auto bytes = file.Data(*model.header_.Find(NameOf(i, part)));
      std::memcpy(model.parameters_.data() + offset, bytes.data(), bytes.size());
    };
    read("weight", model.layers_[i].weight);
    read("bias", model.layers_[i].bias);
  }
  return model;
}

Status Model::Save(const base::Path& path) const {
  std::vector<tensor::TensorSpec> specs;
  for (const tensor::TensorInfo& info : header_.tensors()) {
    specs.push_back({info.name, info.dtype, info.shape});
  }
  FL_ASSIGN_OR_RETURN(tensor::SafetensorsWriter writer,
                      tensor::SafetensorsWriter::Create(path, specs, header_.metadata()));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto write = [&](const char* part, size_t offset) {
      const tensor::TensorInfo& info = *writer.header().Find(NameOf(i, part));
      return writer.WriteAt(info.begin,
                            {reinterpret_cast<const uint8_t*>(parameters_.data() + offset),
                             static_cast<size_t>(info.byte_size())});
    };
    FL_RETURN_IF_ERROR(write("weight", layers_[i].weight));
    FL_RETURN_IF_ERROR(write("bias", layers_[i].bias));
  }
  return std::move(writer).Commit(/*durable=*/false).status();
}

Status Model::CheckFits(const std::string& dataset, int64_t features,
                        std::span<const int32_t> labels) const {
  if (features != this->features()) {
    return FailedPrecondition("dataset " + dataset + " has " + std::to_string(features) +
                                  " features, the model takes " + std::to_string(this->features()),
                              "the first layer of the model must be as wide as the data");
  }
  for (const int32_t label : labels) {
    if (label >= classes()) {
      return FailedPrecondition("dataset " + dataset + " has label " + std::to_string(label) +
                                    ", the model has " + std::to_string(classes()) +
                                    " classes, from 0",
                                "the last layer of the model needs an output for each class");
    }
  }
  return base::OkStatus();
}

}  // namespace fl::trainer::builtin
