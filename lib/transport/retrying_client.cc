#include <charconv>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "transport/client.h"

namespace fl::transport {
namespace {

bool WorthRetrying(const base::Result<ClientResponse>& result) {
  if (!result.ok()) {
    const base::Code code = result.status().code();
    return code == base::Code::kUnavailable || code == base::Code::kDeadlineExceeded;
  }
  const int status = result->status;
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/// The wait that the server asked for, in seconds; the form with a date is not used among ours.
std::optional<base::Duration> RetryAfter(const base::Result<ClientResponse>& result) {
  if (!result.ok()) return std::nullopt;
  const base::Result<uint64_t> seconds = result->headers.GetNumber("Retry-After");
  constexpr uint64_t kLongest = 3600;
  if (!seconds.ok() || *seconds > kLongest) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

bool MayRepeat(const ClientRequest& request) {
  if (!IsIdempotent(request)) return false;
  const auto* stream = std::get_if<StreamUpload>(&request.body);
  return stream == nullptr || stream->rewind != nullptr;
}

}  // namespace

base::Status SleepFor(base::Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
  if (stop.stop_requested()) return base::Cancelled("stopped while waiting to try again");
  return base::OkStatus();
}

RetryingClient::RetryingClient(HttpClient& inner, RetryOptions options, base::Clock& clock,
                               base::RandomSource& random, Sleeper sleeper)
    : inner_(inner),
      options_(options),
      clock_(clock),
      random_(random),
      sleeper_(std::move(sleeper)) {}

base::Result<ClientResponse> RetryingClient::Send(const ClientRequest& request) {
  if (!MayRepeat(request)) return inner_.Send(request);
  base::Backoff backoff(options_.initial_delay, options_.max_delay, random_);
  const base::Instant last_start = clock_.Monotonic() + options_.give_up_after;
  for (int attempt = 1;; ++attempt) {
    base::Result<ClientResponse> result = inner_.Send(request);
    if (!WorthRetrying(result) || attempt >= options_.max_attempts) return result;
    const base::Duration delay =
        std::max(backoff.Next(), RetryAfter(result).value_or(base::Duration(0)));
    if (clock_.Monotonic() + delay > last_start) return result;
    FL_RETURN_IF_ERROR(sleeper_(delay, request.stop));
    if (const auto* stream = std::get_if<StreamUpload>(&request.body)) {
      FL_RETURN_IF_ERROR(stream->rewind());
    }
  }
}

}  // namespace fl::transport
