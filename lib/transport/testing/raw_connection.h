#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace fl::transport {

/// A plain TCP connection to 127.0.0.1 on which a test says what no HTTP client would. Blocking; an
/// operation that takes longer than ten seconds of real time fails.
class RawConnection {
 public:
  static base::Result<RawConnection> Open(int port);

  /// Sends all of it. kUnavailable where the peer has closed.
  base::Status Send(std::string_view bytes);
  /// What comes next, at least one byte; "" at the end. kUnavailable after a reset,
  /// kDeadlineExceeded.
  base::Result<std::string> Receive(size_t limit = 65536);
  /// One whole response with a Content-Length (or none), head and body. What came after it stays
  /// for the next call.
  base::Result<std::string> ReceiveResponse();
  /// All that comes until the peer closes.
  base::Result<std::string> ReceiveAll();
  /// No more is sent; receiving goes on.
  void FinishSending();
  void Close() { fd_.Reset(); }

 private:
  explicit RawConnection(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
  std::string received_;
};

}  // namespace fl::transport
