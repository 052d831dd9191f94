#include "aggregator/parking.h"

#include <algorithm>

namespace fl::aggregator {

void Parking::Park(transport::Responder responder, base::Instant deadline, Check check,
                   std::function<void()> on_left, const std::function<void()>& on_gone) {
  if (std::optional<transport::Response> answer = check(false)) {
    on_left();
    std::move(responder).Send(*std::move(answer));
    return;
  }
  auto gone = std::make_shared<std::atomic<bool>>(false);
  responder.OnDisconnect([gone, on_gone] {
    gone->store(true);
    on_gone();
  });
  waiting_.push_back({std::move(responder), deadline, std::move(check), std::move(on_left), gone});
}

void Parking::Sweep(base::Instant now) {
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    std::optional<transport::Response> answer;
    const bool gone = entry->gone->load();
    if (!gone) answer = entry->check(entry->deadline <= now);
    if (!gone && !answer) {
      ++entry;
      continue;
    }
    entry->on_left();
    if (answer) {
      std::move(entry->responder).Send(*std::move(answer));
    } else {
      std::move(entry->responder).Send(transport::Response{.status = 204});
    }
    entry = waiting_.erase(entry);
  }
}

std::optional<base::Instant> Parking::NextDeadline() const {
  std::optional<base::Instant> next;
  for (const Entry& entry : waiting_) {
    if (!next || entry.deadline < *next) next = entry.deadline;
  }
  return next;
}

}  // namespace fl::aggregator
