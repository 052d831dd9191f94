#pragma once

/// Tells a job that is submitted again from another job of the same name.

#include "base/digest.h"
#include "spec/types.h"

namespace fl::spec {

/// SHA-256 over the canonical JSON of the part of `spec` that may not change, defaults applied: all
/// but suspend, aborted, attempt, ttlSecondsAfterFinished, roundPolicy and rounds. Labels and
/// annotations do not count.
base::Digest ConfigDigest(const FederatedLearningJob& job);

}  // namespace fl::spec
