#include "strategy/aggregate/aggregate.h"

#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "base/thread_pool.h"
#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "strategy/aggregate/rule.h"
#include "tensor/safetensors.h"

namespace fl::cli {
namespace {

struct Options {
  std::string algorithm = "FedAvg";
  std::vector<std::string> parameters;
  std::string global;
  std::string state;
  std::string trusted;
  std::vector<std::string> updates;
  std::string out;
  std::string report;
  std::optional<int64_t> threads;
};

/// One --update as it was written.
struct UpdateArgument {
  std::string file;
  std::string client;
  double weight = 0;
  int64_t steps = 0;
};

constexpr std::string_view kUpdateForm = "write --update FILE,weight=N[,client=ID][,steps=K]";

base::Status Malformed(const std::string& update, const std::string& what) {
  return base::InvalidArgument("--update " + update + ": " + what, std::string(kUpdateForm));
}

template <typename T>
bool ParseWhole(const std::string& text, T* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

/// The options stand at the end, so that the file's name may hold commas.
base::Result<UpdateArgument> ParseUpdate(const std::string& text) {
  UpdateArgument update;
  update.file = text;
  std::set<std::string> seen;
  while (true) {
    const size_t comma = update.file.rfind(',');
    if (comma == std::string::npos) break;
    const std::string option = update.file.substr(comma + 1);
    const size_t equals = option.find('=');
    if (equals == std::string::npos) break;
    const std::string key = option.substr(0, equals);
    const std::string value = option.substr(equals + 1);
    if (key == "weight") {
      // What no sample count can be (negative, NaN) is for the algorithm to refuse.
      if (!ParseWhole(value, &update.weight)) {
        return Malformed(text, "weight \"" + value + "\" is not a number");
      }
    } else if (key == "steps") {
      if (!ParseWhole(value, &update.steps)) {
        return Malformed(text, "steps \"" + value + "\" is not a whole number");
      }
    } else if (key == "client") {
      if (value.empty()) return Malformed(text, "client is empty");
      update.client = value;
    } else {
      return Malformed(text, "unknown option \"" + key + "\"");
    }
    if (!seen.insert(key).second) return Malformed(text, key + " is given twice");
    update.file.resize(comma);
  }
  if (!seen.contains("weight")) return Malformed(text, "weight is missing");
  if (update.file.empty()) return Malformed(text, "the file is missing");
  return update;
}

/// Clients without an id are called after their files: "a" for "dir/a.safetensors", or the whole
/// path where two files have that name.
void NameClients(std::vector<UpdateArgument>& updates) {
  std::map<std::string, int> uses;
  const auto stem = [](const UpdateArgument& update) {
    return base::Path(update.file).stem().string();
  };
  for (const UpdateArgument& update : updates) {
    ++uses[update.client.empty() ? stem(update) : update.client];
  }
  for (UpdateArgument& update : updates) {
    if (update.client.empty()) update.client = uses[stem(update)] == 1 ? stem(update) : update.file;
  }
}

base::Result<strategy::Rule> MakeRule(const Options& options) {
  strategy::AlgorithmSpec spec{.name = options.algorithm};
  for (const std::string& parameter : options.parameters) {
    const size_t equals = parameter.find('=');
    if (equals == std::string::npos || equals == 0) {
      return base::InvalidArgument("--param " + parameter + ": no NAME=VALUE",
                                   "e.g. --param serverLearningRate=0.5");
    }
    const std::string name = parameter.substr(0, equals);
    if (!spec.parameters.emplace(name, parameter.substr(equals + 1)).second) {
      return base::InvalidArgument("--param " + name + " is given twice");
    }
  }
  FL_ASSIGN_OR_RETURN(const strategy::Rule rule, strategy::MakeRule(spec));
  if (!options.trusted.empty()) {
    return base::InvalidArgument("--trusted is not offered by " + rule.name(),
                                 "leave it out, or choose an algorithm with a trusted update");
  }
  return rule;
}

base::Result<tensor::SafetensorsFile> OpenTensors(const std::string& flag,
                                                  const std::string& file) {
  base::Result<tensor::SafetensorsFile> opened = tensor::SafetensorsFile::Open(file);
  if (!opened.ok()) return AboutInput(opened.status()).WithContext(flag);
  return opened;
}

spec::Value Number(double value) {
  constexpr double kExact = 0x1p53;
  if (std::isfinite(value) && std::trunc(value) == value && std::abs(value) <= kExact) {
    return static_cast<int64_t>(value);
  }
  return value;
}

spec::Value Written(const std::string& path, const tensor::FileSummary& file) {
  return spec::Value::Map{{"digest", file.digest.ToString()},
                          {"path", path},
                          {"size", static_cast<int64_t>(file.size)}};
}

spec::Value ReportData(const Options& options, const strategy::Rule& rule,
                       const strategy::AggregateReport& report, const base::Status& status) {
  spec::Value::List accepted;
  for (const auto& update : report.accepted) {
    accepted.push_back(
        spec::Value::Map{{"client", update.client.str()}, {"weight", Number(update.weight)}});
  }
  spec::Value::List rejected;
  for (const auto& update : report.rejected) {
    rejected.emplace_back(spec::Value::Map{
        {"client", update.client.str()}, {"reason", update.reason}, {"tensor", update.tensor}});
  }
  spec::Value::Map data{{"accepted", std::move(accepted)},
                        {"algorithm", rule.name()},
                        {"rejected", std::move(rejected)},
                        {"totalWeight", Number(report.total_weight)}};
  if (!status.ok()) {
    data["error"] = status.message();
    return data;
  }
  data["output"] = Written(options.out, report.output);
  if (report.state) data["state"] = Written(options.state, *report.state);
  return data;
}

base::Status WriteReport(const Options& options, const spec::Value& data, Context& context) {
  if (options.report.empty()) return base::OkStatus();
  const std::string text = data.ToPrettyJson(2) + "\n";
  if (options.report == "-") {
    context.out << text;
    return base::OkStatus();
  }
  return base::WriteFileAtomically(options.report, text);
}

/// Metadata of the next model: the current model's, or what all updates agree on.
tensor::Header::Metadata ChooseMetadata(const tensor::SafetensorsFile* global,
                                        const std::deque<tensor::SafetensorsFile>& updates) {
  if (global != nullptr) return global->header().metadata();
  for (const tensor::SafetensorsFile& update : updates) {
    if (update.header().metadata() != updates.front().header().metadata()) return {};
  }
  return updates.front().header().metadata();
}

base::Status Aggregate(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const strategy::Rule rule, MakeRule(options));
  const int64_t threads =
      options.threads.value_or(std::max<int64_t>(1, std::thread::hardware_concurrency()));
  constexpr int64_t kMaxThreads = 1024;
  if (threads < 1 || threads > kMaxThreads) {
    return base::InvalidArgument("--threads must be 1 to " + std::to_string(kMaxThreads));
  }
  std::vector<UpdateArgument> updates;
  for (const std::string& text : options.updates) {
    FL_ASSIGN_OR_RETURN(UpdateArgument update, ParseUpdate(text));
    updates.push_back(std::move(update));
  }
  NameClients(updates);

  strategy::AggregateRequest request;
  std::optional<tensor::SafetensorsFile> global;
  if (!options.global.empty()) {
    FL_ASSIGN_OR_RETURN(global, OpenTensors("--global", options.global));
    request.global = &*global;
  }
  std::optional<tensor::SafetensorsFile> state;
  if (!options.state.empty()) {
    std::error_code error;
    if (!rule.keeps_state()) {
      context.err << "fl: note: " << rule.name() << " keeps no state; --state is not used\n";
    } else if (std::filesystem::exists(options.state, error)) {
      FL_ASSIGN_OR_RETURN(state, OpenTensors("--state", options.state));
      request.state = &*state;
    }
    if (rule.keeps_state()) request.state_output = options.state;
  }
  std::deque<tensor::SafetensorsFile> files;
  for (const UpdateArgument& update : updates) {
    FL_ASSIGN_OR_RETURN(tensor::SafetensorsFile file, OpenTensors("--update", update.file));
    files.push_back(std::move(file));
    request.updates.push_back({.client = base::ClientName(update.client),
                               .weight = update.weight,
                               .steps = update.steps,
                               .tensors = &files.back()});
  }
  request.output = options.out;
  request.metadata = ChooseMetadata(request.global, files);
  std::optional<base::ThreadPool> pool;
  if (threads > 1) {
    pool.emplace(static_cast<int>(threads - 1));  // the caller works too
    request.pool = &*pool;
  }

  strategy::AggregateReport report;
  const base::Status status = strategy::Aggregate(rule, request, report);
  for (const auto& update : report.rejected) {
    context.err << "fl: warning: update from client \"" << update.client
                << "\" rejected: " << update.reason << "\n";
  }
  if (status.ok() || status.code() == base::Code::kFailedPrecondition) {
    const base::Status written =
        WriteReport(options, ReportData(options, rule, report, status), context);
    if (status.ok()) FL_RETURN_IF_ERROR(written);
  }
  return status;
}

}  // namespace

Command AggregateCommand() {
  auto options = std::make_shared<Options>();
  return {
      .name = "aggregate",
      .summary = "Combine updates in files, as an aggregator would",
      .description =
          "Each update is a safetensors file with full weights, and the number of samples behind\n"
          "it. An update with a value that is not finite, or with other tensors than the model, "
          "is\n"
          "left out and named on standard error. If none is left, exits 1 and writes no model.\n"
          "The result does not depend on the order of the updates or the number of threads.",
      .examples = {{"The mean of two updates, weighted by samples",
                    "fl aggregate --update a.safetensors,weight=100 --update "
                    "b.safetensors,weight=300 -o next.safetensors"},
                   {"A round of FedAdam, with its memory in a file",
                    "fl aggregate --algorithm FedAdam --param serverLearningRate=0.01 --global "
                    "model.safetensors --state adam.safetensors --update a.safetensors,weight=1 -o "
                    "next.safetensors"},
                   {"Who was accepted, as JSON",
                    "fl aggregate --update a.safetensors,weight=1,client=hospital-a -o "
                    "next.safetensors --report -"}},
      .flags = {{.names = "--algorithm",
                 .value = "NAME",
                 .help = "How updates are combined",
                 .to = &options->algorithm,
                 .choices = strategy::KnownAlgorithms()},
                {.names = "--param",
                 .value = "K=V",
                 .help = "A parameter of the algorithm",
                 .to = &options->parameters},
                {.names = "--global",
                 .value = "FILE",
                 .help = "The current model",
                 .to = &options->global,
                 .completes = Completes::kFile},
                {.names = "--state",
                 .value = "FILE",
                 .help = "Memory of the algorithm: read if it exists, written after",
                 .to = &options->state,
                 .completes = Completes::kFile},
                {.names = "--trusted",
                 .value = "FILE",
                 .help = "An update that the server trusts, for algorithms with one",
                 .to = &options->trusted,
                 .completes = Completes::kFile},
                {.names = "--update",
                 .value = "FILE,weight=N[,client=ID][,steps=K]",
                 .help = "An update and its number of samples",
                 .to = &options->updates,
                 .required = true,
                 .completes = Completes::kFile},
                {.names = "-o,--output",
                 .value = "FILE",
                 .help = "Where the next model goes",
                 .to = &options->out,
                 .required = true,
                 .completes = Completes::kFile},
                {.names = "--report",
                 .value = "FILE",
                 .help = "JSON of who was accepted and rejected; - for standard output",
                 .to = &options->report,
                 .completes = Completes::kFile},
                {.names = "--threads",
                 .value = "N",
                 .help = "Left out: one for each processor",
                 .to = &options->threads}},
      .run = [options](Context& context) { return Aggregate(*options, context); }};
}

}  // namespace fl::cli
