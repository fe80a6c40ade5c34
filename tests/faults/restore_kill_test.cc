// Kills the server with SIGKILL while it takes stores from a backup: a store is there whole or not
// at all, what was acknowledged is there, and nothing else stays on the disk. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it, as far as the
// machine's timing allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/storage/commit_log.h"
#include "core/storage/records.h"
#include "softlookup/client.h"
#include "tests/faults/cycles.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

// Rows of 1,024 bytes, so that a store takes several writes to copy.
constexpr std::uint32_t kDim = 128;
constexpr std::int64_t kRowCount = 16'000, kRowsPerAppend = 2'000;

class RestoreKillTest : public ::testing::Test {
 protected:
  std::string Data() const { return directory_.path() + "/data"; }

  void Start() {
    server_ = nullptr;
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        "--data-dir", Data(), "--backup-dir", directory_.path() + "/backups"});
    client_ = std::make_unique<Client>(*Client::Connect(server_->grpc_address(), PatientOptions()));
  }
  void Fill() {
    v1::Store store;
    store.set_name("s");
    store.set_key_dim(kDim);
    store.set_value_dim(kDim);
    ASSERT_THAT(client_->CreateStore(store), IsOk());
    for (std::int64_t first = 0; first < kRowCount; first += kRowsPerAppend) {
      const std::vector<float> floats =
          NormalFloats(kRowsPerAppend * kDim, static_cast<std::uint64_t>(first));
      const auto rows = static_cast<std::uint32_t>(kRowsPerAppend);
      ASSERT_THAT(client_->Append("s", {floats, rows, kDim}, {floats, rows, kDim}), IsOk());
    }
  }
  // Until a call fails: the server is gone.
  void RestoreStores() {
    for (;;) {
      const std::string name = absl::StrCat("t", ++last_store_);
      if (!client_->RestoreStore("one", "s", name, {.deadline = absl::InfiniteDuration()}).ok()) {
        return;
      }
      absl::MutexLock lock(&mutex_);
      acknowledged_.push_back(name);
    }
  }
  void AwaitStores(std::size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return acknowledged_.size() >= count;
    };
    mutex_.Await(absl::Condition(&reached));
  }
  // To the bit.
  std::vector<float> Answer(const std::string& store) {
    const std::vector<float> query = NormalFloats(kDim, 7);
    const auto answer = client_->Lookup(store, {query, 1, kDim});
    EXPECT_THAT(answer, IsOk()) << store;
    return answer.ok() ? answer->values.data : std::vector<float>();
  }
  // Deletes the stores that were restored.
  void CheckStores() {
    const auto stores = client_->ListStores();
    ASSERT_THAT(stores, IsOk());
    const std::vector<float> expected = Answer("s");
    std::vector<std::string> names;
    for (const v1::Store& store : *stores) {
      ASSERT_EQ(store.damage(), "") << store.name();
      ASSERT_EQ(store.row_count(), static_cast<std::uint64_t>(kRowCount)) << store.name();
      if (store.name() == "s") continue;
      ASSERT_EQ(Answer(store.name()), expected) << store.name();
      names.push_back(store.name());
    }
    const absl::MutexLock lock(&mutex_);
    for (const std::string& name : acknowledged_) ASSERT_THAT(names, ::testing::Contains(name));
    ASSERT_LE(names.size(), acknowledged_.size() + 1);
    if (names.size() == acknowledged_.size()) ++cut_count_;
    for (const std::string& name : names) ASSERT_THAT(client_->DeleteStore(name), IsOk());
    acknowledged_.clear();
  }
  // The directory, which no server has open, has records of the store "s" alone.
  void CheckDirectory() {
    const auto log = OpenCommitLogToRead(Data());
    ASSERT_THAT(log, IsOk());
    const auto expect_none = [&](const KeyRange& keys) {
      EXPECT_THAT((*log)->Scan(keys.begin, keys.end,
                               [](absl::string_view, absl::string_view) {
                                 return absl::InternalError("a record was left");
                               }),
                  IsOk());
    };
    expect_none(KeysOfUnfinished());
    // "s" was the first store.
    expect_none({.begin = KeysOfStore(1).end, .end = KeysOfAllStores().end});
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
  std::uint64_t last_store_ = 0;
  int cut_count_ = 0;
  absl::Mutex mutex_;
  std::vector<std::string> acknowledged_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(RestoreKillTest, AStoreIsThereWholeOrNotAtAllWheneverTheServerWasKilled) {
  const std::uint64_t seed = FirstSeed();
  const int cycles = Cycles(8, 100);
  SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", seed));
  std::mt19937_64 generator(seed);
  Start();
  ASSERT_NO_FATAL_FAILURE(Fill());
  ASSERT_THAT(client_->CreateBackup("one"), IsOk());
  for (int cycle = 0; cycle < cycles; ++cycle) {
    SCOPED_TRACE(cycle);
    std::thread restores([this] { RestoreStores(); });
    AwaitStores(1 + generator() % 2);
    // Somewhere in the next one.
    for (std::uint64_t calls = generator() % 100; calls > 0; --calls) (void)client_->GetStore("s");
    EXPECT_EQ(server_->Stop(SIGKILL), 128 + SIGKILL);
    restores.join();
    Start();
    ASSERT_NO_FATAL_FAILURE(CheckStores());
    ASSERT_EQ(server_->Stop(SIGTERM), 0);
    ASSERT_NO_FATAL_FAILURE(CheckDirectory());
    Start();
  }
  std::printf("%d kills, %d stores cut short\n", cycles, cut_count_);
}

}  // namespace
}  // namespace softlookup::testing
