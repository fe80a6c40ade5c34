#ifndef SOFTLOOKUP_TESTS_CORE_ENGINE_ENGINE_FIXTURE_H_
#define SOFTLOOKUP_TESTS_CORE_ENGINE_ENGINE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "softlookup/engine.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace softlookup {

// An engine in memory, and calls of it that wait for their answers.
class EngineFixture : public ::testing::Test {
 protected:
  EngineFixture() : engine_(Engine::Create({.thread_count = 2})) {}

  void Create(const std::string& name, std::int64_t key_dim = 2, std::int64_t value_dim = 1) {
    ASSERT_THAT(engine_->CreateStore({.name = name, .key_dim = key_dim, .value_dim = value_dim}),
                testing::IsOk());
  }

  absl::StatusOr<AppendResult> Append(const std::string& store, const std::vector<float>& keys,
                                      const std::vector<float>& values, std::int64_t key_dim = 2,
                                      std::int64_t value_dim = 1) {
    const AppendRequest request{
        .store = store,
        .keys = {keys.data(), static_cast<std::int64_t>(keys.size()) / key_dim, key_dim},
        .values = {values.data(), static_cast<std::int64_t>(values.size()) / value_dim, value_dim}};
    return testing::AppendAndWait(*engine_, request);
  }

  absl::StatusOr<LookupResult> Lookup(LookupRequest request, const std::vector<float>& queries,
                                      std::int64_t key_dim = 2) {
    request.queries = {queries.data(), static_cast<std::int64_t>(queries.size()) / key_dim,
                       key_dim};
    absl::StatusOr<LookupResult> result;
    absl::Notification done;
    engine_->Lookup(request, std::make_shared<CancelToken>(), [&](auto r) {
      result = std::move(r);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  }

  std::unique_ptr<Engine> engine_;
};

// Blocks the engine's only thread for as long as it lives.
class BusyPool {
 public:
  // The store "busy" is its own.
  explicit BusyPool(Engine& engine) : rows_(testing::NormalFloats(20'000 * 64, 1)) {
    const MatrixView rows{rows_.data(), 20'000, 64};
    EXPECT_THAT(engine.CreateStore({.name = "busy", .key_dim = 64, .value_dim = 64}),
                testing::IsOk());
    EXPECT_THAT(testing::AppendAndWait(engine, {.store = "busy", .keys = rows, .values = rows}),
                testing::IsOk());
    engine.Lookup({.store = "busy", .queries = {rows_.data(), 64, 64}},
                  std::make_shared<CancelToken>(), [this](auto) {
                    busy_.Notify();
                    free_.WaitForNotification();
                    ended_.Notify();
                  });
    busy_.WaitForNotification();
  }
  ~BusyPool() {
    free_.Notify();
    ended_.WaitForNotification();
  }

 private:
  const std::vector<float> rows_;
  absl::Notification busy_, free_, ended_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_TESTS_CORE_ENGINE_ENGINE_FIXTURE_H_
