#include "agent/config.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "agent/internal/map_reader.h"
#include "spec/problem.h"
#include "spec/yaml_tree.h"

namespace fl::agent {
namespace {

using base::Result;
using base::Status;
using internal::MapReader;

constexpr uint64_t kFileLimit = uint64_t{16} << 20;
constexpr size_t kNameLimit = 63;
constexpr double kLongestTimeout = 1e8;  // seconds: three years

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// An RFC 1123 label, as names of clients are.
bool IsLabel(std::string_view name) {
  return !name.empty() && name.size() <= kNameLimit && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

/// Names of trainers become parts of file names.
bool IsTrainerName(std::string_view name) {
  return !name.empty() && name.size() <= kNameLimit && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
         });
}

/// A `file:` URI with a relative path, taken from `folder`; others as they are.
std::string DatasetFrom(const std::string& uri, const base::Path& folder) {
  constexpr std::string_view kScheme = "file:";
  if (!uri.starts_with(kScheme) || uri.starts_with("file:/")) return uri;
  std::string absolute = std::string(kScheme);
  for (const char c : std::filesystem::absolute(folder).lexically_normal().string()) {
    if (c == '%') {
      absolute += "%25";
    } else if (c == '?') {
      absolute += "%3F";
    } else if (c == '#') {
      absolute += "%23";
    } else {
      absolute += c;
    }
  }
  if (!absolute.ends_with('/')) absolute += '/';
  return absolute + uri.substr(kScheme.size());
}

base::Path FolderOf(const base::Path& file) {
  return std::filesystem::absolute(file).parent_path();
}

void ReadTrainer(MapReader& reader, TrainerConfig* trainer) {
  reader.TextList("command", &trainer->command);
  if (trainer->command.empty()) {
    reader.Fail("command", "a trainer needs a command: a list of program and arguments");
  }
  reader.Bool("worker", &trainer->worker);
  double seconds = 0;
  reader.Positive("timeoutSeconds", kLongestTimeout, &seconds);
  trainer->time_limit =
      std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
  reader.TextMap("env", &trainer->env);
  base::Path folder;
  reader.File("workingDirectory", &folder);
  if (!folder.empty()) trainer->working_directory = folder;
}

void ReadTrainers(MapReader& reader, TrainerConfigs* trainers) {
  reader.EachMap([&](const std::string& name, MapReader& entry) {
    if (!IsTrainerName(name)) {
      entry.Fail("", "a trainer's name has letters, digits, '-', '_' and '.', at most 63");
    }
    TrainerConfig trainer;
    ReadTrainer(entry, &trainer);
    (*trainers)[name] = std::move(trainer);
  });
}

void ReadClient(MapReader& reader, ClientConfig* client) {
  std::string name;
  reader.Text("client", &name);
  client->client = base::ClientName(name);
  reader.File("keyFile", &client->key_file);
  reader.File("certificateFile", &client->certificate_file);
  reader.File("certificateKeyFile", &client->certificate_key_file);
  reader.File("joinTokenFile", &client->join_token_file);
  std::string dataset;
  reader.Text("dataset", &dataset);
  client->dataset = DatasetFrom(dataset, reader.folder());
}

Status SetLogFormat(const std::string& name, Config* config) {
  if (name == "auto") {
    config->log_format = obs::LogFormat::kAuto;
  } else if (name == "text") {
    config->log_format = obs::LogFormat::kText;
  } else if (name == "json") {
    config->log_format = obs::LogFormat::kJson;
  } else {
    return base::InvalidArgument("\"" + name + "\" is no log format: auto, text or json");
  }
  return base::OkStatus();
}

Status SetLogLevel(const std::string& name, Config* config) {
  FL_ASSIGN_OR_RETURN(config->log_level, obs::ParseLevel(name));
  return base::OkStatus();
}

void ReadDocument(MapReader& reader, Config* config) {
  reader.Text("aggregator", &config->aggregator);
  reader.File("caFile", &config->ca_file);
  reader.Bool("insecure", &config->insecure);
  reader.File("workDir", &config->work_dir);
  reader.Map("trainers", [&](MapReader& trainers) { ReadTrainers(trainers, &config->trainers); });
  reader.Map("require", [&](MapReader& require) {
    require.Bool("secureAggregation", &config->require.secure_aggregation);
    require.Bool("differentialPrivacy", &config->require.differential_privacy);
    require.Integer("minimumCohort", 0, std::numeric_limits<int32_t>::max(),
                    &config->require.minimum_cohort);
  });
  const auto choice = [&](std::string_view key, Status (*set)(const std::string&, Config*)) {
    std::string text;
    reader.Text(key, &text);
    if (text.empty()) return;
    const Status done = set(text, config);
    if (!done.ok()) reader.Fail(key, done.message());
  };
  choice("logFormat", SetLogFormat);
  choice("logLevel", SetLogLevel);

  reader.MapList("agents", [&](MapReader& agent) {
    ClientConfig client;
    ReadClient(agent, &client);
    config->clients.push_back(std::move(client));
  });
  ClientConfig client;
  ReadClient(reader, &client);
  if (!reader.Has("agents")) {
    config->clients.push_back(std::move(client));
  } else if (client != ClientConfig()) {
    reader.Fail("agents",
                "stands beside client, keys, certificates, join token or dataset of a single one: "
                "move those into the list");
  }
}

Status ApplyFlags(const Flags& flags, Config* config) {
  if (config->clients.empty()) config->clients.emplace_back();
  const bool single = flags.client || flags.key || flags.certificate || flags.certificate_key ||
                      flags.join_token_file || flags.dataset;
  if (single && config->clients.size() > 1) {
    return base::InvalidArgument(
        "--client, --key, --certificate, --certificate-key, --join-token-file and --dataset are "
        "for one client, and the configuration has " +
            std::to_string(config->clients.size()),
        "say it in the list `agents` of the configuration");
  }
  const auto set_path = [](const std::optional<base::Path>& from, base::Path* to) {
    if (from) *to = std::filesystem::absolute(*from);
  };
  ClientConfig& client = config->clients.front();
  if (flags.client) client.client = base::ClientName(*flags.client);
  if (flags.key || flags.certificate) {
    // Who one is comes from one place.
    client.key_file.clear();
    client.certificate_file.clear();
    client.certificate_key_file.clear();
  }
  set_path(flags.key, &client.key_file);
  set_path(flags.certificate, &client.certificate_file);
  set_path(flags.certificate_key, &client.certificate_key_file);
  set_path(flags.join_token_file, &client.join_token_file);
  if (flags.dataset) client.dataset = *flags.dataset;
  if (flags.aggregator) config->aggregator = *flags.aggregator;
  set_path(flags.ca_file, &config->ca_file);
  set_path(flags.work_dir, &config->work_dir);
  if (flags.insecure) config->insecure = true;
  if (flags.log_format) {
    const Status set = SetLogFormat(*flags.log_format, config);
    FL_RETURN_IF_ERROR(set.WithContext("--log-format"));
  }
  if (flags.log_level) {
    const Status set = SetLogLevel(*flags.log_level, config);
    FL_RETURN_IF_ERROR(set.WithContext("--log-level"));
  }
  config->require.secure_aggregation |= flags.require_secure_aggregation;
  config->require.differential_privacy |= flags.require_differential_privacy;
  config->require.minimum_cohort =
      std::max(config->require.minimum_cohort, flags.minimum_cohort.value_or(0));
  return base::OkStatus();
}

Status CheckClient(const ClientConfig& client) {
  if (client.client.empty()) {
    return base::InvalidArgument("no client is named",
                                 "give --client NAME, or `client` in the configuration");
  }
  const std::string who = "client \"" + client.client.str() + "\"";
  if (!IsLabel(client.client.str())) {
    return base::InvalidArgument(
        who + " is no name of a client",
        "use the name of its FederatedClient: lower-case letters, digits and '-', at most 63");
  }
  if (client.certificate_file.empty() != client.certificate_key_file.empty()) {
    return base::InvalidArgument(
        who + " has only one of certificateFile and certificateKeyFile; they are given together");
  }
  const bool certificate = !client.certificate_file.empty();
  const bool key = !client.key_file.empty() || !client.join_token_file.empty();
  if (certificate && key) {
    return base::InvalidArgument(who + " has both a certificate and a key: give one of them");
  }
  if (!certificate && !key) {
    return base::InvalidArgument(
        who + " has nothing to prove who it is",
        "give --key FILE (made by `fl keys generate`), a certificate, or a join token");
  }
  return base::OkStatus();
}

/// What no field says alone; and the forms that the rest of the program relies on.
Status Finish(Config* config) {
  while (config->aggregator.ends_with('/')) config->aggregator.pop_back();
  if (config->aggregator.empty()) {
    return base::InvalidArgument("no aggregator is named",
                                 "give --aggregator URL, or `aggregator` in the configuration");
  }
  const bool tls = config->aggregator.starts_with("https://");
  const bool plain = config->aggregator.starts_with("http://");
  if ((!tls && !plain) || config->aggregator.find_first_of("?# \t\r\n") != std::string::npos) {
    return base::InvalidArgument("aggregator \"" + config->aggregator + "\" is no address",
                                 "an address looks like https://fl.example.org:8443");
  }
  if (plain && !config->insecure) {
    return base::InvalidArgument("aggregator \"" + config->aggregator + "\" is not encrypted",
                                 "use https://, or allow it by --insecure");
  }
  if (config->insecure && !config->ca_file.empty()) {
    return base::InvalidArgument(
        "caFile says whom to trust, and insecure to trust anybody: give one of them");
  }
  config->work_dir = std::filesystem::absolute(config->work_dir).lexically_normal();
  std::set<base::ClientName> names;
  for (const ClientConfig& client : config->clients) {
    FL_RETURN_IF_ERROR(CheckClient(client));
    if (!names.insert(client.client).second) {
      return base::InvalidArgument("client \"" + client.client.str() + "\" is there twice");
    }
  }
  return base::OkStatus();
}

}  // namespace

