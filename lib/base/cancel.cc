#include "base/cancel.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/check.h"

namespace fl::base {

struct SignalStop::State {
  std::stop_source source;
  std::atomic<bool> ending{false};
  std::atomic<int> signal{0};
  sigset_t previous;
  sigset_t watched;
  std::jthread watcher;
};

SignalStop::SignalStop() : state_(new State) {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  sigemptyset(&state_->watched);
  sigaddset(&state_->watched, SIGINT);
  sigaddset(&state_->watched, SIGTERM);
  sigaddset(&state_->watched, SIGUSR2);  // our own: ends the watcher
  FL_CHECK(pthread_sigmask(SIG_BLOCK, &state_->watched, &state_->previous) == 0);
  state_->watcher = std::jthread([state = state_] {
    while (true) {
      int received = 0;
      if (sigwait(&state->watched, &received) != 0) continue;
      if (received == SIGUSR2) {
        if (state->ending.load()) return;
        continue;  // from outside: means nothing here
      }
      if (state->signal.exchange(received) != 0 && received == SIGINT) _exit(130);
      state->source.request_stop();
    }
  });
}

SignalStop::~SignalStop() {
  state_->ending.store(true);
  pthread_kill(state_->watcher.native_handle(), SIGUSR2);
  state_->watcher.join();
  pthread_sigmask(SIG_SETMASK, &state_->previous, nullptr);
  delete state_;
}

std::stop_token SignalStop::token() const { return state_->source.get_token(); }
int SignalStop::signal() const { return state_->signal.load(); }

}  // namespace fl::base
