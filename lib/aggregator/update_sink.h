#pragma once

/// Takes one update as it arrives: to the spool, hashed and checked on the way.

#include <memory>
#include <optional>

#include "aggregator/core.h"
#include "tensor/stream_check.h"
#include "transport/server.h"

namespace fl::aggregator {

/// What the head of an update said.
struct UpdateHead {
  base::JobName job;
  base::RoundNumber round;
  int64_t attempt = 0;
  base::ClientName client;
  std::optional<int64_t> samples;  ///< none where the job keeps counts at the clients
  int64_t steps = 0;
  std::map<std::string, double> metrics;
  std::string session;                 ///< its token
  uint64_t size = 0;                   ///< Content-Length
  std::optional<base::Digest> digest;  ///< Repr-Digest, where it came up front
};

/// `accepted` is the digest of an update that this client sent before: the same bytes succeed
/// again, others get 409. Takes core.mutex by itself.
base::Result<std::unique_ptr<transport::BodySink>> MakeUpdateSink(
    Core& core, UpdateHead head, std::shared_ptr<const tensor::Header> model,
    std::optional<base::Digest> accepted);

}  // namespace fl::aggregator
