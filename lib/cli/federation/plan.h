#pragma once

/// What `fl run` will start, worked out before anything is started.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/ids.h"
#include "base/status.h"
#include "spec/parse.h"
#include "spec/types.h"

namespace fl::cli {

struct RunOptions {
  std::vector<std::string> files;
  std::string registry = "fl-registry";
  std::string state_dir = "fl-state";
  std::optional<std::string> trainers_file;
  /// Instead of FederatedClients in the files: this many, on parts of one dataset.
  std::optional<int64_t> clients;
  std::optional<std::string> dataset;
  std::optional<std::string> partition;
  std::optional<std::string> test_dataset;
  int64_t clients_per_process = 1;
  int64_t partition_seed = 1;
};

/// One client that runs here.
struct PlannedClient {
  base::ClientName name;
  std::string dataset;           ///< URI for its trainer; may be empty
  spec::FederatedClient object;  ///< as submitted, but for its key, which is made here
};

struct Plan {
  spec::FederatedModel model;
  std::vector<PlannedClient> clients;
  std::vector<spec::FederatedLearningJob> jobs;
  /// Programs that jobs name by `trainer.command`, by the name tasks give them: "job/NAME".
  std::map<std::string, std::vector<std::string>> commands;
  /// Where relative file: URIs of the model and the jobs start.
  base::Path data_dir;
};

/// One FederatedModel, its jobs and at least one client make a plan. Relative `file:` URIs in a
/// YAML file start at its folder, those in flags at the working folder. kInvalidArgument for
/// objects that do not fit together, a trainer that is an image alone, a trainer by name without
/// --trainers, flags that exclude each other, a partition that is malformed.
base::Result<Plan> MakePlan(const spec::ParseResult& objects, const RunOptions& options);

}  // namespace fl::cli
