#include "transport/testing/cut_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <list>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"

namespace fl::transport {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Fault = CutProxy::Fault;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

base::UniqueFd Connect(int port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  if (!fd.valid() ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return fd;
}

void SendAtOnce(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/// A counter that poll can wait for.
class Wakeup {
 public:
  Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  void Ring() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd_.get(), &one, sizeof(one));
  }
  int fd() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
};

/// Counts the records of TLS application data whose start has passed, by their headers.
class RecordCounter {
 public:
  void Passed(std::span<const uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size();) {
      if (header_ < kHeaderBytes) {
        if (header_ == 0) {
          any_ = true;
          if (bytes[i] == kHandshake && records_ == 0) tls_ = true;
          if (bytes[i] == kApplicationData) ++application_data_;
          ++records_;
          left_ = 0;
        }
        if (header_ >= 3) left_ = left_ << 8 | bytes[i];
        ++header_;
        ++i;
      } else {
        const size_t step = std::min(left_, bytes.size() - i);
        i += step;
        left_ -= step;
      }
      if (header_ == kHeaderBytes && left_ == 0) header_ = 0;
    }
  }
  /// The first request has begun: after the handshake's last flight, which is one such record.
  bool request_begun() const { return tls_ ? application_data_ >= 2 : any_; }

 private:
  static constexpr size_t kHeaderBytes = 5;
  static constexpr uint8_t kHandshake = 22;
  static constexpr uint8_t kApplicationData = 23;
  size_t header_ = 0;
  size_t left_ = 0;
  int records_ = 0;
  int application_data_ = 0;
  bool tls_ = false;
  bool any_ = false;
};

/// One way of a connection.
struct Flow {
  int from = -1;
  int to = -1;
  std::optional<uint64_t> left;  ///< until the cut
  std::vector<uint8_t> held;     ///< received, to be passed on
  SteadyClock::time_point due;
  bool ended = false;
  bool told_end = false;
};

}  // namespace

class CutProxy::Impl {
 public:
  ~Impl() {
    stopping_ = true;
    wakeup_.Ring();
    if (accepting_.joinable()) accepting_.join();
    CutAll();
    const std::lock_guard lock(mutex_);
    links_.clear();  // joins
  }