Result<TrainerConfigs> ParseTrainers(std::string_view text, const std::string& source,
                                     const base::Path& folder) {
  FL_ASSIGN_OR_RETURN(const spec::Value tree, spec::ParseYamlTree(text, source));
  const spec::Value* const inner = tree.Find("trainers");
  spec::Problems problems;
  TrainerConfigs trainers;
  MapReader reader(tree, "", source, folder, &problems);
  // A trainer called "trainers" has a command, the field of that name has none.
  if (inner != nullptr && inner->Find("command") == nullptr) {
    reader.Map("trainers", [&](MapReader& entries) { ReadTrainers(entries, &trainers); });
  } else {
    ReadTrainers(reader, &trainers);
  }
  reader.Finish();
  FL_RETURN_IF_ERROR(spec::ToStatus(problems));
  return trainers;
}

Result<Config> ParseConfig(std::string_view text, const Flags& flags) {
  Config config;
  const base::Path file = flags.config.value_or("config");
  FL_ASSIGN_OR_RETURN(const spec::Value tree, spec::ParseYamlTree(text, file.string()));
  spec::Problems problems;
  MapReader reader(tree, "", file.string(), FolderOf(file), &problems);
  ReadDocument(reader, &config);
  reader.Finish();
  FL_RETURN_IF_ERROR(spec::ToStatus(problems));
  FL_RETURN_IF_ERROR(ApplyFlags(flags, &config));
  FL_RETURN_IF_ERROR(Finish(&config));
  return config;
}

Result<Config> LoadConfig(const Flags& flags) {
  std::string text;
  if (flags.config) {
    FL_ASSIGN_OR_RETURN(text, base::ReadFile(*flags.config, kFileLimit));
  }
  FL_ASSIGN_OR_RETURN(Config config, ParseConfig(text, flags));
  if (flags.trainers) {
    FL_ASSIGN_OR_RETURN(const std::string trainers, base::ReadFile(*flags.trainers, kFileLimit));
    FL_ASSIGN_OR_RETURN(TrainerConfigs more, ParseTrainers(trainers, flags.trainers->string(),
                                                           FolderOf(*flags.trainers)));
    for (auto& [name, trainer] : more) config.trainers[name] = std::move(trainer);
  }
  return config;
}

}  // namespace fl::agent
