#include "aggregator/update_sink.h"

#include "aggregator/agent_api.h"
#include "base/failpoint.h"
#include "wire/paths.h"

namespace fl::aggregator {
namespace {

using transport::ErrorResponse;
using transport::JsonResponse;
using transport::Responder;
using transport::Response;

/// An update that cannot be kept is ours to explain: its sender only tries again.
void HoldJob(Core& core, const UpdateHead& head, const base::Status& why) {
  const std::lock_guard lock(core.mutex);
  const base::Result<JobEntry*> job =
      core.RequireCollecting(head.job, head.round, head.attempt, head.client);
  if (job.ok()) core.Hold(**job, why);
}

class UpdateSink final : public transport::BodySink {
 public:
  UpdateSink(Core& core, UpdateHead head, std::shared_ptr<const tensor::Header> model,
             std::optional<base::Digest> accepted, std::optional<base::FileWriter> file)
      : core_(core),
        head_(std::move(head)),
        model_(std::move(model)),
        accepted_(accepted),
        file_(std::move(file)),
        validator_({.model = model_.get(), .file_size = head_.size}) {}

  base::Status Write(std::span<const uint8_t> bytes) override {
    hash_.Update(bytes);
    // Of an update that is here already only the digest matters.
    if (!file_) return base::OkStatus();
    const base::Status valid = validator_.Feed(bytes);
    if (!valid.ok()) return Reject(valid);
    const base::Status written = file_->Write(bytes);
    if (!written.ok()) HoldJob(core_, head_, written);
    return written;
  }

  void Finish(const transport::Headers& trailers, Responder responder) override {
    std::move(responder).Send(Close(trailers));
  }

 private:
  Response Close(const transport::Headers& trailers) {
    const base::Digest digest = std::move(hash_).Finish();
    std::optional<base::Digest> announced = head_.digest;
    if (const auto trailer = trailers.Get(wire::kReprDigest)) {
      const base::Result<base::Digest> parsed = base::Digest::ParseReprDigest(*trailer);
      if (!parsed.ok()) return ErrorResponse(parsed.status());
      announced = *parsed;
    }
    if (!announced) {
      return ErrorResponse(base::InvalidArgument("the update has no Repr-Digest",
                                                 "send it as a header, or as a trailer"));
    }
    if (*announced != digest) {
      return ErrorResponse(base::InvalidArgument("the update arrived as " + digest.ToString() +
                                                     ", its sender says " + announced->ToString(),
                                                 "send it again"));
    }
    if (!file_) return Repeated(digest);
    const base::Status valid = validator_.Finish();
    if (!valid.ok()) return ErrorResponse(Reject(valid));
    return Accept(digest);
  }

  Response Accept(const base::Digest& digest) {
    const std::lock_guard lock(core_.mutex);
    // A newer session may have come while the body did: the round is its own now.
    if (core_.sessions.IsSuperseded(head_.session)) return SupersededResponse(core_, head_.session);
    const base::Result<JobEntry*> job =
        core_.RequireCollecting(head_.job, head_.round, head_.attempt, head_.client);
    if (!job.ok()) return LateResponse(core_, head_.job, job.status());
    const Participant& participant = (*job)->state.current()->participants.at(head_.client);
    if (participant.state == Participant::State::kAccepted) {
      // Another upload of this client came in between.
      accepted_ = participant.update.digest;
      return Repeated(digest);
    }
    const uint64_t size = file_->written();
    base::Status status = base::Failpoint("update.commit");
    if (status.ok()) status = std::move(*file_).Commit(/*durable=*/false);
    if (status.ok()) status = base::Failpoint("update.journal");
    if (status.ok()) {
      status = core_.Append(**job, UpdateAccepted{head_.client, digest, size, head_.samples,
                                                  head_.steps, head_.metrics});
    }
    if (status.ok()) status = base::Failpoint("update.answer");
    if (!status.ok()) {
      core_.Hold(**job, status);
      return ErrorResponse(status);
    }
    ++core_.presence[head_.client].accepted;
    return JsonResponse(200, R"({"result":"accepted"})");
  }

  Response Repeated(const base::Digest& digest) const {
    if (digest == accepted_) return JsonResponse(200, R"({"result":"unchanged"})");
    return ErrorResponse(base::AlreadyExists("another update of client \"" + head_.client.str() +
                                             "\" was accepted for round " +
                                             std::to_string(head_.round.value())));
  }

  /// Counts the update as refused: the client had its say in this round.
  base::Status Reject(const base::Status& why) {
    const base::Status status =
        why.WithContext("update from client \"" + head_.client.str() + "\"");
    const std::lock_guard lock(core_.mutex);
    const base::Result<JobEntry*> job =
        core_.RequireCollecting(head_.job, head_.round, head_.attempt, head_.client);
    if (job.ok() && !core_.sessions.IsSuperseded(head_.session)) {
      const base::Status noted = core_.Append(**job, ClientFailed{head_.client, why.message()});
      if (!noted.ok()) return noted;
      Presence& presence = core_.presence[head_.client];
      ++presence.rejected;
      presence.last_error = why.message();
    }
    return status;
  }

  Core& core_;
  const UpdateHead head_;
  const std::shared_ptr<const tensor::Header> model_;
  std::optional<base::Digest> accepted_;
  std::optional<base::FileWriter> file_;
  tensor::StreamValidator validator_;
  base::Sha256 hash_;
};

}  // namespace

base::Result<std::unique_ptr<transport::BodySink>> MakeUpdateSink(
    Core& core, UpdateHead head, std::shared_ptr<const tensor::Header> model,
    std::optional<base::Digest> accepted) {
  std::optional<base::FileWriter> file;
  if (!accepted) {
    base::Result<base::FileWriter> created = base::FileWriter::Create(
        core.spool.UpdatePath(head.job, head.round, head.attempt, head.client), head.size, 0600);
    if (!created.ok()) {
      HoldJob(core, head, created.status());
      return created.status();
    }
    file = *std::move(created);
  }
  return std::unique_ptr<transport::BodySink>(std::make_unique<UpdateSink>(
      core, std::move(head), std::move(model), accepted, std::move(file)));
}

}  // namespace fl::aggregator
