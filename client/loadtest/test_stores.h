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
  std::string prefix = "loadtest";  // Names are PREFIX/<process>-<random>/<number>.
  int count = 1;
  v1::ElementType storage = v1::ELEMENT_TYPE_FLOAT32;
  std::uint64_t rows = 0;  // In each.
  bool keep = false;       // The stores stay when the object goes.
};

// Stores of a load test's own, filled with the rows of a RowSource. They are deleted with the
// object.
class TestStores {
 public:
  // Makes and fills them, a few at a time. On failure, and once `interrupted` is set (Cancelled),
  // those made so far are deleted; an error names those that could not be. `filled`, which may be
  // empty, is called with the rows so far, on any thread, one at a time. `client` must outlive the
  // object.
  static absl::StatusOr<std::unique_ptr<TestStores>> Make(
      const TestStoresOptions& options, const RowSource& rows, Client* client,
      const std::atomic<bool>& interrupted,
      const std::function<void(std::uint64_t rows)>& filled = {});
  ~TestStores();
  TestStores(const TestStores&) = delete;
  TestStores& operator=(const TestStores&) = delete;

  const std::vector<std::string>& names() const { return names_; }

  // What the destructor does, for who wants to know whether it worked: an error names the stores
  // that are still there.
  absl::Status Delete();

 private:
  TestStores(Client* client, bool keep) : client_(client), keep_(keep) {}

  Client* const client_;
  const bool keep_;
  std::vector<std::string> names_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_TEST_STORES_H_
