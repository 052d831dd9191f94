#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "transport/client.h"

namespace fl::agent {

/// What an agent waits, stamps and rolls dice with; tests put their own in its place. The
/// references outlive whoever holds the struct. Values; any thread.
struct Seams {
  base::Clock& clock = base::Clock::System();
  base::RandomSource& random = base::RandomSource::Secure();
  transport::Sleeper sleeper = transport::SleepFor;
};

/// Waits before the next attempt at something that failed on the way to the aggregator.
inline constexpr base::Duration kFirstRetryDelay = std::chrono::milliseconds(100);
inline constexpr base::Duration kLongestRetryDelay = std::chrono::seconds(5);

}  // namespace fl::agent
