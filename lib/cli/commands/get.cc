#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/resource.h"
#include "cli/target.h"

namespace fl::cli {
namespace {

struct Options {
  std::vector<std::string> words;
  std::string output = "table";
};

/// The named ones of `all`, in the order of `names`; all where none is named.
template <typename T, typename NameOf>
base::Result<std::vector<T>> Choose(std::vector<T> all, const std::vector<std::string>& names,
                                    std::string_view kind, NameOf name_of) {
  if (names.empty()) return all;
  std::vector<T> chosen;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const T& one) { return name_of(one) == name; });
    if (found == all.end()) {
      return base::NotFound("there is no " + std::string(kind) + " \"" + name + "\"");
    }
    chosen.push_back(*found);
  }
  return chosen;
}

base::Result<Document> GetJobs(Context& context, const std::vector<std::string>& names) {
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  std::vector<wire::JobView> jobs;
  if (names.empty()) {
    FL_ASSIGN_OR_RETURN(jobs, client->Jobs());
  }
  for (const std::string& name : names) {
    FL_ASSIGN_OR_RETURN(const base::JobName job, ParseJobName(name));
    FL_ASSIGN_OR_RETURN(wire::JobView view, client->Job(job));
    jobs.push_back(std::move(view));
  }
  return JobsDocument(jobs, context.clock->Now());
}

base::Result<Document> GetClients(Context& context, const std::vector<std::string>& names) {
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<JobsClient> client, OpenJobs(context));
  FL_ASSIGN_OR_RETURN(std::vector<ClientView> all, client->Clients());
  FL_ASSIGN_OR_RETURN(const std::vector<ClientView> chosen,
                      Choose(std::move(all), names, "client",
                             [](const ClientView& view) { return view.status.name; }));
  return ClientsDocument(chosen, context.clock->Now());
}

base::Result<Document> GetModels(Context& context, const std::vector<std::string>& names) {
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(std::vector<ModelSummary> all, client->Models());
  FL_ASSIGN_OR_RETURN(const std::vector<ModelSummary> chosen,
                      Choose(std::move(all), names, "model",
                             [](const ModelSummary& model) { return model.name.str(); }));
  return ModelsDocument(chosen, context.clock->Now());
}

base::Status Get(const Options& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const ResourceList wanted, ParseResources(options.words));
  base::Result<Document> document = base::Internal("no kind");
  switch (wanted.kind) {
    case ResourceKind::kJob:
      document = GetJobs(context, wanted.names);
      break;
    case ResourceKind::kClient:
      document = GetClients(context, wanted.names);
      break;
    case ResourceKind::kModel:
      document = GetModels(context, wanted.names);
      break;
  }
  FL_RETURN_IF_ERROR(document.status());
  return format.Print(
      context, wanted.names.size() == 1 ? Single(std::move(*document)) : std::move(*document));
}

}  // namespace

Command GetCommand() {
  auto options = std::make_shared<Options>();
  return {.name = "get",
          .summary = "Show jobs, models or clients",
          .examples = {{"One job as YAML", "fl get job digits -o yaml"},
                       {"A field of it", "fl get job digits -o jsonpath='{.status.modelVersion}'"},
                       {"All clients, with labels", "fl get clients -o wide"},
                       {"By kind and name in one word", "fl get model/digits"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "KIND",
                         .help = "job, model or client, then names; or KIND/NAME",
                         .to = &options->words,
                         .required = true,
                         .completes = Completes::kResource}},
          .uses_target = true,
          .interruptible = true,
          .run = [options](Context& context) { return Get(*options, context); }};
}

}  // namespace fl::cli
