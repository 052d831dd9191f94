#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"
#include "transport/client.h"

namespace fl::agent {

/// Models on disk by their digest: `HEX.safetensors`, read-only, and `HEX.part` while one comes.
/// All agents of a process share it, so that a model is fetched once for all of them. The newest
/// few are kept besides those in use. Content is checked when it comes, and again when a file of
/// an earlier process is used for the first time. Thread-safe; outlives its leases.
class BlobCache {
 public:
  /// Makes a request for what is missing: its Range header, writer and stop token, without a url.
  using MakeRequest = std::function<base::Result<transport::ClientRequest>()>;
  /// Sends what it gets, made anew for each attempt, until there is an answer.
  using Fetch = std::function<base::Result<transport::ClientResponse>(const MakeRequest& make)>;

  /// A blob that stays while somebody holds this.
  class Lease {
   public:
    const base::Path& path() const { return path_; }

   private:
    friend class BlobCache;
    Lease(base::Path path, std::shared_ptr<void> hold)
        : path_(std::move(path)), hold_(std::move(hold)) {}
    base::Path path_;
    std::shared_ptr<void> hold_;
  };

  /// Makes the folder where it is missing. `keep` blobs stay when nobody uses them.
  static base::Result<std::unique_ptr<BlobCache>> Open(const base::Path& folder, size_t keep = 2);

  /// The blob `digest` of `size` bytes, fetched unless it is there. An interrupted one goes on
  /// where it stopped, also after a restart. Of several callers for one digest one fetches and the
  /// others wait. kResourceExhausted up front where the disk has no room; kDataLoss where what
  /// comes has another size or digest, twice; kCancelled; else what `fetch` returned or was
  /// answered.
  base::Result<Lease> Get(const base::Digest& digest, uint64_t size, const Fetch& fetch,
                          const std::stop_token& stop);

 private:
  struct Entry {
    bool busy = false;      // somebody fetches or checks it
    bool verified = false;  // the file is whole
    int leases = 0;
    uint64_t last_use = 0;
  };

  BlobCache(base::Path folder, size_t keep) : folder_(std::move(folder)), keep_(keep) {}
  void ListFolder();
  base::Path PathOf(const base::Digest& digest) const;
  base::Status MakePresent(const base::Digest& digest, uint64_t size, const Fetch& fetch,
                           const std::stop_token& stop) const;
  Lease MakeLease(const base::Digest& digest);  // mutex_ held
  void Release(const base::Digest& digest);
  void Evict();  // mutex_ held

  const base::Path folder_;
  const size_t keep_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<base::Digest, Entry> entries_;  // guarded by mutex_
  uint64_t uses_ = 0;                      // guarded by mutex_
};

}  // namespace fl::agent
