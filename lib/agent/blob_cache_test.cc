#include "agent/blob_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "agent/internal/part_file.h"
#include "base/encoding.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::agent {
namespace {

using base::Code;
using base::Digest;
using base::IsOk;
using base::IsOkAndHolds;
using base::Result;
using base::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using transport::ClientRequest;
using transport::ClientResponse;

std::string Content(size_t bytes, int seed = 0) {
  std::string text;
  while (text.size() < bytes) text += std::to_string(text.size() * 31 + static_cast<size_t>(seed));
  text.resize(bytes);
  return text;
}

/// Serves one content to a BodyWriter, with the faults that a test asks for, as SendUntilAnswered
/// would: a cut is followed by a new attempt.
class Source {
 public:
  explicit Source(std::string content) : content_(std::move(content)) {}

  BlobCache::Fetch fetch() {
    return [this](const BlobCache::MakeRequest& make) -> Result<ClientResponse> {
      for (;;) {
        FL_ASSIGN_OR_RETURN(const ClientRequest request, make());
        const Result<ClientResponse> answer = Serve(request);
        if (answer.ok() || answer.status().code() != Code::kUnavailable) return answer;
        if (give_up_) return answer;
      }
    };
  }

  std::vector<size_t> cuts;  ///< the n-th answer breaks after so many bytes
  bool honours_ranges = true;
  bool wrong_range = false;
  bool give_up_ = false;  ///< a cut is the end, as when the agent is killed
  std::vector<std::string> ranges;

 private:
  Result<ClientResponse> Serve(const ClientRequest& request) {
    const std::string range(request.headers.GetOr("Range", ""));
    ranges.push_back(range);
    size_t first = 0;
    ClientResponse answer;
    answer.status = 200;
    if (!range.empty() && honours_ranges) {
      first = std::stoull(range.substr(std::string("bytes=").size()));
      answer.status = 206;
      answer.headers.Set("Content-Range", "bytes " + std::to_string(first + (wrong_range ? 1 : 0)) +
                                              "-" + std::to_string(content_.size() - 1) + "/" +
                                              std::to_string(content_.size()));
    }
    FL_RETURN_IF_ERROR(request.writer->Start(answer.status, answer.headers));
    const bool cut = next_cut_ < cuts.size();
    const size_t length = cut ? cuts[next_cut_++] : content_.size() - first;
    for (size_t done = 0; done < length; done += 1000) {
      const std::string_view piece =
          std::string_view(content_).substr(first + done, std::min<size_t>(1000, length - done));
      FL_RETURN_IF_ERROR(request.writer->Write(base::AsBytes(piece)));
    }
    if (cut) return base::Unavailable("cut");
    return answer;
  }

  const std::string content_;
  size_t next_cut_ = 0;
};

class BlobCacheTest : public testing::Test {
 protected:
  /// A cache as a new process has it; it lives until the test ends.
  BlobCache& Open() {
    caches_.push_back(BlobCache::Open(folder_ / "models").value());
    return *caches_.back();
  }
  base::Path PathOf(const std::string& content, const std::string& end = ".safetensors") {
    return folder_ / "models" / (Digest::Of(content).Hex() + end);
  }
  /// Gets `content` from `source`.
  Result<BlobCache::Lease> Get(BlobCache& cache, const std::string& content, Source& source) {
    return cache.Get(Digest::Of(content), content.size(), source.fetch(), {});
  }
  size_t Files() {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_ / "models"),
                      std::filesystem::directory_iterator()));
  }

  const base::TemporaryDirectory folder_;
  std::vector<std::unique_ptr<BlobCache>> caches_;
};

TEST_F(BlobCacheTest, FetchesOnceAlsoAcrossRestarts) {
  const std::string content = Content(10'000);
  Source source(content);
  for (int start = 0; start < 2; ++start) {
    BlobCache& cache = Open();
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(cache, content, source));
      EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
    }
  }
  EXPECT_THAT(source.ranges, ElementsAre(""));
}

