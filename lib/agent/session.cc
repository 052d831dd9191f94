#include "agent/session.h"

#include <algorithm>
#include <utility>

#include "agent/internal/change_log.h"
#include "base/encoding.h"
#include "obs/log.h"
#include "wire/paths.h"

namespace fl::agent {
namespace {

using base::Code;
using base::Result;
using base::Status;
using transport::ClientRequest;
using transport::ClientResponse;

/// For what a person has to mend: an unknown client, a certificate that is not trusted.
constexpr base::Duration kFirstSlowDelay = std::chrono::milliseconds(500);
constexpr base::Duration kLongestSlowDelay = std::chrono::seconds(30);
/// For what another process with our key has: we do not fight for it.
constexpr base::Duration kFirstTakeBackDelay = std::chrono::minutes(1);
constexpr base::Duration kLongestTakeBackDelay = std::chrono::minutes(10);
/// A challenge and its answer have to go over one connection; how often we start over for that.
constexpr int kConnectionChanges = 5;
constexpr base::Duration kSessionTimeout = std::chrono::seconds(30);
constexpr base::Duration kLongestRetryAfter = std::chrono::minutes(1);

/// Errors that stay whatever the aggregator does.
bool IsFinal(const Status& status) {
  return status.code() == Code::kInvalidArgument || status.code() == Code::kCancelled;
}

/// What the aggregator sent is no input that somebody here could mend: it may do better later.
Status FromAggregator(const Status& status) {
  if (status.code() != Code::kInvalidArgument) return status;
  return base::Unavailable(status.message(), status.hint());
}

Status Stopped() { return base::Cancelled("the agent is stopping"); }

}  // namespace

Session::Session(SessionOptions options, transport::HttpClient& http, Seams seams)
    : options_(std::move(options)),
      http_(http),
      seams_(std::move(seams)),
      take_back_(kFirstTakeBackDelay, kLongestTakeBackDelay, seams_.random) {}

Result<ClientResponse> Session::Send(ClientRequest request) {
  request.url = options_.aggregator + request.url;
  for (int attempt = 0;; ++attempt) {
    FL_ASSIGN_OR_RETURN(const base::SessionToken token, Token(request.stop));
    request.headers.Set(std::string(wire::kAuthorization), "Bearer " + token.str());
    FL_ASSIGN_OR_RETURN(ClientResponse response, http_.Send(request));
    if (response.status != 401) return response;
    Refused(token, response);
    if (attempt == 1) return response;
  }
}

Result<base::SessionToken> Session::Token(const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !opening_; })) return Stopped();
    if (token_ && seams_.clock.Monotonic() < renew_at_) return *token_;
    opening_ = true;
    if (token_) take_back_.Reset();  // nobody took it over for all its life
  }
  Result<wire::Session> session = Open(stop);
  const std::lock_guard lock(mutex_);
  opening_ = false;
  changed_.notify_all();
  if (!session.ok()) return session.status();
  token_ = session->token;
  // Early enough that a slow aggregator does not make us lose it.
  const auto lifetime = std::chrono::seconds(std::max<int64_t>(session->expires_in_seconds, 0));
  renew_at_ = seams_.clock.Monotonic() + base::Duration(lifetime) / 10 * 9;
  return session->token;
}

void Session::Refused(const base::SessionToken& token, const ClientResponse& answer) {
  const std::lock_guard lock(mutex_);
  if (token_ != token) return;  // an older one: it was renewed meanwhile
  token_.reset();
  taken_over_ = answer.headers.Get(wire::kSessionState) == wire::kSessionSuperseded;
}

Result<wire::Session> Session::Open(const std::stop_token& stop) {
  const bool taken_over = [this] {
    const std::lock_guard lock(mutex_);
    return std::exchange(taken_over_, false);
  }();
  if (taken_over) {
    const base::Duration delay = take_back_.Next();
    obs::Error("another process with this client's key opened a session, which ended ours",
               {{"client", options_.client},
                {"waiting", base::FormatDuration(delay)},
                {"hint", "stop one of the two, or give each a client and a key of its own"}});
    FL_RETURN_IF_ERROR(seams_.sleeper(delay, stop));
  }

  base::Backoff quick(kFirstRetryDelay, kLongestRetryDelay, seams_.random);
  base::Backoff slow(kFirstSlowDelay, kLongestSlowDelay, seams_.random);
  internal::ChangeLog failures(options_.client);
  bool join = false;
  for (;;) {
    Result<wire::Session> session = OpenOnce(stop, join);
    if (session.ok()) {
      obs::Info("session opened",
                {{"client", options_.client}, {"aggregator", session->aggregator_id}});
      return session;
    }
    if (stop.stop_requested()) return Stopped();
    if (IsFinal(session.status())) return session;
    // Unknown here, without a key, or with another one: for people to mend.
    const bool denied = session.status().code() == Code::kPermissionDenied ||
                        session.status().code() == Code::kUnauthenticated;
    if (denied && options_.join_token && options_.key && !join) {
      join = true;  // shown only where the key alone did not do
      continue;
    }
    failures.Failed("no session yet; trying again", session.status());
    FL_RETURN_IF_ERROR(seams_.sleeper((denied ? slow : quick).Next(), stop));
  }
}

