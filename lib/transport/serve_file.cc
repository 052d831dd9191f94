#include "transport/serve_file.h"

#include <charconv>
#include <optional>

namespace fl::transport {
namespace {

struct Range {
  uint64_t first;
  uint64_t last;  ///< inclusive
};

enum class RangeKind { kWhole, kPart, kUnsatisfiable };

bool ReadNumber(std::string_view text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// "bytes=a-b", "bytes=a-" or "bytes=-n" of a file of `size` bytes.
RangeKind ReadRange(std::string_view header, uint64_t size, Range& range) {
  constexpr std::string_view kUnit = "bytes=";
  if (header.substr(0, kUnit.size()) != kUnit) return RangeKind::kWhole;
  header.remove_prefix(kUnit.size());
  const size_t dash = header.find('-');
  if (dash == std::string_view::npos || header.find(',') != std::string_view::npos) {
    return RangeKind::kWhole;
  }
  const std::string_view first = header.substr(0, dash);
  const std::string_view last = header.substr(dash + 1);
  if (first.empty()) {
    uint64_t length = 0;
    if (!ReadNumber(last, length)) return RangeKind::kWhole;
    if (length == 0 || size == 0) return RangeKind::kUnsatisfiable;
    range = {length >= size ? 0 : size - length, size - 1};
    return RangeKind::kPart;
  }
  if (!ReadNumber(first, range.first)) return RangeKind::kWhole;
  if (last.empty()) {
    range.last = UINT64_MAX;
  } else if (!ReadNumber(last, range.last) || range.last < range.first) {
    return RangeKind::kWhole;
  }
  if (range.first >= size) return RangeKind::kUnsatisfiable;
  if (range.last >= size) range.last = size - 1;
  return RangeKind::kPart;
}

/// True where the list of entity tags in `header` has `tag` (quoted), compared weakly.
bool ListsTag(std::string_view header, std::string_view tag) {
  while (!header.empty()) {
    const size_t comma = header.find(',');
    std::string_view one = header.substr(0, comma);
    header = comma == std::string_view::npos ? std::string_view() : header.substr(comma + 1);
    while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) one.remove_suffix(1);
    if (one.substr(0, 2) == "W/") one.remove_prefix(2);
    if (one == tag || one == "*") return true;
  }
  return false;
}

}  // namespace

Response ServeFile(const RequestHead& head, FileBody file, const ServeFileOptions& options) {
  Response response;
  const std::string tag = options.etag.empty() ? "" : "\"" + options.etag + "\"";
  if (!tag.empty()) response.headers.Add("ETag", tag);
  response.headers.Add("Accept-Ranges", "bytes");
  response.headers.Add("Cache-Control",
                       options.immutable ? "private, max-age=31536000, immutable" : "no-cache");
  if (!tag.empty()) {
    const std::optional<std::string_view> known = head.headers.Get("If-None-Match");
    if (known && ListsTag(*known, tag)) {
      response.status = 304;
      return response;
    }
  }

  const uint64_t size = file.length;
  Range range{};
  RangeKind kind = RangeKind::kWhole;
  const std::optional<std::string_view> wanted = head.headers.Get("Range");
  const std::optional<std::string_view> only_if = head.headers.Get("If-Range");
  if (wanted && head.method == "GET" && (!only_if || (!tag.empty() && *only_if == tag))) {
    kind = ReadRange(*wanted, size, range);
  }
  if (kind == RangeKind::kUnsatisfiable) {
    response = ErrorResponse(
        base::OutOfRange("the range \"" + std::string(*wanted) +
                         "\" is past the end: the file has " + std::to_string(size) + " bytes"),
        416);
    response.headers.Add("Content-Range", "bytes */" + std::to_string(size));
    return response;
  }
  response.headers.Add("Content-Type", options.content_type);
  if (kind == RangeKind::kPart) {
    response.status = 206;
    response.headers.Add("Content-Range", "bytes " + std::to_string(range.first) + "-" +
                                              std::to_string(range.last) + "/" +
                                              std::to_string(size));
    file.offset += range.first;
    file.length = range.last - range.first + 1;
  }
  response.body = std::move(file);
  return response;
}

}  // namespace fl::transport
