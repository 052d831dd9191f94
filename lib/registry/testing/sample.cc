#include "registry/testing/sample.h"

#include "base/check.h"
#include "base/encoding.h"
#include "base/file.h"

namespace fl::registry {
namespace {

SourceFile Stage(ModelRepository& repository, std::string_view name, std::string_view bytes) {
  const base::Result<base::Path> path = repository.StagingPath(name);
  FL_CHECK_MSG(path.ok(), path.status().ToString());
  base::Result<base::FileWriter> writer = base::FileWriter::Create(*path);
  base::Status written = writer.status();
  if (written.ok()) written = writer->Write(base::AsBytes(bytes));
  if (written.ok()) written = std::move(*writer).Commit(/*durable=*/false);
  FL_CHECK_MSG(written.ok(), written.ToString());
  return {*path, base::Digest::Of(bytes), bytes.size()};
}

}  // namespace

PublishRequest SampleRequest(ModelRepository& repository, int64_t round, std::string_view weights,
                             std::string_view state) {
  PublishRequest request;
  request.weights = Stage(repository, "weights", weights);
  if (!state.empty()) request.state = Stage(repository, "state", state);
  const base::Result<VersionInfo> latest = repository.Latest();
  if (latest.ok()) request.parent = VersionRef{latest->version, latest->manifest};
  if (round == 0) return request;
  request.job = base::JobName("digits");
  request.round = base::RoundNumber(round);
  request.algorithm = "FedAvg";
  request.contributors = 10;
  request.metrics = {{"accuracy", 0.5 + 0.001 * static_cast<double>(round)}, {"loss", 0.1}};
  request.privacy = PrivacySpent{0.25 * static_cast<double>(round), 1e-5};
  request.config_digest = base::Digest::Of("the job");
  return request;
}

base::Status PublishSamples(ModelRepository& repository, int64_t count) {
  FL_ASSIGN_OR_RETURN(const std::vector<VersionInfo> versions, repository.List());
  for (auto number = static_cast<int64_t>(versions.size()); number < count; ++number) {
    const std::string text = std::to_string(number);
    FL_RETURN_IF_ERROR(repository
                           .Publish(SampleRequest(repository, number, "weights " + text,
                                                  number == 0 ? "" : "state " + text))
                           .status());
  }
  return base::OkStatus();
}

std::string Text(const OpenedBlob& blob) { return std::string(base::AsText(blob.file.bytes())); }

}  // namespace fl::registry
