/// McMahan et al. 2017 ("Communication-Efficient Learning of Deep Networks from Decentralized
/// Data"), table 1: rounds until the 2NN reaches 97 % test accuracy on MNIST with 100 clients,
/// C = 0.1, E = 1, B = 10, for IID data and for the split into two shards each.
///
/// One process, no network; otherwise the product's own code: the partitions and the built-in mlp
/// of lib/trainer, the selection and FedAvg of lib/strategy. Weights travel as safetensors files.
///
///   bench_mcmahan MNIST_FOLDER iid|shards=2 LEARNING_RATE DECAY MAX_ROUNDS SEED
///   bench_mcmahan --synthetic       two rounds on noise: does it still run?
///
/// prints one JSON object: the settings, the round at which 97 % was first reached (null if not),
/// and each round's accuracy. mcmahan.sh runs what the table needs.
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/random.h"
#include "strategy/aggregate/aggregate.h"
#include "strategy/select/selector.h"
#include "trainer/builtin.h"
#include "trainer/evaluate.h"

namespace {

using fl::base::Path;
using fl::base::Result;
using fl::base::Status;

constexpr int64_t kClients = 100;
constexpr int64_t kClientsPerRound = 10;
constexpr double kTarget = 0.97;

struct Settings {
  std::string folder;
  std::string partition;
  double learning_rate = 0;
  double decay = 1;
  int64_t max_rounds = 0;
  uint64_t seed = 0;
};

/// A client and its trainer, which keeps the client's rows in memory.
struct Client {
  fl::base::ClientName name;
  std::string dataset;
  std::unique_ptr<fl::trainer::Trainer> trainer;
};

Result<std::vector<Client>> MakeClients(const Settings& settings) {
  FL_ASSIGN_OR_RETURN(fl::trainer::DatasetSpec spec,
                      fl::trainer::DatasetSpec::Parse("file:" + settings.folder));
  FL_ASSIGN_OR_RETURN(const auto scheme, fl::trainer::PartitionScheme::Parse(settings.partition));
  std::vector<Client> clients;
  for (int64_t i = 0; i < kClients; ++i) {
    spec.part = fl::trainer::Partition{scheme, kClients, i, settings.seed};
    FL_ASSIGN_OR_RETURN(auto trainer, fl::trainer::MakeBuiltin("mlp"));
    clients.push_back(
        {fl::base::ClientName("client-" + std::to_string(i)), spec.ToString(), std::move(trainer)});
  }
  return clients;
}

Status Train(Client& client, const Settings& settings, fl::base::RoundNumber round,
             const Path& model, const Path& output, fl::strategy::Update& update) {
  fl::trainer::Task task;
  task.job = fl::base::JobName("mcmahan");
  task.round = round;
  task.client = client.name;
  task.seed = fl::trainer::TaskSeed(settings.seed, round, client.name);
  task.config = nlohmann::json({{"learningRate", settings.learning_rate},
                                {"learningRateDecay", settings.decay},
                                {"localEpochs", 1},
                                {"batchSize", 10}})
                    .dump();
  task.model = model;
  task.output = output;
  task.dataset = client.dataset;
  FL_ASSIGN_OR_RETURN(const auto result, client.trainer->Run(task, {}, {}));
  update.client = client.name;
  update.weight = static_cast<double>(result.num_samples);
  update.steps = result.num_steps;
  return fl::base::OkStatus();
}

Result<nlohmann::ordered_json> Run(const Settings& settings, const Path& work) {
  FL_ASSIGN_OR_RETURN(std::vector<Client> clients, MakeClients(settings));
  fl::strategy::SelectionSpec selection;
  selection.clients_per_round = kClientsPerRound;
  selection.seed = settings.seed;
  FL_ASSIGN_OR_RETURN(const auto selector, fl::strategy::MakeSelector(selection));
  FL_ASSIGN_OR_RETURN(const auto rule, fl::strategy::MakeRule({}));
  FL_ASSIGN_OR_RETURN(const auto test, fl::trainer::DatasetSpec::Parse("file:" + settings.folder));
  Path model = work / "model-0";
  FL_RETURN_IF_ERROR(
      fl::trainer::WriteInitialModel({"mlp", {784, 200, 200, 10}, settings.seed}, model).status());

  nlohmann::ordered_json report = {{"partition", settings.partition},
                                   {"learningRate", settings.learning_rate},
                                   {"learningRateDecay", settings.decay},
                                   {"seed", settings.seed},
                                   {"rounds", nullptr}};
  std::vector<double> accuracies;
  for (fl::base::RoundNumber round(1); round.value() <= settings.max_rounds; round = round.Next()) {
    fl::strategy::SelectionRequest request;
    request.job = fl::base::JobName("mcmahan");
    request.round = round;
    for (const Client& client : clients) request.candidates.push_back(client.name);
    FL_ASSIGN_OR_RETURN(const auto cohort, selector->Select(request));

    FL_ASSIGN_OR_RETURN(const auto global, fl::tensor::SafetensorsFile::Open(model));
    std::vector<fl::tensor::SafetensorsFile> files;
    files.reserve(cohort.size());
    fl::strategy::AggregateRequest aggregate;
    for (const fl::base::ClientName& name : cohort) {
      const auto client = std::find_if(clients.begin(), clients.end(),
                                       [&name](const Client& c) { return c.name == name; });
      const Path output = work / ("update-" + name.str());
      fl::strategy::Update update;
      FL_RETURN_IF_ERROR(Train(*client, settings, round, model, output, update));
      FL_ASSIGN_OR_RETURN(auto file, fl::tensor::SafetensorsFile::Open(output));
      files.push_back(std::move(file));
      update.tensors = &files.back();
      aggregate.updates.push_back(update);
    }
    const Path next = work / ("model-" + std::to_string(round.value()));
    aggregate.global = &global;
    aggregate.output = next;
    aggregate.durable = false;
    fl::strategy::AggregateReport aggregated;
    FL_RETURN_IF_ERROR(fl::strategy::Aggregate(rule, aggregate, aggregated));
    FL_RETURN_IF_ERROR(fl::base::RemoveFile(model));
    model = next;

    FL_ASSIGN_OR_RETURN(const auto evaluation, fl::trainer::EvaluateModel(model, test));
    accuracies.push_back(evaluation.accuracy);
    if (evaluation.accuracy >= kTarget) {
      report["rounds"] = round.value();
      break;
    }
  }
  report["accuracy"] = accuracies;
  return report;
}

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// IDX files of noise, 20 images for each client.
Status WriteSynthetic(const Path& folder) {
  fl::base::SeededRandom random({1});
  for (const auto& [prefix, rows] : {std::pair("train", 20 * kClients), std::pair("t10k", 50L)}) {
    const std::string count = {0, 0, static_cast<char>(rows >> 8), static_cast<char>(rows & 255)};
    std::string images = std::string({0, 0, 8, 3}) + count;
    images += std::string({0, 0, 0, 28, 0, 0, 0, 28});
    std::string labels = std::string({0, 0, 8, 1}) + count;
    for (int64_t i = 0; i < rows; ++i) labels += static_cast<char>(random.Below(10));
    for (int64_t i = 0; i < rows * 784; ++i) images += static_cast<char>(random.Below(256));
    FL_RETURN_IF_ERROR(fl::base::WriteFileAtomically(
        folder / (std::string(prefix) + "-images-idx3-ubyte"), images));
    FL_RETURN_IF_ERROR(fl::base::WriteFileAtomically(
        folder / (std::string(prefix) + "-labels-idx1-ubyte"), labels));
  }
  return fl::base::OkStatus();
}

int RunCommand(const std::vector<std::string>& arguments, const Path& work) {
  Settings settings;
  if (arguments == std::vector<std::string>{"--synthetic"}) {
    if (const Status written = WriteSynthetic(work); !written.ok()) {
      std::cerr << "bench_mcmahan: " << written.ToString() << "\n";
      return 1;
    }
    settings = {work.string(), "shards=2", 0.1, 1, 2, 1};
  } else if (arguments.size() != 6 || !ParseNumber(arguments[2], settings.learning_rate) ||
             !ParseNumber(arguments[3], settings.decay) ||
             !ParseNumber(arguments[4], settings.max_rounds) ||
             !ParseNumber(arguments[5], settings.seed)) {
    std::cerr << "usage: bench_mcmahan MNIST_FOLDER iid|shards=2 LEARNING_RATE DECAY MAX_ROUNDS "
                 "SEED\n";
    return 4;
  } else {
    settings.folder = arguments[0];
    settings.partition = arguments[1];
  }
  const auto report = Run(settings, work);
  if (!report.ok()) {
    std::cerr << "bench_mcmahan: " << report.status().ToString() << "\n";
    return 1;
  }
  std::cout << fl::base::DumpJson(*report) << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string work = (std::filesystem::temp_directory_path() / "mcmahan.XXXXXX").string();
  if (::mkdtemp(work.data()) == nullptr) {
    std::cerr << "bench_mcmahan: cannot make a temporary folder\n";
    return 1;
  }
  const int exit_code = RunCommand(std::vector<std::string>(argv + 1, argv + argc), work);
  if (const Status removed = fl::base::RemoveTree(work); !removed.ok()) {
    std::cerr << "bench_mcmahan: " << removed.ToString() << "\n";
  }
  return exit_code;
}
