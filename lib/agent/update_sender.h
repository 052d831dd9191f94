#pragma once

#include <stop_token>
#include <string>

#include "agent/finished_update.h"
#include "agent/seams.h"
#include "agent/session.h"
#include "base/file.h"
#include "base/status.h"
#include "wire/task.h"

namespace fl::agent {

/// How a task is called off. `withdrawn`: the aggregator no longer wants it; work stops, but a
/// request that is on its way may still be answered. `now`: drop everything.
struct TaskStop {
  std::stop_token withdrawn;
  std::stop_token now;
};

/// What the aggregator said to a delivery.
struct Delivery {
  enum class Kind {
    kAccepted,
    kLate,     ///< 409: the round went on without us; nothing to do
    kRefused,  ///< another 4xx: `status` says why
  };
  Kind kind = Kind::kAccepted;
  base::Status status;  ///< of the answer; OK where accepted
};

/// Delivers what tasks come to. Each call sends the very same bytes again, with backoff, until the
/// aggregator answers or the task is withdrawn: only the aggregator knows whether a round is over
/// (one that restarted gives it its whole deadline again). Errors: kCancelled, and those that
/// another attempt cannot mend. Thread-safe.
class UpdateSender {
 public:
  /// `session` outlives the sender.
  UpdateSender(Session& session, Seams seams) : session_(session), seams_(std::move(seams)) {}

  /// The weights at `weights`, streamed. Bodies larger than 1 MiB wait for the aggregator's word
  /// before they are sent. Samples, steps and metrics go along where the task lets them.
  base::Result<Delivery> SendUpdate(const wire::Task& task, const FinishedUpdate& update,
                                    const base::Path& weights, const TaskStop& stop);
  base::Result<Delivery> SendEvaluation(const wire::Task& task, wire::EvaluationReport report,
                                        const TaskStop& stop);
  /// Says that this client gives the task up, and why (see PublicReason).
  base::Result<Delivery> SendFailure(const wire::Task& task, std::string reason,
                                     const TaskStop& stop);

 private:
  base::Result<Delivery> Put(const std::string& path, transport::ClientRequest request,
                             const TaskStop& stop);

  Session& session_;
  const Seams seams_;
};

}  // namespace fl::agent
