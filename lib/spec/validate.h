#pragma once

/// The rules of the kinds that need only the object itself. The CRDs' schema and CEL rules, and the
/// aggregator, hold to the same table (testdata/).

#include <string_view>

#include "spec/problem.h"
#include "spec/types.h"

namespace fl::spec {

/// Whether an agent's FederatedClient must say its key, or whoever reads it makes one (`fl run`).
enum class AgentKeys { kGiven, kMade };

/// All that is wrong with the object, by path; source and line are not set. Defaults need not be
/// applied, and applying them brings no new problem.
Problems Validate(const FederatedModel& model);
Problems Validate(const FederatedClient& client, AgentKeys keys = AgentKeys::kGiven);
Problems Validate(const FederatedLearningJob& job);
Problems Validate(const Object& object);

/// What of the change from `before` to `after` is not allowed: fields that may not change, `rounds`
/// and `attempt` that would go down, `aborted` that would be taken back, another kind or name. Both
/// are compared with defaults applied. Does not validate `after` by itself.
Problems ValidateUpdate(const Object& before, const Object& after);

/// RFC 1123 label of at most 63 characters, as names of objects must be. kInvalidArgument with
/// `what` in front, e.g. "client name".
base::Status CheckName(std::string_view name, std::string_view what);

}  // namespace fl::spec
