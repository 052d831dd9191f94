#include "aggregator/service.h"

#include "aggregator/views.h"
#include "obs/log.h"

namespace fl::aggregator {

using transport::Accept;
using transport::Buffered;
using transport::Responder;
using transport::Response;

namespace {

Response Text(int status, std::string body) {
  Response response{.status = status};
  response.headers.Set("Content-Type", "text/plain; version=0.0.4");
  response.body = std::move(body);
  return response;
}

}  // namespace

/// What Prometheus and the kubelet ask.
class Service::MetricsHandler final : public transport::Handler {
 public:
  MetricsHandler(Core& core, obs::Health& health) : core_(core), health_(health) {}

  Accept OnRequest(const transport::RequestContext& context) override {
    const std::string path = context.head.target.path;
    return Buffered{0, [this, path](std::string, Responder responder) {
                      std::move(responder).Send(Answer(path));
                    }};
  }

 private:
  Response Answer(const std::string& path) {
    if (path == "/healthz") return Text(200, "ok\n");
    if (path == "/readyz") {
      std::string text;
      for (const auto& [condition, reason] : health_.Failing())
        text += condition + ": " + reason + "\n";
      return text.empty() ? Text(200, "ok\n") : Text(503, text);
    }
    if (path == "/metrics") {
      Collect();
      return Text(200, core_.metrics.Serialize());
    }
    return Text(404, "not found\n");
  }

  void Collect() {
    const std::lock_guard lock(core_.mutex);
    const wire::AggregatorStatus status = MakeAggregatorStatus(core_);
    core_.metrics.AddGauge("fl_clients", "Clients that are registered")
        .Set(static_cast<double>(status.clients));
    core_.metrics.AddGauge("fl_clients_connected", "Clients with a parked poll")
        .Set(static_cast<double>(status.connected));
    for (const auto& [name, job] : core_.jobs) {
      const obs::Labels labels = {{"job", name.str()}};
      core_.metrics.AddGauge("fl_job_rounds_done", "Rounds that published a version", labels)
          .Set(static_cast<double>(job->state.rounds_done()));
      for (const auto& [metric, value] : job->state.metrics()) {
        core_.metrics
            .AddGauge("fl_job_metric", "Metrics of the newest version",
                      {{"job", name.str()}, {"metric", metric}})
            .Set(value);
      }
    }
  }

  Core& core_;
  obs::Health& health_;
};

Service::Service(std::unique_ptr<Core> core, ServiceOptions& options)
    : core_(std::move(core)),
      agents_(*core_),
      admins_(*core_, agents_, options.admin_token),
      engine_(*core_, options.engine),
      metrics_handler_(std::make_unique<MetricsHandler>(*core_, health_)) {}

Service::~Service() { Stop(base::Duration(0)); }

base::Result<std::unique_ptr<Service>> Service::Start(ServiceOptions options) {
  FL_ASSIGN_OR_RETURN(std::unique_ptr<Core> core, Core::Open(options.core));
  std::unique_ptr<Service> service(new Service(std::move(core), options));
  Service& self = *service;
  self.engine_thread_ = std::jthread([&self](std::stop_token stop) { self.engine_.Run(stop); });
  options.server.on_request_done = [&self](const transport::RequestRecord& record) {
    self.Observe(record);
  };
  FL_ASSIGN_OR_RETURN(self.server_, transport::Server::Start(options.server, self));
  if (options.metrics_server) {
    FL_ASSIGN_OR_RETURN(self.metrics_server_,
                        transport::Server::Start(*options.metrics_server, *self.metrics_handler_));
  }
  return service;
}

void Service::Stop(base::Duration grace) {
  if (!engine_thread_.joinable()) return;
  health_.Set("serving", "stopping");
  engine_thread_.request_stop();
  engine_thread_.join();
  {
    // Who waits asks again elsewhere, or later.
    const std::lock_guard lock(core_->mutex);
    core_->task_polls.Sweep(base::Instant::max());
    core_->watchers.Sweep(base::Instant::max());
  }
  if (server_ != nullptr) server_->Stop(grace);
  if (metrics_server_ != nullptr) metrics_server_->Stop(grace);
}

Accept Service::OnRequest(const transport::RequestContext& context) {
  if (std::optional<Accept> accept = agents_.OnRequest(context)) return *std::move(accept);
  return admins_.OnRequest(context.head);
}

void Service::Observe(const transport::RequestRecord& record) {
  core_->metrics
      .AddCounter("fl_http_requests_total", "Requests by method and status",
                  {{"method", record.method}, {"status", std::to_string(record.status)}})
      .Add();
  core_->metrics.AddCounter("fl_http_received_bytes_total", "Bytes of request bodies")
      .Add(static_cast<double>(record.bytes_received));
  core_->metrics.AddCounter("fl_http_sent_bytes_total", "Bytes of answers")
      .Add(static_cast<double>(record.bytes_sent));
  obs::Debug("request", {{"method", record.method},
                         {"path", record.path},
                         {"peer", record.peer},
                         {"status", record.status},
                         {"seconds", std::chrono::duration<double>(record.duration).count()}});
}

}  // namespace fl::aggregator
