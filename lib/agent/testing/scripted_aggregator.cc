#include "agent/testing/scripted_aggregator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/encoding.h"
#include "transport/serve_file.h"
#include "wire/paths.h"
#include "wire/session.h"

namespace fl::agent {
namespace {

using transport::Accept;
using transport::Buffered;
using transport::Headers;
using transport::RequestContext;
using transport::Responder;
using transport::Response;

constexpr uint64_t kBodyLimit = uint64_t{64} << 20;

Response Unauthorized(std::string body) {
  Response response = transport::JsonResponse(401, std::move(body));
  return response;
}

}  // namespace

ScriptedAggregator::ScriptedAggregator(base::Path folder, int port)
    : folder_(std::move(folder)),
      authority_(transport::CertificateAuthority::Create("test", base::Clock::System()).value()) {
  const transport::CertificateAndKey own =
      authority_.IssueServer({"127.0.0.1"}, base::Clock::System()).value();
  transport::ServerOptions options;
  options.port = port;
  options.tls = transport::ServerTls{own.certificate_pem, own.key_pem, "", false};
  server_ = transport::Server::Start(std::move(options), *this).value();
}

ScriptedAggregator::~ScriptedAggregator() {
  {
    const std::lock_guard lock(mutex_);
    polls_.clear();  // answers 500
  }
  server_.reset();
}

void ScriptedAggregator::AddClient(const base::ClientName& client, base::PublicKey key) {
  const std::lock_guard lock(mutex_);
  keys_.insert_or_assign(client, std::move(key));
}

base::Digest ScriptedAggregator::AddBlob(const std::string& content) {
  const base::Digest digest = base::Digest::Of(content);
  FL_CHECK(base::WriteFileAtomically(folder_ / digest.Hex(), content).ok());
  return digest;
}

void ScriptedAggregator::SetTask(const base::ClientName& client, std::optional<wire::Task> task) {
  const std::lock_guard lock(mutex_);
  tasks_.erase(client);
  if (task) tasks_.emplace(client, *std::move(task));
  AnswerPolls();
}

void ScriptedAggregator::ForgetSessions() {
  const std::lock_guard lock(mutex_);
  tokens_.clear();
}

void ScriptedAggregator::SupersedeSessions() {
  const std::lock_guard lock(mutex_);
  superseded_.merge(tokens_);
  tokens_.clear();
  polls_.clear();
}

void ScriptedAggregator::AnswerUpdates(std::deque<int> statuses) {
  const std::lock_guard lock(mutex_);
  update_statuses_ = std::move(statuses);
}

void ScriptedAggregator::EndTasksAfter(int n) {
  const std::lock_guard lock(mutex_);
  deliveries_of_a_task_ = n;
}

void ScriptedAggregator::Wait(const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  FL_CHECK_MSG(changed_.wait_for(lock, std::chrono::minutes(4), done),
               "the agent did not do what the test waits for");
}

size_t ScriptedAggregator::Count(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::count_if(received_.begin(), received_.end(),
                    [&](const Received& one) { return one.path.find(what) != std::string::npos; }));
}

ScriptedAggregator::Received ScriptedAggregator::WaitFor(const std::string& what, size_t n) {
  std::optional<Received> found;
  Wait([&] {
    size_t seen = 0;
    for (const Received& one : received_) {
      if (one.path.find(what) == std::string::npos || ++seen < n) continue;
      found = one;
      return true;
    }
    return false;
  });
  return *found;
}

void ScriptedAggregator::WaitForSessions(int n) {
  Wait([&] { return sessions_ >= n; });
}

void ScriptedAggregator::WaitForPoll(const base::ClientName& client, bool busy) {
  Wait([&] {
    return std::any_of(polls_.begin(), polls_.end(), [&](const Poll& poll) {
      return poll.client == client && poll.current.has_value() == busy &&
             !poll.responder.disconnected();
    });
  });
}

int ScriptedAggregator::blob_requests() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(ranges_.size());
}

std::vector<std::string> ScriptedAggregator::ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

Accept ScriptedAggregator::OnRequest(const RequestContext& context) {
  const std::string& path = context.head.target.path;
  if (path == wire::kAgentsPath) return OpenSession(context);
  base::ClientName client;
  if (std::optional<Response> refused = CheckToken(context, &client)) return *std::move(refused);
  if (path.ends_with("/task")) return TaskPoll(context, client);
  if (path.find("/blobs/") == std::string::npos) return Delivery(context, client);

  const base::Digest digest = base::Digest::Parse(context.head.target.segments.back()).value();
  {
    const std::lock_guard lock(mutex_);
    ranges_.emplace_back(context.head.headers.GetOr("Range", ""));
  }
  base::Result<transport::FileBody> file = transport::FileBody::Open(folder_ / digest.Hex());
  if (!file.ok()) return transport::ErrorResponse(file.status());
  return transport::ServeFile(context.head, std::move(file).value(), {});
}

