#include "server/observability/disk_watch.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace softlookup::server {

std::optional<DiskSpace> ReadDiskSpace(std::string directory, const std::string& path) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  if (error) return std::nullopt;
  return DiskSpace{.directory = std::move(directory),
                   .free_bytes = space.available,
                   .size_bytes = space.capacity};
}

DiskWatch::DiskWatch(Read read, const Clock& clock)
    : clock_(clock), state_(std::make_shared<State>()) {
  thread_ = std::thread([state = state_, read = std::move(read), &clock] {
    Run(*state, read, clock);
    absl::MutexLock lock(&state->mutex);
    state->ended = true;
  });
}

DiskWatch::~DiskWatch() {
  bool ended = false;
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    ended = state_->mutex.AwaitWithTimeout(absl::Condition(&state_->ended), absl::Seconds(1));
  }
  ended ? thread_.join() : thread_.detach();
}

void DiskWatch::ReadSoon() {
  absl::MutexLock lock(&state_->mutex);
  state_->wanted = true;
}

DiskStats DiskWatch::latest() const {
  absl::MutexLock lock(&state_->mutex);
  return clock_.Now() - state_->read_time > kStaleAfter ? DiskStats() : state_->stats;
}

void DiskWatch::Run(State& state, const Read& read, const Clock& clock) {
  const auto is_due = [&state]()
                          ABSL_NO_THREAD_SAFETY_ANALYSIS { return state.wanted || state.stopping; };
  for (;;) {
    {
      absl::MutexLock lock(&state.mutex);
      state.mutex.AwaitWithTimeout(absl::Condition(&is_due), kInterval);
      if (state.stopping) return;
      state.wanted = false;
    }
    DiskStats stats = read();
    absl::MutexLock lock(&state.mutex);
    // Once `stopping` is set, the DiskWatch may be gone, and `clock` with it.
    if (state.stopping) return;
    state.stats = std::move(stats);
    state.read_time = clock.Now();
  }
}

}  // namespace softlookup::server
