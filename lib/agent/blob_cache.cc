#include "agent/blob_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agent/internal/part_file.h"
#include "base/file_digest.h"
#include "obs/log.h"

namespace fl::agent {
namespace {

using base::Result;
using base::Status;

constexpr std::string_view kBlobEnd = ".safetensors";
constexpr std::string_view kPartEnd = ".part";

base::Path WithEnd(const base::Path& folder, const base::Digest& digest, std::string_view end) {
  return folder / (digest.Hex() + std::string(end));
}

/// What the name of a blob's file, or of a part of one, says, if it is one.
std::optional<base::Digest> DigestOfName(std::string_view name) {
  const std::string_view end = name.ends_with(kPartEnd) ? kPartEnd : kBlobEnd;
  if (!name.ends_with(end)) return std::nullopt;
  name.remove_suffix(end.size());
  const Result<base::Digest> digest = base::Digest::Parse("sha256:" + std::string(name));
  if (!digest.ok()) return std::nullopt;
  return *digest;
}

void RemoveLogged(const base::Path& path) {
  const Status removed = base::RemoveFile(path);
  if (!removed.ok()) obs::Warning("an old model stays on disk", {{"reason", removed}});
}

/// Asks for the rest of the blob until it is whole: a cut body is gone on with.
Status Download(internal::PartFile& part, const BlobCache::Fetch& fetch,
                const std::stop_token& stop) {
  if (part.complete()) return base::OkStatus();
  const auto ask_for_the_rest = [&part, &stop]() -> Result<transport::ClientRequest> {
    if (part.complete()) return base::Aborted("the last bytes came before the connection broke");
    transport::ClientRequest request;
    request.stop = stop;
    request.writer = &part;
    if (part.received() > 0) {
      request.headers.Set("Range", "bytes=" + std::to_string(part.received()) + "-");
    }
    return request;
  };
  const Result<transport::ClientResponse> answer = fetch(ask_for_the_rest);
  if (part.complete()) return base::OkStatus();
  if (!answer.ok()) return answer.status();
  FL_RETURN_IF_ERROR(answer->ToStatus());
  return base::DataLoss("the aggregator sent fewer bytes of the model than it announced");
}

}  // namespace

Result<std::unique_ptr<BlobCache>> BlobCache::Open(const base::Path& folder, size_t keep) {
  FL_RETURN_IF_ERROR(base::MakeDirectories(folder, 0700));
  std::unique_ptr<BlobCache> cache(new BlobCache(folder, keep));
  cache->ListFolder();
  return cache;
}

void BlobCache::ListFolder() {
  std::vector<std::pair<std::filesystem::file_time_type, base::Digest>> found;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::optional<base::Digest> digest = DigestOfName(file.path().filename().string());
    if (digest) found.emplace_back(file.last_write_time(ignored), *digest);
  }
  std::sort(found.begin(), found.end());
  const std::lock_guard lock(mutex_);
  for (const auto& [time, digest] : found) entries_[digest].last_use = ++uses_;
  Evict();
}

base::Path BlobCache::PathOf(const base::Digest& digest) const {
  return WithEnd(folder_, digest, kBlobEnd);
}

Result<BlobCache::Lease> BlobCache::Get(const base::Digest& digest, uint64_t size,
                                        const Fetch& fetch, const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    Entry& entry = entries_[digest];  // stays where it is while it is busy or leased
    entry.last_use = ++uses_;
    ++entry.leases;
    const bool free = changed_.wait(lock, stop, [&entry] { return !entry.busy; });
    --entry.leases;
    if (!free) {
      Evict();
      return base::Cancelled("the task was withdrawn");
    }
    if (entry.verified) return MakeLease(digest);
    entry.busy = true;
  }
  const Status present = MakePresent(digest, size, fetch, stop);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[digest];
  entry.busy = false;
  entry.verified = present.ok();
  changed_.notify_all();
  if (!present.ok()) {
    Evict();
    return present;
  }
  Lease lease = MakeLease(digest);
  Evict();
  return lease;
}

Status BlobCache::MakePresent(const base::Digest& digest, uint64_t size, const Fetch& fetch,
                              const std::stop_token& stop) const {
  const base::Path path = PathOf(digest);
  const base::Path part_path = WithEnd(folder_, digest, kPartEnd);
  std::error_code absent;
  if (std::filesystem::exists(path, absent)) {
    const Result<base::FileDigest> there = base::DigestOfFile(path);
    if (there.ok() && there->digest == digest) return base::OkStatus();
    FL_RETURN_IF_ERROR(base::RemoveFile(path));
  }
  for (int attempt = 0;; ++attempt) {
    FL_ASSIGN_OR_RETURN(internal::PartFile part, internal::PartFile::Open(part_path, size));
    Status downloaded = Download(part, fetch, stop);
    if (downloaded.ok()) {
      if (std::move(part).Finish() == digest) break;
      downloaded =
          base::DataLoss("what came as model " + digest.ToString() + " has another digest");
    }
    if (downloaded.code() != base::Code::kDataLoss) return downloaded;
    FL_RETURN_IF_ERROR(base::RemoveFile(part_path));
    if (attempt == 1) return downloaded;
  }
  // Trainers get to see the file; none has to write to it.
  if (::chmod(part_path.c_str(), 0444) != 0) {
    return base::FromErrno(errno, "chmod " + part_path.string());
  }
  if (::rename(part_path.c_str(), path.c_str()) != 0) {
    return base::FromErrno(errno, "rename " + part_path.string());
  }
  return base::OkStatus();
}

BlobCache::Lease BlobCache::MakeLease(const base::Digest& digest) {
  Entry& entry = entries_[digest];
  ++entry.leases;
  entry.last_use = ++uses_;
  return Lease(PathOf(digest), std::shared_ptr<void>(this, [digest](void* cache) {
                 static_cast<BlobCache*>(cache)->Release(digest);
               }));
}

void BlobCache::Release(const base::Digest& digest) {
  const std::lock_guard lock(mutex_);
  --entries_[digest].leases;
  Evict();
}

void BlobCache::Evict() {
  std::vector<std::pair<uint64_t, base::Digest>> idle;
  size_t kept = 0;
  for (const auto& [digest, entry] : entries_) {
    if (entry.busy || entry.leases > 0) {
      ++kept;
    } else {
      idle.emplace_back(entry.last_use, digest);
    }
  }
  std::sort(idle.begin(), idle.end());
  const size_t room = keep_ > kept ? keep_ - kept : 0;
  const size_t excess = idle.size() > room ? idle.size() - room : 0;
  for (size_t i = 0; i < excess; ++i) {
    RemoveLogged(PathOf(idle[i].second));
    RemoveLogged(WithEnd(folder_, idle[i].second, kPartEnd));
    entries_.erase(idle[i].second);
  }
}

}  // namespace fl::agent
