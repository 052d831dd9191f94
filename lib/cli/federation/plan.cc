#include "cli/federation/plan.h"

#include <algorithm>
#include <filesystem>

#include "spec/defaults.h"
#include "trainer/dataset.h"

namespace fl::cli {
namespace {

base::Path FolderOf(const std::string& source) {
  const base::Path folder = source == "-" ? base::Path() : base::Path(source).parent_path();
  return folder.empty() ? base::Path(".") : folder;
}

base::Result<std::string> ResolveDataset(const std::string& uri, const base::Path& folder) {
  FL_ASSIGN_OR_RETURN(const trainer::DatasetSpec dataset, trainer::DatasetSpec::Parse(uri));
  return dataset.RelativeTo(std::filesystem::absolute(folder)).ToString();
}

/// Labels that `selector` accepts, for clients that are made up here.
spec::Labels MatchingLabels(const spec::LabelSelector& selector) {
  spec::Labels labels = selector.match_labels;
  for (const spec::SelectorRequirement& requirement : selector.match_expressions) {
    if (requirement.op == spec::SelectorOperator::kIn && !requirement.values.empty()) {
      labels[requirement.key] = requirement.values.front();
    } else if (requirement.op == spec::SelectorOperator::kExists) {
      labels.emplace(requirement.key, "true");
    }
  }
  return labels;
}

/// A client of the files as it runs here: an agent with a key of its own.
spec::FederatedClient AsLocalAgent(const spec::FederatedClient& client) {
  spec::FederatedClient local = client;
  local.spec.type = spec::ClientType::kAgent;
  local.spec.pod.reset();
  local.spec.public_key.reset();
  local.spec.dataset.reset();  // stays with the agent
  return local;
}

class Planner {
 public:
  explicit Planner(const RunOptions& options) : options_(options) {}

  base::Result<Plan> Make(const spec::ParseResult& objects) {
    FL_RETURN_IF_ERROR(Sort(objects));
    FL_RETURN_IF_ERROR(CheckJobs());
    FL_RETURN_IF_ERROR(options_.clients ? MakeClients() : TakeClients());
    if (options_.test_dataset) {
      for (spec::FederatedLearningJob& job : plan_.jobs) {
        FL_ASSIGN_OR_RETURN(job.spec.evaluation.test_dataset,
                            ResolveDataset(*options_.test_dataset, "."));
      }
    }
    return std::move(plan_);
  }

 private:
  base::Status Sort(const spec::ParseResult& objects) {
    bool has_model = false;
    for (const spec::Document& document : objects.documents) {
      if (const auto* model = std::get_if<spec::FederatedModel>(&document.object)) {
        if (has_model) {
          return base::InvalidArgument("the files have two FederatedModels, \"" +
                                           plan_.model.metadata.name + "\" and \"" +
                                           model->metadata.name + "\"",
                                       "fl run trains one model; run it once for each");
        }
        plan_.model = *model;
        has_model = true;
        plan_.data_dir = FolderOf(document.source);
      } else if (const auto* job = std::get_if<spec::FederatedLearningJob>(&document.object)) {
        plan_.jobs.push_back(*job);
        plan_.data_dir = FolderOf(document.source);
      } else {
        clients_.push_back(&document);
      }
    }
    if (!has_model) {
      return base::InvalidArgument("the files have no FederatedModel",
                                   "fl generate model > model.yaml writes one to start from");
    }
    if (plan_.jobs.empty()) {
      return base::InvalidArgument("the files have no FederatedLearningJob",
                                   "fl generate job > job.yaml writes one to start from");
    }
    return base::OkStatus();
  }

  base::Status CheckJobs() {
    for (const spec::FederatedLearningJob& job : plan_.jobs) {
      const std::string where = "job \"" + job.metadata.name + "\"";
      if (job.spec.model_ref.name != plan_.model.metadata.name) {
        return base::InvalidArgument(where + " trains model \"" + job.spec.model_ref.name +
                                     "\", and the files have \"" + plan_.model.metadata.name +
                                     "\"");
      }
      const spec::TrainerSpec& trainer = job.spec.trainer;
      if (!trainer.command.empty()) {
        plan_.commands["job/" + job.metadata.name] = trainer.command;
      } else if (trainer.image) {
        return base::InvalidArgument(
            where + ": its trainer is the image \"" + *trainer.image + "\", which cannot run here",
            "add trainer.command: fl run starts that command and ignores the image");
      } else if (trainer.name && !options_.trainers_file) {
        return base::InvalidArgument(
            where + ": the trainer \"" + *trainer.name + "\" is looked up at each agent",
            "say what it runs: --trainers FILE with \"" + *trainer.name +
                ": {command: [python3, train.py]}\"");
      }
    }
    return base::OkStatus();
  }

  base::Status TakeClients() {
    if (options_.dataset || options_.partition) {
      return base::InvalidArgument("--dataset and --partition go with --clients N");
    }
    for (const spec::Document* document : clients_) {
      const auto& client = std::get<spec::FederatedClient>(document->object);
      PlannedClient planned{base::ClientName(client.metadata.name), "", AsLocalAgent(client)};
      if (client.spec.dataset) {
        const base::Result<std::string> uri =
            ResolveDataset(client.spec.dataset->uri, FolderOf(document->source));
        // The trainer of a user's own may know other schemes.
        planned.dataset = uri.ok() ? *uri : client.spec.dataset->uri;
      }
      plan_.clients.push_back(std::move(planned));
    }
    if (!plan_.clients.empty()) return base::OkStatus();
    return base::InvalidArgument("the files have no FederatedClient",
                                 "add some, or split one dataset: --clients 10 --dataset "
                                 "file:train.csv --partition iid");
  }

  base::Status MakeClients() {
    if (!options_.dataset) {
      return base::InvalidArgument("--clients needs --dataset URI, the data to split among them");
    }
    if (*options_.clients < 1 || *options_.clients > 10'000) {
      return base::InvalidArgument("--clients must be between 1 and 10000");
    }
    FL_ASSIGN_OR_RETURN(const std::string dataset, ResolveDataset(*options_.dataset, "."));
    spec::Labels labels;
    for (const spec::FederatedLearningJob& job : plan_.jobs) {
      labels.merge(MatchingLabels(job.spec.selection.client_selector));
    }
    const std::string count = std::to_string(*options_.clients);
    for (int64_t i = 0; i < *options_.clients; ++i) {
      std::string number = std::to_string(i + 1);
      number.insert(0, count.size() - number.size(), '0');
      PlannedClient client;
      client.name = base::ClientName("client-" + number);
      client.object.metadata.name = client.name.str();
      client.object.metadata.labels = labels;
      client.dataset = dataset + "#partition=" + options_.partition.value_or("iid") +
                       ",parts=" + count + ",index=" + std::to_string(i) +
                       ",seed=" + std::to_string(options_.partition_seed);
      const base::Status parsed = trainer::DatasetSpec::Parse(client.dataset).status();
      if (!parsed.ok()) return parsed.WithContext("--partition");
      plan_.clients.push_back(std::move(client));
    }
    return base::OkStatus();
  }

  const RunOptions& options_;
  Plan plan_;
  std::vector<const spec::Document*> clients_;
};

}  // namespace

base::Result<Plan> MakePlan(const spec::ParseResult& objects, const RunOptions& options) {
  return Planner(options).Make(objects);
}

}  // namespace fl::cli
