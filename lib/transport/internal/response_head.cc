#include "transport/internal/response_head.h"

#include <array>
#include <ctime>
#include <string_view>

namespace fl::transport::internal {
namespace {

std::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

std::string HttpDate(base::Time now) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  // Not strftime's %a and %b, which follow the locale.
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::array<char, 32> rest{};
  std::strftime(rest.data(), rest.size(), " %Y %H:%M:%S GMT", &parts);
  const std::string day = (parts.tm_mday < 10 ? "0" : "") + std::to_string(parts.tm_mday);
  return std::string(kDays.at(static_cast<size_t>(parts.tm_wday))) + ", " + day + " " +
         kMonths.at(static_cast<size_t>(parts.tm_mon)) + rest.data();
}

/// True where a field can be written as it is: a line break inside would let its value forge
/// others.
bool IsOneLine(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

uint64_t BodyLength(const Response& response) {
  if (const auto* file = std::get_if<FileBody>(&response.body)) return file->length;
  return std::get<std::string>(response.body).size();
}

std::string ResponseHead(const Response& response, bool keep_alive, base::Time now) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head += Reason(response.status);
  head += "\r\nDate: " + HttpDate(now) + "\r\n";
  Headers fields = response.headers;
  for (const std::string_view ours :
       {"Date", "Content-Length", "Transfer-Encoding", "Connection"}) {
    fields.Remove(ours);
  }
  for (const auto& [name, value] : fields) {
    if (name.empty() || !IsOneLine(name) || !IsOneLine(value)) continue;
    head += name;
    head += ": ";
    head += value;
    head += "\r\n";
  }
  if (response.status != 204 && response.status != 304) {
    head += "Content-Length: " + std::to_string(BodyLength(response)) + "\r\n";
  }
  head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

}  // namespace fl::transport::internal
