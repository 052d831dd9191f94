#pragma once

/// What administrators gave the aggregator: the model, the clients, the names of the jobs in their
/// order; and the keys that join tokens bound. Kept in a journal, which is written anew when it has
/// grown to a multiple of what still counts.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/journal.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/keys.h"
#include "spec/types.h"

namespace fl::aggregator {

/// One thread at a time (the service's lock). Every change is synced before it is visible.
class Catalog {
 public:
  static base::Result<Catalog> Open(const base::Path& path);
  /// A smaller journal is left alone.
  static constexpr uint64_t kCompactAt = 64 << 10;

  const std::optional<spec::FederatedModel>& model() const { return model_; }
  base::Status SetModel(const spec::FederatedModel& model);

  const std::map<base::ClientName, spec::FederatedClient>& clients() const { return clients_; }
  int64_t clients_revision() const { return clients_revision_; }
  /// Replaces all clients. kFailedPrecondition where `revision` is older than the last one given;
  /// the same revision with the same clients changes nothing.
  base::Status SetClients(int64_t revision, const std::vector<spec::FederatedClient>& clients);

  /// Jobs in the order in which they were submitted.
  const std::vector<base::JobName>& jobs() const { return jobs_; }
  base::Status AddJob(const base::JobName& job);
  base::Status RemoveJob(const base::JobName& job);

  /// The client's key: of its object, or bound by a join token. None where it has none.
  std::optional<base::PublicKey> KeyOf(const base::ClientName& client) const;
  /// Lets the holder of a token with this digest bind a key to the client, once.
  /// kFailedPrecondition where the client has a key, kNotFound where there is no such client.
  base::Status AddJoinToken(const base::ClientName& client, const base::Digest& token);
  /// Uses the token up. kPermissionDenied where it is not the client's.
  base::Status BindKey(const base::ClientName& client, const std::string& token,
                       const base::PublicKey& key);

 private:
  explicit Catalog(Journal journal) : journal_(std::move(journal)) {}
  base::Status Apply(const std::string& line);
  /// The fewest entries from which this state is folded.
  std::vector<std::string> Entries() const;
  /// Drops from the journal what no longer counts, once that is most of it. Where that fails (a
  /// full disk) the journal stays as it is, for the next time.
  void Compact();

  Journal journal_;
  uint64_t compact_at_ = kCompactAt;  // bytes of the journal
  std::optional<spec::FederatedModel> model_;
  std::map<base::ClientName, spec::FederatedClient> clients_;
  int64_t clients_revision_ = 0;
  std::vector<base::JobName> jobs_;
  std::map<base::ClientName, base::Digest> join_tokens_;
  std::map<base::ClientName, std::string> bound_keys_;
};

}  // namespace fl::aggregator
