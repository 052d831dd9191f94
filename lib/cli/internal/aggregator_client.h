#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/context.h"
#include "transport/client.h"

namespace fl::cli::internal {

/// Calls to one aggregator as an administrator. One thread.
class AggregatorClient {
 public:
  /// kInvalidArgument for a URL that is none, http:// without --insecure, or a file that cannot be
  /// read. Connects to nothing yet.
  static base::Result<AggregatorClient> Create(const Context& context, const std::string& url);

  /// The body of a 2xx answer; else the error that the aggregator gave. What may be repeated is
  /// tried a few times where the connection fails. `patience`: how long the aggregator may take
  /// before it answers (long polls).
  base::Result<std::string> Call(std::string method, const std::string& path, std::string body = "",
                                 base::Duration patience = {});

  /// How far the aggregator's clock was ahead of ours at the last answer, to a second; none before
  /// there was one.
  std::optional<base::Duration> ClockDifference() const { return clock_difference_; }

 private:
  AggregatorClient() = default;

  std::string url_;
  std::string token_;
  bool impatient_ = false;
  base::Clock* clock_ = nullptr;
  std::optional<base::Duration> clock_difference_;
  std::stop_token stop_;
  std::unique_ptr<transport::HttpClient> curl_;
  std::unique_ptr<transport::HttpClient> retrying_;
};

}  // namespace fl::cli::internal
