#include "aggregator/testing/federation_fixture.h"

#include "aggregator/update_sink.h"
#include "spec/config_digest.h"
#include "spec/defaults.h"
#include "spec/json.h"
#include "transport/testing/recording_responder.h"

namespace fl::aggregator {
namespace {

constexpr char kJob[] = R"({
  "apiVersion": "kubefl.dev/v1alpha1", "kind": "FederatedLearningJob", "metadata": {"name": "job"},
  "spec": {"modelRef": {"name": "model"}, "rounds": 2, "trainer": {"builtin": "softmax"},
           "selection": {"seed": 7}, "evaluation": {"clients": "None"},
           "roundPolicy": {"deadlineSeconds": 60, "maxRetries": 1}}})";

spec::FederatedLearningJob Defaulted(spec::FederatedLearningJob job) {
  spec::ApplyDefaults(job);
  return job;
}

}  // namespace

FederationFixture::FederationFixture() {
  evaluator = [](const spec::FederatedLearningJob&, const base::Path&, std::stop_token) {
    return base::Result<std::map<std::string, double>>(
        std::map<std::string, double>{{"accuracy", 0.5}});
  };
  FL_CHECK(
      tensor::WriteSafetensors(folder / "initial.safetensors",
                               {tensor::Tensor::FromFloats("w", {2}, std::vector<float>{1, 2})})
          .ok());
  Open();
  spec::FederatedModel model;
  model.metadata.name = "model";
  model.spec.initial.uri = "file:" + (folder / "initial.safetensors").string();
  FL_CHECK(core->AdoptModel(model).ok());
  FL_CHECK(core->catalog.SetModel(model).ok());
}

void FederationFixture::Open() {
  base::Result<std::unique_ptr<Core>> opened =
      Core::Open({.state_dir = folder / "state",
                  .registry_uri = (folder / "registry").string(),
                  .aggregator_id = "test",
                  .software = "test",
                  .clock = &clock});
  FL_CHECK_MSG(opened.ok(), opened.status().ToString());
  core = *std::move(opened);
  engine = std::make_unique<Engine>(*core, EngineOptions{.evaluator = evaluator});
  for (const std::string& client : connected) core->presence[base::ClientName(client)].polls = 1;
}

void FederationFixture::Restart() {
  engine.reset();
  core.reset();
  Open();
}

void FederationFixture::AddClients(int count) {
  std::vector<spec::FederatedClient> clients;
  for (int i = 0; i < count; ++i) {
    spec::FederatedClient client;
    client.metadata.name = std::string(1, static_cast<char>('a' + i));
    client.spec.type = spec::ClientType::kPod;
    client.spec.pod.emplace().image = "image";
    clients.push_back(std::move(client));
  }
  FL_CHECK(core->catalog.SetClients(core->catalog.clients_revision() + 1, clients).ok());
  for (const spec::FederatedClient& client : clients) Connect(client.metadata.name);
}

void FederationFixture::Connect(const std::string& client) {
  connected.push_back(client);
  core->presence[base::ClientName(client)].polls = 1;
}

void FederationFixture::Disconnect(const std::string& client) {
  std::erase(connected, client);
  Presence& presence = core->presence[base::ClientName(client)];
  presence.polls = 0;
  presence.last_contact = clock.Monotonic();
}

void FederationFixture::Submit(const std::function<void(spec::FederatedLearningJob&)>& changes) {
  spec::FederatedLearningJob object = *spec::FromJson<spec::FederatedLearningJob>(kJob);
  if (changes) changes(object);
  object = Defaulted(std::move(object));
  FL_CHECK(spec::FromJson<spec::FederatedLearningJob>(spec::ToJson(object)).ok());
  JobEntry* entry = *core->MakeJob(base::JobName("job"));
  FL_CHECK(core->Append(*entry, JobConfigured{spec::ToJson(object), spec::ConfigDigest(object), 7})
               .ok());
}

void FederationFixture::Configure(const std::function<void(spec::FederatedLearningJob&)>& change) {
  JobEntry& entry = *core->FindJob(base::JobName("job"));
  spec::FederatedLearningJob object = entry.state.object();
  change(object);
  FL_CHECK(core->Append(entry, JobConfigured{spec::ToJson(object), entry.state.config_digest(),
                                             entry.state.seed()})
               .ok());
}

void FederationFixture::SetSuspend(bool suspend) {
  Configure([suspend](spec::FederatedLearningJob& job) { job.spec.suspend = suspend; });
}
void FederationFixture::SetAborted() {
  Configure([](spec::FederatedLearningJob& job) { job.spec.aborted = true; });
}
void FederationFixture::Retry() {
  Configure([](spec::FederatedLearningJob& job) { ++job.spec.attempt; });
}

std::string FederationFixture::TaskOf(const std::string& client) {
  const std::optional<wire::Task> task = core->TaskFor(base::ClientName(client));
  return task ? task->Key() : "";
}

std::string FederationFixture::UpdateBytes(float w0, float w1) const {
  const base::Path path = folder / "update.safetensors";
  FL_CHECK(tensor::WriteSafetensors(
               path, {tensor::Tensor::FromFloats("w", {2}, std::vector<float>{w0, w1})}, {}, false)
               .ok());
  return *base::ReadFile(path);
}

transport::Response FederationFixture::Upload(const std::string& client, float w0, float w1,
                                              int64_t samples) {
  return UploadBytes(client, UpdateBytes(w0, w1), samples);
}

transport::Response FederationFixture::UploadBytes(const std::string& client,
                                                   const std::string& bytes, int64_t samples,
                                                   std::optional<base::Digest> announced) {
  const Round* round = job().current();
  UpdateHead head;
  head.job = base::JobName("job");
  head.round = round == nullptr ? job().next_round() : round->number;
  head.attempt = round == nullptr ? 0 : round->attempt;
  head.client = base::ClientName(client);
  head.samples = samples;
  head.steps = 1;
  head.size = bytes.size();
  head.digest = announced.value_or(base::Digest::Of(bytes));
  std::shared_ptr<const tensor::Header> model;
  std::optional<base::Digest> accepted;
  {
    const std::lock_guard lock(core->mutex);
    const base::Result<JobEntry*> entry =
        core->RequireCollecting(head.job, head.round, head.attempt, head.client);
    if (!entry.ok()) return transport::ErrorResponse(entry.status());
    model = core->served.begin()->second.header;
    const Participant& participant = round->participants.at(head.client);
    if (participant.state == Participant::State::kAccepted) accepted = participant.update.digest;
  }
  base::Result<std::unique_ptr<transport::BodySink>> sink =
      MakeUpdateSink(*core, head, std::move(model), accepted);
  if (!sink.ok()) return transport::ErrorResponse(sink.status());
  const base::Status written =
      (*sink)->Write({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!written.ok()) return transport::ErrorResponse(written);
  transport::RecordingResponder responder;
  (*sink)->Finish({}, responder.Make());
  return responder.answer().value();
}

void FederationFixture::Fail(const std::string& client, const std::string& reason) {
  FL_CHECK(core->Append(*core->FindJob(base::JobName("job")),
                        ClientFailed{base::ClientName(client), reason})
               .ok());
}

std::vector<float> FederationFixture::Weights(int64_t version) {
  const base::Result<registry::OpenedBlob> blob =
      core->repository->OpenWeights(base::VersionNumber(version));
  FL_CHECK_MSG(blob.ok(), blob.status().ToString());
  return *tensor::SafetensorsFile::Open(blob->path)->ReadFloats("w");
}

int64_t FederationFixture::Versions() { return core->repository->Latest()->version.value(); }

}  // namespace fl::aggregator
