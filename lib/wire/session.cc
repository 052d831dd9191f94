#include "wire/session.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace fl::wire {

std::string SessionText(std::string_view challenge, std::string_view aggregator_id,
                        const base::ClientName& client, std::string_view tls_exporter) {
  std::string text = "kubefl.dev session v1\n";
  for (std::string_view field :
       {challenge, aggregator_id, std::string_view(client.str()), tls_exporter}) {
    text += std::to_string(field.size());
    text += ':';
    text += field;
    text += '\n';
  }
  return text;
}

std::string ToJson(const SessionRequest& message) {
  nlohmann::json json = {{"client", message.client.str()}, {"software", message.software}};
  const auto add = [&json](const char* key, const std::optional<std::string>& value) {
    if (value) json[key] = *value;
  };
  add("challenge", message.challenge);
  add("signature", message.signature);
  add("publicKey", message.public_key);
  add("joinToken", message.join_token);
  return base::DumpJson(json);
}

std::string ToJson(const Challenge& message) {
  return base::DumpJson(nlohmann::json{
      {"challenge", message.challenge},
      {"aggregatorId", message.aggregator_id},
      {"error",
       {{"code", "Unauthenticated"},
        {"message", "prove that you hold the client's key"},
        {"hint", "sign the challenge and send the request again on this connection"}}}});
}

std::string ToJson(const Session& message) {
  return base::DumpJson(nlohmann::json{{"token", message.token.str()},
                                       {"expiresInSeconds", message.expires_in_seconds},
                                       {"aggregatorId", message.aggregator_id}});
}

base::Result<SessionRequest> SessionRequestFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "session request"));
  base::JsonReader reader(json, "session request");
  SessionRequest message;
  std::string client;
  reader.Required("client", &client);
  reader.Optional("software", &message.software);
  reader.Optional("challenge", &message.challenge);
  reader.Optional("signature", &message.signature);
  reader.Optional("publicKey", &message.public_key);
  reader.Optional("joinToken", &message.join_token);
  FL_RETURN_IF_ERROR(reader.status());
  message.client = base::ClientName(client);
  return message;
}

base::Result<Challenge> ChallengeFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "challenge"));
  base::JsonReader reader(json, "challenge");
  Challenge message;
  reader.Required("challenge", &message.challenge);
  reader.Required("aggregatorId", &message.aggregator_id);
  FL_RETURN_IF_ERROR(reader.status());
  return message;
}

base::Result<Session> SessionFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, "session"));
  base::JsonReader reader(json, "session");
  Session message;
  std::string token;
  reader.Required("token", &token);
  reader.Required("expiresInSeconds", &message.expires_in_seconds);
  reader.Required("aggregatorId", &message.aggregator_id);
  FL_RETURN_IF_ERROR(reader.status());
  message.token = base::SessionToken(token);
  return message;
}

}  // namespace fl::wire
