/// fl-agentd: the agent beside the data. Flags, configuration, agents, exit code; the rest is in
/// lib/agent.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "agent/agent.h"
#include "agent/config.h"
#include "base/cancel.h"
#include "base/status.h"
#include "base/version.h"
#include "obs/log.h"

namespace {

using fl::base::Status;

void AddFlags(CLI::App& app, fl::agent::Flags& flags) {
  const auto path = [&app](const std::string& name, std::optional<fl::base::Path>& target,
                           const std::string& help) {
    app.add_option_function<std::string>(
           name, [&target](const std::string& value) { target = value; }, help)
        ->type_name("FILE");
  };
  const auto text = [&app](const std::string& name, std::optional<std::string>& target,
                           const std::string& help, const std::string& type) {
    app.add_option(name, target, help)->type_name(type);
  };
  app.set_version_flag("--version", "fl-agentd " + std::string(fl::base::kVersion));
  path("--config", flags.config, "YAML file with all that follows; flags override it");
  text("--client", flags.client, "Name of the FederatedClient this is", "NAME");
  text("--aggregator", flags.aggregator, "Address of the aggregator, https://HOST:PORT", "URL");
  path("--ca-file", flags.ca_file, "Authorities to trust (default: the system's)");
  path("--key", flags.key, "The client's private key, P-384 or Ed25519");
  path("--certificate", flags.certificate, "A certificate instead of a key");
  path("--certificate-key", flags.certificate_key, "Private key of the certificate");
  path("--join-token-file", flags.join_token_file, "Token that binds the key to the client, once");
  text("--dataset", flags.dataset, "Where the data is, e.g. file:train.csv", "URI");
  path("--work-dir", flags.work_dir, "Folder for models, updates and logs (default: fl-agent)");
  path("--trainers", flags.trainers, "YAML file with programs that tasks may name");
  app.add_flag("--insecure", flags.insecure, "Allow plain HTTP and servers nobody vouches for");
  app.add_flag("--require-secure-aggregation", flags.require_secure_aggregation,
               "Refuse tasks without secure aggregation");
  app.add_flag("--require-differential-privacy", flags.require_differential_privacy,
               "Refuse tasks without differential privacy");
  app.add_option("--minimum-cohort", flags.minimum_cohort, "Refuse tasks of smaller cohorts")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  text("--log-format", flags.log_format, "auto, text or json", "FORMAT");
  text("--log-level", flags.log_level, "debug, info, warning or error", "LEVEL");
}

int Fail(const Status& status) {
  std::fprintf(stderr, "fl-agentd: error: %s\n", status.message().c_str());
  if (!status.hint().empty()) std::fprintf(stderr, "hint: %s\n", status.hint().c_str());
  return fl::base::Describe(status.code()).exit_code;
}

int Run(const fl::agent::Flags& flags) {
  const fl::base::Result<fl::agent::Config> config = fl::agent::LoadConfig(flags);
  if (!config.ok()) return Fail(config.status());
  fl::obs::ConfigureLog(config->log_format, config->log_level);
  const fl::base::SignalStop signals;
  const Status ended =
      fl::agent::RunAgents(*config, signals.token(), {.make_trainer = fl::agent::MakeTrainer});
  if (!ended.ok()) return Fail(ended);
  // 130 is what a shell expects of what Ctrl-C ended.
  return signals.signal() == SIGINT ? 130 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "The agent of one client (or several): runs beside the data, trains, and sends updates.");
  fl::agent::Flags flags;
  AddFlags(app, flags);
  app.footer(
      "Example:\n  fl-agentd --client hospital-a --aggregator https://fl.example.org:8443 "
      "--ca-file ca.crt\n            --key hospital-a.key --dataset file:///data/train.csv");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Fail(fl::base::InvalidArgument(error.what(), "see fl-agentd --help"));
  }
  return Run(flags);
}
