#include "cli/federation/workspace.h"

#include <array>
#include <filesystem>

#include "base/encoding.h"
#include "base/random.h"
#include "spec/value.h"
#include "transport/certificates.h"

namespace fl::cli {
namespace {

base::Status WriteSecret(const base::Path& path, const std::string& content) {
  return base::WriteFileAtomically(path, content, 0600);
}

spec::Value CommandValue(const std::vector<std::string>& command) {
  spec::Value::List words;
  for (const std::string& word : command) words.emplace_back(word);
  // Commands start where the user called fl run.
  return spec::Value::Map{{"command", std::move(words)},
                          {"workingDirectory", std::filesystem::current_path().string()}};
}

spec::Value::Map CommandTrainers(const Plan& plan) {
  spec::Value::Map trainers;
  for (const auto& [name, command] : plan.commands) trainers[name] = CommandValue(command);
  return trainers;
}

}  // namespace

base::Result<Workspace> Workspace::Open(const base::Path& folder, const base::Clock& clock) {
  Workspace workspace(std::filesystem::absolute(folder));
  for (const char* name : {"", "keys", "agents", "logs"}) {
    FL_RETURN_IF_ERROR(base::MakeDirectories(workspace.folder_ / name, 0700));
  }
  const base::Path ca_key_file = workspace.folder_ / "ca.key";
  if (!std::filesystem::exists(ca_key_file)) {
    FL_ASSIGN_OR_RETURN(const transport::CertificateAuthority made,
                        transport::CertificateAuthority::Create("fl run", clock));
    FL_RETURN_IF_ERROR(base::WriteFileAtomically(workspace.ca_file(), made.certificate_pem()));
    FL_RETURN_IF_ERROR(WriteSecret(ca_key_file, made.key_pem()));
  }
  FL_ASSIGN_OR_RETURN(const std::string certificate, base::ReadFile(workspace.ca_file()));
  FL_ASSIGN_OR_RETURN(const std::string key, base::ReadFile(ca_key_file));
  FL_ASSIGN_OR_RETURN(const transport::CertificateAuthority authority,
                      transport::CertificateAuthority::Load(certificate, key));
  FL_ASSIGN_OR_RETURN(const transport::CertificateAndKey server,
                      authority.IssueServer({"localhost", "127.0.0.1"}, clock));
  FL_RETURN_IF_ERROR(
      base::WriteFileAtomically(workspace.server_certificate_file(), server.certificate_pem));
  FL_RETURN_IF_ERROR(WriteSecret(workspace.server_key_file(), server.key_pem));
  if (!std::filesystem::exists(workspace.token_file())) {
    std::array<uint8_t, 32> bytes;
    base::RandomSource::Secure().Fill(bytes);
    FL_RETURN_IF_ERROR(WriteSecret(workspace.token_file(), base::HexEncode(bytes) + "\n"));
  }
  return workspace;
}

base::Result<base::PublicKey> Workspace::KeyOf(const base::ClientName& client) const {
  const base::Path path = KeyFile(client);
  if (!std::filesystem::exists(path)) {
    FL_ASSIGN_OR_RETURN(const base::PrivateKey key,
                        base::PrivateKey::Generate(base::KeyType::kEd25519));
    FL_RETURN_IF_ERROR(WriteSecret(path, key.ToPem()));
  }
  FL_ASSIGN_OR_RETURN(const base::PrivateKey key, base::PrivateKey::Load(path));
  return key.public_key();
}

base::Status Workspace::WriteAgentConfig(const std::string& process,
                                         const std::string& aggregator_url,
                                         const std::vector<PlannedClient>& clients,
                                         const Plan& plan) const {
  spec::Value::List agents;
  for (const PlannedClient& client : clients) {
    spec::Value::Map agent = {{"client", client.name.str()},
                              {"keyFile", KeyFile(client.name).string()}};
    if (!client.dataset.empty()) agent["dataset"] = client.dataset;
    agents.emplace_back(std::move(agent));
  }
  spec::Value::Map config = {{"aggregator", aggregator_url},
                             {"caFile", ca_file().string()},
                             {"workDir", (folder_ / "work" / process).string()},
                             {"agents", std::move(agents)}};
  if (!plan.commands.empty()) config["trainers"] = CommandTrainers(plan);
  return base::WriteFileAtomically(agent_config(process), spec::Value(std::move(config)).ToYaml());
}

base::Status Workspace::WriteAggregatorTrainers(const Plan& plan) const {
  return base::WriteFileAtomically(aggregator_trainers(),
                                   spec::Value(CommandTrainers(plan)).ToJson());
}

}  // namespace fl::cli
