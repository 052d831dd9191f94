#pragma once

/// What people, scripts and the operator call. README.md has the table.

#include "aggregator/agent_api.h"
#include "aggregator/core.h"
#include "spec/problem.h"
#include "transport/server.h"

namespace fl::aggregator {

/// Thread-safe; what it is given outlives it.
class AdminApi {
 public:
  /// Every call needs `token` in the header Fl-Admin-Token.
  AdminApi(Core& core, AgentApi& agents, std::string token)
      : core_(core), agents_(agents), token_(std::move(token)) {}

  transport::Accept OnRequest(const transport::RequestHead& head);

 private:
  using Work = std::function<transport::Response(const std::string& body)>;

  base::Status Authenticate(const transport::RequestHead& head) const;
  /// Takes a body of up to 4 MiB, then does `work` on it.
  static transport::Accept WithBody(Work work);
  /// Answers with `make` once the revision is past ?since=, or ?wait= is over.
  transport::Accept Watch(const transport::RequestHead& head,
                          std::function<transport::Response()> make);

  transport::Accept Jobs(const transport::RequestHead& head);
  transport::Accept Clients(const transport::RequestHead& head);
  transport::Accept Models(const transport::RequestHead& head);

  transport::Response GetJob(const base::JobName& name);
  transport::Response PutJob(const base::JobName& name, const std::string& body);
  transport::Response DeleteJob(const base::JobName& name);
  transport::Response ActOnJob(const base::JobName& name, const std::string& action);
  transport::Accept JobEvents(const transport::RequestHead& head, const base::JobName& name);
  transport::Response PutClients(int64_t revision, const std::string& body);
  transport::Response JoinToken(const base::ClientName& name);
  transport::Response PutModel(const base::ModelName& name, const std::string& body);
  transport::Response PinPrevious(const base::ModelName& name);
  transport::Response Pin(const base::ModelName& name, std::optional<base::VersionNumber> version);
  transport::Response Versions(const base::ModelName& name);
  /// The repository of the model, which must be ours.
  base::Result<registry::ModelRepository*> Repository(const base::ModelName& name);
  base::Status Configure(JobEntry& job, const spec::FederatedLearningJob& object);

  Core& core_;
  AgentApi& agents_;
  const std::string token_;
};

/// 409 with the fields that may not change.
transport::Response Immutable(const spec::Problems& problems);

}  // namespace fl::aggregator
