#include "spec/internal/names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/keys.h"
#include "spec/algorithms.h"
#include "spec/dataset_uri.h"
#include "spec/internal/suggest.h"
#include "spec/model.h"

namespace fl::spec::internal {
namespace {

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

std::string TooLong(std::string_view text, size_t limit) {
  return "must have at most " + std::to_string(limit) + " characters, not " +
         std::to_string(text.size());
}

bool IsDnsLabel(std::string_view text) {
  return !text.empty() && text.size() <= 63 && IsLowerOrDigit(text.front()) &&
         IsLowerOrDigit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLowerOrDigit(c) || c == '-';
         });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.size() > 253) return false;
  for (;;) {
    const size_t dot = text.find('.');
    if (!IsDnsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

/// A name of labels: alphanumeric at both ends, with - _ . inside.
bool IsQualifiedName(std::string_view text) {
  return !text.empty() && text.size() <= 63 && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool HasBlankOrControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
}

/// `text` is one of `schemes` ("s3://") followed by something.
std::string CheckScheme(std::string_view text, const std::vector<std::string_view>& schemes) {
  if (HasBlankOrControl(text))
    return "must be a URI without blanks (write %20), not " + Quote(text);
  for (const std::string_view scheme : schemes) {
    if (text.starts_with(scheme) && text.size() > scheme.size() &&
        (scheme == "file:" || text[scheme.size()] != '/')) {
      return "";
    }
  }
  return "must be a URI that begins with " + OneOf(schemes) + ", not " + Quote(text);
}

}  // namespace

std::string CheckDnsLabel(std::string_view text) {
  if (text.size() > 63) return TooLong(text, 63);
  if (IsDnsLabel(text)) return "";
  return "must be lower-case letters, digits and '-', with a letter or digit at both ends, not " +
         Quote(text);
}

std::string CheckDnsSubdomain(std::string_view text) {
  if (text.size() > 253) return TooLong(text, 253);
  if (IsDnsSubdomain(text)) return "";
  return "must be lower-case letters, digits, '-' and '.', with a letter or digit at the ends of "
         "each part, not " +
         Quote(text);
}

std::string CheckHostname(std::string_view text) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  const std::string terminated(text);
  if (inet_pton(AF_INET, terminated.c_str(), address.data()) == 1 ||
      inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1 || IsDnsSubdomain(text)) {
    return "";
  }
  return "must be a DNS name in lower case or an IP address, without scheme and port, not " +
         Quote(text);
}

std::string CheckLabelKey(std::string_view text) {
  const size_t slash = text.find('/');
  const bool prefixed = slash != std::string_view::npos;
  if ((!prefixed || IsDnsSubdomain(text.substr(0, slash))) &&
      IsQualifiedName(prefixed ? text.substr(slash + 1) : text)) {
    return "";
  }
  return "must be a name of at most 63 letters, digits, '-', '_' and '.', with a letter or digit "
         "at both ends, and may have a DNS name and '/' in front, not " +
         Quote(text);
}

std::string CheckLabelValue(std::string_view text) {
  if (text.size() > 63) return TooLong(text, 63);
  if (text.empty() || IsQualifiedName(text)) return "";
  return "must be letters, digits, '-', '_' and '.', with a letter or digit at both ends, not " +
         Quote(text);
}

std::string CheckQuantity(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kSuffixes{
      "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti"};
  const size_t digits = text.find_first_not_of("0123456789");
  size_t end = digits;
  if (digits != std::string_view::npos && text[digits] == '.') {
    end = text.find_first_not_of("0123456789", digits + 1);
  }
  const bool number = digits != 0 && !text.empty() && text.size() <= 32 && end != digits + 1;
  const std::string_view suffix = end == std::string_view::npos ? "" : text.substr(end);
  const bool known =
      std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end() || suffix == "Pi" ||
      suffix == "Ei" ||
      (suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E') &&
       suffix.find_first_not_of("0123456789", suffix[1] == '-' || suffix[1] == '+' ? 2 : 1) ==
           std::string_view::npos);
  if (number && known) return "";
  return "must be a quantity such as \"500m\", \"2\" or \"20Gi\", not " + Quote(text);
}

std::string CheckEnvName(std::string_view text) {
  const auto allowed = [](char c) { return IsAlphanumeric(c) || c == '_' || c == '-' || c == '.'; };
  if (!text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
      std::all_of(text.begin(), text.end(), allowed)) {
    return "";
  }
  return "must be letters, digits, '_', '-' and '.', and not begin with a digit, not " +
         Quote(text);
}

std::string CheckPublicKey(std::string_view text) {
  const base::Result<base::PublicKey> key = base::PublicKey::ParseOpenSsh(text);
  if (key.ok()) return "";
  return "must be a line such as \"ecdsa-sha2-nistp384 AAAA…\" or \"ssh-ed25519 AAAA…\" (see `fl "
         "keys generate`): " +
         key.status().message();
}

std::string CheckRegistryUri(std::string_view text) {
  return CheckScheme(text, {"file:", "s3://", "oci://"});
}

std::string CheckInitialUri(std::string_view text) {
  return CheckScheme(text, {"file:", "s3://", "oci://"});
}

std::string CheckDatasetUri(std::string_view text) {
  const base::Result<DatasetUri> uri = DatasetUri::Parse(text);
  if (uri.ok()) return "";
  const base::Status status = uri.status();
  return status.message() + (status.hint().empty() ? "" : ": " + status.hint());
}

std::string CheckImage(std::string_view text) {
  return HasBlankOrControl(text) ? "must be an image reference without blanks, not " + Quote(text)
                                 : "";
}

std::string CheckBuiltinTrainer(std::string_view text) {
  if (EnumFromName<Architecture>(text)) return "";
  const auto& names = EnumTable<Architecture>::kNames;
  const std::vector<std::string_view> known(names.begin(), names.end());
  return "must be " + OneOf(known) + ", not " + Quote(text) + DidYouMean(text, known);
}

std::string CheckAlgorithm(std::string_view text) {
  if (FindAlgorithm(text) != nullptr) return "";
  std::vector<std::string_view> known;
  for (const Algorithm& each : Algorithms()) known.push_back(each.name);
  return "must be " + OneOf(known) + ", not " + Quote(text) + DidYouMean(text, known);
}

std::string CheckMetricName(std::string_view text) {
  const auto allowed = [](char c) {
    return IsAlphanumeric(c) || c == '_' || c == '-' || c == '.' || c == '/';
  };
  if (std::all_of(text.begin(), text.end(), allowed)) return "";
  return "must be letters, digits, '_', '-', '.' and '/', not " + Quote(text);
}

std::string CheckNoNul(std::string_view text) {
  return text.find('\0') == std::string_view::npos ? "" : "must not have a NUL character";
}

}  // namespace fl::spec::internal
