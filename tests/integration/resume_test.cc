// Appends of a writer whose connection, server or process breaks again and again: each row is there
// once, in order. A failure prints SOFTLOOKUP_TEST_SEED=N; with that in the environment the cuts
// come after the same bytes again.
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/cutting_proxy.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/tool_process.h"

namespace softlookup::testing {
namespace {

constexpr std::uint32_t kKeyDim = 16;

// Row i of a writer has the value i, and a key that no other row has.
std::vector<float> KeysOf(std::uint64_t begin, std::uint32_t count) {
  std::vector<float> keys;
  for (std::uint64_t row = begin; row < begin + count; ++row) {
    for (std::uint32_t i = 0; i < kKeyDim; ++i) {
      keys.push_back(static_cast<float>(row) / static_cast<float>(i + 1));
    }
  }
  return keys;
}
std::vector<float> ValuesOf(std::uint64_t begin, std::uint32_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(begin));
  return values;
}

absl::Status AppendRows(std::uint64_t begin, std::uint32_t count, AppendStream* stream) {
  return stream->Append(View(KeysOf(begin, count), kKeyDim), View(ValuesOf(begin, count), 1));
}

// A client that is quick to come back.
Client ConnectTo(const std::string& address) {
  ClientOptions options = PatientOptions();
  options.retry.backoff_min = absl::Milliseconds(1);
  options.retry.backoff_max = absl::Milliseconds(20);
  return *Client::Connect(address, options);
}

// How far a stream is, for another thread to wait on.
class Watch {
 public:
  std::function<void(const AppendSummary&)> callback() {
    return [this](const AppendSummary& summary) {
      absl::MutexLock lock(&mutex_);
      rows_ = summary.acknowledged_rows;
    };
  }
  void AwaitRows(std::uint64_t rows) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return rows_ >= rows; };
    ASSERT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(60)));
  }

 private:
  absl::Mutex mutex_;
  std::uint64_t rows_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A server that comes back on the same directory, behind a proxy whose address stays.
class ResumeTest : public ::testing::Test {
 protected:
  explicit ResumeTest(bool is_ephemeral = false) {
    if (!is_ephemeral) flags_ = {"--data-dir", directory_.path() + "/data"};
    Start();
  }

  void Start() {
    server_ = std::make_unique<ServerProcess>(flags_);
    direct_ = std::make_unique<Client>(*Client::Connect(server_->grpc_address(), PatientOptions()));
  }
  void MakeStore(const std::string& name) {
    ASSERT_THAT(direct_->CreateStore(StoreMessage(name, kKeyDim, 1)), IsOk());
  }
  void StartProxy(const CuttingProxy::Options& options) {
    proxy_ = std::make_unique<CuttingProxy>(server_->grpc_address(), options);
  }
  // Crashes the server and starts it again, behind the proxy if there is one.
  void CrashServer() {
    ASSERT_EQ(server_->Stop(SIGKILL), 128 + SIGKILL);
    Start();
    if (proxy_ != nullptr) proxy_->SetServer(server_->grpc_address());
  }

  // The store "s" has the rows 0 to row_count - 1, each once and in order, and remembers them as a
  // store that got them without a break.
  void ExpectEachRowOnce(std::uint64_t row_count) {
    std::uint64_t row = 0;
    const absl::Status read = direct_->ReadRows("s", {}, [&](const v1::ReadRowsResponse& page) {
      for (const v1::Row& there : page.rows()) {
        EXPECT_EQ(there.position(), row);
        EXPECT_EQ(Floats(there.value()), ValuesOf(row, 1)) << "row " << row;
        EXPECT_EQ(Floats(there.key()), KeysOf(row, 1)) << "row " << row;
        ++row;
        if (::testing::Test::HasFailure()) return false;
      }
      return true;
    });
    EXPECT_THAT(read, IsOk());
    ASSERT_EQ(row, row_count);

    MakeStore("unbroken");
    AppendStream stream = *direct_->OpenAppendStream("unbroken");
    for (std::uint64_t begin = 0; begin < row_count; begin += 1000) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(row_count - begin, 1000));
      ASSERT_THAT(AppendRows(begin, count, &stream), IsOk());
    }
    ASSERT_THAT(stream.Finish(), IsOk());
    v1::Memory memory = MemoryOf("s");
    const v1::Memory unbroken = MemoryOf("unbroken");
    memory.set_revision(unbroken.revision());
    EXPECT_THAT(memory, IsMessage(unbroken));
    EXPECT_EQ(memory.weight(), static_cast<double>(row_count));
  }
  v1::Memory MemoryOf(const std::string& store) {
    v1::GetMemoryRequest request;
    request.set_store(store);
    const auto memory = direct_->GetMemory(request);
    EXPECT_THAT(memory, IsOk());
    return memory.ok() ? *memory : v1::Memory();
  }

  const TemporaryDirectory directory_;
  std::vector<std::string> flags_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> direct_;  // Not through the proxy.
  std::unique_ptr<CuttingProxy> proxy_;
};

