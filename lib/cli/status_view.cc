#include "cli/status_view.h"

#include "base/text.h"
#include "cli/job_view.h"
#include "cli/output.h"

namespace fl::cli {
namespace {

std::string TimeLeft(const wire::JobStatus& status) {
  if (!status.seconds_left || status.Finished()) return "";
  return "about " +
         base::FormatDuration(base::Duration(static_cast<int64_t>(*status.seconds_left * 1e9))) +
         " left";
}

void AddPart(std::string* line, const std::string& part) {
  if (part.empty()) return;
  *line += (line->empty() ? "" : "  ") + part;
}

Icon RoundIcon(const wire::RoundStatus& round) {
  if (round.phase == "Done") return Icon::kDone;
  if (round.phase == "Missed") return Icon::kFailed;
  return Icon::kRunning;
}

std::string Progress(const wire::RoundStatus& round) {
  return std::to_string(round.accepted) + "/" + std::to_string(round.selected) + " accepted" +
         (round.rejected > 0 ? ", " + std::to_string(round.rejected) + " rejected" : "");
}

std::string RoundLine(const wire::RoundStatus& round, const Style& style, base::Time now) {
  std::string line = style.Draw(RoundIcon(round)) + " round " + std::to_string(round.number);
  if (round.attempt > 0) line += " (attempt " + std::to_string(round.attempt + 1) + ")";
  AddPart(&line, round.phase);
  AddPart(&line, Progress(round));
  if (round.version) AddPart(&line, "v" + std::to_string(*round.version));
  AddPart(&line, FormatMetrics(round.metrics));
  const base::Result<base::Time> deadline = base::ParseTime(round.deadline);
  if (RoundIcon(round) == Icon::kRunning && deadline.ok() && *deadline > now) {
    AddPart(&line, style.Paint(Ink::kDim, "deadline in " + base::FormatDuration(*deadline - now)));
  }
  AddPart(&line, round.message);
  return line;
}

std::string ClientLine(const wire::RoundClient& client, size_t width, const Style& style) {
  std::string line = style.Draw(IconOf(client)) + " " + client.name +
                     std::string(width - DisplayWidth(client.name), ' ');
  AddPart(&line, client.state);
  if (client.samples > 0) AddPart(&line, base::Count(client.samples, "sample"));
  AddPart(&line, client.reason);
  return line;
}

}  // namespace

std::string StatusTree(const wire::JobView& job, const std::vector<wire::RoundStatus>& rounds,
                       const Style& style, base::Time now, const StatusViewOptions& options) {
  const wire::JobStatus& status = job.status;
  const JobState state = StateOf(status);
  std::string text =
      style.Draw(state.icon) + " " + style.Paint(Ink::kBold, "job/" + JobNameOf(job).str());
  AddPart(&text, style.Paint(state.ink, state.name));
  AddPart(&text, "round " + std::to_string(status.rounds_done) + "/" +
                     std::to_string(status.rounds_total));
  if (status.model_version) AddPart(&text, "v" + std::to_string(*status.model_version));
  AddPart(&text, FormatMetrics(status.metrics));
  AddPart(&text, TimeLeft(status));
  text += "\n";
  const std::string reason = ReasonOf(status);
  if (!reason.empty()) text += "  " + style.Paint(Ink::kDim, reason) + "\n";

  constexpr size_t kShown = 5;
  const size_t first = options.all_rounds || rounds.size() <= kShown ? 0 : rounds.size() - kShown;
  if (first > 0) {
    text += std::string(style.Branch(false)) +
            style.Paint(Ink::kDim, base::Count(static_cast<int64_t>(first), "earlier round")) +
            "\n";
  }
  for (size_t i = first; i < rounds.size(); ++i) {
    const bool last = i + 1 == rounds.size();
    text += std::string(style.Branch(last)) + RoundLine(rounds[i], style, now) + "\n";
    if (!last && !options.all_rounds) continue;
    size_t width = 0;
    for (const wire::RoundClient& client : rounds[i].clients) {
      width = std::max(width, DisplayWidth(client.name));
    }
    for (size_t c = 0; c < rounds[i].clients.size(); ++c) {
      text += std::string(style.Trunk(last)) +
              std::string(style.Branch(c + 1 == rounds[i].clients.size())) +
              ClientLine(rounds[i].clients[c], width, style) + "\n";
    }
  }
  return text;
}

std::string StatusLine(const wire::JobView& job) {
  const wire::JobStatus& status = job.status;
  std::string line = "job/" + JobNameOf(job).str() + " " + StateOf(status).name + " round " +
                     std::to_string(status.rounds_done) + "/" + std::to_string(status.rounds_total);
  if (status.round && !status.Finished()) {
    line += " " + status.round->phase + " " + std::to_string(status.round->accepted) + "/" +
            std::to_string(status.round->selected);
  }
  const std::string metrics = FormatMetrics(status.metrics);
  if (!metrics.empty()) line += " " + metrics;
  return line;
}

}  // namespace fl::cli
