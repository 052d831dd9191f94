#include "cli/internal/registry_target.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/version.h"
#include "registry/open.h"

namespace fl::cli::internal {
namespace {

using base::Result;

Result<std::vector<VersionView>> ReadVersions(registry::ModelRepository& repository) {
  FL_ASSIGN_OR_RETURN(std::vector<registry::VersionInfo> infos, repository.List());
  std::vector<VersionView> views;
  if (infos.empty()) return views;
  FL_ASSIGN_OR_RETURN(const registry::VersionInfo latest, repository.Latest());
  FL_ASSIGN_OR_RETURN(const registry::VersionInfo current, repository.Current());
  FL_ASSIGN_OR_RETURN(const std::optional<base::VersionNumber> promoted, repository.Promoted());
  FL_ASSIGN_OR_RETURN(const std::optional<base::VersionNumber> pinned, repository.Pinned());
  for (registry::VersionInfo& info : infos) {
    VersionView& view = views.emplace_back();
    const base::VersionNumber number = info.version;
    view.info = std::move(info);
    if (number == current.version) view.tags.push_back("current");
    if (number == latest.version) view.tags.push_back("latest");
    if (promoted == number) view.tags.push_back("promoted");
    if (pinned == number) view.tags.push_back("pinned");
  }
  return views;
}

class RegistryModels final : public ModelsClient {
 public:
  RegistryModels(std::string uri, std::string program, base::Clock* clock)
      : uri_(std::move(uri)), program_(std::move(program)), clock_(clock) {}

  Result<std::vector<ModelSummary>> Models() override {
    FL_ASSIGN_OR_RETURN(const std::vector<base::ModelName> names, registry::ListModels(uri_));
    std::vector<ModelSummary> models;
    for (const base::ModelName& name : names) {
      FL_ASSIGN_OR_RETURN(const auto repository, Reader(name));
      ModelSummary& model = models.emplace_back();
      model.name = name;
      FL_ASSIGN_OR_RETURN(const std::vector<VersionView> versions, ReadVersions(*repository));
      for (const VersionView& view : versions) {
        if (!view.info.pruned) ++model.versions;
        if (view.Has("latest")) {
          model.latest = view.info.version;
          model.updated = view.info.created;
        }
        if (view.Has("current")) {
          model.current = view.info.version;
          model.metrics = view.info.metrics;
        }
        if (view.Has("promoted")) model.promoted = view.info.version;
        if (view.Has("pinned")) model.pinned = view.info.version;
      }
    }
    return models;
  }

  Result<std::vector<VersionView>> Versions(const base::ModelName& model) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Reader(model));
    return ReadVersions(*repository);
  }

  Result<VersionView> Version(const base::ModelName& model, const std::string& name) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Reader(model));
    FL_ASSIGN_OR_RETURN(const registry::VersionInfo found, repository->Get(name));
    FL_ASSIGN_OR_RETURN(const std::vector<VersionView> versions, ReadVersions(*repository));
    for (const VersionView& view : versions) {
      if (view.info.version != found.version) continue;
      VersionView result = view;
      result.info = found;  // read from the version itself: it has all the fields
      return result;
    }
    return VersionView{found, {}};
  }

  Result<PinResult> Pin(const base::ModelName& model,
                        std::optional<base::VersionNumber> version) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Writer(model));
    FL_ASSIGN_OR_RETURN(const registry::VersionInfo before, repository->Current());
    if (!version) {
      FL_ASSIGN_OR_RETURN(const registry::VersionInfo previous, repository->PreviousCurrent());
      version = previous.version;
    }
    // Rolling back to what is current changes nothing, pinned or not.
    if (*version == before.version) {
      return PinResult{.from = before.version, .to = before.version, .changed = false};
    }
    FL_ASSIGN_OR_RETURN(const registry::Change change, repository->Pin(*version));
    return PinResult{
        .from = before.version, .to = *version, .changed = change == registry::Change::kMade};
  }

  Result<PinResult> Unpin(const base::ModelName& model) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Writer(model));
    FL_ASSIGN_OR_RETURN(const registry::VersionInfo before, repository->Current());
    FL_ASSIGN_OR_RETURN(const registry::Change change, repository->Unpin());
    FL_ASSIGN_OR_RETURN(const registry::VersionInfo after, repository->Current());
    return PinResult{
        .from = before.version, .to = after.version, .changed = change == registry::Change::kMade};
  }

  Result<registry::Change> Promote(const base::ModelName& model,
                                   base::VersionNumber version) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Writer(model));
    return repository->Promote(version);
  }

  Result<registry::OpenedBlob> Weights(const base::ModelName& model,
                                       base::VersionNumber version) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Reader(model));
    return repository->OpenWeights(version);
  }

  Result<std::optional<registry::OpenedBlob>> State(const base::ModelName& model,
                                                    base::VersionNumber version) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Reader(model));
    return repository->OpenState(version);
  }

  Result<registry::VerifyReport> Verify(const base::ModelName& model) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Reader(model));
    return repository->Verify();
  }

  Result<registry::RetentionReport> Collect(const base::ModelName& model,
                                            const registry::RetentionPolicy& policy) override {
    FL_ASSIGN_OR_RETURN(const auto repository, Writer(model));
    return repository->Collect(policy);
  }

  Result<registry::VersionInfo> Publish(const base::ModelName& model,
                                        const registry::PublishRequest& request) override {
    FL_ASSIGN_OR_RETURN(const auto repository, OpenWriter(model));
    return repository->Publish(request);
  }

 private:
  Result<std::unique_ptr<registry::ModelRepository>> Reader(const base::ModelName& model) {
    return registry::OpenReader(uri_, model);
  }

  /// For writing to a model that is there: a mistyped name makes no new one.
  Result<std::unique_ptr<registry::ModelRepository>> Writer(const base::ModelName& model) {
    FL_RETURN_IF_ERROR(Reader(model).status());
    return OpenWriter(model);
  }

  Result<std::unique_ptr<registry::ModelRepository>> OpenWriter(const base::ModelName& model) {
    registry::WriterOptions options{.owner = program_ + ", pid " + std::to_string(::getpid()),
                                    .software = "fl " + std::string(base::kVersion),
                                    .clock = clock_};
    auto opened = registry::OpenWriter(uri_, model, std::move(options));
    if (opened.ok() || opened.status().code() != base::Code::kFailedPrecondition) return opened;
    return base::Status(opened.status().code(), opened.status().message(),
                        "a registry has one writer: where that is an aggregator, ask it with "
                        "--aggregator URL instead of --registry");
  }

  const std::string uri_;
  const std::string program_;
  base::Clock* const clock_;
};

}  // namespace

Result<std::unique_ptr<ModelsClient>> OpenRegistryModels(const Context& context,
                                                         const std::string& uri) {
  return std::unique_ptr<ModelsClient>(
      std::make_unique<RegistryModels>(uri, context.program, context.clock));
}

}  // namespace fl::cli::internal
