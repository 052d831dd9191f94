// fl-aggregatord: serves the rounds of a model. Flags become a configuration, the configuration a
// service; all else is in lib/aggregator.

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "aggregator/evaluator.h"
#include "aggregator/service.h"
#include "base/cancel.h"
#include "base/encoding.h"
#include "base/json.h"
#include "base/version.h"
#include "obs/log.h"

namespace fl {
namespace {

struct Flags {
  std::string state_dir;
  std::string registry = "fl-registry";
  std::string listen = "127.0.0.1:8443";
  std::string metrics_listen;
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string token_file;
  std::string port_file;
  std::string trainers;
  std::string data_dir = ".";
  std::string log_level = "info";
  std::string log_format = "auto";
  bool insecure = false;
  int threads = 0;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", std::string("fl-aggregatord ") + std::string(base::kVersion));
  app.add_option("--state-dir", flags.state_dir, "Folder for the journal and running updates")
      ->required();
  app.add_option("--registry", flags.registry, "Registry of models that name none")
      ->capture_default_str();
  app.add_option("--listen", flags.listen, "ADDRESS:PORT; port 0 takes any that is free")
      ->capture_default_str();
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "ADDRESS:PORT for /metrics, /healthz, /readyz (plain HTTP)");
  app.add_option("--tls-cert", flags.certificate, "Certificate chain, PEM file");
  app.add_option("--tls-key", flags.key, "Private key, PEM file");
  app.add_option("--client-ca", flags.client_ca, "Authorities of client certificates, PEM file");
  app.add_option("--admin-token-file", flags.token_file, "File with the administrators' token")
      ->required();
  app.add_option("--port-file", flags.port_file, "Where to write address and ports as JSON");
  app.add_option("--trainers", flags.trainers, "Programs that may evaluate here, YAML file");
  app.add_option("--data-dir", flags.data_dir, "Where relative file: URIs of models and jobs start")
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads for aggregation; 0: one a processor")
      ->check(CLI::Range(0, 1024));
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format, "auto, text or json")
      ->check(CLI::IsMember({"auto", "text", "json"}))
      ->capture_default_str();
  app.add_flag("--insecure", flags.insecure, "Serve plain HTTP");
}

base::Result<transport::ServerOptions> ParseListen(const std::string& text) {
  transport::ServerOptions options;
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    return base::InvalidArgument("\"" + text + "\" is not ADDRESS:PORT, e.g. 127.0.0.1:8443");
  }
  options.address = text.substr(0, colon);
  if (options.address.size() > 2 && options.address.front() == '[') {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
  options.port = std::stoi(port);
  return options;
}

/// The id made at the first start; it is part of what clients sign.
base::Result<std::string> AggregatorId(const base::Path& state_dir) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(state_dir, 0700));
  const base::Path path = state_dir / "id";
  base::Result<std::string> id = base::ReadFile(path, 1024);
  if (id.ok() || id.status().code() != base::Code::kNotFound) return id;
  std::array<uint8_t, 16> bytes;
  base::RandomSource::Secure().Fill(bytes);
  FL_RETURN_IF_ERROR(base::WriteFileAtomically(path, base::HexEncode(bytes), 0600));
  return base::HexEncode(bytes);
}

base::Result<std::string> ReadToken(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(std::string token, base::ReadFile(path, 4096));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.size() < 16) {
    return base::InvalidArgument(path.string() + ": the token must have at least 16 characters");
  }
  return token;
}

