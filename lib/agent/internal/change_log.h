#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/status.h"
#include "obs/log.h"

namespace fl::agent::internal {

/// Logs a failure that is tried again when it first happens and when it changes; the repetitions
/// in between are for debugging only. One thread.
class ChangeLog {
 public:
  explicit ChangeLog(base::ClientName client) : client_(std::move(client)) {}

  void Failed(std::string_view message, const base::Status& why) {
    std::string text = why.ToString();
    const bool repeated = text == last_;
    obs::Log(repeated ? obs::Level::kDebug : obs::Level::kWarning, message,
             {{"client", client_}, {"reason", why.message()}, {"hint", why.hint()}});
    last_ = std::move(text);
  }
  void Succeeded() { last_.clear(); }

 private:
  const base::ClientName client_;
  std::string last_;
};

}  // namespace fl::agent::internal
