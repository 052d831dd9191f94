#include "spec/generate.h"

#include <memory>

#include "cli/commands/commands.h"
#include "cli/output.h"
#include "spec/dataset_uri.h"
#include "spec/validate.h"

namespace fl::cli {
namespace {

base::Status PrintText(Context& context, const base::Result<std::string>& text) {
  FL_RETURN_IF_ERROR(text.status());
  context.out << *text;
  return base::OkStatus();
}

Command GenerateJobCommand() {
  auto options = std::make_shared<spec::GenerateJobOptions>();
  return {.name = "job",
          .summary = "Print a FederatedLearningJob to start from",
          .examples = {{"A job of 50 rounds", "fl generate job my-job --rounds 50 > job.yaml"},
                       {"With another algorithm and the built-in linear model",
                        "fl generate job --algorithm FedAdam --trainer softmax"}},
          .flags = {{.names = "--model",
                     .value = "NAME",
                     .help = "The model to train",
                     .to = &options->model},
                    {.names = "--rounds",
                     .value = "N",
                     .help = "How many rounds",
                     .to = &options->rounds},
                    {.names = "--algorithm",
                     .value = "NAME",
                     .help = "How updates are combined",
                     .to = &options->algorithm},
                    {.names = "--trainer",
                     .value = "NAME",
                     .help = "mlp or softmax (built in), or the name of a trainer at each agent",
                     .to = &options->trainer},
                    {.names = "--clients-per-round",
                     .value = "N",
                     .help = "Size of the cohort; left out: all",
                     .to = &options->clients_per_round},
                    {.names = "--test-dataset",
                     .value = "URI",
                     .help = "Data that the aggregator evaluates on",
                     .to = &options->test_dataset}},
          .arguments = {{.names = "NAME", .help = "Name of the job", .to = &options->name}},
          .run = [options](Context& context) {
            return PrintText(context, spec::GenerateJob(*options));
          }};
}

Command GenerateModelCommand() {
  auto options = std::make_shared<spec::GenerateModelOptions>();
  return {.name = "model",
          .summary = "Print a FederatedModel to start from",
          .examples = {{"A model that starts from weights in a file",
                        "fl generate model digits --initial file:digits-v0.safetensors"}},
          .flags = {{.names = "--model-registry",
                     .value = "URI",
                     .help = "Where its versions are kept; left out: the program's default place",
                     .to = &options->registry},
                    {.names = "--initial",
                     .value = "URI",
                     .help = "Weights of version 0; left out: a built-in network",
                     .to = &options->initial}},
          .arguments = {{.names = "NAME", .help = "Name of the model", .to = &options->name}},
          .run = [options](Context& context) {
            return PrintText(context, spec::GenerateModel(*options));
          }};
}

Command GenerateClientCommand() {
  auto options = std::make_shared<spec::GenerateClientOptions>();
  return {.name = "client",
          .summary = "Print a FederatedClient to start from",
          .examples =
              {{"A client whose agent dials in with a key",
                "fl generate client hospital-a --public-key \"$(fl keys show hospital-a.key)\""},
               {"A client that runs as a pod",
                "fl generate client site-1 --image registry.example.org/trainer:1.0"}},
          .flags = {{.names = "--public-key",
                     .value = "KEY",
                     .help = "The agent's public key, one line; left out: a client of type Pod",
                     .to = &options->public_key},
                    {.names = "--image",
                     .value = "IMAGE",
                     .help = "The trainer's image, for a pod",
                     .to = &options->image},
                    {.names = "--dataset",
                     .value = "URI",
                     .help = "The data the client holds",
                     .to = &options->dataset}},
          .arguments = {{.names = "NAME", .help = "Name of the client", .to = &options->name}},
          .run = [options](Context& context) {
            return PrintText(context, spec::GenerateClient(*options));
          }};
}

struct AgentOptions {
  std::string client;
  std::string key_file;
  std::string join_token_file;
  std::string dataset;
  std::string work_dir = "/var/lib/fl-agent";
  std::vector<std::string> trainers;
};

/// `text` as a YAML scalar, quoted where it has to be.
std::string Scalar(const std::string& text) {
  std::string yaml = spec::Value(text).ToYaml();
  while (yaml.ends_with('\n')) yaml.pop_back();
  return yaml;
}

/// "NAME=COMMAND…" as a line below `trainers:`.
base::Result<std::string> TrainerLine(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return base::InvalidArgument("--trainer: \"" + text + "\" is not NAME=COMMAND",
                                 "e.g. --trainer \"my-trainer=python3 train.py\"");
  }
  const std::string name = text.substr(0, equals);
  FL_RETURN_IF_ERROR(spec::CheckName(name, "--trainer: name"));
  spec::Value::List command;
  std::string word;
  for (const char c : text.substr(equals + 1) + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      command.emplace_back(std::exchange(word, ""));
    }
  }
  return "  " + name + ": {command: " + spec::Value(std::move(command)).ToJson() + "}\n";
}

