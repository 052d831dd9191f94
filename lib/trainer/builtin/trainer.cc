// The Trainer that runs the built-in networks.
#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

#include "base/random.h"
#include "trainer/builtin.h"
#include "trainer/builtin/kernel.h"
#include "trainer/builtin/model.h"
#include "trainer/config.h"
#include "trainer/dataset.h"

namespace fl::trainer {
namespace {

using base::FailedPrecondition;
using base::InvalidArgument;
using base::Result;
using base::Status;
using builtin::Model;

struct SgdConfig {
  double learning_rate = 0;
  double learning_rate_decay = 1;
  int64_t local_epochs = 1;
  int64_t batch_size = 32;
  double momentum = 0;
  double weight_decay = 0;
  double feature_scale = 1;
  int64_t eval_batch_size = 256;
};

Result<SgdConfig> ParseConfig(const std::string& text) {
  constexpr double kTiny = 1e-30;
  constexpr double kHuge = 1e30;
  SgdConfig sgd;
  FL_ASSIGN_OR_RETURN(Config config, Config::Parse(text));
  FL_ASSIGN_OR_RETURN(sgd.learning_rate, config.Number("learningRate", 0.01, kTiny, kHuge));
  FL_ASSIGN_OR_RETURN(sgd.learning_rate_decay, config.Number("learningRateDecay", 1, kTiny, 1));
  FL_ASSIGN_OR_RETURN(sgd.local_epochs, config.Integer("localEpochs", 1, 1, 1'000'000));
  FL_ASSIGN_OR_RETURN(sgd.batch_size, config.Integer("batchSize", 32, 0, 1'000'000'000));
  FL_ASSIGN_OR_RETURN(sgd.momentum, config.Number("momentum", 0, 0, 0.999999));
  FL_ASSIGN_OR_RETURN(sgd.weight_decay, config.Number("weightDecay", 0, 0, kHuge));
  FL_ASSIGN_OR_RETURN(sgd.feature_scale, config.Number("featureScale", 1, kTiny, kHuge));
  FL_ASSIGN_OR_RETURN(sgd.eval_batch_size, config.Integer("evalBatchSize", 256, 1, 1'000'000));
  FL_RETURN_IF_ERROR(config.CheckAllRead());
  return sgd;
}

/// Tells when a task is to be cut short.
class Limits {
 public:
  Limits(std::optional<base::Instant> deadline, std::stop_token stop)
      : deadline_(deadline), stop_(std::move(stop)) {}
  Status Check() const {
    if (stop_.stop_requested()) return base::Cancelled("training was stopped");
    if (deadline_ && base::Clock::System().Monotonic() >= *deadline_) {
      return base::DeadlineExceeded("training did not end in time",
                                    "lower localEpochs, or raise the round's deadline");
    }
    return base::OkStatus();
  }

 private:
  const std::optional<base::Instant> deadline_;
  const std::stop_token stop_;
};

class BuiltinTrainer final : public Trainer {
 public:
  explicit BuiltinTrainer(std::string name) : name_(std::move(name)) {}

  Result<TaskResult> Run(const Task& task, std::optional<base::Instant> deadline,
                         std::stop_token stop) override {
    Result<TaskResult> result = RunGuarded(task, Limits(deadline, std::move(stop)));
    if (!result.ok() && !task.output.empty()) {
      FL_RETURN_IF_ERROR(base::RemoveFile(task.output));
    }
    return result;
  }

 private:
  Result<TaskResult> RunGuarded(const Task& task, const Limits& limits) {
    try {
      return RunTask(task, limits);
    } catch (const std::bad_alloc&) {
      data_key_ = {};
      data_ = {};
      return base::ResourceExhausted("not enough memory for the client's data and the network",
                                     "give each client a smaller part, or a smaller network");
    }
  }

  Result<TaskResult> RunTask(const Task& task, const Limits& limits) {
    FL_ASSIGN_OR_RETURN(const SgdConfig config, ParseConfig(task.config));
    FL_ASSIGN_OR_RETURN(Model model, Model::Load(task.model));
    if (name_ == "softmax" && model.network().layer_count != 1) {
      return FailedPrecondition("trainer softmax has no hidden layers, the model has some",
                                "use builtin: mlp");
    }
    FL_RETURN_IF_ERROR(LoadData(task.dataset, config.feature_scale));
    FL_RETURN_IF_ERROR(model.CheckFits(task.dataset, data_.features, data_.labels));
    if (task.kind == TaskKind::kEvaluate) return Evaluate(config, model, limits);
    FL_ASSIGN_OR_RETURN(TaskResult result, Train(task, config, model, limits));
    FL_RETURN_IF_ERROR(model.Save(task.output));
    return result;
  }

  /// Keeps the rows from task to task, until the file or what is asked of it changes.
  Status LoadData(const std::string& uri, double scale) {
    FL_ASSIGN_OR_RETURN(const DatasetSpec spec, DatasetSpec::Parse(uri));
    std::error_code ignored;
    const auto written = std::filesystem::last_write_time(spec.path, ignored);
    const auto size = std::filesystem::file_size(spec.path, ignored);
    const auto key = std::tuple(uri, scale, written.time_since_epoch().count(), size);
    if (key == data_key_) return base::OkStatus();
    data_key_ = {};
    data_ = {};
    FL_ASSIGN_OR_RETURN(data_, LoadDataset(spec));
    if (scale != 1) {
      for (float& value : data_.values) value *= static_cast<float>(scale);
    }
    data_key_ = key;
    return base::OkStatus();
  }

  Result<TaskResult> Train(const Task& task, const SgdConfig& config, Model& model,
                           const Limits& limits) {
    const size_t rows = data_.labels.size();
    const size_t width = static_cast<size_t>(data_.features);
    const size_t batch_size =
        config.batch_size == 0
            ? std::max<size_t>(rows, 1)
            : std::min(static_cast<size_t>(config.batch_size), std::max<size_t>(rows, 1));
    const builtin::Network network = model.network();
    builtin::AlignedFloats scratch(ScratchFloats(network, static_cast<int64_t>(batch_size)));
    const builtin::AlignedFloats global =
        task.mu != 0 ? model.parameters() : builtin::AlignedFloats();
    builtin::AlignedFloats velocity(config.momentum != 0 ? model.parameters().size() : 0);
    builtin::SgdStep step;
    step.parameters = model.parameters().data();
    step.global = global.empty() ? nullptr : global.data();
    step.velocity = velocity.empty() ? nullptr : velocity.data();
    step.learning_rate = static_cast<float>(
        config.learning_rate *
        std::pow(config.learning_rate_decay, static_cast<double>(task.round.value() - 1)));
    step.momentum = static_cast<float>(config.momentum);
    step.weight_decay = static_cast<float>(config.weight_decay);
    step.mu = static_cast<float>(task.mu);
    step.scratch = scratch.data();

    std::vector<size_t> order(rows);
    std::iota(order.begin(), order.end(), size_t{0});
    base::SeededRandom random({task.seed});
    builtin::AlignedFloats values(batch_size * width);
    std::vector<int32_t> labels(batch_size);
    const builtin::Kernels& kernels = builtin::ActiveKernels();
    TaskResult result;
    result.num_samples = static_cast<int64_t>(rows);
    double loss = 0;
    for (int64_t epoch = 0; epoch < config.local_epochs && rows > 0; ++epoch) {
      random.Shuffle(order);
      loss = 0;
      for (size_t begin = 0; begin < rows; begin += batch_size) {
        FL_RETURN_IF_ERROR(limits.Check());
        const size_t count = std::min(batch_size, rows - begin);
        for (size_t i = 0; i < count; ++i) {
          const size_t row = order[begin + i];
          std::copy_n(data_.values.begin() + static_cast<int64_t>(row * width), width,
                      values.begin() + static_cast<int64_t>(i * width));
          labels[i] = data_.labels[row];
        }
        loss +=
            kernels.train(network, step, values.data(), labels.data(), static_cast<int64_t>(count));
        ++result.num_steps;
        if (!std::isfinite(loss)) return Diverged(config, result.num_steps);
      }
    }
    const auto finite = [](float value) { return std::isfinite(value); };
    if (!std::all_of(model.parameters().begin(), model.parameters().end(), finite)) {
      return Diverged(config, result.num_steps);
    }
    // Of the last epoch, while the weights moved: a trend, not an evaluation.
    if (rows > 0) result.metrics["trainLoss"] = loss / static_cast<double>(rows);
    return result;
  }

  static Status Diverged(const SgdConfig& config, int64_t steps) {
    std::string rate = std::to_string(config.learning_rate);
    return FailedPrecondition(
        "training diverged: loss or weights are no longer finite after step " +
            std::to_string(steps),
        "lower learningRate (it is " + rate + "), or bring features near 1 with featureScale");
  }

  Result<TaskResult> Evaluate(const SgdConfig& config, const Model& model, const Limits& limits) {
    const int64_t rows = data_.rows();
    const int64_t batch_size = std::min(config.eval_batch_size, std::max<int64_t>(rows, 1));
    builtin::AlignedFloats scratch(ScratchFloats(model.network(), batch_size));
    builtin::AlignedFloats values;
    double loss = 0;
    int64_t correct = 0;
    for (int64_t begin = 0; begin < rows; begin += batch_size) {
      FL_RETURN_IF_ERROR(limits.Check());
      const int64_t count = std::min(batch_size, rows - begin);
      builtin::ActiveKernels().evaluate(model.network(), model.parameters().data(), scratch.data(),
                                        data_.values.data() + begin * data_.features,
                                        data_.labels.data() + begin, count, &loss, &correct);
    }
    TaskResult result;
    result.num_samples = rows;
    if (rows > 0) {
      if (!std::isfinite(loss)) {
        return FailedPrecondition("evaluation gives a loss that is not finite",
                                  "check the scale of the data (featureScale)");
      }
      result.metrics["loss"] = loss / static_cast<double>(rows);
      result.metrics["accuracy"] = static_cast<double>(correct) / static_cast<double>(rows);
    }
    return result;
  }

  const std::string name_;
  Dataset data_;
  std::tuple<std::string, double, int64_t, uintmax_t> data_key_;
};

}  // namespace

Result<std::unique_ptr<Trainer>> MakeBuiltin(std::string_view name) {
  if (!IsBuiltin(name)) {
    return base::NotFound("there is no built-in trainer \"" + std::string(name) + "\"",
                          "use mlp or softmax");
  }
  return std::unique_ptr<Trainer>(std::make_unique<BuiltinTrainer>(std::string(name)));
}

}  // namespace fl::trainer
