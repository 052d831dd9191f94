#pragma once

/// A server that answers as it was told, request by request: what a command says over the wire, and
/// what it makes of the answers. Behaviour is tested against the real aggregator in test/.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/server.h"

namespace fl::cli {

/// Thread-safe.
class ScriptedAggregator final : public transport::Handler {
 public:
  struct Answer {
    int status = 200;
    std::string body;
  };
  struct Request {
    std::string line;  ///< "PUT /v1/jobs/digits"
    std::string body;
    std::string admin_token;
  };

  ScriptedAggregator() {
    auto server = transport::Server::Start({}, *this);
    FL_CHECK_MSG(server.ok(), server.status().message());
    server_ = std::move(*server);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  /// The answers to `line` ("GET /v1/jobs"), one after the other; the last is repeated. What is not
  /// told is answered 404.
  void On(const std::string& line, std::vector<Answer> answers) {
    const std::lock_guard lock(mutex_);
    answers_[line] = {answers.begin(), answers.end()};
  }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// The requests that changed something, as "PUT /v1/jobs/digits".
  std::vector<std::string> Writes() const {
    std::vector<std::string> lines;
    for (const Request& request : requests()) {
      if (!request.line.starts_with("GET")) lines.push_back(request.line);
    }
    return lines;
  }

  transport::Accept OnRequest(const transport::RequestContext& context) override {
    Request request;
    request.line = context.head.method + " " + context.head.target.path;
    std::string separator = "?";
    for (const auto& [key, value] : context.head.target.query) {
      request.line += separator + key + "=" + value;
      separator = "&";
    }
    request.admin_token = context.head.headers.GetOr("Fl-Admin-Token", "");
    constexpr uint64_t kLimit = 1 << 20;
    return transport::Buffered{kLimit,
                               [this, request](std::string body, transport::Responder responder) {
                                 Request whole = request;
                                 whole.body = std::move(body);
                                 std::move(responder).Send(Take(std::move(whole)));
                               }};
  }

 private:
  transport::Response Take(Request request) {
    const std::lock_guard lock(mutex_);
    auto found = answers_.find(request.line);
    requests_.push_back(std::move(request));
    if (found == answers_.end()) {
      return transport::ErrorResponse(base::NotFound("no such thing: " + requests_.back().line));
    }
    Answer answer = found->second.front();
    if (found->second.size() > 1) found->second.pop_front();
    return transport::JsonResponse(answer.status, answer.body);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::deque<Answer>> answers_;
  std::vector<Request> requests_;
  std::unique_ptr<transport::Server> server_;
};

}  // namespace fl::cli
