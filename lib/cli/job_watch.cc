#include "cli/job_watch.h"

#include <algorithm>

#include "cli/output.h"
#include "transport/client.h"

namespace fl::cli {
namespace {

using std::chrono::seconds;

constexpr base::Duration kPoll = seconds(30);
constexpr base::Duration kRetryPause = seconds(1);
constexpr base::Duration kPatience = seconds(60);

}  // namespace

base::Status WatchJob(Context& context, JobsClient& client, const base::JobName& job,
                      std::optional<base::Instant> deadline,
                      const std::function<base::Result<bool>(const wire::JobView&)>& seen) {
  FL_ASSIGN_OR_RETURN(wire::JobView view, client.Job(job));
  std::optional<base::Instant> away_since;
  while (true) {
    FL_ASSIGN_OR_RETURN(const bool done, seen(view));
    if (done) return base::OkStatus();
    while (true) {
      context.out.flush();
      const base::Instant now = context.clock->Monotonic();
      if (context.stop.stop_requested() || context.output_closed()) {
        return base::Cancelled("interrupted");
      }
      if (deadline && now >= *deadline) {
        return base::DeadlineExceeded("timed out waiting for job \"" + job.str() + "\"");
      }
      const base::Duration wait =
          deadline ? std::min<base::Duration>(kPoll, *deadline - now) : kPoll;
      base::Result<wire::JobView> changed = client.WaitForChange(job, view.revision, wait);
      if (changed.ok()) {
        away_since.reset();
        const bool is_new = changed->revision != view.revision;
        view = std::move(changed).value();
        if (is_new) break;
        continue;
      }
      if (!changed.status().retryable()) return changed.status();
      if (!away_since) {
        away_since = now;
        context.err << "fl: note: " << changed.status().message() << "; trying again\n";
      }
      if (now - *away_since > kPatience) return changed.status();
      FL_RETURN_IF_ERROR(transport::SleepFor(kRetryPause, context.stop));
    }
  }
}

bool IsOver(const wire::JobView& job) {
  if (!job.status.Finished()) return false;
  const spec::Value data = ValueFromJson(job.object);
  const spec::Value* spec = data.Find("spec");
  const spec::Value* attempt = spec == nullptr ? nullptr : spec->Find("attempt");
  const int64_t* number = attempt == nullptr ? nullptr : attempt->As<int64_t>();
  return number == nullptr || *number <= job.status.observed_attempt;
}

}  // namespace fl::cli
