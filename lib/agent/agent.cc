#include "agent/agent.h"

#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "agent/internal/change_log.h"
#include "agent/internal/worker.h"
#include "base/keys.h"
#include "obs/log.h"
#include "wire/paths.h"
#include "wire/task.h"

namespace fl::agent {
namespace {

using base::Code;
using base::Result;
using base::Status;

/// A poll is answered a little after its wait at the latest, or else the way is broken.
constexpr base::Duration kPollSlack = std::chrono::seconds(15);
/// How long an upload may go on after its round is over: its answer is most likely on the way.
constexpr base::Duration kDeliveryGrace = std::chrono::seconds(1);
constexpr uint64_t kSmallFile = 1 << 20;

/// What an aggregator said to a poll.
struct PollAnswer {
  std::optional<wire::Task> task;
  bool none = false;  ///< what we work on is no longer wanted, and nothing else is
};

Result<std::string> ReadText(const base::Path& path, std::string_view what) {
  Result<std::string> text = base::ReadFile(path, kSmallFile);
  if (!text.ok()) return text.status().WithContext(what);
  return text;
}

/// The client's own key; one that has none yet, but a join token, gets one in `folder`.
Result<std::optional<base::PrivateKey>> FindKey(const ClientConfig& client,
                                                const base::Path& folder) {
  std::optional<base::PrivateKey> none;
  if (!client.key_file.empty()) {
    FL_ASSIGN_OR_RETURN(base::PrivateKey key, base::PrivateKey::Load(client.key_file));
    return std::optional(std::move(key));
  }
  if (client.join_token_file.empty()) return none;
  const base::Path path = folder / "client.key";
  Result<base::PrivateKey> there = base::PrivateKey::Load(path);
  if (there.ok()) return std::optional(std::move(there).value());
  if (there.status().code() != Code::kNotFound) return there.status();
  FL_ASSIGN_OR_RETURN(base::PrivateKey made, base::PrivateKey::Generate(base::KeyType::kP384));
  FL_RETURN_IF_ERROR(base::MakeDirectories(folder, 0700));
  FL_RETURN_IF_ERROR(base::WriteFileAtomically(path, made.ToPem(), 0600));
  obs::Info("made a key", {{"client", client.client},
                           {"file", path.string()},
                           {"publicKey", made.public_key().ToOpenSsh()}});
  return std::optional(std::move(made));
}

Result<transport::ClientOptions> HttpOptionsOf(const Config& config, const ClientConfig& client) {
  transport::ClientOptions options{.allow_http = config.insecure,
                                   .verify_server = !config.insecure,
                                   .user_agent = SessionOptions().software};
  if (!config.ca_file.empty()) {
    FL_ASSIGN_OR_RETURN(options.ca_pem, ReadText(config.ca_file, "caFile"));
  }
  if (!client.certificate_file.empty()) {
    FL_ASSIGN_OR_RETURN(options.certificate_pem,
                        ReadText(client.certificate_file, "certificateFile"));
    FL_ASSIGN_OR_RETURN(options.key_pem,
                        ReadText(client.certificate_key_file, "certificateKeyFile"));
  }
  return options;
}

Result<SessionOptions> SessionOptionsOf(const Config& config, const ClientConfig& client) {
  SessionOptions options{.aggregator = config.aggregator, .client = client.client};
  FL_ASSIGN_OR_RETURN(options.key, FindKey(client, config.work_dir / client.client.str()));
  if (!client.join_token_file.empty()) {
    FL_ASSIGN_OR_RETURN(std::string token, ReadText(client.join_token_file, "joinTokenFile"));
    token.erase(token.find_last_not_of(" \t\r\n") + 1);
    options.join_token = std::move(token);
  }
  return options;
}

}  // namespace

class Agent::Impl {
 public:
  Impl(SessionOptions options, std::unique_ptr<transport::HttpClient> http,
       const AgentDependencies& dependencies)
      : http_(std::move(http)),
        seams_(dependencies.seams),
        poll_wait_(dependencies.poll_wait),
        session_(std::move(options), *http_, seams_) {}

  Session& session() { return session_; }
  void set_runner(std::unique_ptr<TaskRunner> runner) { runner_ = std::move(runner); }

  Status Run(const std::stop_token& stop) {
    internal::Worker worker(
        [this](const wire::Task& task, base::Instant received, const TaskStop& task_stop) {
          return runner_->Run(task, received, task_stop);
        },
        [this] { InterruptPoll(); });
    base::Backoff backoff(kFirstRetryDelay, kLongestRetryDelay, seams_.random);
    internal::ChangeLog failures(session_.client());
    while (!stop.stop_requested()) {
      const std::stop_token interrupted = ArmPoll();
      const Result<PollAnswer> answer = Poll(worker.Current(), interrupted, stop);
      if (stop.stop_requested()) break;
      if (answer.ok()) {
        backoff.Reset();
        failures.Succeeded();
        Follow(*answer, worker, stop);
        continue;
      }
      if (answer.status().code() == Code::kCancelled) continue;
      if (answer.status().code() == Code::kInvalidArgument) return answer.status();
      failures.Failed("no answer to a poll; trying again", answer.status());
      Wait(backoff.Next(), stop);
    }
    return base::OkStatus();
  }

