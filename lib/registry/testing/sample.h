#pragma once

/// Repositories with something in them, for tests of this module and of those above it.

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "registry/repository.h"

namespace fl::registry {

/// A request for round `round` of job "digits" (round 0: an initial model) whose weights are the
/// bytes `weights`, staged in `repository`, and whose optimiser state, where not empty, is `state`.
/// The parent is the latest version. Ends the process where the files cannot be written.
PublishRequest SampleRequest(ModelRepository& repository, int64_t round, std::string_view weights,
                             std::string_view state = "");

/// Publishes versions until there are `count`: an initial one, then rounds 1, 2, … of job "digits",
/// version N with weights "weights N" and state "state N".
base::Status PublishSamples(ModelRepository& repository, int64_t count);

/// The content of an opened blob.
std::string Text(const OpenedBlob& blob);

}  // namespace fl::registry
