#include "trainer/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/digest.h"
#include "base/random.h"
#include "trainer/builtin/kernel.h"
#include "trainer/builtin/model.h"
#include "trainer/evaluate.h"

namespace fl::trainer {
namespace {

using base::Code;
using base::Path;
using ::testing::HasSubstr;

/// The digits that come with the project.
Path Digits() { return Path(FL_SOURCE_DIR) / "manifests/examples/digits"; }

base::Digest DigestOf(const Path& path) { return base::Digest::Of(base::ReadFile(path).value()); }

class BuiltinTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "builtin.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    EXPECT_TRUE(base::RemoveTree(folder_).ok());
    ASSERT_TRUE(UseInstructionSet(InstructionSets().front()).ok());
  }

  Path MakeModel(const std::string& architecture, const std::vector<int64_t>& layers,
                 uint64_t seed = 1) {
    const Path path = folder_ / (architecture + std::to_string(seed));
    EXPECT_TRUE(WriteInitialModel({architecture, layers, seed}, path).ok());
    return path;
  }

  Task MakeTask(const Path& model, const std::string& config, const std::string& dataset) {
    Task task;
    task.round = base::RoundNumber(1);
    task.seed = 7;
    task.model = model;
    task.output = folder_ / "output";
    task.config = config;
    task.dataset = dataset;
    return task;
  }

  std::string WriteCsv(const std::string& text) {
    EXPECT_TRUE(base::WriteFileAtomically(folder_ / "data.csv", text).ok());
    return "file://" + (folder_ / "data.csv").string();
  }

  base::Result<TaskResult> Run(const Task& task, const char* name = "mlp") {
    return MakeBuiltin(name).value()->Run(task, {}, {});
  }

  /// Trains on one client's digits, and adds its weights times its samples to `total`. Returns the
  /// samples.
  double AddClient(const Path& model, const std::string& name, int64_t round,
                   const std::string& config, std::vector<double>& total) {
    Task task = MakeTask(model, config, "file://" + (Digits() / (name + ".csv")).string());
    task.round = base::RoundNumber(round);
    task.seed = TaskSeed(1, task.round, base::ClientName(name));
    const base::Result<TaskResult> result = Run(task);
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    const builtin::Model update = builtin::Model::Load(task.output).value();
    const double samples = static_cast<double>(result->num_samples);
    for (size_t i = 0; i < total.size(); ++i) total[i] += samples * update.parameters()[i];
    return samples;
  }

  Path folder_;
};

constexpr char kDigitsConfig[] =
    R"({"learningRate": 0.1, "localEpochs": 5, "batchSize": 10, "featureScale": 0.0625})";

DatasetSpec TestDigits() {
  DatasetSpec spec;
  spec.path = Digits() / "test.csv";
  return spec;
}

std::string DigitsUri(const std::string& name) { return "file://" + (Digits() / name).string(); }

TEST_F(BuiltinTest, NamesAreExplicit) {
  EXPECT_TRUE(IsBuiltin("mlp"));
  EXPECT_TRUE(IsBuiltin("softmax"));
  EXPECT_EQ(MakeBuiltin("cnn").status().code(), Code::kNotFound);
}

TEST_F(BuiltinTest, InitialWeightsAreTheSameEverywhere) {
  const auto tensors = InitialWeights({"mlp", {3, 2, 4}, 5}).value();
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors[0].spec.name, "layers.0.weight");
  EXPECT_THAT(tensors[0].spec.shape, ::testing::ElementsAre(2, 3));
  EXPECT_EQ(tensors[3].spec.name, "layers.1.bias");
  EXPECT_THAT(tensors[3].spec.shape, ::testing::ElementsAre(4));
  for (const auto& tensor : tensors) {
    const float bound = tensor.spec.name.starts_with("layers.0") ? 0.5774F : 0.7072F;
    for (size_t i = 0; i < tensor.bytes.size() / 4; ++i) {
      float value;
      std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
      EXPECT_LE(std::abs(value), bound);
    }
  }
  const Path path = folder_ / "fixed";
  EXPECT_EQ(WriteInitialModel({"mlp", {3, 2, 4}, 5}, path)->digest.ToString(),
            "sha256:44a8811805cc4ab361dfc3cdbbb6209f34822b5d7c047152831c651d1da653f7");
}

