#pragma once

/// The parts of HTTP messages that client and server share. Plain values; copy or move them between
/// threads as you like.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace fl::transport {

/// Header fields in the order of arrival. Names compare without case; a name may occur more than
/// once.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;
  using value_type = Field;
  using const_iterator = std::vector<Field>::const_iterator;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  /// The first value of `name`, which lives as long as this object is not changed.
  std::optional<std::string_view> Get(std::string_view name) const;
  /// The first value of `name`, or `fallback`.
  std::string_view GetOr(std::string_view name, std::string_view fallback) const;
  std::vector<std::string_view> GetAll(std::string_view name) const;
  bool Has(std::string_view name) const { return Get(name).has_value(); }
  /// A decimal number without sign. kNotFound where there is no such field, kInvalidArgument where
  /// it is not a number, naming the field.
  base::Result<uint64_t> GetNumber(std::string_view name) const;

  void Add(std::string name, std::string value);
  /// Replaces every field of that name by one.
  void Set(std::string name, std::string value);
  void Remove(std::string_view name);

  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  const_iterator begin() const { return fields_.begin(); }
  const_iterator end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

/// Where a request goes: "/v1/jobs/digits/blobs/sha256%3Aab?wait=30" has the segments "v1", "jobs",
/// "digits", "blobs", "sha256:ab" and the parameter wait=30.
struct Target {
  std::string path;                   ///< as it came, without the query
  std::vector<std::string> segments;  ///< of the path, percent-decoded; never "", "." or ".."
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order

  /// Reads the target of a request line (the absolute form too). kInvalidArgument for bad escapes,
  /// control characters, empty or dot segments; one '/' at the end is allowed and dropped.
  static base::Result<Target> Parse(std::string_view text);
  /// The first value of the parameter `name`.
  std::optional<std::string_view> Parameter(std::string_view name) const;
};

/// `text` with every byte escaped that is not unreserved (RFC 3986), as a segment or a query value
/// needs it.
std::string PercentEncode(std::string_view text);

/// The head of a request, before any of its body.
struct RequestHead {
  std::string method;  ///< upper case as it came: "GET"
  Target target;
  Headers headers;
  std::string peer;  ///< "127.0.0.1:40312"
  /// The length of the body; none where it comes in chunks. 0 where there is no body.
  std::optional<uint64_t> content_length = 0;
  bool expects_continue = false;
};

/// Bytes of a file as a body. The file stays open, so what was there when the response was made is
/// sent even if the name is removed meanwhile.
struct FileBody {
  std::shared_ptr<const base::UniqueFd> file;
  uint64_t offset = 0;
  uint64_t length = 0;
  /// Kept until the last byte was handed to the kernel or the connection is gone, e.g. a lease that
  /// stops garbage collection.
  std::shared_ptr<void> owner;

  /// Opens `path` whole. kNotFound, kPermissionDenied.
  static base::Result<FileBody> Open(const base::Path& path);
};

/// An answer. The server adds Content-Length, Date and Connection, and sends no body to HEAD.
struct Response {
  int status = 200;
  Headers headers;
  std::variant<std::string, FileBody> body;
};

/// An answer with a body of JSON text.
Response JsonResponse(int status, std::string json);

/// `{"error": {"code", "message", "hint"}}` with the status code of the table in base/status.h, or
/// `http_status` where that says more (408, 413, 429 …).
Response ErrorResponse(const base::Status& status, std::optional<int> http_status = {});

/// The inverse, for clients: OK for 2xx and 3xx; else the error in the JSON `body`, or where it has
/// none, an error made of the HTTP status and the first line of the body.
base::Status StatusFromResponse(int http_status, std::string_view body);

}  // namespace fl::transport
