#include "spec/config_digest.h"

#include <gtest/gtest.h>

#include "spec/defaults.h"
#include "spec/json.h"

namespace fl::spec {
namespace {

FederatedLearningJob Job() {
  return FromJson<FederatedLearningJob>(
             R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedLearningJob",
                 "metadata":{"name":"a"},"spec":{"modelRef":{"name":"m"},"rounds":5,
                 "trainer":{"builtin":"mlp","config":{"rate":0.5}}}})")
      .value();
}

TEST(ConfigDigest, IsTheSameForTheSameJob) {
  const base::Digest digest = ConfigDigest(Job());
  FederatedLearningJob job = Job();
  ApplyDefaults(job);
  EXPECT_EQ(ConfigDigest(job), digest);
  job.metadata.labels["a"] = "b";
  job.spec.rounds = 50;
  job.spec.suspend = true;
  job.spec.aborted = true;
  job.spec.attempt = 3;
  job.spec.round_policy.deadline_seconds = 1;
  job.spec.ttl_seconds_after_finished = 1;
  EXPECT_EQ(ConfigDigest(job), digest);
}

TEST(ConfigDigest, DiffersWhereTheJobIsAnother) {
  const base::Digest digest = ConfigDigest(Job());
  const auto differs = [&digest](auto change) {
    FederatedLearningJob job = Job();
    change(job.spec);
    return ConfigDigest(job) != digest;
  };
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.model_ref.name = "n"; }));
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.trainer.config["rate"] = Value(0.25); }));
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.trainer.config["rate"] = Value("0.5"); }));
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.selection.clients_per_round = 3; }));
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.aggregation.algorithm = "FedYogi"; }));
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.evaluation.test_dataset = "file:a.csv"; }));
  EXPECT_TRUE(differs([](JobSpec& spec) { spec.privacy.secure_aggregation.emplace(); }));
}

/// The value is stored in journals, so that it may not change from one version to the next.
TEST(ConfigDigest, IsFixedForAllTime) {
  EXPECT_EQ(ConfigDigest(Job()).ToString(),
            "sha256:e9f7587f23ff5056906c761eda30391e6f1c48ae21e6a6a6760d9c67168af933");
}

}  // namespace
}  // namespace fl::spec
