/// What is left when a writer is killed, the disk is full, or a call fails, at every step there is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/failpoint.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "registry/disk_store.h"
#include "registry/memory_store.h"
#include "registry/repository.h"
#include "registry/testing/faulty_store.h"
#include "registry/testing/sample.h"

namespace fl::registry {
namespace {

using base::Code;
using base::IsOk;
using base::Status;
using base::StatusIs;
using base::VersionNumber;
using ::testing::HasSubstr;

constexpr int kKilled = -SIGKILL;
/// No operation has as many steps.
constexpr int kManySteps = 200;

/// Exit status of `body` in a child, or minus the signal that killed it.
int InChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  FL_CHECK(pid >= 0);
  if (pid == 0) ::_exit(body());
  int status = 0;
  FL_CHECK(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// All that a reader can tell of a repository, as text.
std::string Describe(ModelRepository& reader) {
  std::string text;
  for (const VersionInfo& version : reader.List().value_or({})) {
    text +=
        "v" + std::to_string(version.version.value()) + "=" + version.weights.Hex().substr(0, 8);
    if (version.pruned) {
      text += " pruned";
    } else {
      const base::Result<OpenedBlob> weights = reader.OpenWeights(version.version);
      text += weights.ok() ? " " + Text(*weights) : " " + weights.status().ToString();
    }
    text += "\n";
  }
  const auto number = [](const base::Result<std::optional<VersionNumber>>& version) {
    return version.ok() && *version ? std::to_string((*version)->value()) : "none";
  };
  text += "pinned " + number(reader.Pinned()) + " promoted " + number(reader.Promoted());
  const auto job = reader.FindFinishedJob(base::JobName("digits"));
  text += " finished " + (job.ok() && *job ? (*job)->outcome : "no") + "\n";
  return text;
}

/// A change of a repository that has eight versions, of which 2 is promoted and 1 pinned.
struct Operation {
  std::string name;
  /// Gets ready what is not under test, and returns the call that is.
  std::function<std::function<Status()>(ModelRepository&)> stage;
};

Operation Simple(const std::string& name, const std::function<Status(ModelRepository&)>& run) {
  return {name,
          [run](ModelRepository& repository) { return [&, run] { return run(repository); }; }};
}

void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

std::vector<Operation> Operations() {
  return {
      {"Publish",
       [](ModelRepository& repository) {
         PublishRequest request = SampleRequest(repository, 8, "weights 8", "state 8");
         request.version = VersionNumber(8);
         request.parent.reset();
         return [&, request] { return repository.Publish(request).status(); };
       }},
      Simple("Pin", [](ModelRepository& r) { return r.Pin(VersionNumber(3)).status(); }),
      Simple("Unpin", [](ModelRepository& r) { return r.Unpin().status(); }),
      Simple("Promote", [](ModelRepository& r) { return r.Promote(VersionNumber(1)).status(); }),
      Simple("Collect", [](ModelRepository& r) { return r.Collect({.keep_last = 1}).status(); }),
      Simple("JobFinished",
             [](ModelRepository& r) {
               const FinishedJob job{base::JobName("digits"), {}, "Succeeded", "Done", {}, {}};
               return r.RecordJobFinished(job).status();
             }),
  };
}

Status Prepare(ModelRepository& repository) {
  FL_RETURN_IF_ERROR(PublishSamples(repository, 8));
  FL_RETURN_IF_ERROR(repository.Promote(VersionNumber(2)).status());
  FL_RETURN_IF_ERROR(repository.Pin(VersionNumber(1)).status());
  return base::OkStatus();
}

std::set<std::string> Leftovers(const base::Path& folder) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".tmp") found.insert(entry.path().filename().string());
  }
  return found;
}

class CrashTest : public ::testing::TestWithParam<Operation> {
 protected:
  ~CrashTest() override { base::ArmFailpoints(""); }

