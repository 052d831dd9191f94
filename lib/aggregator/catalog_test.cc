#include "aggregator/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "base/failpoint.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::aggregator {
namespace {

using base::IsOk;
using ::testing::ElementsAre;

spec::FederatedClient Client(const std::string& name, int64_t generation = 0) {
  spec::FederatedClient client;
  client.metadata.name = name;
  client.metadata.labels["generation"] = std::to_string(generation);
  client.spec.type = spec::ClientType::kPod;
  client.spec.pod.emplace().image = "image";
  return client;
}

class CatalogTest : public ::testing::Test {
 protected:
  ~CatalogTest() override { base::ArmFailpoints(""); }

  Catalog Open() {
    base::Result<Catalog> opened = Catalog::Open(path);
    FL_CHECK_MSG(opened.ok(), opened.status().ToString());
    return *std::move(opened);
  }
  uint64_t Size() { return std::filesystem::file_size(path); }

  /// One of each entry, some of which no longer count.
  void Fill(Catalog& catalog) {
    spec::FederatedModel model;
    model.metadata.name = "model";
    model.spec.initial.uri = "file:v0.safetensors";
    ASSERT_THAT(catalog.SetModel(model), IsOk());
    ASSERT_THAT(catalog.SetClients(1, {Client("a"), Client("b"), Client("c")}), IsOk());
    for (const char* job : {"z", "gone", "y"}) {
      ASSERT_THAT(catalog.AddJob(base::JobName(job)), IsOk());
    }
    ASSERT_THAT(catalog.RemoveJob(base::JobName("gone")), IsOk());
    ASSERT_THAT(catalog.AddJoinToken(base::ClientName("a"), base::Digest::Of("token a")), IsOk());
    ASSERT_THAT(catalog.BindKey(base::ClientName("a"), "token a", key), IsOk());
    ASSERT_THAT(catalog.AddJoinToken(base::ClientName("b"), base::Digest::Of("token b")), IsOk());
  }
  /// Replaces the clients until the journal is `bytes` long; the newest generation.
  int64_t Grow(Catalog& catalog, uint64_t bytes) {
    while (Size() < bytes) {
      const int64_t next = catalog.clients_revision() + 1;
      EXPECT_THAT(
          catalog.SetClients(next, {Client("a", next), Client("b", next), Client("c", next)}),
          IsOk());
    }
    return catalog.clients_revision();
  }
  void ExpectFilled(Catalog& catalog, int64_t revision) {
    ASSERT_TRUE(catalog.model());
    EXPECT_EQ(catalog.model()->metadata.name, "model");
    EXPECT_THAT(catalog.jobs(), ElementsAre(base::JobName("z"), base::JobName("y")));
    EXPECT_EQ(catalog.clients_revision(), revision);
    ASSERT_EQ(catalog.clients().size(), 3u);
    for (const auto& [name, client] : catalog.clients()) {
      EXPECT_EQ(client, Client(name.str(), revision));
    }
    ASSERT_TRUE(catalog.KeyOf(base::ClientName("a")));
    EXPECT_EQ(catalog.KeyOf(base::ClientName("a"))->ToOpenSsh(), key.ToOpenSsh());
    // A token that was used stays used, one that was not is still good.
    EXPECT_FALSE(catalog.BindKey(base::ClientName("a"), "token a", key).ok());
    EXPECT_FALSE(catalog.BindKey(base::ClientName("b"), "token a", key).ok());
    EXPECT_FALSE(catalog.KeyOf(base::ClientName("b")));
  }
  std::vector<std::string> Unfinished() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().extension() == ".tmp") names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const base::PublicKey key = base::PrivateKey::Generate(base::KeyType::kEd25519)->public_key();
  base::TemporaryDirectory folder;
  const base::Path path = folder / "catalog.jsonl";
};

TEST_F(CatalogTest, TheJournalStaysSmallWhateverChanges) {
  int64_t revision = 0;
  {
    Catalog catalog = Open();
    Fill(catalog);
    for (int i = 0; i < 2000; ++i) {
      revision = catalog.clients_revision() + 1;
      ASSERT_THAT(catalog.SetClients(revision, {Client("a", revision), Client("b", revision),
                                                Client("c", revision)}),
                  IsOk());
    }
    EXPECT_LT(Size(), 2 * Catalog::kCompactAt);
    ExpectFilled(catalog, revision);
  }
  Catalog again = Open();
  ExpectFilled(again, revision);
  EXPECT_THAT(again.BindKey(base::ClientName("b"), "token b", key), IsOk());
}

TEST_F(CatalogTest, OneThatOnlyHasWhatCountsIsLeftAlone) {
  Catalog catalog = Open();
  std::vector<spec::FederatedClient> clients;
  for (int i = 0; i < 1000; ++i) clients.push_back(Client("client-" + std::to_string(i)));
  base::ArmFailpoints("journal.replace=kill");
  ASSERT_THAT(catalog.SetClients(1, clients), IsOk());
  ASSERT_GT(Size(), Catalog::kCompactAt);
  Open();
}

// A disk that is full, and a failure at each step: nothing is lost, what comes later is kept, and
// the next start makes the journal small.
TEST_F(CatalogTest, WhereItCannotBeMadeSmallTheJournalGoesOn) {
  for (const char* fault : {"journal.replace=error", "file.write=nospace", "file.rename=error"}) {
    SCOPED_TRACE(fault);
    std::filesystem::remove(path);
    int64_t revision = 0;
    {
      Catalog catalog = Open();
      Fill(catalog);
      base::ArmFailpoints(fault);
      revision = Grow(catalog, Catalog::kCompactAt + 2000);
      base::ArmFailpoints("");
      ExpectFilled(catalog, revision);
      EXPECT_GT(Size(), Catalog::kCompactAt);
    }
    Catalog again = Open();
    ExpectFilled(again, revision);
    EXPECT_LT(Size(), Catalog::kCompactAt / 4);
    EXPECT_THAT(Unfinished(), ElementsAre());
  }
}

TEST_F(CatalogTest, KilledWhileItIsMadeSmallItLosesNothing) {
  for (const char* fault : {"journal.replace=kill", "file.write=kill", "file.rename=kill"}) {
    SCOPED_TRACE(fault);
    std::filesystem::remove(path);
    int64_t revision = 0;
    {
      Catalog catalog = Open();
      Fill(catalog);
      base::ArmFailpoints("journal.replace=error");
      revision = Grow(catalog, Catalog::kCompactAt + 2000);
    }
    EXPECT_EXIT(
        {
          base::ArmFailpoints(fault);
          Open();
        },
        ::testing::KilledBySignal(SIGKILL), "");
    EXPECT_GT(Size(), Catalog::kCompactAt);
    base::ArmFailpoints("");
    Catalog again = Open();
    ExpectFilled(again, revision);
    EXPECT_LT(Size(), Catalog::kCompactAt / 4);
    EXPECT_THAT(Unfinished(), ElementsAre());
  }
}

}  // namespace
}  // namespace fl::aggregator