TEST_F(BuiltinTest, ArchitecturesThatAreWrong) {
  const auto message = [](const BuiltinModel& model) {
    const base::Status status = InitialWeights(model).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(message({"cnn", {1, 2}, 0}), HasSubstr("\"cnn\""));
  EXPECT_THAT(message({"mlp", {5}, 0}), HasSubstr("1 widths"));
  EXPECT_THAT(message({"mlp", {}, 0}), HasSubstr("0 widths"));
  EXPECT_THAT(message({"mlp", {5, 0, 2}, 0}), HasSubstr("width 0"));
  EXPECT_THAT(message({"mlp", {5, -1}, 0}), HasSubstr("width -1"));
  EXPECT_THAT(message({"mlp", {10'000'000, 10'000'000}, 0}), HasSubstr("2^31"));
  EXPECT_THAT(message({"softmax", {4, 5, 2}, 0}), HasSubstr("no hidden layers"));
}

/// A small network and batch, its loss, and one step on it.
struct Example {
  std::vector<builtin::Layer> layers;
  builtin::AlignedFloats parameters;
  builtin::AlignedFloats values;
  std::vector<int32_t> labels;
  int64_t rows = 6;

  explicit Example(const std::vector<int64_t>& widths) {
    base::SeededRandom random({11});
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      builtin::Layer layer;
      layer.inputs = widths[i];
      layer.outputs = widths[i + 1];
      layer.weight = parameters.size();
      layer.bias = layer.weight + static_cast<size_t>(layer.inputs * layer.outputs);
      parameters.resize(layer.bias + static_cast<size_t>(layer.outputs));
      layers.push_back(layer);
    }
    for (float& p : parameters) p = static_cast<float>(0.5 * random.Normal());
    for (int64_t i = 0; i < rows * widths.front(); ++i) {
      values.push_back(static_cast<float>(random.Normal()));
    }
    for (int64_t i = 0; i < rows; ++i) {
      labels.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(widths.back()))));
    }
  }
  builtin::Network network() const { return {layers.data(), layers.size()}; }

  /// In F64 by hand, to compare with.
  double MeanLoss(const std::vector<double>& p) const {
    double total = 0;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<double> x(values.begin() + row * layers[0].inputs,
                            values.begin() + (row + 1) * layers[0].inputs);
      for (size_t l = 0; l < layers.size(); ++l) {
        std::vector<double> y;
        for (int64_t o = 0; o < layers[l].outputs; ++o) {
          double sum = p[layers[l].bias + static_cast<size_t>(o)];
          for (size_t i = 0; i < x.size(); ++i) {
            sum += p[layers[l].weight + static_cast<size_t>(o) * x.size() + i] * x[i];
          }
          y.push_back(l + 1 < layers.size() ? std::max(sum, 0.0) : sum);
        }
        x = y;
      }
      double sum = 0;
      for (const double z : x) sum += std::exp(z);
      total += std::log(sum) - x[static_cast<size_t>(labels[static_cast<size_t>(row)])];
    }
    return total / static_cast<double>(rows);
  }

  /// Parameters after a step with `step`'s settings.
  builtin::AlignedFloats Step(const builtin::Kernels& kernels, builtin::SgdStep step,
                              double* loss = nullptr) const {
    builtin::AlignedFloats after = parameters;
    builtin::AlignedFloats scratch(ScratchFloats(network(), rows));
    step.parameters = after.data();
    step.scratch = scratch.data();
    const double sum = kernels.train(network(), step, values.data(), labels.data(), rows);
    if (loss != nullptr) *loss = sum / static_cast<double>(rows);
    return after;
  }
};

std::vector<std::vector<int64_t>> Shapes() { return {{5, 3}, {4, 7, 3}, {6, 9, 5, 8, 4}, {1, 1}}; }

class KernelTest : public BuiltinTest {};

TEST_F(KernelTest, GradientIsTheFiniteDifference) {
  for (const std::string& set : InstructionSets()) {
    ASSERT_TRUE(UseInstructionSet(set).ok());
    for (const auto& shape : Shapes()) {
      const Example example(shape);
      builtin::SgdStep step;
      step.learning_rate = 1;
      double loss = 0;
      const builtin::AlignedFloats after = example.Step(builtin::ActiveKernels(), step, &loss);
      std::vector<double> p(example.parameters.begin(), example.parameters.end());
      EXPECT_NEAR(loss, example.MeanLoss(p), 1e-5);
      for (size_t i = 0; i < p.size(); ++i) {
        constexpr double kStep = 1e-5;
        const double here = p[i];
        p[i] = here + kStep;
        const double above = example.MeanLoss(p);
        p[i] = here - kStep;
        const double below = example.MeanLoss(p);
        p[i] = here;
        const double gradient = (above - below) / (2 * kStep);
        EXPECT_NEAR(example.parameters[i] - after[i], gradient, 1e-5) << set << " parameter " << i;
      }
    }
  }
}

