#pragma once

/// The folder in which `fl run` keeps what its daemons need from one run to the next: keys, a
/// private CA, the administrators' token, configurations, state, logs.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/keys.h"
#include "base/status.h"
#include "cli/federation/plan.h"

namespace fl::cli {

/// Paths; one thread.
class Workspace {
 public:
  /// Makes the folder (mode 0700) with token and certificates where they are not there yet. The
  /// server's certificate is made anew each time, for localhost.
  static base::Result<Workspace> Open(const base::Path& folder, const base::Clock& clock);

  base::Path ca_file() const { return folder_ / "ca.crt"; }
  base::Path server_certificate_file() const { return folder_ / "server.crt"; }
  base::Path server_key_file() const { return folder_ / "server.key"; }
  base::Path token_file() const { return folder_ / "admin.token"; }
  base::Path port_file() const { return folder_ / "aggregator.json"; }
  base::Path aggregator_state() const { return folder_ / "aggregator"; }
  base::Path aggregator_trainers() const { return folder_ / "aggregator-trainers.json"; }
  base::Path log_file(const std::string& process) const {
    return folder_ / "logs" / (process + ".log");
  }
  base::Path agent_config(const std::string& process) const {
    return folder_ / "agents" / (process + ".yaml");
  }

  /// The client's key, made where it has none yet.
  base::Result<base::PublicKey> KeyOf(const base::ClientName& client) const;
  /// Writes the configuration of one agent process for `clients`.
  base::Status WriteAgentConfig(const std::string& process, const std::string& aggregator_url,
                                const std::vector<PlannedClient>& clients, const Plan& plan) const;
  /// Writes the programs that the aggregator may evaluate with.
  base::Status WriteAggregatorTrainers(const Plan& plan) const;

 private:
  explicit Workspace(base::Path folder) : folder_(std::move(folder)) {}
  base::Path KeyFile(const base::ClientName& client) const {
    return folder_ / "keys" / (client.str() + ".key");
  }
  base::Path folder_;
};

}  // namespace fl::cli
