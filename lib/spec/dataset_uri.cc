#include "spec/dataset_uri.h"

#include <algorithm>

#include "base/encoding.h"

namespace fl::spec {
namespace {

base::Result<std::string> DecodePercent(std::string_view text, std::string_view uri) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    base::Result<std::vector<uint8_t>> byte = base::HexDecode(text.substr(i + 1, 2));
    if (!byte.ok() || byte->size() != 1) {
      return base::InvalidArgument("\"" + std::string(uri) + "\" has a % without two hex digits",
                                   "write %25 for a percent sign");
    }
    out += static_cast<char>(byte->front());
    i += 2;
  }
  if (out.find('\0') != std::string::npos) {
    return base::InvalidArgument("\"" + std::string(uri) + "\" has a NUL character");
  }
  return out;
}

std::string EncodePercent(std::string_view text, std::string_view reserved) {
  std::string out;
  for (const char c : text) {
    const bool plain = static_cast<unsigned char>(c) > 0x20 && c != 0x7F && c != '%' &&
                       reserved.find(c) == std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      out += "%" + base::HexEncode({&byte, 1});
    }
  }
  return out;
}

}  // namespace

base::Result<DatasetUri> DatasetUri::Parse(std::string_view uri) {
  constexpr std::string_view kHint = "write file:PATH, or file:PATH.csv?label=NAME";
  const std::string quoted = "\"" + std::string(uri) + "\"";
  std::string_view rest = uri;
  if (!rest.starts_with("file:")) {
    return base::InvalidArgument("must be a file: URI, not " + quoted, std::string(kHint));
  }
  rest.remove_prefix(5);
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    if (rest.starts_with("localhost/")) rest.remove_prefix(9);
    if (!rest.starts_with("/")) {
      return base::InvalidArgument(
          quoted + " names a host; only local files are read",
          "write file:PATH for a relative path, file:///PATH for an absolute one");
    }
  }
  const size_t question = rest.find('?');
  DatasetUri result;
  FL_ASSIGN_OR_RETURN(result.path, DecodePercent(rest.substr(0, question), uri));
  if (result.path.empty()) {
    return base::InvalidArgument(quoted + " has no path", std::string(kHint));
  }
  std::string lower = result.path;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  result.kind = lower.ends_with(".csv") ? Kind::kCsv : Kind::kFolder;
  if (question == std::string_view::npos) return result;

  const std::string_view query = rest.substr(question + 1);
  if (!query.starts_with("label=") || query.find('&') != std::string_view::npos) {
    return base::InvalidArgument(quoted + " has a query other than label=NAME", std::string(kHint));
  }
  FL_ASSIGN_OR_RETURN(result.label, DecodePercent(query.substr(6), uri));
  if (result.label.empty()) {
    return base::InvalidArgument(quoted + " has an empty label", std::string(kHint));
  }
  if (result.kind != Kind::kCsv) {
    return base::InvalidArgument(quoted + " has a label, but is no .csv file",
                                 "take ?label= off: IDX files have no columns");
  }
  return result;
}

std::string DatasetUri::ToString() const {
  // A path that begins with two slashes would read as a host.
  std::string text = path.starts_with("//") ? "file://" : "file:";
  text += EncodePercent(path, "?#");
  if (kind == Kind::kCsv && label != "label") text += "?label=" + EncodePercent(label, "&#");
  return text;
}

}  // namespace fl::spec
