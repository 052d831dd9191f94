#pragma once

/// What an agent is told by its owner: a YAML file and flags that override it. README.md has the
/// file. Pure but for LoadConfig; any thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/status.h"
#include "obs/log.h"

namespace fl::agent {

/// A program of the user's that trains; a task names it, and only this file says what it runs.
struct TrainerConfig {
  std::vector<std::string> command;
  bool worker = false;
  base::Duration time_limit{0};  ///< for one task; 0: only the round's deadline
  std::map<std::string, std::string> env;
  std::optional<base::Path> working_directory;

  friend bool operator==(const TrainerConfig&, const TrainerConfig&) = default;
};
using TrainerConfigs = std::map<std::string, TrainerConfig>;

/// What a task has to promise, or else it is refused. No task lowers these.
struct Floors {
  bool secure_aggregation = false;
  bool differential_privacy = false;
  int64_t minimum_cohort = 0;  ///< clients in a round; 0: any

  friend bool operator==(const Floors&, const Floors&) = default;
};

/// One client that this process speaks for, and how it proves that: by `key_file`, or by a
/// certificate. A join token binds the key once; without a key file one is then made in the work
/// folder. Empty paths are not given.
struct ClientConfig {
  base::ClientName client;
  base::Path key_file;
  base::Path certificate_file;
  base::Path certificate_key_file;
  base::Path join_token_file;
  std::string dataset;  ///< URI, handed to the trainer

  friend bool operator==(const ClientConfig&, const ClientConfig&) = default;
};

/// A whole configuration that passed every check.
struct Config {
  std::string aggregator;  ///< URL without a '/' at its end
  base::Path ca_file;      ///< empty: the system's authorities
  bool insecure = false;   ///< plain http://, and servers that nobody vouches for
  base::Path work_dir = "fl-agent";
  std::vector<ClientConfig> clients;  ///< at least one; names differ
  TrainerConfigs trainers;
  Floors require;
  obs::LogFormat log_format = obs::LogFormat::kAuto;
  obs::Level log_level = obs::Level::kInfo;
};

/// The command line of fl-agentd. What is set overrides the file. Paths here are relative to the
/// working folder; those in a file are relative to the folder of the file.
struct Flags {
  std::optional<base::Path> config;
  std::optional<std::string> client;
  std::optional<std::string> aggregator;
  std::optional<base::Path> ca_file;
  std::optional<base::Path> key;
  std::optional<base::Path> certificate;
  std::optional<base::Path> certificate_key;
  std::optional<base::Path> join_token_file;
  std::optional<std::string> dataset;
  std::optional<base::Path> work_dir;
  std::optional<base::Path> trainers;  ///< a file with the key `trainers`, or only its content
  bool insecure = false;
  std::optional<std::string> log_format;  ///< auto, text, json
  std::optional<std::string> log_level;   ///< debug, info, warning, error
  bool require_secure_aggregation = false;
  bool require_differential_privacy = false;
  std::optional<int64_t> minimum_cohort;  ///< floors are only ever raised by flags
};

/// Reads the files that `flags` name, applies the flags, checks all. kInvalidArgument with
/// "FILE:LINE: key: message" or the flag's name; kNotFound, kPermissionDenied.
base::Result<Config> LoadConfig(const Flags& flags);

/// The same with the text of the file given (`flags.config` names it in messages and is where
/// relative paths start).
base::Result<Config> ParseConfig(std::string_view text, const Flags& flags);

/// The trainers in the text of a `--trainers` file called `source`; relative paths start at
/// `folder`. kInvalidArgument with "SOURCE:LINE: key: message".
base::Result<TrainerConfigs> ParseTrainers(std::string_view text, const std::string& source,
                                           const base::Path& folder);

}  // namespace fl::agent
