#include "cli/federation/progress.h"

#include <algorithm>
#include <cstdio>

#include "cli/output.h"

namespace fl::cli {
namespace {

constexpr int kBarWidth = 20;

std::string Bar(int64_t done, int64_t total, bool unicode) {
  const int64_t filled = total > 0 ? std::min<int64_t>(done * kBarWidth / total, kBarWidth) : 0;
  std::string bar;
  for (int64_t i = 0; i < kBarWidth; ++i) {
    bar += i < filled ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  }
  return bar;
}

std::string Key(const wire::RoundStatus& round) {
  return std::to_string(round.number) + "." + std::to_string(round.attempt);
}

bool IsOver(const wire::RoundStatus& round) {
  return round.phase == "Done" || round.phase == "Missed";
}

std::string Seconds(const wire::RoundStatus& round) {
  const base::Result<base::Time> start = base::ParseTime(round.start_time);
  const base::Result<base::Time> end = base::ParseTime(round.end_time);
  return start.ok() && end.ok() ? base::FormatDuration(*end - *start) : "";
}

}  // namespace

void RunProgress::Erase() {
  if (live_) context_.out << "\r\x1b[K";
  live_ = false;
}

void RunProgress::Say(const std::string& text) {
  Erase();
  context_.out << text << "\n" << std::flush;
}

void RunProgress::Close() {
  Erase();
  context_.out << std::flush;
}

void RunProgress::ShowRound(const wire::RoundStatus& round, int64_t total) {
  const Style style = context_.OutStyle();
  char line[160];
  std::snprintf(line, sizeof line, "round %lld/%lld", static_cast<long long>(round.number),
                static_cast<long long>(total));
  std::string text = style.Draw(round.phase == "Done" ? Icon::kDone : Icon::kFailed) + " " + line;
  text += "  " + std::to_string(round.accepted) + "/" + std::to_string(round.selected) + " updates";
  if (round.phase == "Done") {
    if (!round.metrics.empty())
      text += "  " + style.Paint(Ink::kBold, FormatMetrics(round.metrics));
    if (round.version) text += "  version " + std::to_string(*round.version);
  } else {
    text += "  " + style.Paint(Ink::kYellow, "missed: " + round.message);
  }
  const std::string seconds = Seconds(round);
  if (!seconds.empty()) text += "  " + style.Paint(Ink::kDim, seconds);
  Say(text);
}

std::string RunProgress::LiveLine(const wire::JobView& job, int64_t connected,
                                  int64_t clients) const {
  const Style style = context_.OutStyle();
  const wire::Condition* progressing = job.status.Find("Progressing");
  const std::string agents =
      std::to_string(connected) + "/" + std::to_string(clients) + " agents connected";
  if (!job.status.round || IsOver(*job.status.round)) {
    const std::string what = progressing == nullptr ? "starting" : progressing->message;
    return style.Draw(Icon::kWaiting) + " " + what + "  " + style.Paint(Ink::kDim, agents);
  }
  const wire::RoundStatus& round = *job.status.round;
  std::string text = style.Draw(Icon::kRunning) + " round " + std::to_string(round.number) + "/" +
                     std::to_string(job.status.rounds_total) + "  " + round.phase + "  " +
                     Bar(round.accepted + round.rejected, round.selected, style.unicode) + " " +
                     std::to_string(round.accepted) + "/" + std::to_string(round.selected) +
                     " updates";
  if (round.rejected > 0) text += ", " + std::to_string(round.rejected) + " failed";
  text += "  " + style.Paint(Ink::kDim, agents);
  if (job.status.seconds_left) {
    const base::Duration left(static_cast<int64_t>(*job.status.seconds_left * 1e9));
    text += style.Paint(Ink::kDim, ", about " + base::FormatDuration(left) + " left");
  }
  return text;
}

void RunProgress::Show(const wire::JobView& job, int64_t connected, int64_t clients) {
  // Every round that ended since the last look, in order.
  bool after_last = last_shown_.empty();
  const bool known = std::any_of(job.status.recent_rounds.begin(), job.status.recent_rounds.end(),
                                 [&](const auto& round) { return Key(round) == last_shown_; });
  for (const wire::RoundStatus& round : job.status.recent_rounds) {
    if (after_last || !known) {
      if (!IsOver(round)) continue;
      ShowRound(round, job.status.rounds_total);
      last_shown_ = Key(round);
    }
    if (Key(round) == last_shown_) after_last = true;
  }
  if (!context_.out_is_terminal) {
    const wire::Condition* progressing = job.status.Find("Progressing");
    if (progressing != nullptr && progressing->reason == "Waiting" &&
        progressing->message != waiting_for_) {
      waiting_for_ = progressing->message;
      Say("waiting: " + waiting_for_);
    }
    return;
  }
  Erase();
  const size_t width = context_.columns > 1 ? static_cast<size_t>(context_.columns - 1) : 79;
  context_.out << Clip(LiveLine(job, connected, clients), width) << std::flush;
  live_ = true;
}

}  // namespace fl::cli
