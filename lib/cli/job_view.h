#pragma once

/// Jobs, rounds, clients and versions as commands print them.

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/output.h"
#include "cli/target.h"

namespace fl::cli {

/// One word for a job, with the colour and icon that go with it: "Succeeded", "Failed",
/// "Suspended", "Running", "Waiting".
struct JobState {
  std::string name;
  Icon icon = Icon::kWaiting;
  Ink ink = Ink::kPlain;
};
JobState StateOf(const wire::JobStatus& status);

/// Why it is so: the message of the condition that says most, or "".
std::string ReasonOf(const wire::JobStatus& status);

/// The icon for a client in a round.
Icon IconOf(const wire::RoundClient& client);

/// The object with its status, as `get -o json` prints it.
spec::Value ToData(const wire::JobView& job);
spec::Value ToData(const ClientView& client);
spec::Value ToData(const ModelSummary& model);
spec::Value ToData(const VersionView& version);

Document JobsDocument(const std::vector<wire::JobView>& jobs, base::Time now);
Document ClientsDocument(const std::vector<ClientView>& clients, base::Time now);
Document ModelsDocument(const std::vector<ModelSummary>& models, base::Time now);

/// For one object instead of a list: `data` is the object itself.
Document Single(Document document);

/// kInvalidArgument where `name` cannot be a name.
base::Result<base::JobName> ParseJobName(const std::string& name);
base::Result<base::ModelName> ParseModelName(const std::string& name);
/// "3" or "v3". kInvalidArgument.
base::Result<base::VersionNumber> ParseVersion(const std::string& text);

}  // namespace fl::cli
