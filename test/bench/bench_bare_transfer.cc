// The least that a round has to do with its bytes, as a bare program: N clients (processes) fetch a
// file of M bytes over TLS 1.3 on loopback and send as many back; both sides hash all they receive
// with SHA-256 and write it to a file. Plain OpenSSL, blocking sockets, a thread for each
// connection: the limit that rounds of the product are compared with in the same run. Prints one
// JSON line.
//
//     bench_bare_transfer --clients 10 --bytes 100000000 --folder DIR

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBuffer = 1 << 20;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void Check(bool condition, const char* what) {
  if (!condition) Die(what);
}

/// Receives `bytes`, hashes them and writes them to `path`.
void Receive(SSL* tls, size_t bytes, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Check(file >= 0, "open");
  EVP_MD_CTX* hash = EVP_MD_CTX_new();
  EVP_DigestInit_ex(hash, EVP_sha256(), nullptr);
  std::vector<char> buffer(kBuffer);
  while (bytes > 0) {
    size_t filled = 0;
    while (filled < std::min(bytes, buffer.size())) {
      const int count = SSL_read(tls, buffer.data() + filled,
                                 static_cast<int>(std::min(bytes, buffer.size()) - filled));
      Check(count > 0, "SSL_read");
      filled += static_cast<size_t>(count);
    }
    EVP_DigestUpdate(hash, buffer.data(), filled);
    Check(::write(file, buffer.data(), filled) == static_cast<ssize_t>(filled), "write");
    bytes -= filled;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  EVP_DigestFinal_ex(hash, digest, nullptr);
  EVP_MD_CTX_free(hash);
  ::close(file);
}

void Send(SSL* tls, const char* data, size_t bytes) {
  for (size_t sent = 0; sent < bytes;) {
    const size_t piece = std::min(kBuffer, bytes - sent);
    Check(SSL_write(tls, data + sent, static_cast<int>(piece)) == static_cast<int>(piece),
          "SSL_write");
    sent += piece;
  }
}

const char* MapFile(const std::string& path, size_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY);
  Check(file >= 0, "open");
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  Check(data != MAP_FAILED, "mmap");
  ::close(file);
  return static_cast<const char*>(data);
}

void UseSelfSigned(SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  Check(SSL_CTX_use_certificate(context, certificate) == 1, "certificate");
  Check(SSL_CTX_use_PrivateKey(context, key) == 1, "key");
  X509_free(certificate);
  EVP_PKEY_free(key);
}

void RunClient(int port, const std::string& folder, int number, size_t bytes) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  Check(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
        "connect");
  SSL* tls = SSL_new(context);
  SSL_set_fd(tls, connection);
  Check(SSL_connect(tls) == 1, "SSL_connect");
  const std::string path = folder + "/client-" + std::to_string(number);
  Receive(tls, bytes, path);
  Send(tls, MapFile(path, bytes), bytes);
  char done = 0;
  Check(SSL_read(tls, &done, 1) == 1, "answer");
}

}  // namespace

int main(int argc, char** argv) {
  int clients = 10;
  size_t bytes = 100'000'000;
  std::string folder = "/tmp";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--clients") clients = std::atoi(argv[i + 1]);
    if (flag == "--bytes") bytes = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--folder") folder = argv[i + 1];
  }
  const std::string model = folder + "/model";
  {
    const int file = ::open(model.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    Check(file >= 0, "open");
    const std::vector<char> block(kBuffer, 'x');
    for (size_t written = 0; written < bytes;) {
      const ssize_t count = ::write(file, block.data(), std::min(kBuffer, bytes - written));
      Check(count > 0, "write");
      written += static_cast<size_t>(count);
    }
    ::close(file);
  }
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Check(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  Check(::listen(listener, clients) == 0, "listen");
  socklen_t length = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const int port = ntohs(address.sin_port);

  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < clients; ++i) {
    const pid_t child = ::fork();
    Check(child >= 0, "fork");
    if (child == 0) {
      RunClient(port, folder, i, bytes);
      ::_exit(0);
    }
  }
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  UseSelfSigned(context);
  const char* data = MapFile(model, bytes);
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    const int connection = ::accept(listener, nullptr, nullptr);
    Check(connection >= 0, "accept");
    threads.emplace_back([=] {
      SSL* tls = SSL_new(context);
      SSL_set_fd(tls, connection);
      Check(SSL_accept(tls) == 1, "SSL_accept");
      Send(tls, data, bytes);
      Receive(tls, bytes, folder + "/update-" + std::to_string(i));
      Send(tls, "!", 1);
      SSL_free(tls);
      ::close(connection);
    });
  }
  for (std::thread& thread : threads) thread.join();
  bool ok = true;
  for (int i = 0; i < clients; ++i) {
    int status = 0;
    ::wait(&status);
    ok = ok && status == 0;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  SSL_CTX_free(context);
  std::printf("{\"bench\":\"bare_transfer\",\"clients\":%d,\"bytes\":%zu,\"seconds\":%.3f}\n",
              clients, bytes, seconds);
  return ok ? 0 : 1;
}
