#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "transport/server.h"

namespace fl::transport {

/// A Handler that is one function; for tests.
class FunctionHandler final : public Handler {
 public:
  explicit FunctionHandler(std::function<Accept(const RequestContext&)> function)
      : function_(std::move(function)) {}
  Accept OnRequest(const RequestContext& context) override { return function_(context); }

 private:
  const std::function<Accept(const RequestContext&)> function_;
};

/// A BodySink that is two functions; for tests. `aborted` runs where Finish was not called.
class FunctionSink final : public BodySink {
 public:
  FunctionSink(std::function<base::Status(std::span<const uint8_t>)> write,
               std::function<void(const Headers&, Responder)> finish,
               std::function<void()> aborted = nullptr)
      : write_(std::move(write)), finish_(std::move(finish)), aborted_(std::move(aborted)) {}
  ~FunctionSink() override {
    if (!finished_ && aborted_) aborted_();
  }
  base::Status Write(std::span<const uint8_t> bytes) override { return write_(bytes); }
  void Finish(const Headers& trailers, Responder responder) override {
    finished_ = true;
    finish_(trailers, std::move(responder));
  }

 private:
  const std::function<base::Status(std::span<const uint8_t>)> write_;
  const std::function<void(const Headers&, Responder)> finish_;
  const std::function<void()> aborted_;
  bool finished_ = false;
};

}  // namespace fl::transport
