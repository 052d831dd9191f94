#include "transport/testing/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "transport/http.h"

namespace fl::transport {
namespace {

base::Status FromSocket(const char* what) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return base::DeadlineExceeded(std::string(what) + ": nothing happened for ten seconds");
  }
  return base::FromErrno(errno, what);
}

}  // namespace

base::Result<RawConnection> RawConnection::Open(int port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::FromErrno(errno, "socket");
  timeval patience{10, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return base::FromErrno(errno, "connect");
  }
  return RawConnection(std::move(fd));
}

base::Status RawConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) return FromSocket("send");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return base::OkStatus();
}

base::Result<std::string> RawConnection::Receive(size_t limit) {
  if (!received_.empty()) return std::exchange(received_, std::string());
  std::string bytes(limit, '\0');
  const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (n < 0) return FromSocket("receive");
  bytes.resize(static_cast<size_t>(n));
  return bytes;
}

base::Result<std::string> RawConnection::ReceiveResponse() {
  std::string bytes;
  size_t wanted = std::string::npos;
  while (bytes.size() < wanted) {
    if (wanted == std::string::npos) {
      const size_t end = bytes.find("\r\n\r\n");
      if (end != std::string::npos) {
        wanted = end + 4;
        constexpr std::string_view kLength = "\r\nContent-Length: ";
        const size_t length = bytes.find(kLength);
        if (length < end) {
          wanted += std::strtoull(bytes.c_str() + length + kLength.size(), nullptr, 10);
        }
        continue;
      }
    }
    FL_ASSIGN_OR_RETURN(const std::string more, Receive());
    if (more.empty()) return base::Unavailable("the peer closed after: " + bytes);
    bytes += more;
  }
  received_ = bytes.substr(wanted);
  bytes.resize(wanted);
  return bytes;
}

base::Result<std::string> RawConnection::ReceiveAll() {
  std::string bytes;
  for (;;) {
    FL_ASSIGN_OR_RETURN(const std::string more, Receive());
    if (more.empty()) return bytes;
    bytes += more;
  }
}

void RawConnection::FinishSending() { ::shutdown(fd_.get(), SHUT_WR); }

}  // namespace fl::transport