// Keeps everything in memory: here connections break, and syncing would take most of the time.
class CutStreamTest : public ResumeTest {
 protected:
  CutStreamTest() : ResumeTest(/*is_ephemeral=*/true) {}
};

TEST_F(CutStreamTest, AStreamThatIsCutAHundredTimesLeavesEachRowOnce) {
  constexpr int kCuts = 100;
  const std::uint64_t seed = FirstSeed();
  SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(MakeStore("s"));
  StartProxy(
      {.seed = seed, .cuts = kCuts, .bytes_to_server_max = 200'000, .bytes_to_client_max = 3'000});
  AppendStream stream = *ConnectTo(proxy_->address())
                             .OpenAppendStream("s", {.deadline = absl::Seconds(100),
                                                     .writer = "w",
                                                     .unacknowledged_requests_max = 16});
  Draw draw(seed);
  std::uint64_t rows = 0, requests = 0;
  for (int more = 20; more > 0; more -= proxy_->cuts() >= kCuts) {
    const auto count = static_cast<std::uint32_t>(draw.Int(1, draw.Chance(0.1) ? 300 : 30));
    ASSERT_THAT(AppendRows(rows, count, &stream), IsOk());
    rows += count;
    ++requests;
  }
  const auto summary = stream.Finish();
  ASSERT_THAT(summary, IsOk());
  std::printf("%d cuts, %lu reconnections, %lu rows in %lu requests\n", proxy_->cuts(),
              summary->reconnections, rows, requests);
  EXPECT_GE(proxy_->cuts(), kCuts);
  EXPECT_GT(summary->reconnections, 0u);
  EXPECT_EQ(summary->acknowledged_rows, rows);
  EXPECT_EQ(summary->acknowledged_requests, requests);
  EXPECT_EQ(summary->row_count, rows);
  EXPECT_EQ(summary->revision, direct_->GetStore("s")->revision());
  ExpectEachRowOnce(rows);
}

// Two ways to the data, as two routers are.
TEST_F(CutStreamTest, AStreamThatIsCutAtOneOfTwoAddressesLeavesEachRowOnce) {
  constexpr int kCuts = 40;
  const std::uint64_t seed = FirstSeed();
  SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(MakeStore("s"));
  CuttingProxy::Options options = {
      .seed = seed, .cuts = kCuts, .bytes_to_server_max = 100'000, .bytes_to_client_max = 3'000};
  const CuttingProxy first(server_->grpc_address(), options);
  ++options.seed;
  const CuttingProxy second(server_->grpc_address(), options);
  AppendStream stream =
      *ConnectTo(first.address() + "," + second.address()).OpenAppendStream("s", {.writer = "w"});
  std::uint64_t rows = 0;
  for (; first.cuts() + second.cuts() < kCuts; rows += 20) {
    ASSERT_THAT(AppendRows(rows, 20, &stream), IsOk());
  }
  const auto summary = stream.Finish();
  ASSERT_THAT(summary, IsOk());
  EXPECT_GT(first.cuts(), 0);
  EXPECT_GT(second.cuts(), 0);
  EXPECT_EQ(summary->acknowledged_rows, rows);
  EXPECT_EQ(summary->row_count, rows);
  ExpectEachRowOnce(rows);
}