 private:
  /// Does what the aggregator said.
  void Follow(const PollAnswer& answer, internal::Worker& worker, const std::stop_token& stop) {
    if (answer.none) worker.Withdraw(kDeliveryGrace);
    if (!answer.task) return;
    const std::string key = answer.task->Key();
    if (worker.Current() == key) return;
    const base::Instant received = seams_.clock.Monotonic();
    worker.Withdraw(kDeliveryGrace);
    if (key == last_key_) {
      // It came to nothing that the aggregator could be told; no use in hurrying.
      Wait(repeats_.Next(), stop);
    } else {
      repeats_.Reset();
    }
    if (stop.stop_requested()) return;
    last_key_ = key;
    worker.Begin(*answer.task, received);
  }

  Result<PollAnswer> Poll(const std::optional<std::string>& current,
                          const std::stop_token& interrupted, const std::stop_token& stop) {
    std::stop_source either;
    const std::stop_callback on_stop(stop, [&either] { either.request_stop(); });
    const std::stop_callback on_interrupt(interrupted, [&either] { either.request_stop(); });

    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(poll_wait_).count();
    transport::ClientRequest request;
    request.url = wire::TaskPath(session_.client()) + "?wait=" + std::to_string(seconds);
    if (current) request.url += "&current=" + transport::PercentEncode(*current);
    request.timeout = poll_wait_ + kPollSlack;
    request.stall_timeout = poll_wait_ + kPollSlack;
    request.stop = either.get_token();
    FL_ASSIGN_OR_RETURN(const transport::ClientResponse response,
                        session_.Send(std::move(request)));
    PollAnswer answer;
    if (response.status == 204) {
      answer.none = response.headers.Get(wire::kTaskState) == wire::kTaskNone;
      return answer;
    }
    const Status refused = response.ToStatus();
    const Result<wire::Task> task =
        refused.ok() ? wire::TaskFromJson(response.body) : Result<wire::Task>(refused);
    if (!task.ok()) {
      // Not our input: an aggregator that is wrong now may be right later.
      return base::Unavailable(task.status().message(), task.status().hint());
    }
    answer.task = *task;
    return answer;
  }

  /// A new token for the next poll. Arm first, then look at what the worker does: a task that ends
  /// in between is then either seen or interrupts the poll.
  std::stop_token ArmPoll() {
    const std::lock_guard lock(mutex_);
    interrupt_ = std::stop_source();
    return interrupt_.get_token();
  }
  void InterruptPoll() {
    std::stop_source interrupt;
    {
      const std::lock_guard lock(mutex_);
      interrupt = interrupt_;
    }
    interrupt.request_stop();
  }

  void Wait(base::Duration duration, const std::stop_token& stop) {
    const Status waited = seams_.sleeper(duration, stop);
    static_cast<void>(waited);  // only a stop ends it, which every caller looks for
  }

  const std::unique_ptr<transport::HttpClient> http_;
  const Seams seams_;
  const base::Duration poll_wait_;
  Session session_;
  std::unique_ptr<TaskRunner> runner_;
  std::string last_key_;
  base::Backoff repeats_{kFirstRetryDelay, kLongestRetryDelay, seams_.random};
  std::mutex mutex_;
  std::stop_source interrupt_;  // guarded by mutex_
};

Result<std::unique_ptr<Agent>> Agent::Create(const Config& config, const ClientConfig& client,
                                             BlobCache& blobs,
                                             const AgentDependencies& dependencies) {
  FL_ASSIGN_OR_RETURN(const transport::ClientOptions http_options, HttpOptionsOf(config, client));
  FL_ASSIGN_OR_RETURN(SessionOptions session_options, SessionOptionsOf(config, client));
  FL_ASSIGN_OR_RETURN(std::unique_ptr<transport::HttpClient> http,
                      dependencies.make_http(http_options));
  auto impl = std::make_unique<Impl>(std::move(session_options), std::move(http), dependencies);
  FL_ASSIGN_OR_RETURN(
      std::unique_ptr<TaskRunner> runner,
      TaskRunner::Create({.client = client,
                          .trainers = config.trainers,
                          .require = config.require,
                          .folder = config.work_dir / client.client.str()},
                         impl->session(), blobs, dependencies.seams, dependencies.make_trainer));
  impl->set_runner(std::move(runner));
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() = default;

Status Agent::Run(const std::stop_token& stop) { return impl_->Run(stop); }

Status RunAgents(const Config& config, const std::stop_token& stop,
                 const AgentDependencies& dependencies) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(config.work_dir, 0700));
  FL_ASSIGN_OR_RETURN(const base::FileLock lock,
                      base::FileLock::Acquire(config.work_dir / "lock", "fl-agentd"));
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<BlobCache> blobs,
                      BlobCache::Open(config.work_dir / "models"));
  std::vector<std::unique_ptr<Agent>> agents;
  for (const ClientConfig& client : config.clients) {
    FL_ASSIGN_OR_RETURN(std::unique_ptr<Agent> agent,
                        Agent::Create(config, client, *blobs, dependencies));
    agents.push_back(std::move(agent));
  }

  std::stop_source ending;
  const std::stop_callback on_stop(stop, [&ending] { ending.request_stop(); });
  std::mutex mutex;
  Status first_error;
  {
    std::vector<std::jthread> threads;
    for (const std::unique_ptr<Agent>& agent : agents) {
      threads.emplace_back([&] {
        const Status ended = agent->Run(ending.get_token());
        if (ended.ok()) return;
        const std::lock_guard guard(mutex);
        if (first_error.ok()) first_error = ended;
        ending.request_stop();
      });
    }
  }
  return first_error;
}

}  // namespace fl::agent
