#include "cli/internal/aggregator_client.h"

#include <ctime>
#include <iomanip>
#include <sstream>

#include "base/version.h"
#include "cli/input.h"
#include "wire/paths.h"

namespace fl::cli::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

base::Result<std::string> ReadToken(const std::string& file) {
  constexpr uint64_t kLimit = 4096;
  base::Result<std::string> token = base::ReadFile(file, kLimit);
  if (!token.ok()) return AboutInput(token.status()).WithContext("--token-file");
  while (!token->empty() && (token->back() == '\n' || token->back() == '\r')) token->pop_back();
  if (token->empty() || token->find_first_of("\r\n") != std::string::npos) {
    return base::InvalidArgument("--token-file: " + file + " must hold one line, the token");
  }
  return token;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 section 5.6.7).
std::optional<base::Time> ParseHttpDate(const std::string& text) {
  std::tm fields{};
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  in >> std::get_time(&fields, "%a, %d %b %Y %H:%M:%S GMT");
  if (in.fail()) return std::nullopt;
  return base::Time(std::chrono::seconds(::timegm(&fields)));
}

}  // namespace

base::Result<AggregatorClient> AggregatorClient::Create(const Context& context,
                                                        const std::string& url) {
  AggregatorClient client;
  client.url_ = url;
  while (client.url_.ends_with('/')) client.url_.pop_back();
  const bool plain = client.url_.starts_with("http://");
  if (!plain && !client.url_.starts_with("https://")) {
    return base::InvalidArgument("\"" + url + "\" is not the URL of an aggregator",
                                 "write e.g. https://fl.example.org:8443");
  }
  if (plain && !context.global.insecure) {
    return base::InvalidArgument("the aggregator's URL " + url + " is not encrypted",
                                 "use https://, or allow it with --insecure");
  }
  transport::ClientOptions options;
  options.allow_http = plain;
  options.verify_server = !context.global.insecure;
  options.user_agent = "fl/" + std::string(base::kVersion);
  if (!context.global.ca_file.empty()) {
    base::Result<std::string> pem = base::ReadFile(context.global.ca_file);
    if (!pem.ok()) return AboutInput(pem.status()).WithContext("--ca-file");
    options.ca_pem = std::move(pem).value();
  }
  if (!context.global.token_file.empty()) {
    FL_ASSIGN_OR_RETURN(client.token_, ReadToken(context.global.token_file));
  }
  client.impatient_ = context.impatient;
  client.clock_ = context.clock;
  client.stop_ = context.stop;
  FL_ASSIGN_OR_RETURN(client.curl_, transport::MakeCurlClient(std::move(options)));
  client.retrying_ = std::make_unique<transport::RetryingClient>(
      *client.curl_,
      transport::RetryOptions{.max_attempts = context.impatient ? 1 : 3,
                              .initial_delay = milliseconds(200),
                              .max_delay = seconds(2),
                              .give_up_after = seconds(10)},
      *context.clock);
  return client;
}

base::Result<std::string> AggregatorClient::Call(std::string method, const std::string& path,
                                                 std::string body, base::Duration patience) {
  transport::ClientRequest request;
  request.method = std::move(method);
  request.url = url_ + path;
  request.stop = stop_;
  if (!token_.empty()) request.headers.Add(std::string(wire::kAdminToken), token_);
  if (!body.empty()) {
    request.headers.Add("Content-Type", std::string(wire::kJsonType));
    request.body = std::move(body);
  }
  request.connect_timeout = impatient_ ? seconds(1) : seconds(10);
  request.stall_timeout = (impatient_ ? seconds(2) : seconds(60)) + patience;
  if (impatient_) request.timeout = seconds(3);
  const base::Result<transport::ClientResponse> response = retrying_->Send(request);
  if (!response.ok()) return response.status();
  if (const auto date = response->headers.Get("Date")) {
    if (const std::optional<base::Time> theirs = ParseHttpDate(std::string(*date))) {
      clock_difference_ = *theirs - clock_->Now();
    }
  }
  const base::Status status = response->ToStatus();
  if (status.code() == base::Code::kUnauthenticated ||
      status.code() == base::Code::kPermissionDenied) {
    return status.WithHint(token_.empty() ? "give the administrator's token: --token-file FILE"
                                          : "the token in --token-file is not this aggregator's");
  }
  FL_RETURN_IF_ERROR(status);
  return response->body;
}

}  // namespace fl::cli::internal
