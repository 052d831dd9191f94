// Commands on models, and on jobs of the past, with a registry on disk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/simulated_clock.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "cli/testing/run_command.h"
#include "registry/open.h"
#include "tensor/safetensors.h"

namespace fl::cli {
namespace {

using ::testing::HasSubstr;

const base::ModelName kModel("digits");

class ModelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    uri_ = (folder_ / "registry").string();
    ASSERT_OK_AND_ASSIGN(const auto repository,
                         registry::OpenWriter(uri_, kModel, {.owner = "test", .clock = &clock_}));
    std::optional<registry::VersionRef> parent;
    for (int version = 0; version < 4; ++version) {
      const float first = static_cast<float>(version);
      const base::Path file = folder_ / "weights.safetensors";
      ASSERT_OK_AND_ASSIGN(
          const tensor::FileSummary written,
          tensor::WriteSafetensors(
              file, {tensor::Tensor::FromFloats("w", {2}, std::vector<float>{first, 3}),
                     tensor::Tensor::FromFloats("b", {}, std::vector<float>{1})}));
      registry::PublishRequest request{.weights = {.path = file}};
      request.parent = parent;
      if (version > 0) {
        request.job = base::JobName("train");
        request.round = base::RoundNumber(version);
        request.algorithm = "FedAvg";
        request.contributors = 3;
        request.metrics = {{"accuracy", 0.5 + 0.1 * version}};
      }
      ASSERT_OK_AND_ASSIGN(const registry::VersionInfo info, repository->Publish(request));
      parent = registry::VersionRef{info.version, info.manifest};
      clock_.Advance(std::chrono::minutes(10));
      static_cast<void>(written);
    }
    ASSERT_OK_AND_ASSIGN(const registry::Change change,
                         repository->RecordJobFinished({.job = base::JobName("train"),
                                                        .outcome = "Succeeded",
                                                        .reason = "RoundsCompleted",
                                                        .version = base::VersionNumber(3),
                                                        .time = clock_.Now()}));
    static_cast<void>(change);
  }

  CommandResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--registry", uri_});
    return runner_.Run(arguments);
  }

  base::TemporaryDirectory folder_;
  base::SimulatedClock clock_;
  std::string uri_;
  CommandRunner runner_{.clock = &clock_};
};

TEST_F(ModelsTest, ListShowHistory) {
  EXPECT_EQ(Run({"models", "list"}).out,
            "NAME     CURRENT   LATEST   PROMOTED   PINNED   VERSIONS   METRICS        UPDATED\n"
            "digits   3         3        -          -        4          accuracy=0.8   10m ago\n");
  EXPECT_EQ(
      Run({"models", "history", "digits", "--last", "2"}).out,
      "VERSION   PARENT   JOB     ROUND   CONTRIBUTORS   METRICS        TAGS             AGE\n"
      "v3        v2       train   3       3              accuracy=0.8   current,latest   10m\n"
      "v2        v1       train   2       3              accuracy=0.7   -                20m\n");
  EXPECT_EQ(Run({"models", "history", "digits", "-o", "jsonpath={.items[*].version}"}).out,
            "3 2 1 0");
  EXPECT_THAT(Run({"models", "show", "digits", "v1"}).out, HasSubstr("parent:        v0\n"));
  EXPECT_EQ(Run({"models", "show", "digits", "-o", "jsonpath={.version} {.metrics.accuracy}"}).out,
            "3 0.8");
  EXPECT_EQ(Run({"get", "model", "digits", "-o", "jsonpath={.status.currentVersion}"}).out, "3");
}

TEST_F(ModelsTest, WhatIsNotThereExitsOne) {
  EXPECT_EQ(Run({"models", "show", "digits", "v9"}).exit_code, 1);
  EXPECT_EQ(Run({"models", "show", "other"}).exit_code, 1);
  EXPECT_EQ(Run({"rollback", "other"}).exit_code, 1);
  EXPECT_EQ(Run({"rollback", "digits", "--to-version", "9"}).exit_code, 1);
  EXPECT_EQ(Run({"rollback", "digits", "--to-version", "first"}).exit_code, 4);
  // A mistyped name made nothing.
  EXPECT_EQ(Run({"models", "list", "-o", "name"}).out, "model/digits\n");
}

TEST_F(ModelsTest, RollbackAndBack) {
  EXPECT_EQ(Run({"rollback", "digits"}).out, "model/digits rolled back: v3 -> v2 (pinned)\n");
  EXPECT_EQ(Run({"rollback", "digits", "--to-version", "v2"}).out,
            "model/digits is at v2 already; nothing changed\n");
  EXPECT_EQ(Run({"rollback", "digits", "--to-version", "0", "-o", "json"}).out,
            "{\n  \"changed\": true,\n  \"from\": 2,\n  \"model\": \"digits\",\n  \"to\": 0\n}\n");
  EXPECT_EQ(Run({"promote", "digits"}).exit_code, 1);  // another one is pinned
  EXPECT_EQ(Run({"rollback", "digits", "--unpin"}).out, "model/digits unpinned: v0 -> v3\n");
  EXPECT_EQ(Run({"rollback", "digits", "--unpin"}).out,
            "model/digits is not pinned; nothing changed\n");
  EXPECT_EQ(Run({"promote", "digits", "--to-version", "1"}).out, "model/digits promoted: v1\n");
  EXPECT_EQ(Run({"models", "show", "digits", "-o", "jsonpath={.version}"}).out, "1");
  EXPECT_EQ(Run({"rollback", "digits", "--unpin", "--to-version", "1"}).exit_code, 4);
}

