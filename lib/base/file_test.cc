#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/encoding.h"
#include "base/failpoint.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::base {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

/// What `body` says, run in a child: limits and mounts made there end with it. The child's
/// expectations are its exit status.
int InChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  FL_CHECK(pid >= 0);
  if (pid == 0) ::_exit(body());
  int status = 0;
  FL_CHECK(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class FileTest : public ::testing::Test {
 protected:
  ~FileTest() override { ArmFailpoints(""); }
  const TemporaryDirectory folder_;
};

TEST_F(FileTest, ContentComesBackWhole) {
  const std::string content("a\0b\n", 4);
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", content), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds(content));
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", ""), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds(""));
  const std::string large(1'000'000, 'x');
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", large), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds(large));
  EXPECT_THAT(Names(folder_.path()), ElementsAre("f"));
}

TEST_F(FileTest, ReadingHasALimit) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", std::string(100, 'x')), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f", 100), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f", 99),
              StatusIs(Code::kOutOfRange, AllOf(HasSubstr("/f"), HasSubstr("99 bytes"))));
}

TEST_F(FileTest, ErrorsNameThePath) {
  EXPECT_THAT(ReadFile(folder_ / "none"),
              StatusIs(Code::kNotFound, HasSubstr((folder_ / "none").string())));
  EXPECT_THAT(ReadFile(folder_.path()), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(WriteFileAtomically(folder_ / "none/f", "x"),
              StatusIs(Code::kNotFound, HasSubstr((folder_ / "none/f").string())));
  EXPECT_THAT(MappedFile::Open(folder_ / "none"), StatusIs(Code::kNotFound));
  EXPECT_THAT(MappedFile::Open(folder_.path()), StatusIs(Code::kInvalidArgument));
}

TEST_F(FileTest, ModeIsAsAsked) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "secret", "key", 0600), IsOk());
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "secret").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(FileTest, ReadersSeeTheOldOrTheNewFileWhole) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "old"), IsOk());
  const UniqueFd reader(::open((folder_ / "f").c_str(), O_RDONLY));
  ASSERT_OK_AND_ASSIGN(FileWriter writer, FileWriter::Create(folder_ / "f"));
  ASSERT_THAT(writer.Write(AsBytes("ne")), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds("old"));
  ASSERT_THAT(writer.Write(AsBytes("w")), IsOk());
  EXPECT_EQ(writer.written(), 3U);
  ASSERT_THAT(std::move(writer).Commit(), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds("new"));
  char text[3];
  ASSERT_EQ(::pread(reader.get(), text, 3, 0), 3);
  EXPECT_EQ(std::string(text, 3), "old");  // one who was reading goes on undisturbed
}

TEST_F(FileTest, AWriterThatIsDroppedLeavesNothing) {
  {
    ASSERT_OK_AND_ASSIGN(FileWriter writer, FileWriter::Create(folder_ / "f"));
    ASSERT_THAT(writer.Write(AsBytes("x")), IsOk());
    EXPECT_EQ(Names(folder_.path()).size(), 1U);
  }
  EXPECT_THAT(Names(folder_.path()), ElementsAre());
}

TEST_F(FileTest, AWriterMayBeMovedWhileItWrites) {
  ASSERT_OK_AND_ASSIGN(FileWriter first, FileWriter::Create(folder_ / "first"));
  ASSERT_THAT(first.Write(AsBytes("ab")), IsOk());
  ASSERT_OK_AND_ASSIGN(FileWriter second, FileWriter::Create(folder_ / "second"));
  ASSERT_THAT(second.Write(AsBytes("c")), IsOk());
  second = std::move(first);
  EXPECT_EQ(second.written(), 2U);
  FileWriter third(std::move(second));
  ASSERT_THAT(third.Write(AsBytes("d")), IsOk());
  ASSERT_THAT(std::move(third).Commit(), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "first"), IsOkAndHolds("abd"));
}

TEST_F(FileTest, CommitMayNameTheFileLate) {
  ASSERT_OK_AND_ASSIGN(FileWriter writer, FileWriter::Create(folder_ / "upload"));
  ASSERT_THAT(writer.Write(AsBytes("x")), IsOk());
  ASSERT_THAT(std::move(writer).Commit(/*durable=*/false, folder_ / "by-digest"), IsOk());
  EXPECT_THAT(Names(folder_.path()), ElementsAre("by-digest"));
}

TEST_F(FileTest, WhatWasReservedAndNotWrittenIsCutOff) {
  ASSERT_OK_AND_ASSIGN(FileWriter writer, FileWriter::Create(folder_ / "f", 1'000'000));
  ASSERT_THAT(writer.Write(AsBytes("x")), IsOk());
  ASSERT_THAT(std::move(writer).Commit(), IsOk());
  EXPECT_EQ(std::filesystem::file_size(folder_ / "f"), 1U);
}