TEST_F(KernelTest, PenaltiesAndMomentumFollowTheirFormulas) {
  const Example example({4, 7, 3});
  builtin::AlignedFloats global;
  for (const float p : example.parameters) global.push_back(0.5F * p + 0.125F);
  for (const std::string& set : InstructionSets()) {
    ASSERT_TRUE(UseInstructionSet(set).ok());
    builtin::SgdStep plain;
    plain.learning_rate = 1;
    const builtin::AlignedFloats stepped = example.Step(builtin::ActiveKernels(), plain);
    for (const bool with_momentum : {false, true}) {
      builtin::AlignedFloats velocity(example.parameters.size(), 0.25F);
      builtin::SgdStep step;
      step.learning_rate = 0.5F;
      step.weight_decay = 0.125F;
      step.mu = 2;
      step.global = global.data();
      step.momentum = 0.5F;
      step.velocity = with_momentum ? velocity.data() : nullptr;
      const builtin::AlignedFloats after = example.Step(builtin::ActiveKernels(), step);
      for (size_t i = 0; i < after.size(); ++i) {
        const float w = example.parameters[i];
        const float g = w - stepped[i] + 0.125F * w + 2 * (w - global[i]);
        const float v = with_momentum ? 0.5F * 0.25F + g : g;
        EXPECT_NEAR(after[i], w - 0.5F * v, 1e-5) << set;
        if (with_momentum) {
          EXPECT_NEAR(velocity[i], v, 1e-5) << set;
        }
      }
    }
  }
}

TEST_F(BuiltinTest, UnknownInstructionSet) {
  EXPECT_EQ(UseInstructionSet("z80").code(), Code::kNotFound);
  EXPECT_EQ(InstructionSets().back(), "baseline");
}

TEST_F(BuiltinTest, LearnsDigits) {
  for (const char* name : {"softmax", "mlp"}) {
    const std::vector<int64_t> layers = std::string(name) == "mlp"
                                            ? std::vector<int64_t>{64, 32, 10}
                                            : std::vector<int64_t>{64, 10};
    const Path model = MakeModel(name, layers);
    Task task = MakeTask(model, kDigitsConfig, DigitsUri("train.csv"));
    const TaskResult result = Run(task, name).value();
    EXPECT_EQ(result.num_samples, 1437);
    EXPECT_EQ(result.num_steps, 5 * 144);
    EXPECT_LT(result.metrics.at("trainLoss"), 0.5);
    ASSERT_TRUE(CheckOutput(model, task.output).ok());
    EXPECT_LT(EvaluateModel(model, TestDigits(), {.feature_scale = 0.0625})->accuracy, 0.5);
    const Evaluation after =
        EvaluateModel(task.output, TestDigits(), {.feature_scale = 0.0625, .batch_size = 7})
            .value();
    EXPECT_EQ(after.samples, 360);
    EXPECT_GT(after.accuracy, 0.9) << name;
    EXPECT_LT(after.loss, 0.4);

    task.kind = TaskKind::kEvaluate;
    task.model = task.output;
    task.output.clear();
    task.dataset = DigitsUri("test.csv");
    const TaskResult evaluated = Run(task, name).value();
    EXPECT_EQ(evaluated.num_samples, 360);
    EXPECT_EQ(evaluated.metrics.at("accuracy"), after.accuracy);
    EXPECT_NEAR(evaluated.metrics.at("loss"), after.loss, 1e-6);
  }
}