TEST_F(BlobCacheTest, GoesOnWhereTheConnectionWasCut) {
  const std::string content = Content(10'000);
  Source source(content);
  source.cuts = {0, 3'500, 1};
  ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(Open(), content, source));
  EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
  EXPECT_THAT(source.ranges, ElementsAre("", "", "bytes=3500-", "bytes=3501-"));
}

TEST_F(BlobCacheTest, ACutAfterTheLastByteIsNoLoss) {
  const std::string content = Content(10'000);
  Source source(content);
  source.cuts = {content.size()};
  ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(Open(), content, source));
  EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
}

TEST_F(BlobCacheTest, GoesOnAfterARestart) {
  const std::string content = Content(10'000);
  Source source(content);
  source.cuts = {4'000};
  source.give_up_ = true;
  EXPECT_THAT(Get(Open(), content, source), StatusIs(Code::kUnavailable));
  ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(Open(), content, source));
  EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
  EXPECT_THAT(source.ranges, ElementsAre("", "bytes=4000-"));
}

TEST_F(BlobCacheTest, StartsOverWhereRangesAreNotHonoured) {
  const std::string content = Content(10'000);
  Source source(content);
  source.cuts = {4'000};
  source.honours_ranges = false;
  ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(Open(), content, source));
  EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
}

TEST_F(BlobCacheTest, StartsOverWhereAnotherRangeComesThanAskedFor) {
  const std::string content = Content(10'000);
  Source source(content);
  source.cuts = {4'000};
  source.wrong_range = true;
  ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(Open(), content, source));
  EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
  EXPECT_THAT(source.ranges, ElementsAre("", "bytes=4000-", ""));
}

TEST_F(BlobCacheTest, DamagedFilesAreFetchedAgain) {
  const std::string content = Content(10'000);
  Source source(content);
  const std::string damaged = Content(10'000, 1);
  const auto prepare = [&](const std::string& end, const std::string& text) {
    ASSERT_THAT(base::MakeDirectories(folder_ / "models"), IsOk());
    ASSERT_THAT(base::WriteFileAtomically(PathOf(content, end), text), IsOk());
    ASSERT_OK_AND_ASSIGN(const BlobCache::Lease lease, Get(Open(), content, source));
    EXPECT_THAT(base::ReadFile(lease.path()), IsOkAndHolds(content));
    ASSERT_THAT(base::RemoveFile(lease.path()), IsOk());
  };
  prepare(".safetensors", damaged);
  prepare(".safetensors", content.substr(0, 100));
  prepare(".part", damaged.substr(0, 5'000));  // not the beginning of it
  prepare(".part", content + "and more");      // longer than it
  prepare(".part", damaged);                   // as long
}

TEST_F(BlobCacheTest, OtherBytesThanTheDigestSaysAreRefused) {
  const std::string content = Content(10'000);
  Source same_size(Content(10'000, 1));
  EXPECT_THAT(Get(Open(), content, same_size), StatusIs(Code::kDataLoss, HasSubstr("digest")));
  EXPECT_EQ(same_size.ranges.size(), 2u);  // it was given a second chance
  Source longer(Content(10'001, 1));
  EXPECT_THAT(Get(Open(), content, longer), StatusIs(Code::kDataLoss));
  Source shorter(Content(9'999));
  EXPECT_THAT(Get(Open(), content, shorter), StatusIs(Code::kDataLoss, HasSubstr("fewer")));
  EXPECT_EQ(Files(), 0u);
}

TEST_F(BlobCacheTest, KeepsTheLastTwoAndThoseInUse) {
  BlobCache& cache = Open();
  std::vector<BlobCache::Lease> leases;
  for (int i = 0; i < 4; ++i) {
    const std::string content = Content(1'000, i);
    Source source(content);
    ASSERT_OK_AND_ASSIGN(BlobCache::Lease lease, Get(cache, content, source));
    if (i == 0) leases.push_back(std::move(lease));
  }
  EXPECT_TRUE(std::filesystem::exists(PathOf(Content(1'000, 0))));  // in use
  EXPECT_FALSE(std::filesystem::exists(PathOf(Content(1'000, 1))));
  EXPECT_FALSE(std::filesystem::exists(PathOf(Content(1'000, 2))));
  EXPECT_TRUE(std::filesystem::exists(PathOf(Content(1'000, 3))));
  leases.clear();
  EXPECT_EQ(Files(), 2u);
}

TEST_F(BlobCacheTest, B18_ADiskWithoutRoomIsToldBeforeTheFirstByte) {
  Source source("");
  EXPECT_THAT(Open().Get(Digest::Of("huge"), uint64_t{1} << 60, source.fetch(), {}),
              StatusIs(Code::kResourceExhausted, HasSubstr("1152921504606846976 more bytes")));
  EXPECT_THAT(source.ranges, IsEmpty());
}

TEST_F(BlobCacheTest, B18_RangesPastFourGibibytesAreUnderstood) {
  const uint64_t size = (uint64_t{1} << 33) + 5;
  EXPECT_THAT(internal::FirstByteOfRange("bytes 8589934592-8589934596/8589934597", size),
              IsOkAndHolds(uint64_t{1} << 33));
  for (const char* malformed :
       {"", "bytes", "bytes 0-1/2", "bytes -1-4/8589934597", "bytes 5-4/8589934597",
        "bytes 0-8589934597/8589934597", "bytes 0-4/*", "bytes 0-4/8589934597x",
        "bytes 99999999999999999999-4/8589934597", "items 0-4/8589934597"}) {
    EXPECT_THAT(internal::FirstByteOfRange(malformed, size), StatusIs(Code::kDataLoss))
        << malformed;
  }
}

TEST_F(BlobCacheTest, OfSeveralCallersOneFetches) {
  const std::string content = Content(200'000);
  Source source(content);
  BlobCache& cache = Open();
  std::atomic<int> fetches = 0;
  const BlobCache::Fetch inner = source.fetch();
  const BlobCache::Fetch counting = [&](const BlobCache::MakeRequest& make) {
    ++fetches;
    return inner(make);
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto lease = cache.Get(Digest::Of(content), content.size(), counting, {});
        ASSERT_THAT(lease, IsOk());
        EXPECT_THAT(base::ReadFile(lease->path()), IsOkAndHolds(content));
      });
    }
  }
  EXPECT_EQ(fetches, 1);
}

TEST_F(BlobCacheTest, ACallerThatGivesUpLeavesTheOthersToGoOn) {
  const std::string content = Content(10'000);
  Source source(content);
  source.cuts = {2'000};
  source.give_up_ = true;
  BlobCache& cache = Open();
  std::promise<void> fetching;
  std::promise<void> go_on;
  const BlobCache::Fetch inner = source.fetch();
  std::jthread first([&] {
    EXPECT_THAT(cache.Get(Digest::Of(content), content.size(),
                          [&](const BlobCache::MakeRequest& make) {
                            fetching.set_value();
                            go_on.get_future().wait();
                            return inner(make);
                          },
                          {}),
                StatusIs(Code::kUnavailable));
  });
  fetching.get_future().wait();
  std::stop_source impatient;
  impatient.request_stop();
  EXPECT_THAT(cache.Get(Digest::Of(content), content.size(), inner, impatient.get_token()),
              StatusIs(Code::kCancelled));
  std::jthread second([&] { EXPECT_THAT(Get(cache, content, source), IsOk()); });
  go_on.set_value();
  first.join();
  second.join();
  EXPECT_THAT(source.ranges, ElementsAre("", "bytes=2000-"));
}

}  // namespace
}  // namespace fl::agent
