#include "wire/paths.h"

namespace fl::wire {
namespace {

std::string Join(std::string_view base, const std::string& name, std::string_view rest = "") {
  return std::string(base) + "/" + name + std::string(rest);
}

std::string RoundPath(const base::JobName& job, base::RoundNumber round, std::string_view what,
                      const base::ClientName& client) {
  return JobPath(job) + "/rounds/" + std::to_string(round.value()) + "/" + std::string(what) + "/" +
         client.str();
}

}  // namespace

std::string TaskPath(const base::ClientName& client) {
  return Join(kAgentsPath, client.str(), "/task");
}
std::string JobPath(const base::JobName& job) { return Join(kJobsPath, job.str()); }
std::string JobActionPath(const base::JobName& job, std::string_view action) {
  return JobPath(job) + "/" + std::string(action);
}
std::string JobRoundsPath(const base::JobName& job) { return JobPath(job) + "/rounds"; }
std::string JobEventsPath(const base::JobName& job) { return JobPath(job) + "/events"; }
std::string BlobPath(const base::JobName& job, const base::Digest& digest) {
  return JobPath(job) + "/blobs/" + digest.ToString();
}
std::string UpdatePath(const base::JobName& job, base::RoundNumber round,
                       const base::ClientName& client) {
  return RoundPath(job, round, "updates", client);
}
std::string EvaluationPath(const base::JobName& job, base::RoundNumber round,
                           const base::ClientName& client) {
  return RoundPath(job, round, "evaluations", client);
}
std::string FailurePath(const base::JobName& job, base::RoundNumber round,
                        const base::ClientName& client) {
  return RoundPath(job, round, "failures", client);
}
std::string ModelPath(const base::ModelName& model) { return Join(kModelsPath, model.str()); }
std::string ModelVersionsPath(const base::ModelName& model) {
  return Join(kModelsPath, model.str(), "/versions");
}
std::string ModelPinPath(const base::ModelName& model) {
  return Join(kModelsPath, model.str(), "/pin");
}
std::string JoinTokenPath(const base::ClientName& client) {
  return Join(kClientsPath, client.str(), "/join-token");
}

}  // namespace fl::wire