  base::Status Start(int target_port) {
    target_port_ = target_port;
    listener_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    if (!listener_.valid() ||
        ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 128) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return base::FromErrno(errno, "listen for a proxy");
    }
    port_ = ntohs(address.sin_port);
    accepting_ = std::jthread([this] { AcceptLoop(); });
    return base::OkStatus();
  }

  void SetFault(const Fault& fault, int connections) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    faults_left_ = connections;
  }

  void CutAll() {
    const std::lock_guard lock(mutex_);
    for (const std::unique_ptr<Link>& link : links_) link->Cut();
  }

  int port() const { return port_; }
  void SetTarget(int port) { target_port_ = port; }
  int accepted() const { return accepted_; }
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  /// One connection through the proxy, on a thread of its own.
  class Link {
   public:
    Link(base::UniqueFd client, int target_port, const Fault& fault,
         std::atomic<uint64_t>& bytes_sent)
        : client_(std::move(client)), fault_(fault), bytes_sent_(bytes_sent) {
      thread_ = std::jthread([this, target_port] { Run(target_port); });
    }
    void Cut() {
      cut_ = true;
      wakeup_.Ring();
    }
    bool done() const { return done_; }

   private:
    void Run(int target_port) {
      if (fault_.black_hole) {
        pollfd wait = {wakeup_.fd(), POLLIN, 0};
        while (!cut_) ::poll(&wait, 1, -1);
      } else {
        server_ = Connect(target_port);
        if (server_.valid()) Pump();
      }
      Close(client_);
      Close(server_);
      done_ = true;
    }

    void Pump() {
      SendAtOnce(client_.get());
      SendAtOnce(server_.get());
      to_server_ = {client_.get(), server_.get(), fault_.cut_after_sent, {}, {}, false, false};
      to_client_ = {server_.get(), client_.get(), fault_.cut_after_received, {}, {}, false, false};
      while (!cut_ && !(to_server_.told_end && to_client_.told_end)) {
        if (Exhausted(to_server_) || Exhausted(to_client_)) return;
        std::array<pollfd, 3> wait = {pollfd{wakeup_.fd(), POLLIN, 0},
                                      pollfd{client_.get(), Wanted(to_server_, to_client_), 0},
                                      pollfd{server_.get(), Wanted(to_client_, to_server_), 0}};
        for (pollfd& one : wait) {
          if (one.events == 0) one.fd = -1;
        }
        if (::poll(wait.data(), wait.size(), Patience()) < 0 && errno != EINTR) return;
        if (!Receive(to_server_, wait[1].revents) || !Receive(to_client_, wait[2].revents) ||
            !PassOn(to_server_) || !PassOn(to_client_)) {
          return;
        }
      }
    }

    static bool Exhausted(const Flow& flow) { return flow.left && *flow.left == 0; }

    /// What to wait for at the socket that `in` reads from and `out` writes to.
    static short Wanted(const Flow& in, const Flow& out) {
      short events = 0;
      if (in.held.empty() && !in.ended) events |= POLLIN;
      if (!out.held.empty() && SteadyClock::now() >= out.due) events |= POLLOUT;
      return events;
    }

    /// Milliseconds until something held back is due.
    int Patience() const {
      int patience = -1;
      for (const Flow* flow : {&to_server_, &to_client_}) {
        const auto wait =
            std::chrono::ceil<std::chrono::milliseconds>(flow->due - SteadyClock::now());
        if (flow->held.empty() || wait.count() <= 0) continue;
        const int ms = static_cast<int>(wait.count());
        patience = patience < 0 ? ms : std::min(patience, ms);
      }
      return patience;
    }

    bool Receive(Flow& flow, short events) {
      if ((events & (POLLIN | POLLHUP | POLLERR)) == 0 || !flow.held.empty() || flow.ended) {
        return true;
      }
      std::vector<uint8_t> bytes(65536);
      const ssize_t n = ::recv(flow.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      if (n == 0) {
        flow.ended = true;
        return true;
      }
      if (&flow == &to_client_ && fault_.drop_response && requests_.request_begun()) return false;
      bytes.resize(static_cast<size_t>(n));
      if (flow.left) bytes.resize(std::min<uint64_t>(bytes.size(), *flow.left));
      flow.held = std::move(bytes);
      flow.due = SteadyClock::now() + fault_.delay;
      return true;
    }

    bool PassOn(Flow& flow) {
      if (!flow.held.empty() && SteadyClock::now() >= flow.due) {
        const ssize_t n =
            ::send(flow.to, flow.held.data(), flow.held.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        const auto sent = static_cast<size_t>(n);
        if (&flow == &to_server_) {
          bytes_sent_ += sent;
          requests_.Passed(std::span(flow.held).first(sent));
        }
        if (flow.left) *flow.left -= sent;
        flow.held.erase(flow.held.begin(), flow.held.begin() + n);
      }
      if (flow.ended && flow.held.empty() && !flow.told_end) {
        ::shutdown(flow.to, SHUT_WR);
        flow.told_end = true;
      }
      return true;
    }

    void Close(base::UniqueFd& fd) const {
      if (!fd.valid()) return;
      if (fault_.reset) {
        const linger at_once = {1, 0};
        ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      } else {
        // Unread bytes would turn the end into a reset, which could overtake what was passed on.
        ::shutdown(fd.get(), SHUT_WR);
        std::array<char, 65536> dropped;
        while (::recv(fd.get(), dropped.data(), dropped.size(), MSG_DONTWAIT) > 0) {
        }
      }
      fd.Reset();
    }

    base::UniqueFd client_;
    base::UniqueFd server_;
    const Fault fault_;
    std::atomic<uint64_t>& bytes_sent_;
    Flow to_server_;
    Flow to_client_;
    RecordCounter requests_;
    Wakeup wakeup_;
    std::atomic<bool> cut_{false};
    std::atomic<bool> done_{false};
    std::jthread thread_;
  };

  void AcceptLoop() {
    while (!stopping_) {
      std::array<pollfd, 2> wait = {pollfd{wakeup_.fd(), POLLIN, 0},
                                    pollfd{listener_.get(), POLLIN, 0}};
      ::poll(wait.data(), wait.size(), -1);
      if (stopping_ || (wait[1].revents & POLLIN) == 0) continue;
      base::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) continue;
      const std::lock_guard lock(mutex_);
      Fault fault;
      if (faults_left_ != 0) fault = fault_;
      if (faults_left_ > 0) --faults_left_;
      links_.remove_if([](const std::unique_ptr<Link>& link) { return link->done(); });
      links_.push_back(std::make_unique<Link>(std::move(client), target_port_, fault, bytes_sent_));
      ++accepted_;
    }
  }

  base::UniqueFd listener_;
  int port_ = 0;
  Wakeup wakeup_;
  std::atomic<int> target_port_{0};
  std::atomic<int> accepted_{0};
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  Fault fault_;
  int faults_left_ = 0;  ///< connections that get it still; -1: all
  std::list<std::unique_ptr<Link>> links_;
  std::jthread accepting_;
};

base::Result<std::unique_ptr<CutProxy>> CutProxy::Start(int target_port) {
  auto impl = std::make_unique<Impl>();
  FL_RETURN_IF_ERROR(impl->Start(target_port));
  return std::unique_ptr<CutProxy>(new CutProxy(std::move(impl)));
}

CutProxy::CutProxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CutProxy::~CutProxy() = default;
int CutProxy::port() const { return impl_->port(); }
void CutProxy::FailNext(const Fault& fault, int connections) {
  impl_->SetFault(fault, connections);
}
void CutProxy::FailAll(const Fault& fault) { impl_->SetFault(fault, -1); }
void CutProxy::Heal() { impl_->SetFault({}, 0); }
void CutProxy::CutAll() { impl_->CutAll(); }
void CutProxy::SetTarget(int target_port) { impl_->SetTarget(target_port); }
int CutProxy::accepted() const { return impl_->accepted(); }
uint64_t CutProxy::bytes_sent() const { return impl_->bytes_sent(); }

}  // namespace fl::transport
