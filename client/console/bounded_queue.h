#ifndef SOFTLOOKUP_CLIENT_CONSOLE_BOUNDED_QUEUE_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_BOUNDED_QUEUE_H_

#include <httplib.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::console {

// Runs an HTTP server's connections on a fixed number of threads. A bounded number of connections
// waits for a thread. Beyond that, enqueue() waits, so that the server accepts no more of them.
class BoundedQueue : public httplib::TaskQueue {
 public:
  BoundedQueue(std::size_t thread_count, std::size_t waiting_max);

  void enqueue(std::function<void()> task) override;
  // Runs the tasks that wait, and ends the threads.
  void shutdown() override;

 private:
  void RunTasks();

  const std::size_t waiting_max_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_BOUNDED_QUEUE_H_
