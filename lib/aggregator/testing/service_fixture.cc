#include "aggregator/testing/service_fixture.h"

#include "base/encoding.h"
#include "spec/config_digest.h"
#include "spec/defaults.h"
#include "spec/json.h"
#include "wire/paths.h"
#include "wire/session.h"

namespace fl::aggregator {
namespace {

constexpr char kJob[] = R"({
  "apiVersion": "kubefl.dev/v1alpha1", "kind": "FederatedLearningJob", "metadata": {"name": "job"},
  "spec": {"modelRef": {"name": "model"}, "rounds": 1, "trainer": {"builtin": "softmax"},
           "selection": {"seed": 7}, "evaluation": {"clients": "None"}}})";

template <typename T>
T Need(base::Result<T> result) {
  FL_CHECK_MSG(result.ok(), result.status().ToString());
  return *std::move(result);
}

}  // namespace

ServiceFixture::ServiceFixture(int clients)
    : http_(Need(transport::MakeCurlClient({.allow_http = true}))) {
  FL_CHECK(
      tensor::WriteSafetensors(folder / "initial.safetensors",
                               {tensor::Tensor::FromFloats("w", {2}, std::vector<float>{1, 2})})
          .ok());
  ServiceOptions options;
  options.core.state_dir = folder / "state";
  options.core.registry_uri = (folder / "registry").string();
  options.core.aggregator_id = "test";
  options.core.software = "test";
  options.engine.evaluator = [](const spec::FederatedLearningJob&, const base::Path&,
                                std::stop_token) {
    return base::Result<std::map<std::string, double>>(std::map<std::string, double>());
  };
  options.admin_token = "the administrators' token";
  service = Need(Service::Start(std::move(options)));

  const std::lock_guard lock(service->core().mutex);
  spec::FederatedModel model;
  model.metadata.name = "model";
  model.spec.initial.uri = "file:" + (folder / "initial.safetensors").string();
  FL_CHECK(service->core().AdoptModel(model).ok());
  FL_CHECK(service->core().catalog.SetModel(model).ok());
  std::vector<spec::FederatedClient> objects;
  for (int i = 0; i < clients; ++i) {
    spec::FederatedClient client;
    client.metadata.name = std::string(1, static_cast<char>('a' + i));
    base::PrivateKey key = Need(base::PrivateKey::Generate(base::KeyType::kEd25519));
    client.spec.public_key = key.public_key().ToOpenSsh();
    keys_.emplace(client.metadata.name, std::move(key));
    objects.push_back(std::move(client));
  }
  FL_CHECK(service->core().catalog.SetClients(1, objects).ok());
}

void ServiceFixture::Submit(const std::function<void(spec::FederatedLearningJob&)>& changes) {
  spec::FederatedLearningJob object = Need(spec::FromJson<spec::FederatedLearningJob>(kJob));
  if (changes) changes(object);
  spec::ApplyDefaults(object);
  const std::string text = spec::ToJson(object);
  Need(spec::FromJson<spec::FederatedLearningJob>(text));  // it must be one that could come
  Core& core = service->core();
  const std::lock_guard lock(core.mutex);
  JobEntry* entry = Need(core.MakeJob(base::JobName("job")));
  FL_CHECK(core.Append(*entry, JobConfigured{text, spec::ConfigDigest(object), 7}).ok());
}

transport::ClientResponse ServiceFixture::Send(transport::ClientRequest request) {
  request.url = "http://127.0.0.1:" + std::to_string(service->port()) + request.url;
  return Need(http_->Send(request));
}

std::string ServiceFixture::OpenSession(const std::string& client) {
  wire::SessionRequest hello;
  hello.client = base::ClientName(client);
  const auto post = [&] {
    transport::ClientRequest request;
    request.method = "POST";
    request.url = wire::kAgentsPath;
    request.headers.Set("Content-Type", std::string(wire::kJsonType));
    request.body = wire::ToJson(hello);
    return Send(std::move(request));
  };
  const wire::Challenge challenge = Need(wire::ChallengeFromJson(post().body));
  hello.challenge = challenge.challenge;
  hello.signature = base::Base64Encode(base::AsBytes(keys_.at(client).Sign(base::AsBytes(
      wire::SessionText(challenge.challenge, challenge.aggregator_id, hello.client, "")))));
  return Need(wire::SessionFromJson(post().body)).token.str();
}

wire::Task ServiceFixture::PollTask(const std::string& client, const std::string& token) {
  transport::ClientRequest request;
  request.url = wire::TaskPath(base::ClientName(client)) + "?wait=30";
  request.headers.Set(std::string(wire::kAuthorization), "Bearer " + token);
  return Need(wire::TaskFromJson(Send(std::move(request)).body));
}

transport::ClientResponse ServiceFixture::Put(const std::string& path, transport::RequestBody body,
                                              const std::string& token,
                                              transport::Headers headers) {
  transport::ClientRequest request;
  request.method = "PUT";
  request.url = path;
  request.headers = std::move(headers);
  request.headers.Set(std::string(wire::kAuthorization), "Bearer " + token);
  // The head of a stream has been taken before its first byte is made.
  request.expect_continue = std::holds_alternative<transport::StreamUpload>(body);
  request.body = std::move(body);
  return Send(std::move(request));
}

std::string ServiceFixture::UpdateBytes(float w0, float w1) const {
  const base::Path path = folder / "update.safetensors";
  FL_CHECK(tensor::WriteSafetensors(
               path, {tensor::Tensor::FromFloats("w", {2}, std::vector<float>{w0, w1})}, {}, false)
               .ok());
  return Need(base::ReadFile(path));
}

transport::ClientResponse ServiceFixture::PutUpdate(const wire::Task& task,
                                                    const std::string& client,
                                                    const std::string& token, float w0, float w1,
                                                    transport::Headers headers) {
  const std::string bytes = UpdateBytes(w0, w1);
  headers.Set(std::string(wire::kReprDigest), base::Digest::Of(bytes).ToReprDigest());
  return Put(wire::UpdatePath(task.job, task.round, base::ClientName(client)), bytes, token,
             std::move(headers));
}

void ServiceFixture::WaitUntilFinished() {
  // A long poll of the job's log is answered when there is something new, and at the end.
  uint64_t after = 0;
  Core& core = service->core();
  while (true) {
    {
      const std::lock_guard lock(core.mutex);
      const JobEntry& job = *core.FindJob(base::JobName("job"));
      if (job.state.finished()) return;
      after = job.sequence;
    }
    transport::ClientRequest request;
    request.url =
        wire::JobEventsPath(base::JobName("job")) + "?wait=30&after=" + std::to_string(after);
    request.headers.Set(std::string(wire::kAdminToken), "the administrators' token");
    FL_CHECK(Send(std::move(request)).status == 200);
  }
}

std::vector<float> ServiceFixture::Weights(int64_t version) {
  const std::lock_guard lock(service->core().mutex);
  const registry::OpenedBlob blob =
      Need(service->core().repository->OpenWeights(base::VersionNumber(version)));
  return Need(Need(tensor::SafetensorsFile::Open(blob.path)).ReadFloats("w"));
}

}  // namespace fl::aggregator
