#include "registry/internal/reachable.h"

#include "registry/internal/artifact.h"

namespace fl::registry::internal {

base::Status AddReachable(ContentStore& store, const Descriptor& root,
                          std::set<base::Digest>& reached) {
  std::vector<Descriptor> pending = {root};
  while (!pending.empty()) {
    const Descriptor next = pending.back();
    pending.pop_back();
    if (!reached.insert(next.digest).second) continue;
    const std::string where = "manifest " + next.digest.ToString();
    FL_ASSIGN_OR_RETURN(const std::string text, store.ReadBlob(next.digest, kManifestLimit));
    FL_ASSIGN_OR_RETURN(const Artifact artifact, ParseArtifact(text, where));
    pending.insert(pending.end(), artifact.manifests.begin(), artifact.manifests.end());
    if (artifact.media_type == kIndexType) continue;
    reached.insert(artifact.config.digest);
    for (const Descriptor& layer : artifact.layers) reached.insert(layer.digest);
  }
  return base::OkStatus();
}

}  // namespace fl::registry::internal
