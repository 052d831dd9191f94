#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/check.h"

namespace fl::base {

ThreadPool::ThreadPool(int threads) {
  FL_CHECK(threads >= 1);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::jthread& thread : threads_) thread.join();
}

void ThreadPool::Submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void ThreadPool::Run() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

void ThreadPool::ParallelFor(ThreadPool* pool, size_t count,
                             const std::function<void(size_t)>& body) {
  // Helpers may start after the caller has done all the work and gone: they share what they touch.
  struct Shared {
    std::atomic<size_t> next{0};
    std::atomic<size_t> done{0};
    std::mutex mutex;
    std::condition_variable finished;
  };
  const auto shared = std::make_shared<Shared>();
  const auto work = [shared, count, &body]() noexcept {
    for (size_t i = shared->next.fetch_add(1); i < count; i = shared->next.fetch_add(1)) {
      body(i);
      if (shared->done.fetch_add(1) + 1 == count) {
        const std::lock_guard lock(shared->mutex);
        shared->finished.notify_all();
      }
    }
  };
  if (pool != nullptr) {
    const size_t helpers = std::min(count, static_cast<size_t>(pool->size()) + 1);
    for (size_t i = 1; i < helpers; ++i) pool->Submit(work);
  }
  work();
  std::unique_lock lock(shared->mutex);
  shared->finished.wait(lock, [&] { return shared->done.load() == count; });
}

}  // namespace fl::base
