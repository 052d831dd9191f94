#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>
#include <thread>
#include <vector>

namespace fl::base {
namespace {

TEST(ThreadPool, DestructorFinishesWhatWasSubmitted) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(3);
    EXPECT_EQ(pool.size(), 3);
    for (int i = 0; i < 1000; ++i) pool.Submit([&done] { ++done; });
  }
  EXPECT_EQ(done, 1000);
}

TEST(ThreadPool, WorkMaySubmitWork) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(2);
    for (int i = 0; i < 100; ++i) {
      pool.Submit([&pool, &done] { pool.Submit([&done] { ++done; }); });
    }
  }
  EXPECT_EQ(done, 100);
}

TEST(ThreadPool, RunsOnAllItsThreadsAtOnce) {
  std::latch all(4);
  ThreadPool pool(4);
  for (int i = 0; i < 4; ++i) pool.Submit([&all] { all.arrive_and_wait(); });
}

TEST(ThreadPoolDeathTest, NeedsAThread) { EXPECT_DEATH(ThreadPool(0), "check failed"); }

TEST(ParallelFor, RunsEachIndexOnce) {
  ThreadPool pool(4);
  for (const size_t count : {0U, 1U, 2U, 3U, 4U, 5U, 1000U}) {
    // Plain ints: ThreadSanitizer sees it if two threads take one, or if the end is not waited for.
    std::vector<int> runs(count);
    ThreadPool::ParallelFor(&pool, count, [&runs](size_t i) { ++runs[i]; });
    EXPECT_EQ(runs, std::vector<int>(count, 1));
  }
}

TEST(ParallelFor, WithoutAPoolRunsOnTheCallerInOrder) {
  std::vector<size_t> order;
  const std::thread::id caller = std::this_thread::get_id();
  ThreadPool::ParallelFor(nullptr, 5, [&](size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(ParallelFor, UsesTheCallerAndThePool) {
  ThreadPool pool(2);
  std::latch together(3);
  ThreadPool::ParallelFor(&pool, 3, [&together](size_t) { together.arrive_and_wait(); });
}

TEST(ParallelFor, MayBeNested) {
  ThreadPool pool(2);
  std::vector<std::vector<int>> runs(20, std::vector<int>(20));
  ThreadPool::ParallelFor(&pool, runs.size(), [&](size_t i) {
    ThreadPool::ParallelFor(&pool, runs[i].size(), [&](size_t j) { ++runs[i][j]; });
  });
  EXPECT_EQ(runs, std::vector<std::vector<int>>(20, std::vector<int>(20, 1)));
}

TEST(ParallelFor, ReturnsThoughThePoolIsBusy) {
  std::latch release(1);
  ThreadPool pool(1);
  pool.Submit([&release] { release.wait(); });
  int sum = 0;  // only the caller runs
  ThreadPool::ParallelFor(&pool, 100, [&sum](size_t) { ++sum; });
  EXPECT_EQ(sum, 100);
  release.count_down();  // the helper that was submitted finds nothing left
}

TEST(ParallelFor, MayBeCalledFromSeveralThreads) {
  ThreadPool pool(2);
  std::atomic<int> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 20; ++i) ThreadPool::ParallelFor(&pool, 10, [&](size_t) { ++sum; });
      });
    }
  }
  EXPECT_EQ(sum, 4 * 20 * 10);
}

}  // namespace
}  // namespace fl::base
