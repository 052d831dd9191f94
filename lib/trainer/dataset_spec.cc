// The text form of DatasetSpec.
#include <array>
#include <charconv>

#include "base/encoding.h"
#include "trainer/dataset.h"

namespace fl::trainer {
namespace {

using base::InvalidArgument;
using base::Result;

Result<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const auto byte = base::HexDecode(text.substr(i + 1, 2));
    if (!byte.ok() || byte->size() != 1 || byte->front() == 0) {
      return InvalidArgument("dataset URI: '%' must be followed by two hexadecimal digits",
                             "write a '%' in a file name as %25");
    }
    decoded += static_cast<char>(byte->front());
    i += 2;
  }
  return decoded;
}

std::string PercentEncode(std::string_view text, std::string_view reserved) {
  std::string encoded;
  for (const char c : text) {
    if (reserved.find(c) != std::string_view::npos || static_cast<unsigned char>(c) < 0x20) {
      const uint8_t byte = static_cast<uint8_t>(c);
      encoded += '%' + base::HexEncode({&byte, 1});
    } else {
      encoded += c;
    }
  }
  return encoded;
}

/// Calls `visit(key, value)` for each `key=value` between `separator`s.
template <typename Visit>
base::Status ForEachPair(std::string_view text, char separator, Visit visit) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("dataset URI: \"" + std::string(pair) + "\" has no '='");
    }
    FL_ASSIGN_OR_RETURN(const std::string value, PercentDecode(pair.substr(equals + 1)));
    FL_RETURN_IF_ERROR(visit(pair.substr(0, equals), value));
  }
  return base::OkStatus();
}

template <typename T>
base::Status ReadInteger(std::string_view key, std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return base::OkStatus();
  return InvalidArgument("dataset URI: " + std::string(key) + " is \"" + std::string(text) +
                         "\", not a whole number");
}

base::Status ReadQuery(std::string_view query, DatasetSpec& spec) {
  return ForEachPair(query, '&', [&spec](std::string_view key, const std::string& value) {
    if (key == "label") {
      if (value.empty()) return InvalidArgument("dataset URI: label is empty");
      spec.label = value;
      return base::OkStatus();
    }
    if (key == "split" && (value == "train" || value == "test")) {
      spec.split = value == "train" ? Split::kTrain : Split::kTest;
      return base::OkStatus();
    }
    return InvalidArgument("dataset URI: \"" + std::string(key) + "=" + value + "\" is not known",
                           "after '?' stand label=NAME, split=train or split=test");
  });
}

base::Status ReadFragment(std::string_view fragment, DatasetSpec& spec) {
  Partition part;
  bool has_scheme = false;
  FL_RETURN_IF_ERROR(
      ForEachPair(fragment, ',', [&](std::string_view key, const std::string& value) {
        if (key == "parts") return ReadInteger(key, value, part.parts);
        if (key == "index") return ReadInteger(key, value, part.index);
        if (key == "seed") return ReadInteger(key, value, part.seed);
        if (key != "partition") {
          return InvalidArgument("dataset URI: \"" + std::string(key) + "\" is not known",
                                 "after '#' stand partition, parts, index and seed");
        }
        Result<PartitionScheme> scheme = PartitionScheme::Parse(value);
        if (!scheme.ok()) return scheme.status().WithContext("dataset URI");
        part.scheme = *scheme;
        has_scheme = true;
        return base::OkStatus();
      }));
  if (!has_scheme) return InvalidArgument("dataset URI: partition is missing after '#'");
  if (part.parts < 1 || part.index < 0 || part.index >= part.parts) {
    return InvalidArgument("dataset URI: there is no part " + std::to_string(part.index) + " of " +
                               std::to_string(part.parts),
                           "index is from 0 to parts - 1");
  }
  spec.part = part;
  return base::OkStatus();
}

}  // namespace

Result<DatasetSpec> DatasetSpec::Parse(std::string_view uri) {
  const std::string whole(uri);
  if (!uri.starts_with("file:")) {
    return base::Unimplemented("dataset \"" + whole + "\" is not a file: URI",
                               "write file:PATH.csv, or file:FOLDER with IDX files");
  }
  uri.remove_prefix(5);
  DatasetSpec spec;
  if (const size_t hash = uri.find('#'); hash != std::string_view::npos) {
    FL_RETURN_IF_ERROR(ReadFragment(uri.substr(hash + 1), spec));
    uri = uri.substr(0, hash);
  }
  if (const size_t question = uri.find('?'); question != std::string_view::npos) {
    FL_RETURN_IF_ERROR(ReadQuery(uri.substr(question + 1), spec));
    uri = uri.substr(0, question);
  }
  if (uri.starts_with("//")) {
    uri.remove_prefix(2);
    if (uri.starts_with("localhost/")) uri.remove_prefix(9);
    if (!uri.starts_with("/")) {
      return InvalidArgument("dataset \"" + whole + "\" names a host",
                             "write file:relative/path or file:///absolute/path");
    }
  }
  FL_ASSIGN_OR_RETURN(const std::string path, PercentDecode(uri));
  if (path.empty()) return InvalidArgument("dataset \"" + whole + "\" has no path");
  spec.path = path;
  return spec;
}

std::string DatasetSpec::ToString() const {
  std::string uri = path.is_absolute() ? "file://" : "file:";
  uri += PercentEncode(path.string(), "%?#");
  char separator = '?';
  if (label != "label") {
    uri += separator + ("label=" + PercentEncode(label, "%&#"));
    separator = '&';
  }
  if (split) uri += separator + std::string(*split == Split::kTrain ? "split=train" : "split=test");
  if (part) {
    uri += "#partition=" + part->scheme.ToString() + ",parts=" + std::to_string(part->parts) +
           ",index=" + std::to_string(part->index) + ",seed=" + std::to_string(part->seed);
  }
  return uri;
}

DatasetSpec DatasetSpec::RelativeTo(const base::Path& folder) const {
  DatasetSpec spec = *this;
  if (path.is_relative()) spec.path = (folder / path).lexically_normal();
  return spec;
}

}  // namespace fl::trainer
