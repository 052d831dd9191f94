#pragma once

/// What `fl run` shows while a job trains: one line for each round that ends, and on a terminal a
/// line below them that lives.

#include <cstdint>
#include <string>

#include "cli/context.h"
#include "cli/target.h"

namespace fl::cli {

/// One thread.
class RunProgress {
 public:
  explicit RunProgress(Context& context) : context_(context) {}

  /// Shows what changed since the last call. `connected` of `clients` agents are there.
  void Show(const wire::JobView& job, int64_t connected, int64_t clients);
  /// A line of its own, above the one that lives.
  void Say(const std::string& text);
  /// Takes the living line away.
  void Close();

 private:
  void ShowRound(const wire::RoundStatus& round, int64_t total);
  std::string LiveLine(const wire::JobView& job, int64_t connected, int64_t clients) const;
  void Erase();

  Context& context_;
  bool live_ = false;        // a living line is on the screen
  std::string last_shown_;   // round and attempt of the last line
  std::string waiting_for_;  // said once where there is no terminal
};

}  // namespace fl::cli
