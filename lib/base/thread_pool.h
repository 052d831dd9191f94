#pragma once

/// A fixed number of threads that run closures.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fl::base {

/// Thread-safe. The destructor finishes what was submitted.
class ThreadPool {
 public:
  /// `threads` ≥ 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// `work` must not throw, here and in ParallelFor: there is nobody to catch it.
  void Submit(std::function<void()> work);
  int size() const { return static_cast<int>(threads_.size()); }

  /// Runs body(i) for i in [0, count) on the pool and the calling thread, and returns when all are
  /// done. Each index runs once; the order is open. `pool` null runs all on the caller. May be used
  /// within `body`.
  static void ParallelFor(ThreadPool* pool, size_t count, const std::function<void(size_t)>& body);

 private:
  void Run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace fl::base
