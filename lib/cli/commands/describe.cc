#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/resource.h"
#include "cli/target.h"
#include "spec/json.h"

namespace fl::cli {
namespace {

std::string Indent(const std::string& text, const std::string& by) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    result += by + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

std::string Section(const std::string& title, const std::string& content) {
  return content.empty() ? "" : title + ":\n" + Indent(content, "  ");
}

/// The object as YAML, without what is not the user's.
std::string Specification(const spec::Value& object) {
  const spec::Value* specification = object.Find("spec");
  return specification == nullptr ? "" : specification->ToYaml();
}

std::string Conditions(const std::vector<wire::Condition>& conditions, base::Time now) {
  Table table;
  table.columns = {{.title = "TYPE"},
                   {.title = "STATUS"},
                   {.title = "REASON"},
                   {.title = "AGE"},
                   {.title = "MESSAGE"}};
  for (const wire::Condition& condition : conditions) {
    const base::Result<base::Time> since = base::ParseTime(condition.last_transition_time);
    table.rows.push_back({condition.type, condition.status ? "True" : "False", condition.reason,
                          since.ok() ? FormatAge(*since, now) : "", condition.message});
  }
  return table.ToText(true);
}

base::Result<std::string> DescribeJob(Context& context, JobsClient& client,
                                      const base::JobName& name) {
  FL_ASSIGN_OR_RETURN(const wire::JobView job, client.Job(name));
  const wire::JobStatus& status = job.status;
  std::string text = "Name:      " + name.str() +
                     "\nKind:      FederatedLearningJob\nState:     " + StateOf(status).name +
                     "\nRounds:    " + std::to_string(status.rounds_done) + "/" +
                     std::to_string(status.rounds_total) + "\n";
  if (status.base_version) text += "Base:      v" + std::to_string(*status.base_version) + "\n";
  if (status.model_version) text += "Version:   v" + std::to_string(*status.model_version) + "\n";
  if (!status.metrics.empty()) text += "Metrics:   " + FormatMetrics(status.metrics) + "\n";
  if (!status.start_time.empty()) text += "Started:   " + status.start_time + "\n";
  if (!status.end_time.empty()) text += "Ended:     " + status.end_time + "\n";
  text += Section("Conditions", Conditions(status.conditions, context.clock->Now()));
  text += Section("Spec", Specification(ValueFromJson(job.object)));

  // What a registry says of a past job has no log.
  const base::Result<std::vector<wire::JobEvent>> events = client.Events(name, 0, {});
  if (!events.ok() && events.status().code() != base::Code::kUnimplemented) return events.status();
  if (events.ok()) {
    constexpr size_t kShown = 20;
    std::string lines;
    for (size_t i = events->size() - std::min(kShown, events->size()); i < events->size(); ++i) {
      const wire::JobEvent& event = (*events)[i];
      lines += event.time + "  " + event.level + "  " + event.message + "\n";
    }
    text += Section("Events", lines);
  }
  return text;
}

base::Result<std::string> DescribeClient(JobsClient& client, const std::string& name) {
  FL_ASSIGN_OR_RETURN(const std::vector<ClientView> clients, client.Clients());
  const auto found = std::find_if(clients.begin(), clients.end(),
                                  [&](const ClientView& view) { return view.status.name == name; });
  if (found == clients.end()) return base::NotFound("there is no client \"" + name + "\"");
  const wire::ClientStatus& status = found->status;
  std::string text = "Name:        " + name + "\nKind:        FederatedClient\nConnected:   " +
                     (status.connected ? "yes" : "no") +
                     "\nFenced:      " + (status.fenced ? "yes" : "no") +
                     "\nLast seen:   " + (status.last_seen.empty() ? "never" : status.last_seen) +
                     "\nSoftware:    " + (status.software.empty() ? "-" : status.software) +
                     "\nTask:        " + (status.task.empty() ? "-" : status.task) +
                     "\nAccepted:    " + base::Count(status.rounds_accepted, "round") +
                     "\nRejected:    " + base::Count(status.rounds_rejected, "round") + "\n";
  if (!status.last_error.empty()) text += "Last error:  " + status.last_error + "\n";
  std::string labels;
  for (const auto& [key, value] : status.labels) labels += key + "=" + value + "\n";
  text += Section("Labels", labels);
  if (found->object) text += Section("Spec", Specification(spec::ToValue(*found->object)));
  return text;
}

base::Result<std::string> DescribeModel(Context& context, const base::ModelName& name) {
  FL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelsClient> client, OpenModels(context));
  FL_ASSIGN_OR_RETURN(const std::vector<VersionView> versions, client->Versions(name));
  std::string text = "Name:      " + name.str() + "\nKind:      FederatedModel\n";
  Table table;
  table.columns = {{.title = "VERSION"},
                   {.title = "JOB"},
                   {.title = "ROUND"},
                   {.title = "TAGS"},
                   {.title = "METRICS"}};
  for (const VersionView& view : versions) {
    std::string tags;
    for (const std::string& tag : view.tags) tags += (tags.empty() ? "" : ",") + tag;
    if (tags.empty()) continue;
    table.rows.push_back({std::to_string(view.info.version.value()), view.info.job.str(),
                          std::to_string(view.info.round.value()), tags,
                          FormatMetrics(view.info.metrics)});
  }
  text += "Versions:  " + std::to_string(versions.size()) + "\n";
  return text + Section("Tagged", table.ToText(true));
}

/// A name without a kind: a job, or else a client.
base::Result<std::string> DescribeAny(Context& context, JobsClient& client,
                                      const std::string& name) {
  FL_ASSIGN_OR_RETURN(const base::JobName job, ParseJobName(name));
  base::Result<std::string> text = DescribeJob(context, client, job);
  if (text.ok() || text.status().code() != base::Code::kNotFound) return text;
  base::Result<std::string> other = DescribeClient(client, name);
  if (!other.ok() && other.status().code() == base::Code::kNotFound) {
    return base::NotFound("there is no job and no client \"" + name + "\"");
  }
  return other;
}

base::Status Describe(const std::vector<std::string>& words, Context& context) {
  const bool kind_given =
      ParseResourceKind(words[0]).has_value() || words[0].find('/') != std::string::npos;
  ResourceList list{.names = words};
  if (kind_given && (words.size() > 1 || words[0].find('/') != std::string::npos)) {
    FL_ASSIGN_OR_RETURN(list, ParseResources(words));
  }
  const bool any = list.names == words && words[0].find('/') == std::string::npos;
  std::unique_ptr<JobsClient> client;
  if (any || list.kind != ResourceKind::kModel) {
    FL_ASSIGN_OR_RETURN(client, OpenJobs(context));
  }
  for (size_t i = 0; i < list.names.size(); ++i) {
    const std::string& name = list.names[i];
    base::Result<std::string> text = base::Internal("no kind");
    if (any) {
      text = DescribeAny(context, *client, name);
    } else if (list.kind == ResourceKind::kClient) {
      text = DescribeClient(*client, name);
    } else if (list.kind == ResourceKind::kModel) {
      FL_ASSIGN_OR_RETURN(const base::ModelName model, ParseModelName(name));
      text = DescribeModel(context, model);
    } else {
      FL_ASSIGN_OR_RETURN(const base::JobName job, ParseJobName(name));
      text = DescribeJob(context, *client, job);
    }
    FL_RETURN_IF_ERROR(text.status());
    context.out << (i == 0 ? "" : "\n") << *text;
  }
  return base::OkStatus();
}

}  // namespace

Command DescribeCommand() {
  auto words = std::make_shared<std::vector<std::string>>();
  return {.name = "describe",
          .summary = "Show all there is to know about jobs, clients or models",
          .examples = {{"A job: conditions, spec, last events", "fl describe digits"},
                       {"A client", "fl describe client hospital-a"}},
          .arguments = {{.names = "NAME",
                         .help = "JOB, CLIENT, KIND NAME or KIND/NAME",
                         .to = words.get(),
                         .required = true,
                         .completes = Completes::kResource}},
          .uses_target = true,
          .interruptible = true,
          .run = [words](Context& context) { return Describe(*words, context); }};
}

}  // namespace fl::cli