  base::Result<std::unique_ptr<ModelRepository>> OpenWriter() {
    return ModelRepository::OpenWriter(std::make_unique<DiskStore>(place_), {
                                                                                "the test",
                                                                                "",
                                                                            });
  }
  std::string Observe() {
    const auto reader = ModelRepository::OpenReader(std::make_unique<DiskStore>(place_));
    if (!reader.ok()) return reader.status().ToString();
    const base::Result<VerifyReport> report = (*reader)->Verify();
    EXPECT_THAT(report, IsOk());
    for (const Problem& problem : report->problems) {
      ADD_FAILURE() << problem.subject << ": " << problem.message;
    }
    return Describe(**reader);
  }
  void Reset() {
    std::filesystem::remove_all(place_);
    std::filesystem::copy(prepared_, place_, std::filesystem::copy_options::recursive);
  }
  /// What is there before and after an operation that nothing disturbs.
  void LearnBeforeAndAfter() {
    place_ = prepared_;
    {
      ASSERT_OK_AND_ASSIGN(const auto writer, OpenWriter());
      ASSERT_THAT(Prepare(*writer), IsOk());
    }
    place_ = folder_ / "digits";
    Reset();
    before_ = Observe();
    ASSERT_THAT(RunAgain(), IsOk());
    after_ = Observe();
    ASSERT_NE(before_, after_);
  }
  Status RunAgain() {
    FL_ASSIGN_OR_RETURN(const auto writer, OpenWriter());
    return GetParam().stage(*writer)();
  }
  /// How a child ends that does the operation with `failpoints` armed.
  int RunInChild(const std::string& failpoints) {
    return InChild([&] {
      const base::Result<std::unique_ptr<ModelRepository>> writer = OpenWriter();
      if (!writer.ok()) return 1;
      const std::function<Status()> run = GetParam().stage(**writer);
      base::ArmFailpoints(failpoints);
      return run().ok() ? 0 : 2;
    });
  }
  /// Nothing is half done, and doing it again does it.
  void ExpectWholeAndGoOn(const std::string& where) {
    SCOPED_TRACE(where);
    const std::string found = Observe();
    EXPECT_TRUE(found == before_ || found == after_) << found;
    ASSERT_THAT(RunAgain(), IsOk());
    EXPECT_EQ(Observe(), after_);
    EXPECT_THAT(Leftovers(place_), ::testing::IsEmpty());
  }

  base::TemporaryDirectory folder_;
  const base::Path prepared_ = folder_ / "prepared";
  base::Path place_;
  std::string before_;
  std::string after_;
};

TEST_P(CrashTest, B16_KilledAtEachStepLeavesTheOldOrTheNewWhole) {
  LearnBeforeAndAfter();
  int kills = 0;
  for (const std::string place : {"file.write", "file.rename", "registry.file.rename"}) {
    for (int step = 1; step < kManySteps; ++step) {
      Reset();
      const std::string armed = place + "#" + std::to_string(step) + "=kill";
      const int result = RunInChild(armed);
      if (result == 0) break;
      ASSERT_EQ(result, kKilled) << armed;
      ++kills;
      ExpectWholeAndGoOn(armed);
    }
  }
  for (const std::string step :
       {"publish.start", "publish.weights", "publish.state", "publish.config", "publish.manifest",
        "publish.records", "publish.committed", "pin.records", "pin.committed", "unpin.records",
        "unpin.committed", "promote.records", "promote.committed", "collect.records",
        "collect.committed", "collect.delete", "job-finished.records", "job-finished.committed"}) {
    Reset();
    const std::string armed = "registry." + step + "=kill";
    const int result = RunInChild(armed);
    if (result == 0) continue;  // a step of another operation
    ASSERT_EQ(result, kKilled) << armed;
    ++kills;
    ExpectWholeAndGoOn(armed);
  }
  EXPECT_GE(kills, 7);
}

TEST_P(CrashTest, B16_FullDiskAtEachStepIsAnErrorAndLeavesTheOldWhole) {
  LearnBeforeAndAfter();
  int faults = 0;
  for (const std::string place : {"file.write", "file.rename"}) {
    for (int step = 1; step < kManySteps; ++step) {
      Reset();
      const std::string armed = place + "#" + std::to_string(step) + "=nospace";
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<ModelRepository> writer, OpenWriter());
      const std::function<Status()> run = GetParam().stage(*writer);
      base::ArmFailpoints(armed);
      const Status result = run();
      base::ArmFailpoints("");
      if (result.ok()) break;
      ASSERT_THAT(result, StatusIs(Code::kResourceExhausted)) << armed;
      ++faults;
      EXPECT_EQ(Observe(), before_);
      // The same writer goes on once there is room.
      ASSERT_THAT(GetParam().stage(*writer)(), IsOk());
      EXPECT_EQ(Observe(), after_);
      writer.reset();
      ExpectWholeAndGoOn(armed);
    }
  }
  EXPECT_GE(faults, 4);
}

INSTANTIATE_TEST_SUITE_P(Operations, CrashTest, ::testing::ValuesIn(Operations()),
                         [](const auto& tested) { return tested.param.name; });

TEST(CrashOfCreationTest, KilledWhileMakingTheRepositoryLeavesNoneOrAnEmptyOne) {
  for (int step = 1; step < kManySteps; ++step) {
    const base::TemporaryDirectory folder;
    const auto open = [&] { return std::make_unique<DiskStore>(folder / "a/digits"); };
    const int result = InChild([&] {
      base::ArmFailpoints("file.rename#" + std::to_string(step) + "=kill");
      return ModelRepository::OpenWriter(open(), {}).ok() ? 0 : 1;
    });
    if (result == 0) {
      EXPECT_GT(step, 2);
      return;
    }
    ASSERT_EQ(result, kKilled);
    const auto reader = ModelRepository::OpenReader(open());
    if (!reader.ok()) {
      EXPECT_THAT(reader, StatusIs(Code::kNotFound));
    }
    ASSERT_OK_AND_ASSIGN(const auto writer, ModelRepository::OpenWriter(open(), {}));
    ASSERT_THAT(PublishSamples(*writer, 2), IsOk());
    EXPECT_TRUE(writer->Verify()->ok());
  }
}

