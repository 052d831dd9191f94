#pragma once

/// The one place where defaults are.
///
/// | field | default |
/// |---|---|
/// | job `selection.policy` | Random |
/// | job `selection.quorum` | `clientsPerRound`; all who were selected where that is left out, and
/// 1 under Poisson | | job `roundPolicy.mode` | Synchronous | | job `roundPolicy.deadlineSeconds` |
/// 600 | | job `roundPolicy.onMissedQuorum` | Retry | | job `roundPolicy.maxRetries` | 3 | | job
/// `aggregation.algorithm` | FedAvg | | job `evaluation.clients` | None where there is a
/// `testDataset` or differential privacy, else All | | job `convergence.minDelta` | "0" where there
/// is a `patience` | | job `privacy.secureAggregation.corruptFraction`, `.dropFraction` | "0.1",
/// "0.1" | | job `privacy.secureAggregation.clipRange`, `.bits`, `.maxWeight` | "8", 32, 10000 | |
/// job `privacy.differentialPrivacy.accountant` | RDP | | model `aggregator.service.type` |
/// ClusterIP | | model `aggregator.storage.size`, `.reclaimPolicy` | 10Gi, Retain | | model
/// `promotion.policy` | Manual | | model `initial.builtin.seed` | 0 |
///
/// What is left out for good keeps its meaning: no `clientsPerRound` is every client that matches,
/// no `seed` is fresh randomness, no `ttlSecondsAfterFinished` is never, no `keepLast` is
/// everything.

#include "spec/types.h"

namespace fl::spec {

void ApplyDefaults(FederatedModel& model);
void ApplyDefaults(FederatedClient& client);
void ApplyDefaults(FederatedLearningJob& job);
void ApplyDefaults(Object& object);

}  // namespace fl::spec
