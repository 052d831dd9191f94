#pragma once

/// The aggregator as one object: state, engine, HTTP.

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "aggregator/admin_api.h"
#include "aggregator/agent_api.h"
#include "aggregator/core.h"
#include "aggregator/engine.h"
#include "obs/health.h"
#include "transport/server.h"

namespace fl::aggregator {

struct ServiceOptions {
  CoreOptions core;
  EngineOptions engine;
  std::string admin_token;
  transport::ServerOptions server;
  /// The port for /metrics, /healthz and /readyz (always plain HTTP); none: not served.
  std::optional<transport::ServerOptions> metrics_server;
};

/// Thread-safe.
class Service final : private transport::Handler {
 public:
  /// Reads the state, starts the engine, listens. Errors as Core::Open and
  /// transport::Server::Start.
  static base::Result<std::unique_ptr<Service>> Start(ServiceOptions options);
  /// Stops: parked polls are answered, requests in flight get `grace` to end.
  void Stop(base::Duration grace);
  ~Service() override;

  int port() const { return server_->port(); }
  int metrics_port() const { return metrics_server_ == nullptr ? 0 : metrics_server_->port(); }
  Core& core() { return *core_; }

 private:
  class MetricsHandler;
  Service(std::unique_ptr<Core> core, ServiceOptions& options);
  transport::Accept OnRequest(const transport::RequestContext& context) override;
  void Observe(const transport::RequestRecord& record);

  const std::unique_ptr<Core> core_;
  AgentApi agents_;
  AdminApi admins_;
  Engine engine_;
  obs::Health health_;
  std::unique_ptr<MetricsHandler> metrics_handler_;
  std::unique_ptr<transport::Server> server_;
  std::unique_ptr<transport::Server> metrics_server_;
  std::jthread engine_thread_;
};

}  // namespace fl::aggregator