base::Status GenerateAgentConfig(const AgentOptions& options, Context& context) {
  FL_RETURN_IF_ERROR(spec::CheckName(options.client, "client name"));
  if (!options.key_file.empty() && !options.join_token_file.empty()) {
    return base::InvalidArgument("--key-file and --join-token-file exclude each other");
  }
  if (!options.dataset.empty()) {
    FL_RETURN_IF_ERROR(spec::DatasetUri::Parse(options.dataset).status().WithContext("--dataset"));
  }
  const std::string url =
      context.global.aggregator.empty()
          ? context.Environment("FL_AGGREGATOR").value_or("https://fl.example.org:8443")
          : context.global.aggregator;
  std::string text = "# Configuration of an agent: fl-agentd --config FILE\n";
  text += "client: " + Scalar(options.client) + "\n";
  text += "aggregator: " + Scalar(url) + "\n";
  text += context.global.ca_file.empty()
              ? "# caFile: ca.crt          # whom to trust; left out: the system's authorities\n"
              : "caFile: " + Scalar(context.global.ca_file) + "\n";
  if (!options.join_token_file.empty()) {
    text += "joinTokenFile: " + Scalar(options.join_token_file) + "\n";
  } else {
    const std::string key = options.key_file.empty() ? options.client + ".key" : options.key_file;
    text += "keyFile: " + Scalar(key) + "   # made by: fl keys generate --out " + key + "\n";
  }
  text += options.dataset.empty() ? "dataset: file:///data/train.csv\n"
                                  : "dataset: " + Scalar(options.dataset) + "\n";
  text += "workDir: " + Scalar(options.work_dir) + "\n";
  if (options.trainers.empty()) {
    text +=
        "# trainers:                # by name; built-in ones need no entry\n"
        "#   my-trainer: {command: [python3, train.py], worker: true, timeoutSeconds: 600}\n";
  } else {
    text += "trainers:\n";
    for (const std::string& trainer : options.trainers) {
      FL_ASSIGN_OR_RETURN(const std::string line, TrainerLine(trainer));
      text += line;
    }
  }
  context.out << text;
  return base::OkStatus();
}

Command GenerateAgentConfigCommand() {
  auto options = std::make_shared<AgentOptions>();
  return {
      .name = "agent-config",
      .summary = "Print the configuration of an agent",
      .description = "What fl-agentd needs at a site: who it is, whom it dials, what it trains on.",
      .examples =
          {{"For a hospital that dials in",
            "fl generate agent-config hospital-a --aggregator https://fl.example.org:8443 "
            "--ca-file ca.crt > agent.yaml"},
           {"With a trainer of its own",
            "fl generate agent-config hospital-a --trainer \"my-trainer=python3 train.py\""}},
      .flags = {{.names = "--key-file",
                 .value = "FILE",
                 .help = "The client's private key",
                 .to = &options->key_file,
                 .completes = Completes::kFile},
                {.names = "--join-token-file",
                 .value = "FILE",
                 .help = "A join token, which binds a new key once",
                 .to = &options->join_token_file,
                 .completes = Completes::kFile},
                {.names = "--dataset",
                 .value = "URI",
                 .help = "The data the client holds",
                 .to = &options->dataset},
                {.names = "--work-dir",
                 .value = "FOLDER",
                 .help = "Models, updates, logs",
                 .to = &options->work_dir,
                 .completes = Completes::kFolder},
                {.names = "--trainer",
                 .value = "NAME=COMMAND",
                 .help = "A trainer that jobs may name",
                 .to = &options->trainers}},
      .arguments = {{.names = "CLIENT",
                     .help = "Name of the client",
                     .to = &options->client,
                     .required = true,
                     .completes = Completes::kClient}},
      .uses_target = true,
      .run = [options](Context& context) { return GenerateAgentConfig(*options, context); }};
}

}  // namespace

Command GenerateCommand() {
  return {.name = "generate",
          .summary = "Print commented YAML to start from",
          .examples = {{"Three files, ready to be edited",
                        "fl generate model > model.yaml; fl generate job > job.yaml; fl generate "
                        "client > client.yaml"}},
          .commands = {GenerateJobCommand(), GenerateModelCommand(), GenerateClientCommand(),
                       GenerateAgentConfigCommand()}};
}

}  // namespace fl::cli
