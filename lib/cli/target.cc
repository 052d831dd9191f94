#include "cli/target.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "cli/internal/aggregator_target.h"
#include "cli/internal/registry_target.h"

namespace fl::cli {
namespace {

struct Place {
  enum class Kind { kAggregator, kRegistry } kind;
  std::string address;
};

base::Result<Place> FindPlace(const Context& context) {
  const GlobalOptions& flags = context.global;
  if (!flags.aggregator.empty() && !flags.registry.empty()) {
    return base::InvalidArgument(
        "--aggregator and --registry exclude each other",
        "an aggregator is the only writer of its model's registry: ask it");
  }
  if (!flags.aggregator.empty()) return Place{Place::Kind::kAggregator, flags.aggregator};
  if (!flags.registry.empty()) return Place{Place::Kind::kRegistry, flags.registry};
  if (const auto url = context.Environment("FL_AGGREGATOR")) {
    return Place{Place::Kind::kAggregator, *url};
  }
  if (const auto uri = context.Environment("FL_REGISTRY")) {
    return Place{Place::Kind::kRegistry, *uri};
  }
  return base::InvalidArgument(
      "no place given to ask about jobs and models",
      "give a running aggregator (--aggregator URL or FL_AGGREGATOR) or a registry (--registry URI "
      "or FL_REGISTRY); for a cluster use kubectl fl");
}

}  // namespace

std::string_view Name(ApplyResult result) {
  switch (result) {
    case ApplyResult::kCreated:
      return "created";
    case ApplyResult::kConfigured:
      return "configured";
    case ApplyResult::kUnchanged:
      return "unchanged";
  }
  return "";
}

std::string_view Name(JobAction action) {
  switch (action) {
    case JobAction::kPause:
      return "pause";
    case JobAction::kResume:
      return "resume";
    case JobAction::kAbort:
      return "abort";
    case JobAction::kRetry:
      return "retry";
  }
  return "";
}

base::JobName JobNameOf(const wire::JobView& job) {
  const base::Result<nlohmann::json> object = base::ParseJson(job.object, "job");
  if (!object.ok() || !object->contains("/metadata/name"_json_pointer)) return base::JobName();
  const nlohmann::json& name = object->at("/metadata/name"_json_pointer);
  return base::JobName(name.is_string() ? name.get<std::string>() : "");
}

bool VersionView::Has(std::string_view tag) const {
  for (const std::string& own : tags) {
    if (own == tag) return true;
  }
  return false;
}

base::Result<std::unique_ptr<JobsClient>> OpenJobs(const Context& context) {
  FL_ASSIGN_OR_RETURN(const Place place, FindPlace(context));
  return place.kind == Place::Kind::kAggregator
             ? internal::OpenAggregatorJobs(context, place.address)
             : internal::OpenRegistryJobs(context, place.address);
}

base::Result<std::unique_ptr<ModelsClient>> OpenModels(const Context& context) {
  FL_ASSIGN_OR_RETURN(const Place place, FindPlace(context));
  return place.kind == Place::Kind::kAggregator
             ? internal::OpenAggregatorModels(context, place.address)
             : internal::OpenRegistryModels(context, place.address);
}

}  // namespace fl::cli
