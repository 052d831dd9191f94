#pragma once

/// What agents call: sessions, tasks, models, updates, reports. README.md has the table.

#include "aggregator/core.h"
#include "transport/server.h"

namespace fl::aggregator {

/// Thread-safe; `core` outlives it.
class AgentApi {
 public:
  explicit AgentApi(Core& core) : core_(core) {}

  /// Answers the request if it is one of an agent's; nothing where the path is not.
  std::optional<transport::Accept> OnRequest(const transport::RequestContext& context);

  /// The weights of `digest`, for whoever may read job `job`.
  transport::Response ServeBlob(const transport::RequestHead& head, const base::JobName& job,
                                const std::string& digest);

 private:
  /// One PUT below /v1/jobs/{job}/rounds/{n}/.
  struct RoundCall {
    base::JobName job;
    base::RoundNumber round;
    int64_t attempt = 0;
    base::ClientName client;
    std::string session;  ///< its token
  };

  base::Result<base::ClientName> Authenticate(const transport::RequestHead& head);
  /// The client of the session, which must be `name`.
  base::Result<base::ClientName> AuthenticateAs(const transport::RequestHead& head,
                                                const std::string& name);
  transport::Response Refuse(const transport::RequestHead& head, const base::Status& status);
  transport::Accept OpenSession(const transport::RequestContext& context);
  transport::Response Session(const std::string& body, const SessionProof& proof);
  transport::Accept PollTask(const transport::RequestHead& head);
  transport::Accept PutInRound(const transport::RequestHead& head);
  transport::Accept PutUpdate(const transport::RequestHead& head, const RoundCall& call);
  transport::Response PutEvaluation(const RoundCall& call, const std::string& body);
  transport::Response PutFailure(const RoundCall& call, const std::string& body);

  Core& core_;
};

/// 401 to the holder of `token`, that says so where a newer session of the client ended it.
/// `core.mutex` is held.
transport::Response SupersededResponse(Core& core, const std::string& token);

/// 409 in the form that agents expect for a round that is over: the error with `round`, the number
/// of the round that the job is in. `core.mutex` is held.
transport::Response LateResponse(Core& core, const base::JobName& job, const base::Status& status);

}  // namespace fl::aggregator