// The demo's settings: ten clients, no two alike, averaged by samples.
TEST_F(BuiltinTest, DigitsFederationReaches95Percent) {
  Path model = MakeModel("mlp", {64, 32, 10});
  const std::string config =
      R"({"learningRate": 0.1, "localEpochs": 3, "batchSize": 10, "featureScale": 0.0625})";
  for (int64_t round = 1; round <= 20; ++round) {
    builtin::Model sum = builtin::Model::Load(model).value();
    std::vector<double> total(sum.parameters().size());
    double samples = 0;
    for (int client = 1; client <= 10; ++client) {
      const std::string name = (client < 10 ? "client-0" : "client-") + std::to_string(client);
      samples += AddClient(model, name, round, config, total);
    }
    for (size_t i = 0; i < total.size(); ++i) {
      sum.parameters()[i] = static_cast<float>(total[i] / samples);
    }
    model = folder_ / "averaged";
    ASSERT_TRUE(sum.Save(model).ok());
  }
  EXPECT_GE(EvaluateModel(model, TestDigits(), {.feature_scale = 0.0625})->accuracy, 0.95);
}

TEST_F(BuiltinTest, SameTaskSameBits) {
  const Path model = MakeModel("mlp", {64, 16, 10});
  Task task = MakeTask(model,
                       R"({"learningRate": 0.1, "batchSize": 7, "momentum": 0.9,
                           "weightDecay": 0.001, "featureScale": 0.0625})",
                       DigitsUri("client-01.csv"));
  task.mu = 0.1;
  std::map<std::string, builtin::AlignedFloats> of_set;
  for (const std::string& set : InstructionSets()) {
    ASSERT_TRUE(UseInstructionSet(set).ok());
    const TaskResult first = Run(task).value();
    const base::Digest bytes = DigestOf(task.output);
    auto trainer = MakeBuiltin("mlp").value();
    for (int i = 0; i < 2; ++i) {  // the second time with the rows still in memory
      EXPECT_EQ(trainer->Run(task, {}, {}).value(), first);
      EXPECT_EQ(DigestOf(task.output), bytes);
    }
    of_set[set] = builtin::Model::Load(task.output)->parameters();
    Task other = task;
    other.seed = 8;
    ASSERT_TRUE(Run(other).ok());
    EXPECT_NE(DigestOf(task.output), bytes) << "the seed decides the order";
  }
  const builtin::AlignedFloats& reference = of_set.at("baseline");
  for (const auto& [set, parameters] : of_set) {
    for (size_t i = 0; i < reference.size(); ++i) {
      ASSERT_NEAR(parameters[i], reference[i], 1e-3) << set;
    }
  }
}

TEST_F(BuiltinTest, DataThatChangedIsReadAgain) {
  const Path model = MakeModel("softmax", {1, 2});
  Task task = MakeTask(model, "{}", WriteCsv("x,label\n1,0\n"));
  auto trainer = MakeBuiltin("softmax").value();
  EXPECT_EQ(trainer->Run(task, {}, {})->num_samples, 1);
  WriteCsv("x,label\n1,0\n2,1\n");
  EXPECT_EQ(trainer->Run(task, {}, {})->num_samples, 2);
}

TEST_F(BuiltinTest, NoRowsLeaveTheModelAsItIs) {
  const Path model = MakeModel("softmax", {1, 2});
  Task task = MakeTask(model, "{}", WriteCsv("x,label\n"));
  const TaskResult result = Run(task).value();
  EXPECT_EQ(result, TaskResult());
  const auto before = builtin::Model::Load(model).value();
  EXPECT_EQ(builtin::Model::Load(task.output)->parameters(), before.parameters());
  task.kind = TaskKind::kEvaluate;
  EXPECT_EQ(Run(task).value(), TaskResult());
}

TEST_F(BuiltinTest, BatchSizeZeroIsAllRows) {
  const Path model = MakeModel("softmax", {64, 10});
  Task task = MakeTask(model, R"({"batchSize": 0, "localEpochs": 3})", DigitsUri("test.csv"));
  EXPECT_EQ(Run(task)->num_steps, 3);
}

TEST_F(BuiltinTest, LearningRateDecaysByRound) {
  const Path model = MakeModel("softmax", {64, 10});
  Task task =
      MakeTask(model, R"({"learningRate": 0.4, "learningRateDecay": 0.5})", DigitsUri("test.csv"));
  task.round = base::RoundNumber(3);
  ASSERT_TRUE(Run(task).ok());
  const base::Digest decayed = DigestOf(task.output);
  task.config = R"({"learningRate": 0.1})";
  ASSERT_TRUE(Run(task).ok());
  EXPECT_EQ(DigestOf(task.output), decayed);
}

