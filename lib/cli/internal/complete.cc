#include "cli/internal/complete.h"

#include <algorithm>
#include <set>

#include "cli/internal/resolve.h"
#include "cli/resource.h"
#include "cli/target.h"

namespace fl::cli::internal {
namespace {

enum Directive : int { kFiles = 0, kNoSpace = 2, kNoFiles = 4, kFolders = 16 };

struct Candidates {
  std::vector<std::pair<std::string, std::string>> words;  ///< with descriptions
  int directive = kNoFiles;

  void Add(std::string word, std::string description = "") {
    words.emplace_back(std::move(word), std::move(description));
  }
};

/// What stands before the word that is being completed.
struct Before {
  Resolved resolved;
  std::vector<std::string> positional;
  const Option* awaiting = nullptr;  ///< the flag whose value comes next
  std::set<std::string> given;       ///< flags that are there already
};

const Option* FindFlag(const std::vector<Option>& flags, const std::string& name) {
  for (const Option& flag : flags) {
    for (const std::string& own : flag.Names()) {
      if (own == name) return &flag;
    }
  }
  return nullptr;
}

/// Global flags that were typed matter for names that are asked for.
void TakeGlobal(const Option& flag, const std::string& value) {
  if (std::string* const* text = std::get_if<std::string*>(&flag.to)) **text = value;
}

void ReadFlags(const std::vector<std::string>& words, const std::vector<Option>& own,
               const std::vector<Option>& global, Before* before) {
  bool flags_end = false;
  for (const std::string& word : words) {
    if (before->awaiting != nullptr) {
      TakeGlobal(*before->awaiting, word);
      before->awaiting = nullptr;
      continue;
    }
    if (word == "--") flags_end = true;
    if (flags_end || word.size() < 2 || word[0] != '-') {
      before->positional.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Option* flag = FindFlag(own, name);
    const Option* global_flag = FindFlag(global, name);
    if (flag == nullptr) flag = global_flag;
    if (flag == nullptr) continue;
    for (const std::string& alias : flag->Names()) before->given.insert(alias);
    if (flag->is_switch()) {
      if (global_flag != nullptr) *std::get<bool*>(global_flag->to) = true;
    } else if (equals == std::string::npos) {
      before->awaiting = flag;
    } else if (global_flag != nullptr) {
      TakeGlobal(*global_flag, word.substr(equals + 1));
    }
  }
}

void AddJobs(Context& context, Candidates* out) {
  base::Result<std::unique_ptr<JobsClient>> client = OpenJobs(context);
  if (!client.ok()) return;
  const base::Result<std::vector<wire::JobView>> jobs = (*client)->Jobs();
  if (!jobs.ok()) return;
  for (const wire::JobView& job : *jobs) out->Add(JobNameOf(job).str());
}

void AddClients(Context& context, Candidates* out) {
  base::Result<std::unique_ptr<JobsClient>> client = OpenJobs(context);
  if (!client.ok()) return;
  const base::Result<std::vector<ClientView>> clients = (*client)->Clients();
  if (!clients.ok()) return;
  for (const ClientView& view : *clients) out->Add(view.status.name);
}

void AddModels(Context& context, Candidates* out) {
  base::Result<std::unique_ptr<ModelsClient>> client = OpenModels(context);
  if (!client.ok()) return;
  const base::Result<std::vector<ModelSummary>> models = (*client)->Models();
  if (!models.ok()) return;
  for (const ModelSummary& model : *models) out->Add(model.name.str());
}

void AddVersions(Context& context, const Before& before, Candidates* out) {
  if (before.positional.empty()) return;
  base::Result<std::unique_ptr<ModelsClient>> client = OpenModels(context);
  if (!client.ok()) return;
  const auto versions = (*client)->Versions(base::ModelName(before.positional[0]));
  if (!versions.ok()) return;
  for (auto it = versions->rbegin(); it != versions->rend(); ++it) {
    if (it->info.pruned) continue;
    std::string tags;
    for (const std::string& tag : it->tags) tags += (tags.empty() ? "" : ", ") + tag;
    out->Add(std::to_string(it->info.version.value()), tags);
  }
}

/// A kind, then names of that kind.
void AddResources(Context& context, const Before& before, Candidates* out) {
  if (before.positional.empty()) {
    for (const ResourceKind kind :
         {ResourceKind::kJob, ResourceKind::kModel, ResourceKind::kClient}) {
      out->Add(std::string(Name(kind)));
    }
    return;
  }
  const std::optional<ResourceKind> kind = ParseResourceKind(before.positional[0]);
  if (kind == ResourceKind::kJob) AddJobs(context, out);
  if (kind == ResourceKind::kModel) AddModels(context, out);
  if (kind == ResourceKind::kClient) AddClients(context, out);
}

void AddCommands(const std::vector<Command>& commands, Candidates* out) {
  for (const Command& command : commands) {
    if (!command.hidden) out->Add(command.name, command.summary);
  }
}

void AddValues(Context& context, const CommandTable& table, const Option& option,
               const Before& before, Candidates* out) {
  for (const std::string& choice : option.choices) out->Add(choice);
  switch (option.completes) {
    case Completes::kNothing:
      break;
    case Completes::kFile:
      out->directive = kFiles;
      break;
    case Completes::kFolder:
      out->directive = kFolders;
      break;
    case Completes::kJob:
      AddJobs(context, out);
      break;
    case Completes::kModel:
      AddModels(context, out);
      break;
    case Completes::kClient:
      AddClients(context, out);
      break;
    case Completes::kResource:
      AddResources(context, before, out);
      break;
    case Completes::kVersion:
      AddVersions(context, before, out);
      break;
    case Completes::kOutput:
      for (const char* format : {"table", "wide", "json", "yaml", "name", "jsonpath="}) {
        out->Add(format);
      }
      break;
    case Completes::kCommand:
      for (const CommandGroup& group : table.groups) AddCommands(group.commands, out);
      break;
  }
}

void AddFlags(const Command& command, const std::vector<Option>& global, const Before& before,
              Candidates* out) {
  for (const std::vector<Option>* flags : {&command.flags, &global}) {
    for (const Option& flag : *flags) {
      if (flag.hidden) continue;
      const std::vector<std::string> names = flag.Names();
      if (before.given.contains(names[0]) && !flag.is_list()) continue;
      for (const std::string& name : names) out->Add(name, flag.help);
    }
  }
  out->Add("--help", "What the command does, with examples");
}

void Print(Context& context, const std::string& typed, const Candidates& candidates) {
  for (const auto& [word, description] : candidates.words) {
    if (!word.starts_with(typed)) continue;
    context.out << word;
    if (!description.empty()) context.out << "\t" << description;
    context.out << "\n";
  }
  context.out << ":" << candidates.directive << "\n";
}

}  // namespace

base::Status Complete(Context& context, const CommandTable& table,
                      const std::vector<Option>& global_flags,
                      const std::vector<std::string>& words) {
  context.impatient = true;
  const std::string typed = words.empty() ? "" : words.back();
  std::vector<std::string> typed_before = words;
  if (!typed_before.empty()) typed_before.pop_back();
  Candidates candidates;

  Before before;
  const bool wants_help = !typed_before.empty() && typed_before[0] == "help";
  if (wants_help) typed_before.erase(typed_before.begin());
  base::Result<Resolved> resolved = Resolve(context.program, table, global_flags, typed_before);
  if (!resolved.ok()) {
    Print(context, typed, candidates);
    return base::OkStatus();
  }
  before.resolved = std::move(resolved).value();
  static const Command kNone;
  const Command& command = before.resolved.command == nullptr ? kNone : *before.resolved.command;
  ReadFlags(before.resolved.leading, command.flags, global_flags, &before);
  ReadFlags(before.resolved.rest, command.flags, global_flags, &before);

  const size_t equals = typed.find('=');
  if (before.awaiting != nullptr) {
    AddValues(context, table, *before.awaiting, before, &candidates);
  } else if (typed.starts_with("--") && equals != std::string::npos) {
    const std::string name = typed.substr(0, equals);
    const Option* flag = FindFlag(command.flags, name);
    if (flag == nullptr) flag = FindFlag(global_flags, name);
    if (flag != nullptr && !flag->is_switch()) {
      AddValues(context, table, *flag, before, &candidates);
      for (auto& [word, description] : candidates.words) word = name + "=" + word;
    }
  } else if (typed.starts_with('-')) {
    AddFlags(command, global_flags, before, &candidates);
  } else if (before.resolved.command == nullptr) {
    for (const CommandGroup& group : table.groups) AddCommands(group.commands, &candidates);
    if (!wants_help) candidates.Add("help", "What a command does, with examples");
  } else if (!command.commands.empty()) {
    AddCommands(command.commands, &candidates);
  } else if (!wants_help) {
    const std::vector<Option>& arguments = command.arguments;
    const size_t next = before.positional.size();
    const bool rest_of_list =
        !arguments.empty() && next >= arguments.size() && arguments.back().is_list();
    if (next < arguments.size() || rest_of_list) {
      AddValues(context, table, arguments[std::min(next, arguments.size() - 1)], before,
                &candidates);
    } else if (command.run_raw != nullptr) {
      candidates.directive = kFiles;
    }
  }
  Print(context, typed, candidates);
  return base::OkStatus();
}

}  // namespace fl::cli::internal
