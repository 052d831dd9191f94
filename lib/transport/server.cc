#include "transport/server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/internal/byte_stream.h"
#include "transport/internal/connection.h"
#include "transport/internal/tls_context.h"

namespace fl::transport {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using internal::Connection;
using Tcp = asio::ip::tcp;

int Processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

std::string PeerName(const internal::Socket& socket) {
  error_code error;
  const Tcp::endpoint endpoint = socket.remote_endpoint(error);
  if (error) return "unknown";
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

base::Status FromBind(const error_code& error, const ServerOptions& options) {
  const std::string what =
      "cannot listen on " + options.address + " port " + std::to_string(options.port) + ": ";
  if (error == asio::error::access_denied) {
    return base::PermissionDenied(what + error.message(), "choose a port above 1023");
  }
  if (error == asio::error::address_in_use) {
    return base::Unavailable(what + error.message(),
                             "stop the program that has it, or choose another port");
  }
  return base::InvalidArgument(what + error.message(), "give an address of this machine");
}

/// How often deadlines are looked at: a tenth of the shortest, so that none is late by much.
base::Duration SweepInterval(const ServerLimits& limits) {
  const base::Duration shortest =
      std::min({limits.handshake_timeout, limits.header_timeout, limits.idle_timeout,
                limits.progress_timeout, limits.progress_grace, limits.drain_timeout});
  return std::clamp<base::Duration>(shortest / 10, std::chrono::milliseconds(5),
                                    std::chrono::milliseconds(500));
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Handler& handler)
      : options_(std::move(options)),
        io_threads_(options_.io_threads > 0 ? options_.io_threads : std::max(2, Processors())),
        io_(io_threads_),
        work_(io_.get_executor()),
        handler_pool_(static_cast<size_t>(options_.handler_threads > 0
                                              ? options_.handler_threads
                                              : std::max(4, 2 * Processors()))),
        acceptor_(asio::make_strand(io_)),
        retry_timer_(acceptor_.get_executor()),
        sweep_timer_(io_),
        context_{handler, options_, handler_pool_.get_executor()} {}

  ~Impl() { Stop(base::Duration(0)); }

  base::Status Start() {
    if (options_.tls) {
      FL_ASSIGN_OR_RETURN(tls_, internal::MakeServerContext(*options_.tls));
    }
    error_code error;
    const asio::ip::address address = asio::ip::make_address(options_.address, error);
    if (error || options_.port < 0 || options_.port > 65535) {
      return base::InvalidArgument("\"" + options_.address + "\" port " +
                                       std::to_string(options_.port) +
                                       " is no address to listen on",
                                   "give a numeric IPv4 or IPv6 address, e.g. 0.0.0.0");
    }
    const Tcp::endpoint endpoint(address, static_cast<uint16_t>(options_.port));
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(1024, error);
    if (error) return FromBind(error, options_);
    port_ = acceptor_.local_endpoint().port();

    asio::co_spawn(acceptor_.get_executor(), AcceptLoop(), [](const std::exception_ptr&) {});
    Sweep();
    for (int i = 0; i < io_threads_; ++i) threads_.emplace_back([this] { io_.run(); });
    return base::OkStatus();
  }

  int port() const { return port_; }

  int connections() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(connections_.size());
  }

  void Stop(base::Duration grace) {
    const std::lock_guard once(stop_mutex_);
    if (stopped_) return;
    stopped_ = true;
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      retry_timer_.cancel();
    });
    std::unique_lock lock(mutex_);
    stopping_ = true;
    ForEach([](Connection& connection) { connection.FinishSoon(); });
    changed_.wait_for(lock, grace, [this] { return connections_.empty(); });
    ForEach([](Connection& connection) { connection.Abort(); });
    changed_.wait(lock, [this] { return connections_.empty(); });
    lock.unlock();

    io_.stop();
    threads_.clear();
    handler_pool_.join();
  }

 private:
  /// Runs `action` for each connection on its strand. With the lock.
  template <typename Action>
  void ForEach(Action action) {
    for (const auto& [raw, connection] : connections_) {
      asio::post(connection->strand(), [connection = connection, action] { action(*connection); });
    }
  }

  asio::awaitable<void> AcceptLoop() {
    while (acceptor_.is_open()) {
      error_code error;
      internal::Socket socket =
          co_await acceptor_.async_accept(asio::any_io_executor(asio::make_strand(io_)),
                                          asio::redirect_error(asio::use_awaitable, error));
      if (!error) {
        Take(std::move(socket));
        continue;
      }
      if (error == asio::error::operation_aborted) continue;
      // No descriptors or memory left: others will be closed, so try again a little later.
      retry_timer_.expires_after(std::chrono::milliseconds(100));
      co_await retry_timer_.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }

  void Take(internal::Socket socket) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (connections_.size() >= static_cast<size_t>(options_.limits.max_connections)) {
      const std::shared_ptr<Connection> idle = IdleLongest();
      if (idle == nullptr) return;
      idle->NoLongerIdle();
      asio::post(idle->strand(), [idle] { idle->FinishSoon(); });
    }
    asio::any_io_executor strand = socket.get_executor();
    std::string peer = PeerName(socket);
    std::unique_ptr<internal::ByteStream> stream =
        tls_ != nullptr ? internal::MakeTlsStream(std::move(socket), tls_.get())
                        : internal::MakePlainStream(std::move(socket));
    auto connection =
        std::make_shared<Connection>(std::move(stream), strand, std::move(peer), context_);
    connections_.emplace(connection.get(), connection);
    asio::co_spawn(strand, connection->Run(), [this, raw = connection.get()](std::exception_ptr) {
      const std::lock_guard erase_lock(mutex_);
      connections_.erase(raw);
      if (connections_.empty()) changed_.notify_all();
    });
  }

  std::shared_ptr<Connection> IdleLongest() {
    std::shared_ptr<Connection> found;
    base::Instant since = base::Instant::max();
    for (const auto& [raw, connection] : connections_) {
      const std::optional<base::Instant> idle = connection->idle_since();
      if (idle && *idle < since) {
        since = *idle;
        found = connection;
      }
    }
    return found;
  }

  /// One timer for all deadlines of all connections: a deadline is moved at each read and write,
  /// which for a timer of its own would cost more than the read.
  void Sweep() {
    sweep_timer_.expires_after(SweepInterval(options_.limits));
    sweep_timer_.async_wait([this](const error_code& error) {
      if (error) return;
      {
        const std::lock_guard lock(mutex_);
        const base::Instant now = options_.clock->Monotonic();
        for (const auto& [raw, connection] : connections_) {
          if (connection->deadline() > now) continue;
          asio::post(connection->strand(), [late = connection] { late->CheckDeadline(); });
        }
      }
      Sweep();
    });
  }

  const ServerOptions options_;
  const int io_threads_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::thread_pool handler_pool_;
  internal::SslContextPtr tls_;
  Tcp::acceptor acceptor_;
  asio::steady_timer retry_timer_;
  asio::steady_timer sweep_timer_;
  internal::ConnectionContext context_;
  int port_ = 0;

  std::mutex stop_mutex_;
  bool stopped_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::jthread> threads_;
};

base::Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, Handler& handler) {
  auto impl = std::make_unique<Impl>(std::move(options), handler);
  FL_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
int Server::port() const { return impl_->port(); }
int Server::connections() const { return impl_->connections(); }
void Server::Stop(base::Duration grace) { impl_->Stop(grace); }

}  // namespace fl::transport
