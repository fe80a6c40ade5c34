#ifndef SOFTLOOKUP_TESTS_TESTING_CUTTING_PROXY_H_
#define SOFTLOOKUP_TESTS_TESTING_CUTTING_PROXY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/testing/random.h"

namespace softlookup::testing {

// A TCP proxy on a free port of the loopback interface, which cuts a number of its connections:
// each after some number of bytes, towards the server or towards the client, at any byte of them.
// What had come in and was not passed on is lost, and what was passed on may still arrive: an end
// of the stream follows it, or a reset, which may overtake it. After the last cut, connections
// last.
class CuttingProxy {
 public:
  struct Options {
    std::uint64_t seed = 0;
    int cuts = 0;
    // A connection is cut after at most so many bytes in the one or the other direction.
    std::int64_t bytes_to_server_max = 1;
    std::int64_t bytes_to_client_max = 1;
  };

  // Passes connections on to `server`, 127.0.0.1:PORT.
  CuttingProxy(const std::string& server, const Options& options);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  // HOST:PORT.
  const std::string& address() const { return address_; }
  int cuts() const { return cuts_; }
  // Where connections that begin from now on go.
  void SetServer(const std::string& server);

 private:
  struct Half;
  struct Connection;

  void Run();
  void Accept();
  // Moves what can be moved; false once the connection is to be closed.
  bool Move(Connection* connection);

  const Options options_;
  std::string address_;
  int listener_ = -1;
  int stop_[2];  // A pipe, whose end stops the thread.
  std::atomic<int> cuts_ = 0;

  Draw draw_;  // The thread's, as are the connections.
  std::vector<std::unique_ptr<Connection>> connections_;

  absl::Mutex mutex_;
  std::string server_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_CUTTING_PROXY_H_