TEST_F(ResumeTest, AServerThatCrashesInAStreamGetsTheRestWhenItIsBack) {
  constexpr int kCrashes = 4;
  constexpr std::uint64_t kRowsBetween = 800;
  const std::uint64_t seed = FirstSeed();
  SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
  ASSERT_NO_FATAL_FAILURE(MakeStore("s"));
  StartProxy(
      {.seed = seed, .cuts = 5, .bytes_to_server_max = 400'000, .bytes_to_client_max = 10'000});
  Watch watch;
  std::atomic<bool> enough{false};
  std::uint64_t rows = 0;
  std::jthread appender([&] {
    AppendStream stream = *ConnectTo(proxy_->address())
                               .OpenAppendStream("s", {.deadline = absl::Seconds(100),
                                                       .writer = "w",
                                                       .on_progress = watch.callback()});
    for (; !enough; rows += 10) ASSERT_THAT(AppendRows(rows, 10, &stream), IsOk());
    const auto summary = stream.Finish();
    ASSERT_THAT(summary, IsOk());
    EXPECT_EQ(summary->acknowledged_rows, rows);
    EXPECT_EQ(summary->row_count, rows);
  });
  for (int crash = 1; crash <= kCrashes; ++crash) {
    watch.AwaitRows(crash * kRowsBetween);
    CrashServer();
  }
  enough = true;
  appender.join();
  ExpectEachRowOnce(rows);
}

TEST_F(ResumeTest, AStreamGoesOnWhereItsWriterWasLeft) {
  ASSERT_NO_FATAL_FAILURE(MakeStore("s"));
  AppendStream first = *direct_->OpenAppendStream("s", {.writer = "w"});
  EXPECT_EQ(first.resumed_from().last_sequence(), 0u);
  ASSERT_THAT(AppendRows(0, 7, &first), IsOk());
  ASSERT_THAT(AppendRows(7, 3, &first), IsOk());
  ASSERT_THAT(first.Finish(), IsOk());
  EXPECT_EQ(direct_->GetWriter("s", "w")->last_sequence(), 10u);

  AppendStream second = *direct_->OpenAppendStream("s", {.writer = "w"});
  EXPECT_EQ(second.resumed_from().last_sequence(), 10u);
  EXPECT_EQ(second.resumed_from().last_position(), 9u);
  ASSERT_THAT(AppendRows(10, 5, &second), IsOk());
  const auto summary = second.Finish();
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->acknowledged_rows, 5u);
  EXPECT_EQ(summary->row_count, 15u);
  ExpectEachRowOnce(15);

  EXPECT_TRUE(absl::IsNotFound(direct_->OpenAppendStream("t", {.writer = "w"}).status()));
  EXPECT_TRUE(absl::IsNotFound(direct_->GetWriter("s", "v").status()));
}

TEST_F(ResumeTest, AToolThatIsKilledAndStartedAgainLeavesEachRowOnce) {
  constexpr std::uint32_t kRows = 20'000;
  const std::string file = directory_.path() + "/rows.csv";
  {
    std::ofstream csv(file);
    csv.precision(9);
    for (std::uint32_t row = 0; row < kRows; ++row) {
      for (const float component : KeysOf(row, 1)) csv << component << ",";
      csv << row << "\n";
    }
  }
  ASSERT_NO_FATAL_FAILURE(MakeStore("s"));
  const auto command = [&]() -> std::vector<std::string> {
    return {ToolBinary(), "--server", server_->grpc_address(), "append", "s", "--rows", file,
            "--writer",   "w",        "--batch-rows",          "25"};
  };
  // A request of a tool that was killed may arrive after the next tool has asked for the sequence.
  // That tool then ends with this error, and has to be started again.
  const auto came_late = [](const std::string& error) {
    return error.find("another sender uses this writer's name") != std::string::npos;
  };
  const std::string errors = directory_.path() + "/errors";
  int killed = 0;
  for (const std::uint64_t row : {1u, 3000u, 3001u, 8000u, 14'000u}) {
    std::optional<ToolProcess> tool(std::in_place, command(), errors);
    const absl::Time give_up = absl::Now() + absl::Seconds(60);
    const auto has_row = [&] { return direct_->GetStore("s")->row_count() >= row; };
    while (!has_row()) {
      ASSERT_LT(absl::Now(), give_up);
      if (!tool->HasEnded() || has_row()) continue;
      std::ifstream file_of_errors(errors);
      const std::string error(std::istreambuf_iterator<char>(file_of_errors), {});
      ASSERT_TRUE(came_late(error)) << error;
      tool->End(0);
      tool.emplace(command(), errors);
    }
    killed += WIFSIGNALED(tool->End(SIGKILL));
    if (row == 3000) CrashServer();
  }
  CommandResult last = RunCommand(command());
  if (came_late(last.err)) last = RunCommand(command());
  EXPECT_EQ(last.exit_code, 0) << last.err;
  std::printf("killed %d times; %s", killed, last.out.c_str());
  EXPECT_GT(killed, 0);
  ExpectEachRowOnce(kRows);
}

}  // namespace
}  // namespace softlookup::testing