Result<wire::Session> Session::OpenOnce(const std::stop_token& stop, bool join) {
  wire::SessionRequest message{.client = options_.client, .software = options_.software};
  ClientResponse answer;
  for (int i = 0; i < kConnectionChanges; ++i) {
    message.challenge.reset();
    message.signature.reset();
    FL_ASSIGN_OR_RETURN(const ClientResponse asked, Post(message, stop));
    answer = asked;
    if (asked.status != 401 || !options_.key) break;
    const Result<wire::Challenge> challenge = wire::ChallengeFromJson(asked.body);
    if (!challenge.ok()) return FromAggregator(challenge.status());
    const std::string text = wire::SessionText(challenge->challenge, challenge->aggregator_id,
                                               options_.client, asked.tls_exporter);
    message.challenge = challenge->challenge;
    message.signature = base::Base64Encode(base::AsBytes(options_.key->Sign(base::AsBytes(text))));
    if (join) {
      message.public_key = options_.key->public_key().ToOpenSsh();
      message.join_token = options_.join_token;
    }
    FL_ASSIGN_OR_RETURN(answer, Post(message, stop));
    const bool same_connection = answer.tls_exporter == asked.tls_exporter;
    if (answer.status != 401 || same_connection) break;
  }
  if (answer.status == 401 && !options_.key) {
    return base::PermissionDenied("the aggregator asks for the client's key",
                                  "give keyFile, or have the certificate signed by the authority "
                                  "that the aggregator trusts");
  }
  FL_RETURN_IF_ERROR(FromAggregator(answer.ToStatus()));
  Result<wire::Session> session = wire::SessionFromJson(answer.body);
  if (!session.ok()) return FromAggregator(session.status());
  return session;
}

Result<ClientResponse> Session::Post(const wire::SessionRequest& message,
                                     const std::stop_token& stop) {
  ClientRequest request;
  request.method = "POST";
  request.url = options_.aggregator + std::string(wire::kAgentsPath);
  request.headers.Set("Content-Type", std::string(wire::kJsonType));
  request.body = wire::ToJson(message);
  request.response_limit = 64 << 10;
  request.timeout = kSessionTimeout;
  request.stop = stop;
  request.idempotent = true;  // sent twice, it costs a challenge
  return http_.Send(request);
}

Result<ClientResponse> SendUntilAnswered(Session& session, const Seams& seams,
                                         const std::stop_token& withdrawn,
                                         const std::function<Result<ClientRequest>()>& make) {
  base::Backoff backoff(kFirstRetryDelay, kLongestRetryDelay, seams.random);
  internal::ChangeLog failures(session.client());
  for (;;) {
    if (withdrawn.stop_requested()) return base::Cancelled("the task was withdrawn");
    FL_ASSIGN_OR_RETURN(const ClientRequest request, make());
    const Result<ClientResponse> response = session.Send(request);
    base::Duration delay = backoff.Next();
    if (response.ok()) {
      const int status = response->status;
      if (status != 401 && status != 429 && status < 500) return response;
      failures.Failed("the aggregator does not take it now; trying again", response->ToStatus());
      const Result<uint64_t> seconds = response->headers.GetNumber("Retry-After");
      if (seconds.ok()) {
        const auto asked = std::chrono::seconds(std::min<uint64_t>(*seconds, 3600));
        delay = std::clamp<base::Duration>(asked, delay, kLongestRetryAfter);
      }
    } else {
      if (!response.status().retryable()) return response;
      failures.Failed("the way to the aggregator failed; trying again", response.status());
    }
    FL_RETURN_IF_ERROR(seams.sleeper(delay, withdrawn));
  }
}

}  // namespace fl::agent