base::Result<aggregator::ServiceOptions> Configure(const Flags& flags, base::ThreadPool& pool) {
  aggregator::ServiceOptions options;
  options.core.state_dir = flags.state_dir;
  options.core.registry_uri = flags.registry;
  options.core.data_dir = flags.data_dir;
  options.core.software = std::string("fl-aggregatord/") + std::string(base::kVersion);
  FL_ASSIGN_OR_RETURN(options.core.aggregator_id, AggregatorId(flags.state_dir));
  FL_ASSIGN_OR_RETURN(options.admin_token, ReadToken(flags.token_file));
  FL_ASSIGN_OR_RETURN(options.server, ParseListen(flags.listen));
  if (!flags.insecure) {
    if (flags.certificate.empty() || flags.key.empty()) {
      return base::InvalidArgument("--tls-cert and --tls-key are needed",
                                   "or --insecure, to serve plain HTTP on a trusted network");
    }
    transport::ServerTls tls;
    FL_ASSIGN_OR_RETURN(tls.certificate_pem, base::ReadFile(flags.certificate));
    FL_ASSIGN_OR_RETURN(tls.key_pem, base::ReadFile(flags.key));
    if (!flags.client_ca.empty()) {
      FL_ASSIGN_OR_RETURN(tls.client_ca_pem, base::ReadFile(flags.client_ca));
    }
    options.server.tls = std::move(tls);
  }
  if (!flags.metrics_listen.empty()) {
    FL_ASSIGN_OR_RETURN(options.metrics_server, ParseListen(flags.metrics_listen));
  }
  aggregator::EvaluationPrograms programs;
  if (!flags.trainers.empty()) {
    FL_ASSIGN_OR_RETURN(programs, aggregator::ReadEvaluationPrograms(flags.trainers));
  }
  options.engine.evaluator = aggregator::MakeEvaluator(
      std::move(programs), base::Path(flags.state_dir) / "evaluation", flags.data_dir);
  options.engine.pool = &pool;
  return options;
}

base::Status WritePortFile(const Flags& flags, const aggregator::Service& service) {
  if (flags.port_file.empty()) return base::OkStatus();
  return base::WriteFileAtomically(
      flags.port_file,
      base::DumpJson(nlohmann::json{
          {"port", service.port()}, {"metricsPort", service.metrics_port()}, {"pid", ::getpid()}}) +
          "\n");
}

base::Status Run(const Flags& flags, const std::stop_token& stop) {
  FL_ASSIGN_OR_RETURN(const obs::Level level, obs::ParseLevel(flags.log_level));
  obs::ConfigureLog(flags.log_format == "json"   ? obs::LogFormat::kJson
                    : flags.log_format == "text" ? obs::LogFormat::kText
                                                 : obs::LogFormat::kAuto,
                    level);
  const int threads = flags.threads > 0
                          ? flags.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  base::ThreadPool pool(threads);
  FL_ASSIGN_OR_RETURN(aggregator::ServiceOptions options, Configure(flags, pool));
  const std::string address = options.server.address;
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<aggregator::Service> service,
                      aggregator::Service::Start(std::move(options)));
  FL_RETURN_IF_ERROR(WritePortFile(flags, *service));
  obs::Info("serving", {{"address", address},
                        {"port", service->port()},
                        {"tls", !flags.insecure},
                        {"state", flags.state_dir}});
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait(lock, stop, [] { return false; });
  obs::Info("stopping");
  service->Stop(std::chrono::seconds(5));
  return base::OkStatus();
}

int Main(int argc, char** argv) {
  // Few arenas: what one thread freed another can use, so that memory stays flat over many rounds.
  ::mallopt(M_ARENA_MAX, 2);
  CLI::App app{"Serves the rounds of a federated model to agents", "fl-aggregatord"};
  Flags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "fl-aggregatord: error: " << error.what() << "\n"
              << "hint: fl-aggregatord --help lists the flags\n";
    return base::Describe(base::Code::kInvalidArgument).exit_code;
  }
  const base::SignalStop signals;
  const base::Status status = Run(flags, signals.token());
  if (status.ok()) return 0;
  std::cerr << "fl-aggregatord: error: " << status.message() << "\n";
  if (!status.hint().empty()) std::cerr << "hint: " << status.hint() << "\n";
  return base::Describe(status.code()).exit_code;
}

}  // namespace
}  // namespace fl

int main(int argc, char** argv) { return fl::Main(argc, argv); }