TEST_F(BuiltinTest, DivergenceSaysWhatToDo) {
  const Path model = MakeModel("mlp", {64, 32, 10});
  for (const char* config :
       {R"({"learningRate": 1e20})", R"({"learningRate": 1e30, "localEpochs": 9})"}) {
    Task task = MakeTask(model, config, DigitsUri("train.csv"));
    const base::Status status = Run(task).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("diverged"));
    EXPECT_THAT(status.hint(), HasSubstr("lower learningRate"));
    EXPECT_FALSE(std::filesystem::exists(task.output));
  }
}

TEST_F(BuiltinTest, WhatDoesNotFitIsNamed) {
  const Path model = MakeModel("mlp", {2, 3, 2});
  const auto status = [&](const std::string& csv, const std::string& config = "{}",
                          const char* name = "mlp") {
    return Run(MakeTask(model, config, WriteCsv(csv)), name).status();
  };
  EXPECT_THAT(status("a,label\n1,0\n").message(), HasSubstr("1 features, the model takes 2"));
  EXPECT_THAT(status("a,b,label\n1,1,2\n").message(),
              HasSubstr("label 2, the model has 2 classes"));
  EXPECT_THAT(status("a,b,label\n1,x,1\n").message(), HasSubstr("line 2"));
  EXPECT_THAT(status("a,b,label\n1,1,1\n", R"({"learningRat": 1})").message(),
              HasSubstr("learningRat"));
  EXPECT_EQ(status("a,b,label\n1,1,1\n", R"({"learningRate": 0})").code(), Code::kInvalidArgument);
  EXPECT_THAT(status("a,b,label\n1,1,1\n", "{}", "softmax").message(),
              HasSubstr("no hidden layers"));
}

TEST_F(BuiltinTest, ModelsThatAreNoneOfOurs) {
  const std::vector<float> six(6);
  const std::vector<float> two(2);
  const auto problem = [&](const std::vector<tensor::Tensor>& tensors) {
    const Path path = folder_ / "other";
    EXPECT_TRUE(tensor::WriteSafetensors(path, tensors).ok());
    EXPECT_FALSE(IsBuiltinModel(path).value());
    const auto evaluated = EvaluateModel(path, TestDigits());
    EXPECT_EQ(evaluated.status().code(), Code::kFailedPrecondition);
    return evaluated.status().message();
  };
  using tensor::Tensor;
  const Tensor weight = Tensor::FromFloats("layers.0.weight", {2, 3}, six);
  EXPECT_THAT(problem({}), HasSubstr("0 tensors"));
  EXPECT_THAT(problem({Tensor::FromFloats("w", {2, 3}, six)}), HasSubstr("layers.0.weight"));
  EXPECT_THAT(problem({weight}), HasSubstr("layers.0.bias"));
  EXPECT_THAT(problem({weight, Tensor::FromFloats("layers.0.bias", {6}, six)}),
              HasSubstr("[2,3] and [6]"));
  EXPECT_THAT(problem({weight, Tensor::FromFloats("layers.0.bias", {2}, two),
                       Tensor::FromFloats("layers.1.weight", {2, 3}, six),
                       Tensor::FromFloats("layers.1.bias", {2}, two)}),
              HasSubstr("after 2 outputs"));
  EXPECT_THAT(problem({weight, Tensor::FromFloats("layers.0.bias", {2}, two),
                       Tensor::FromFloats("extra", {2}, two)}),
              HasSubstr("layers.1.weight"));
  Tensor half = weight;
  half.spec.dtype = tensor::DType::kF16;
  half.bytes.resize(12);
  EXPECT_THAT(problem({half, Tensor::FromFloats("layers.0.bias", {2}, two)}), HasSubstr("F16"));
  EXPECT_TRUE(IsBuiltinModel(MakeModel("mlp", {2, 3, 2})).value());
}

TEST_F(BuiltinTest, StopsWhenAsked) {
  const Path model = MakeModel("mlp", {64, 32, 10});
  const Task task =
      MakeTask(model, R"({"localEpochs": 1000000, "batchSize": 1})", DigitsUri("train.csv"));
  auto trainer = MakeBuiltin("mlp").value();
  const auto late = trainer->Run(task, base::Clock::System().Monotonic(), {});
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(trainer->Run(task, {}, source.get_token()).status().code(), Code::kCancelled);
  EXPECT_EQ(EvaluateModel(model, TestDigits(), {}, source.get_token()).status().code(),
            Code::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(task.output));
}

}  // namespace
}  // namespace fl::trainer
