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
#include "absl/time/time.h"
#include "tests/testing/random.h"

namespace softlookup::testing {

// A TCP proxy on a free port of the loopback interface, which cuts a number of its connections:
// each after some number of bytes, towards the server or towards the client, at any byte of them.
// What had come in and was not passed on is lost, and what was passed on may still arrive: an end
// of the stream follows it, or a reset, which may overtake it. After the last cut, connections
// last.
//
// SetLink() makes it a worse link: one that passes nothing on, or in one direction only, or slowly.
// What comes in meanwhile waits, and is passed on later.
class CuttingProxy {
 public:
  struct Options {
    std::uint64_t seed = 0;
    int cuts = 0;
    // A connection is cut after at most so many bytes in the one or the other direction.
    std::int64_t bytes_to_server_max = 1;
    std::int64_t bytes_to_client_max = 1;
  };

  // What the proxy does with the bytes of all connections. It accepts connections in any case.
  struct Link {
    bool passes_to_server = true;
    bool passes_to_client = true;
    // In each direction of each connection. 0: as fast as they come.
    std::int64_t bytes_per_second = 0;
  };

  // Passes connections on to `server`, 127.0.0.1:PORT or unix:PATH.
  CuttingProxy(const std::string& server, const Options& options);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  // HOST:PORT.
  const std::string& address() const { return address_; }
  int cuts() const { return cuts_; }
  // Where connections that begin from now on go.
  void SetServer(const std::string& server);
  // Holds for the connections that there are, and for all later ones.
  void SetLink(const Link& link);
  // Cuts all connections that there are.
  void CutAll();

 private:
  struct Half;
  struct Connection;

  void Run();
  void Accept();
  // Sets what each direction of each connection may read now.
  void BeginSlice();
  // Takes over what SetLink() and CutAll() have said.
  void TakeOrders();
  // Moves what can be moved; false once the connection is to be closed.
  bool Move(Connection* connection);
  // Ends a connection whose last bytes are lost.
  void Cut(Connection* connection);

  const Options options_;
  std::string address_;
  int listener_ = -1;
  int wake_[2];  // A pipe. A byte wakes the thread, its end stops it.
  std::atomic<int> cuts_ = 0;

  Draw draw_;  // The thread's, as are the connections.
  std::vector<std::unique_ptr<Connection>> connections_;
  Link link_;
  absl::Time next_slice_ = absl::InfinitePast();  // When BeginSlice() is due.

  absl::Mutex mutex_;
  std::string server_ ABSL_GUARDED_BY(mutex_);
  Link next_link_ ABSL_GUARDED_BY(mutex_);
  bool must_cut_all_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_CUTTING_PROXY_H_