TEST_F(FileTest, PartsMayBeWrittenInAnyOrder) {
  const Path path = folder_ / "file";
  ASSERT_OK_AND_ASSIGN(FileWriter writer, FileWriter::Create(path, 100));
  EXPECT_THAT(writer.WriteAt(6, AsBytes("world")), IsOk());
  EXPECT_THAT(writer.WriteAt(0, AsBytes("hello")), IsOk());
  EXPECT_EQ(writer.written(), 11u);
  EXPECT_THAT(writer.Write(AsBytes("!")), IsOk());
  EXPECT_THAT(std::move(writer).Commit(), IsOk());
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(std::string("hello\0world!", 12)));
}

TEST_F(FileTest, NoFileIsAsLargeAsAnyNumber) {
  for (const uint64_t size : {uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_THAT(FileWriter::Create(folder_ / "f", size), StatusIs(Code::kResourceExhausted))
        << size;
  }
  EXPECT_THAT(Names(folder_.path()), ElementsAre());
}

TEST_F(FileTest, B16_AFailureAtAnyStepKeepsTheOldFile) {
  for (const char* failpoint : {"file.write=nospace", "file.rename=error"}) {
    ASSERT_THAT(WriteFileAtomically(folder_ / "f", "old"), IsOk());
    ArmFailpoints(failpoint);
    EXPECT_FALSE(WriteFileAtomically(folder_ / "f", "new").ok()) << failpoint;
    EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds("old")) << failpoint;
    EXPECT_THAT(Names(folder_.path()), ElementsAre("f")) << failpoint;
  }
}

TEST_F(FileTest, B16_AKillAtAnyStepKeepsTheOldFileAndTheNextWriteWorks) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "old"), IsOk());
  for (const char* failpoint : {"file.write=kill", "file.rename=kill"}) {
    EXPECT_EQ(InChild([&] {
                ArmFailpoints(failpoint);
                return WriteFileAtomically(folder_ / "f", "new").ok() ? 0 : 1;
              }),
              -SIGKILL);
    EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds("old")) << failpoint;
  }
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "newer"), IsOk());
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds("newer"));
  // What the killed ones left is known by its name.
  for (const std::string& name : Names(folder_.path())) {
    EXPECT_TRUE(name == "f" || name.ends_with(".tmp")) << name;
  }
}

TEST_F(FileTest, B16_AFileSizeLimitIsAnErrorThatKeepsTheOldFile) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "old"), IsOk());
  EXPECT_EQ(
      InChild([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{1000, 1000};
        if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
        const Status status = WriteFileAtomically(folder_ / "f", std::string(1001, 'x'));
        if (status.code() != Code::kResourceExhausted) return 2;
        if (FileWriter::Create(folder_ / "g", 1001).status().code() != Code::kResourceExhausted) {
          return 3;
        }
        return WriteFileAtomically(folder_ / "h", std::string(1000, 'x')).ok() ? 0 : 4;
      }),
      0);
  EXPECT_THAT(ReadFile(folder_ / "f"), IsOkAndHolds("old"));
  EXPECT_THAT(Names(folder_.path()), ::testing::UnorderedElementsAre("f", "h"));
}