TEST(FullDiskTest, B16_ARealFullDiskLeavesEveryVersionWhole) {
  constexpr int kMayNotMount = 77;
  const base::TemporaryDirectory folder;
  const int result = InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      return kMayNotMount;
    }
    const auto opened =
        ModelRepository::OpenWriter(std::make_unique<DiskStore>(folder / "digits"), {});
    if (!opened.ok()) return 1;
    ModelRepository& writer = **opened;
    int64_t published = 0;
    Status status;
    const base::TemporaryDirectory elsewhere;
    while (status.ok() && published < 100) {
      const std::string weights(50'000, static_cast<char>('a' + published));
      if (!base::WriteFileAtomically(elsewhere / "w", weights).ok()) return 2;
      PublishRequest request;
      request.weights.path = elsewhere / "w";
      status = writer.Publish(request).status();
      if (status.ok()) ++published;
    }
    if (status.code() != Code::kResourceExhausted || published < 5) return 3;
    const auto report = writer.Verify();
    if (!report.ok() || !report->ok() || report->versions != published) return 4;
    // Retention makes room again, on a disk that is full.
    if (!writer.Collect({.keep_last = 2}).ok()) return 5;
    PublishRequest request;
    request.weights.path = elsewhere / "w";
    if (!writer.Publish(request).ok()) return 6;
    return writer.Verify()->ok() ? 0 : 7;
  });
  if (result == kMayNotMount) GTEST_SKIP() << "needs the right to mount a small disk (run as root)";
  EXPECT_EQ(result, 0);
}

/// Every call of a store fails once, before or after it took effect, or in the middle of a commit.
class FaultTest : public ::testing::TestWithParam<StoreCapabilities> {
 protected:
  using Content = std::shared_ptr<MemoryRepository>;

  base::Result<std::unique_ptr<ModelRepository>> OpenWriter(const Content& content) {
    return ModelRepository::OpenWriter(
        std::make_unique<FaultyStore>(std::make_unique<MemoryStore>(content, GetParam()), faults_),
        {});
  }
  static Content Copy(const Content& content) {
    auto copy = std::make_shared<MemoryRepository>();
    copy->made = content->made;
    copy->revision = content->revision;
    copy->tags = content->tags;
    copy->blobs = content->blobs;
    return copy;
  }
  /// Whether the call that was to fail was made at all.
  bool FailOnce(const Operation& operation, const Content& content, int call, Faults::When when) {
    base::Result<std::unique_ptr<ModelRepository>> writer = OpenWriter(content);
    EXPECT_THAT(writer, IsOk());
    const std::string before = Describe(**writer);
    const std::function<Status()> run = operation.stage(**writer);
    faults_->Arm(call, when, base::Unavailable("the store is away"));
    const Status status = run();
    const bool hit = faults_->calls() >= call;
    faults_->Arm(0, when, base::OkStatus());
    // A fault may also do no harm: garbage that stays, a check that is repeated.
    if (!status.ok()) {
      EXPECT_THAT(status, StatusIs(Code::kUnavailable));
    }
    // Half the time the same writer repeats it, else one that is opened afresh. That one also
    // completes what a commit without atomic tags began.
    const bool afresh = call % 2 == 0;
    if (afresh) {
      writer = base::Internal("closed");
      writer = OpenWriter(content);
      EXPECT_THAT(writer, IsOk());
    }
    if (afresh || GetParam().atomic_tags) {
      EXPECT_TRUE((*writer)->Verify()->ok());
    }
    EXPECT_THAT(operation.stage(**writer)(), IsOk());
    EXPECT_NE(Describe(**writer), before);
    const base::Result<VerifyReport> report = (*writer)->Verify();
    for (const Problem& problem : report->problems) {
      ADD_FAILURE() << problem.subject << ": " << problem.message;
    }
    return hit;
  }

  const std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
};

TEST_P(FaultTest, EachFailingCallLeavesTheOldOrTheNewWhole) {
  const auto prepared = std::make_shared<MemoryRepository>();
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, OpenWriter(prepared));
    ASSERT_THAT(Prepare(*writer), IsOk());
  }
  for (const Operation& operation : Operations()) {
    for (const auto when : {Faults::When::kBefore, Faults::When::kAfter, Faults::When::kWithin}) {
      if (when == Faults::When::kWithin && GetParam().atomic_tags) continue;
      for (int call = 1; call < kManySteps; ++call) {
        SCOPED_TRACE(operation.name + ", call " + std::to_string(call));
        if (!FailOnce(operation, Copy(prepared), call, when)) break;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LikeADisk, FaultTest,
                         ::testing::Values(StoreCapabilities{true, true, true, true}));
INSTANTIATE_TEST_SUITE_P(LikeS3, FaultTest,
                         ::testing::Values(StoreCapabilities{true, true, true, false}));
INSTANTIATE_TEST_SUITE_P(LikeAnOciRegistry, FaultTest,
                         ::testing::Values(StoreCapabilities{false, false, false, true}));

}  // namespace
}  // namespace fl::registry
