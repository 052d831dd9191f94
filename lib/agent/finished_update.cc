#include "agent/finished_update.h"

#include <nlohmann/json.hpp>

#include "base/encoding.h"
#include "base/file_digest.h"
#include "base/json.h"

namespace fl::agent {
namespace {

using base::Result;
using base::Status;

constexpr uint64_t kFileLimit = uint64_t{4} << 20;

void ReadDigest(base::JsonReader& reader, std::string_view key, base::Digest* out) {
  std::string text;
  reader.Required(key, &text);
  if (!reader.status().ok()) return;
  const Result<base::Digest> digest = base::Digest::Parse(text);
  if (digest.ok()) {
    *out = *digest;
  } else {
    reader.Fail(digest.status());
  }
}

Result<FinishedUpdate> FromFile(const base::Path& path) {
  FL_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kFileLimit));
  FL_ASSIGN_OR_RETURN(const nlohmann::json json, base::ParseJson(text, path.string()));
  base::JsonReader reader(json, path.string());
  FinishedUpdate update;
  ReadDigest(reader, "cause", &update.cause);
  ReadDigest(reader, "digest", &update.digest);
  reader.Required("size", &update.size);
  reader.Required("samples", &update.samples);
  reader.Required("steps", &update.steps);
  reader.Required("metrics", &update.metrics);
  FL_RETURN_IF_ERROR(reader.status());
  return update;
}

}  // namespace

Status WriteFinishedUpdate(const base::Path& path, const FinishedUpdate& update) {
  const std::string text = base::DumpJson(nlohmann::json{{"cause", update.cause.ToString()},
                                                         {"digest", update.digest.ToString()},
                                                         {"size", update.size},
                                                         {"samples", update.samples},
                                                         {"steps", update.steps},
                                                         {"metrics", update.metrics}});
  FL_ASSIGN_OR_RETURN(base::FileWriter file,
                      base::FileWriter::Create(path, text.size(), /*mode=*/0600));
  FL_RETURN_IF_ERROR(file.Write(base::AsBytes(text)));
  return std::move(file).Commit(/*durable=*/false);
}

std::optional<FinishedUpdate> ReadFinishedUpdate(const base::Path& path, const base::Digest& cause,
                                                 const base::Path& weights) {
  const Result<FinishedUpdate> update = FromFile(path);
  if (!update.ok() || update->cause != cause) return std::nullopt;
  const Result<base::FileDigest> file = base::DigestOfFile(weights);
  if (!file.ok() || file->size != update->size || file->digest != update->digest) {
    return std::nullopt;
  }
  return *update;
}

}  // namespace fl::agent