TEST_F(FileTest, B16_AFullDiskIsAnErrorThatKeepsTheOldFile) {
  constexpr int kMayNotMount = 77;
  const int result = InChild([&] {
    // A mount namespace of its own: nobody else sees the small disk, and it goes with the child.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", folder_.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
      return kMayNotMount;
    }
    if (!WriteFileAtomically(folder_ / "f", "old").ok()) return 1;
    const Status full = WriteFileAtomically(folder_ / "f", std::string(100'000, 'x'));
    if (full.code() != Code::kResourceExhausted || full.hint().empty()) return 2;
    // Known before the first byte, where the size is.
    if (FileWriter::Create(folder_ / "g", 100'000).status().code() != Code::kResourceExhausted) {
      return 3;
    }
    if (ReadFile(folder_ / "f").value_or("") != "old") return 4;
    if (Names(folder_.path()).size() != 1) return 5;
    const uint64_t free = FreeSpace(folder_.path()).value_or(0);
    if (free == 0 || free >= 64 * 1024) return 6;
    return WriteFileAtomically(folder_ / "f", std::string(10'000, 'x')).ok() ? 0 : 7;
  });
  if (result == kMayNotMount) GTEST_SKIP() << "needs the right to mount a small disk (run as root)";
  EXPECT_EQ(result, 0);
}

TEST_F(FileTest, FoldersAreMadeAndRemovedWithAllInThem) {
  ASSERT_THAT(MakeDirectories(folder_ / "a/b/c"), IsOk());
  EXPECT_THAT(MakeDirectories(folder_ / "a/b/c"), IsOk());
  EXPECT_THAT(MakeDirectories(folder_ / "a/d/"), IsOk());
  EXPECT_THAT(SyncDirectory(folder_ / "a/b"), IsOk());
  ASSERT_THAT(WriteFileAtomically(folder_ / "a/b/c/f", "x"), IsOk());
  EXPECT_THAT(MakeDirectories(folder_ / "a/b/c/f"), StatusIs(Code::kAlreadyExists));
  EXPECT_THAT(MakeDirectories(folder_ / "a/b/c/f/g"), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(RemoveTree(folder_ / "a"), IsOk());
  EXPECT_THAT(RemoveTree(folder_ / "a"), IsOk());
  EXPECT_THAT(Names(folder_.path()), ElementsAre());
  EXPECT_THAT(RemoveFile(folder_ / "f"), IsOk());
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "x"), IsOk());
  EXPECT_THAT(RemoveFile(folder_ / "f"), IsOk());
  EXPECT_FALSE(RemoveFile(folder_.path()).ok());
  EXPECT_THAT(SyncDirectory(folder_ / "none"), StatusIs(Code::kNotFound));
}

TEST_F(FileTest, FreeSpaceIsThatOfTheNearestFolder) {
  EXPECT_THAT(FreeSpace(folder_ / "not/there/yet"), IsOkAndHolds(::testing::Gt(0U)));
  EXPECT_THAT(FreeSpace("not/there/yet"), IsOkAndHolds(::testing::Gt(0U)));
  EXPECT_THAT(FreeSpace(""), IsOkAndHolds(::testing::Gt(0U)));
}

TEST_F(FileTest, MapsAWholeFile) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "content"), IsOk());
  ASSERT_OK_AND_ASSIGN(MappedFile file, MappedFile::Open(folder_ / "f"));
  MappedFile moved(std::move(file));
  EXPECT_EQ(AsText(moved.bytes()), "content");
  // Replaced, even removed: the mapping still shows what was opened.
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", "another"), IsOk());
  ASSERT_THAT(RemoveFile(folder_ / "f"), IsOk());
  EXPECT_EQ(AsText(moved.bytes()), "content");
  moved = MappedFile();
  EXPECT_EQ(moved.size(), 0U);
}

TEST_F(FileTest, MapsAnEmptyFile) {
  ASSERT_THAT(WriteFileAtomically(folder_ / "f", ""), IsOk());
  ASSERT_OK_AND_ASSIGN(const MappedFile file, MappedFile::Open(folder_ / "f"));
  EXPECT_EQ(file.size(), 0U);
  EXPECT_TRUE(file.bytes().empty());
}

TEST_F(FileTest, APipeIsRefusedNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::Open(folder_ / "pipe"),
              StatusIs(Code::kInvalidArgument, HasSubstr("not a regular file")));
}

TEST_F(FileTest, ALockNamesItsHolderAndGoesWithIt) {
  const Path path = folder_ / "lock";
  {
    ASSERT_OK_AND_ASSIGN(const FileLock lock, FileLock::Acquire(path, "fl-aggregatord, process 7"));
    EXPECT_THAT(FileLock::Acquire(path, "another"),
                StatusIs(Code::kFailedPrecondition,
                         AllOf(HasSubstr(path.string()), HasSubstr("fl-aggregatord, process 7"))));
  }
  ASSERT_OK_AND_ASSIGN(const FileLock lock, FileLock::Acquire(path, "b"));
  EXPECT_THAT(FileLock::Acquire(path, "c"), StatusIs(Code::kFailedPrecondition, HasSubstr("by b")));
}

TEST_F(FileTest, ALockIsGivenUpByAProcessThatIsKilled) {
  const Path path = folder_ / "lock";
  EXPECT_EQ(InChild([&path] {
              const Result<FileLock> lock = FileLock::Acquire(path, "child");
              if (lock.ok()) ::kill(::getpid(), SIGKILL);
              return 1;
            }),
            -SIGKILL);
  EXPECT_THAT(FileLock::Acquire(path, "parent"), IsOk());
}

TEST_F(FileTest, DescriptorsHaveOneOwner) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  UniqueFd moved(std::move(write_end));
  EXPECT_FALSE(write_end.valid());  // NOLINT(bugprone-use-after-move): what it is after is stated
  UniqueFd& same = moved;
  moved = std::move(same);
  EXPECT_TRUE(moved.valid());
  moved.Reset();
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);  // closed: end of file
}

}  // namespace
}  // namespace fl::base