TEST_F(ModelsTest, AHeldRegistrySaysWhoHoldsItAndHowToAsk) {
  ASSERT_OK_AND_ASSIGN(const auto holder,
                       registry::OpenWriter(uri_, kModel, {.owner = "fl-aggregatord, pid 7"}));
  const CommandResult result = Run({"rollback", "digits"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("fl-aggregatord, pid 7"));
  EXPECT_THAT(result.err, HasSubstr("hint: "));
  EXPECT_THAT(result.err, HasSubstr("--aggregator URL"));
  EXPECT_EQ(Run({"models", "history", "digits"}).exit_code, 0);  // readers need nobody's leave
}

TEST_F(ModelsTest, Diff) {
  const CommandResult result = Run({"models", "diff", "digits", "v1", "v3"});
  EXPECT_EQ(result.out,
            "METRIC      v1    v3   CHANGE\n"
            "accuracy   0.6   0.8     +0.2\n"
            "\n"
            "TENSOR   L2   RELATIVE   MAX   CHANGED   NOTE\n"
            "w         2     0.6325     2   1/2       -\n"
            "b         0          0     0   0/1       -\n"
            "\n"
            "all tensors: L2 2\n");
}

TEST_F(ModelsTest, ExportVerifyDamageAndImport) {
  const std::string file = (folder_ / "out.safetensors").string();
  EXPECT_EQ(Run({"models", "export", "digits", "v1", "-o", file}).exit_code, 0);
  ASSERT_OK_AND_ASSIGN(const tensor::SafetensorsFile exported, tensor::SafetensorsFile::Open(file));
  EXPECT_THAT(exported.ReadFloats("w"), base::IsOkAndHolds(std::vector<float>{1, 3}));
  EXPECT_EQ(Run({"models", "export", "digits", "-o", file, "--state", file + "2"}).exit_code, 1);

  EXPECT_EQ(Run({"models", "import", "digits", file}).out, "model/digits/v4 imported\n");
  EXPECT_EQ(Run({"models", "import", "fresh", file}).out, "model/fresh/v0 imported\n");
  EXPECT_THAT(Run({"models", "verify", "digits"}).out,
              HasSubstr("model/digits is intact: 5 versions"));
  EXPECT_EQ(Run({"models", "import", "digits", (folder_ / "none").string()}).exit_code, 4);
  ASSERT_OK_AND_ASSIGN(const auto other,
                       tensor::WriteSafetensors(
                           file, {tensor::Tensor::FromFloats("w", {1}, std::vector<float>{1})}));
  static_cast<void>(other);
  EXPECT_EQ(Run({"models", "import", "digits", file}).exit_code, 4);  // other tensors

  ASSERT_OK_AND_ASSIGN(const auto repository, registry::OpenReader(uri_, kModel));
  ASSERT_OK_AND_ASSIGN(const registry::VersionInfo info, repository->Get(base::VersionNumber(2)));
  const base::Path blob = base::Path(uri_) / "digits" / "blobs" / "sha256" / info.weights.Hex();
  std::string bytes = *base::ReadFile(blob);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(base::WriteFileAtomically(blob, bytes).ok());
  const CommandResult result = Run({"models", "verify", "digits"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("v2"));
  EXPECT_THAT(result.err, HasSubstr("1 problem in model \"digits\""));
}

TEST_F(ModelsTest, CollectFirstDry) {
  const CommandResult dry = Run({"models", "gc", "digits", "--keep-last", "1", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("model/digits/v0 would be pruned\n"));
  EXPECT_EQ(Run({"models", "show", "digits", "v0", "-o", "jsonpath={.pruned}"}).out, "false");
  const CommandResult done = Run({"models", "gc", "digits", "--keep-last", "1"});
  EXPECT_THAT(done.out, HasSubstr("model/digits/v0 pruned\n"));
  EXPECT_THAT(Run({"models", "history", "digits"}).out, HasSubstr("pruned"));
}

TEST_F(ModelsTest, JobsOfThePast) {
  EXPECT_EQ(Run({"list"}).out,
            "NAME    STATE       ROUND   MODEL    VERSION   METRICS        AGE\n"
            "train   Succeeded   3/3     digits   3         accuracy=0.8   30m\n");
  EXPECT_EQ(Run({"rounds", "train", "-o", "jsonpath={.items[*].version}"}).out, "1 2 3");
  EXPECT_EQ(Run({"wait", "train", "--for=succeeded"}).exit_code, 0);
  EXPECT_EQ(Run({"wait", "train", "--for=failed"}).exit_code, 1);
  EXPECT_EQ(Run({"status", "train", "-w", "--exit-on-finish"}).exit_code, 0);
  EXPECT_THAT(Run({"describe", "train"}).out, HasSubstr("RoundsCompleted"));
  EXPECT_EQ(Run({"get", "job", "none"}).exit_code, 1);
  const CommandResult pause = Run({"pause", "train"});
  EXPECT_EQ(pause.exit_code, 1);
  EXPECT_THAT(pause.err, HasSubstr("ask a running aggregator"));
}

TEST_F(ModelsTest, CompletionOffersVersions) {
  EXPECT_EQ(runner_.Run({"__complete", "--registry", uri_, "models", "show", "d"}).out,
            "digits\n:4\n");
  EXPECT_EQ(runner_.Run({"__complete", "--registry", uri_, "models", "show", "digits", ""}).out,
            "3\tcurrent, latest\n2\n1\n0\n:4\n");
  EXPECT_EQ(
      runner_.Run({"__complete", "rollback", "digits", "--registry", uri_, "--to-version", ""}).out,
      "3\tcurrent, latest\n2\n1\n0\n:4\n");
}

}  // namespace
}  // namespace fl::cli
