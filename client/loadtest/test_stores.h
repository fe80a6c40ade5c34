#ifndef SOFTLOOKUP_CLIENT_LOADTEST_TEST_STORES_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_TEST_STORES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/loadtest/row_source.h"
#include "softlookup/client.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::loadtest {

struct TestStoresOptions {
  std::string prefix = "loadtest";  // Stores are named PREFIX/<process>-<random>/<number>.
  int count = 1;
  v1::ElementType storage = v1::ELEMENT_TYPE_FLOAT32;
  std::uint64_t rows = 0;  // In each store.
  bool keep = false;       // True: the destructor does not delete the stores.
};

// The stores that a load test makes for itself, filled with the rows of a RowSource. The destructor
// deletes them, unless TestStoresOptions::keep is set.
class TestStores {
 public:
  // Makes and fills the stores, a few at a time. Cancelled if `interrupted` is set meanwhile. On
  // failure, deletes the stores made so far, even with `keep`. The error names the stores that it
  // could not delete. Calls `filled`, which may be empty, with the number of rows appended so far
  // to all stores. The calls come on several threads, but never on two at once. `client` must
  // outlive the object.
  static absl::StatusOr<std::unique_ptr<TestStores>> Make(
      const TestStoresOptions& options, const RowSource& rows, Client* client,
      const std::atomic<bool>& interrupted,
      const std::function<void(std::uint64_t rows)>& filled = {});
  ~TestStores();
  TestStores(const TestStores&) = delete;
  TestStores& operator=(const TestStores&) = delete;

  const std::vector<std::string>& names() const { return names_; }

  // Deletes the stores, even with `keep`. An error names the stores that were not deleted. The
  // destructor does not try again to delete these.
  absl::Status Delete();

 private:
  TestStores(Client* client, bool keep) : client_(client), keep_(keep) {}

  Client* const client_;
  const bool keep_;
  std::vector<std::string> names_;  // Of the stores that may exist.
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_TEST_STORES_H_