Accept ScriptedAggregator::OpenSession(const RequestContext& context) {
  return Buffered{
      1 << 16,
      [this, exporter = context.tls_exporter](const std::string& body, Responder responder) {
        const wire::SessionRequest request = wire::SessionRequestFromJson(body).value();
        const std::unique_lock lock(mutex_);
        const auto key = keys_.find(request.client);
        if (key == keys_.end()) {
          return std::move(responder).Send(transport::ErrorResponse(
              base::PermissionDenied("no such client", "create the FederatedClient")));
        }
        const wire::Challenge challenge{.challenge = "challenge", .aggregator_id = "aggregator"};
        const std::string text =
            wire::SessionText("challenge", "aggregator", request.client, exporter);
        const auto signature = base::Base64Decode(request.signature.value_or(""));
        if (!request.signature || !signature.ok() ||
            !key->second.Verify(base::AsBytes(text), *signature).ok()) {
          return std::move(responder).Send(Unauthorized(wire::ToJson(challenge)));
        }
        const std::string token = "token-" + std::to_string(++sessions_);
        tokens_[token] = request.client;
        changed_.notify_all();
        std::move(responder).Send(transport::JsonResponse(
            200, wire::ToJson(wire::Session{base::SessionToken(token), 3600, "aggregator"})));
      }};
}

std::optional<Response> ScriptedAggregator::CheckToken(const RequestContext& context,
                                                       base::ClientName* client) {
  std::string token(context.head.headers.GetOr(wire::kAuthorization, ""));
  token.erase(0, std::string("Bearer ").size());
  const std::lock_guard lock(mutex_);
  const auto known = tokens_.find(token);
  if (known != tokens_.end()) {
    *client = known->second;
    return std::nullopt;
  }
  Response refused = transport::ErrorResponse(base::Unauthenticated("the session is not known"));
  if (superseded_.contains(token)) {
    refused.headers.Set(std::string(wire::kSessionState), std::string(wire::kSessionSuperseded));
  }
  return refused;
}

Accept ScriptedAggregator::TaskPoll(const RequestContext& context, const base::ClientName& client) {
  std::optional<std::string> current;
  if (const auto named = context.head.target.Parameter("current")) current = std::string(*named);
  return Buffered{0, [this, client, current](const std::string&, Responder responder) {
                    const std::lock_guard lock(mutex_);
                    polls_.push_back({client, current, std::move(responder)});
                    AnswerPolls();
                    changed_.notify_all();
                  }};
}

void ScriptedAggregator::AnswerPolls() {
  std::vector<Poll> parked;
  for (Poll& poll : polls_) {
    const auto task = tasks_.find(poll.client);
    const bool has_task = task != tasks_.end();
    if (has_task && task->second.Key() != poll.current) {
      std::move(poll.responder).Send(transport::JsonResponse(200, wire::ToJson(task->second)));
    } else if (!has_task && poll.current) {
      std::move(poll.responder)
          .Send(Response{204, {{std::string(wire::kTaskState), std::string(wire::kTaskNone)}}, ""});
    } else {
      parked.push_back(std::move(poll));
    }
  }
  polls_ = std::move(parked);
}

Accept ScriptedAggregator::Delivery(const RequestContext& context, const base::ClientName& client) {
  return Buffered{
      kBodyLimit, [this, client, path = context.head.target.path, headers = context.head.headers](
                      std::string body, Responder responder) {
        const std::lock_guard lock(mutex_);
        int status = 200;
        if (path.find("/updates/") != std::string::npos && !update_statuses_.empty()) {
          status = update_statuses_.front();
          update_statuses_.pop_front();
        }
        received_.push_back({path, headers, std::move(body)});
        const bool taken = status == 200 || status == 409;
        if (taken && ++taken_[client] >= deliveries_of_a_task_) {
          taken_.erase(client);
          tasks_.erase(client);
          AnswerPolls();
        }
        changed_.notify_all();
        std::move(responder).Send(
            status == 200
                ? transport::JsonResponse(200, "{}")
                : transport::ErrorResponse(
                      base::Status(base::CodeFromHttpStatus(status), "as the test says"), status));
      }};
}

}  // namespace fl::agent
