#pragma once

/// Aggregating the updates of a round into the next model: the one entry for the aggregator and for
/// `fl aggregate`.
///
/// The work goes over mapped files tile by tile: a tile's coordinates are summed over the clients
/// in the order of their ids, in F64, and rounded once. No result depends on the order in which the
/// updates are given, on the number of threads, or on the processor's instruction set; memory is a
/// few tiles for each thread, whatever the size of the model and the number of updates.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "strategy/aggregate/rule.h"
#include "tensor/safetensors.h"

namespace fl::strategy {

/// What one client trained: full weights.
struct Update {
  base::ClientName client;                           ///< unique in a round
  double weight = 0;                                 ///< number of samples; 0 contributes nothing
  int64_t steps = 0;                                 ///< local steps, for FedNova; 0 where unknown
  const tensor::SafetensorsFile* tensors = nullptr;  ///< not owned
};

/// Weights are 0 or within these, so that no sum of products leaves F64.
inline constexpr double kMinWeight = 0x1p-53;
inline constexpr double kMaxWeight = 0x1p53;

struct AggregateRequest {
  /// The current model. Null takes the signature of the majority of the updates as the reference,
  /// for rules without needs_global().
  const tensor::SafetensorsFile* global = nullptr;
  /// The state the last round left; null in the first round.
  const tensor::SafetensorsFile* state = nullptr;
  std::vector<Update> updates;
  /// Where the next model goes; its tensors are in the order of the reference.
  base::Path output;
  /// Metadata of the next model's file.
  tensor::Header::Metadata metadata;
  /// Where the next state goes, for rules that keep one. May be the path that `state` was opened
  /// from. It gets its name just before the output does; a caller to whom a crash between the two
  /// matters gives both new names and publishes them together.
  base::Path state_output;
  /// fsync what was written.
  bool durable = true;
  /// Null: all work on the calling thread.
  base::ThreadPool* pool = nullptr;
};

struct AggregateReport {
  struct Accepted {
    base::ClientName client;
    double weight = 0;
  };
  struct Rejected {
    base::ClientName client;
    std::string tensor;  ///< empty where the reason is not about one
    std::string reason;  ///< e.g. `tensor "w1" has shape [3,2], the model has [2,3]`
  };
  std::vector<Accepted> accepted;  ///< by client id
  std::vector<Rejected> rejected;  ///< by client id
  double total_weight = 0;
  tensor::FileSummary output;
  std::optional<tensor::FileSummary> state;  ///< for rules that keep one
};

/// Aggregates. The report says who was accepted and who rejected, also when the result is an error.
/// An update is rejected for a tensor that is missing, extra, misshapen or mistyped, for a
/// non-finite value (also at weight 0), for a weight that is negative, not finite or out of range,
/// and under FedNova for no steps. After an error no file is written or changed.
///
/// kInvalidArgument: two updates of one client, no global model where the rule needs one, a tie for
/// the majority, or a state of another rule or model. kFailedPrecondition: no update is left, all
/// weights are 0, or a step leaves the range of the tensor's dtype (named; never stored). Else as
/// tensor::SafetensorsWriter.
base::Status Aggregate(const Rule& rule, const AggregateRequest& request, AggregateReport& report);

/// What is wrong with one update by itself, its values aside: signature against `global`, weight
/// and steps.
std::optional<AggregateReport::Rejected> CheckUpdate(const Rule& rule, const tensor::Header& global,
                                                     const Update& update);

}  // namespace fl::strategy
