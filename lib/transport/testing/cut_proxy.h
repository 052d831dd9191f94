#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace fl::transport {

/// A TCP proxy on 127.0.0.1 in front of a server there, with faults: real sockets, for tests of
/// what happens when the network breaks. Thread-safe.
class CutProxy {
 public:
  /// What befalls a connection. Bytes are those of TCP, TLS included.
  struct Fault {
    /// Cut after so many bytes towards the server were passed on.
    std::optional<uint64_t> cut_after_sent;
    /// Cut after so many bytes towards the client were passed on.
    std::optional<uint64_t> cut_after_received;
    /// Passes the request to the server, and cuts when the first byte of the answer comes, which is
    /// lost: the server has acted, the client does not know. With TLS, the first request's answer
    /// on the connection (clients without a certificate).
    bool drop_response = false;
    /// Waits this long before each piece is passed on, in either direction.
    base::Duration delay{};
    /// Cut by RST instead of FIN.
    bool reset = false;
    /// Takes the connection and passes nothing on.
    bool black_hole = false;
  };

  static base::Result<std::unique_ptr<CutProxy>> Start(int target_port);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  int port() const;
  /// The next `connections` new ones get `fault`, later ones none. Replaces what was set before.
  void FailNext(const Fault& fault, int connections = 1);
  /// All new connections get `fault`, until changed.
  void FailAll(const Fault& fault);
  /// New connections work again.
  void Heal();
  /// Cuts every connection that is open now.
  void CutAll();
  /// New connections go to another port (a server that was restarted).
  void SetTarget(int target_port);

  /// Connections taken since the start.
  int accepted() const;
  /// Bytes passed to the server since the start.
  uint64_t bytes_sent() const;

 private:
  class Impl;
  explicit CutProxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl::transport
