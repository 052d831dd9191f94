#include "transport/http.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace fl::transport {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Undoes percent-encoding; a NUL byte is refused with the malformed escapes, since paths and names
/// made of the result would end there.
base::Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0 || (high == 0 && low == 0)) {
        return base::InvalidArgument("malformed percent-encoding in the request target");
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

}  // namespace

std::optional<std::string_view> Headers::Get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (SameName(field.first, name)) return field.second;
  }
  return std::nullopt;
}

std::string_view Headers::GetOr(std::string_view name, std::string_view fallback) const {
  return Get(name).value_or(fallback);
}

std::vector<std::string_view> Headers::GetAll(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Field& field : fields_) {
    if (SameName(field.first, name)) values.push_back(field.second);
  }
  return values;
}

base::Result<uint64_t> Headers::GetNumber(std::string_view name) const {
  const std::optional<std::string_view> text = Get(name);
  if (!text) return base::NotFound("the header field " + std::string(name) + " is missing");
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    return base::InvalidArgument("the header field " + std::string(name) + " is \"" +
                                 std::string(*text) + "\", not a whole number");
  }
  return value;
}

void Headers::Add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::Set(std::string name, std::string value) {
  Remove(name);
  Add(std::move(name), std::move(value));
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return SameName(field.first, name); });
}

base::Result<Target> Target::Parse(std::string_view text) {
  for (const char c : text) {
    if (c <= ' ' || c == 0x7f) {
      return base::InvalidArgument("control character or space in the request target");
    }
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (text.size() < scheme.size() || !SameName(text.substr(0, scheme.size()), scheme)) continue;
    const size_t slash = text.find_first_of("/?", scheme.size());
    text = slash == std::string_view::npos ? "/" : text.substr(slash);
    break;
  }
  if (text.empty() || text.front() != '/') {
    return base::InvalidArgument("the request target does not start with '/'");
  }
  if (text.find('#') != std::string_view::npos) {
    return base::InvalidArgument("a fragment ('#') in the request target");
  }
  Target target;
  const size_t question = text.find('?');
  target.path = std::string(text.substr(0, question));

  std::string_view rest = std::string_view(target.path).substr(1);
  while (!rest.empty()) {
    const size_t slash = rest.find('/');
    FL_ASSIGN_OR_RETURN(std::string segment,
                        PercentDecode(rest.substr(0, slash), /*plus_is_space=*/false));
    if (segment.empty() || segment == "." || segment == "..") {
      return base::InvalidArgument("empty or dot segment in the request path");
    }
    target.segments.push_back(std::move(segment));
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }

  std::string_view query =
      question == std::string_view::npos ? std::string_view() : text.substr(question + 1);
  while (!query.empty()) {
    const size_t ampersand = query.find('&');
    const std::string_view pair = query.substr(0, ampersand);
    query = ampersand == std::string_view::npos ? std::string_view() : query.substr(ampersand + 1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    FL_ASSIGN_OR_RETURN(std::string name,
                        PercentDecode(pair.substr(0, equals), /*plus_is_space=*/true));
    std::string value;
    if (equals != std::string_view::npos) {
      FL_ASSIGN_OR_RETURN(value, PercentDecode(pair.substr(equals + 1), /*plus_is_space=*/true));
    }
    target.query.emplace_back(std::move(name), std::move(value));
  }
  return target;
}

std::optional<std::string_view> Target::Parameter(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string PercentEncode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

base::Result<FileBody> FileBody::Open(const base::Path& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return base::FromErrno(errno, "open " + path.string());
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FromErrno(errno, "stat " + path.string());
  if (!S_ISREG(info.st_mode)) return base::InvalidArgument(path.string() + " is not a file");
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  FileBody body;
  body.length = static_cast<uint64_t>(info.st_size);
  body.file = std::make_shared<const base::UniqueFd>(std::move(fd));
  return body;
}

Response JsonResponse(int status, std::string json) {
  return Response{status, {{"Content-Type", "application/json"}}, std::move(json)};
}

Response ErrorResponse(const base::Status& status, std::optional<int> http_status) {
  const base::CodeInfo& info = base::Describe(status.code());
  nlohmann::ordered_json error = {{"code", info.name}, {"message", status.message()}};
  error["hint"] = status.hint();
  const nlohmann::ordered_json document = {{"error", std::move(error)}};
  return JsonResponse(http_status.value_or(info.http_status), base::DumpJson(document));
}

base::Status StatusFromResponse(int http_status, std::string_view body) {
  if (http_status >= 200 && http_status < 400) return base::OkStatus();
  const base::Code by_status = base::CodeFromHttpStatus(http_status);
  const base::Result<nlohmann::json> document = base::ParseJson(body, "error");
  if (document.ok() && document->is_object()) {
    const auto found = document->find("error");
    if (found != document->end() && found->is_object()) {
      const auto text = [&](const char* key) -> std::string {
        const auto value = found->find(key);
        return value != found->end() && value->is_string() ? value->get<std::string>() : "";
      };
      base::Code code = base::CodeFromName(text("code")).value_or(by_status);
      if (code == base::Code::kOk) code = by_status;
      return base::Status(code, text("message"), text("hint"));
    }
  }
  std::string message = "HTTP status " + std::to_string(http_status);
  constexpr size_t kLongest = 200;
  const std::string_view line = body.substr(0, std::min(body.find_first_of("\r\n"), kLongest));
  if (!line.empty()) message += ": " + std::string(line);
  return base::Status(by_status, std::move(message));
}

}  // namespace fl::transport
