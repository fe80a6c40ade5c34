// Many rows through the tool and the client's stream, beside lookups.
#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

void WriteNpy(const std::string& path, const std::vector<float>& floats, std::int64_t cols) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(static_cast<std::int64_t>(floats.size()) / cols) + ", " +
                       std::to_string(cols) + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header.push_back('\n');
  std::ofstream file(path, std::ios::binary);
  file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() & 0xff)
       << static_cast<char>(header.size() >> 8) << header;
  file.write(reinterpret_cast<const char*>(floats.data()),
             static_cast<std::streamsize>(floats.size() * sizeof(float)));
}

class StreamingTest : public IntegrationTest {};

TEST_F(StreamingTest, AHundredThousandRowsStreamInAndAreRememberedExactly) {
  constexpr std::int64_t kRows = 100'000, kDim = 128;
  const std::vector<float> keys = NormalFloats(kRows * kDim, 1);
  const std::vector<float> values = NormalFloats(kRows * kDim, 2);
  const TemporaryDirectory directory;
  const std::string keys_file = directory.path() + "/keys.npy";
  const std::string values_file = directory.path() + "/values.npy";
  WriteNpy(keys_file, keys, kDim);
  WriteNpy(values_file, values, kDim);
  Create("s", kDim, kDim);
  const CommandResult append =
      RunCommand({ToolBinary(), "--server", server_.grpc_address(), "append", "s", "--keys",
                  keys_file, "--values", values_file});
  ASSERT_EQ(append.exit_code, 0) << append.err;
  ASSERT_EQ(client_.GetStore("s")->row_count(), static_cast<std::uint64_t>(kRows));

  std::mt19937_64 generator(3);
  for (int i = 0; i < 10; ++i) {
    const std::int64_t end = 1 + static_cast<std::int64_t>(generator() % kRows);
    v1::GetMemoryRequest request;
    request.set_store("s");
    request.set_end(end);
    const auto memory = client_.GetMemory(request);
    ASSERT_THAT(memory, IsOk());
    // long double: the mean itself, next to 1e-12.
    std::vector<long double> key_sums(kDim), value_sums(kDim);
    for (std::int64_t j = 0; j < end; ++j) {
      for (std::int64_t c = 0; c < kDim; ++c) {
        key_sums[c] += keys[j * kDim + c];
        value_sums[c] += values[j * kDim + c];
      }
    }
    const std::vector<double> key = *DoublesFromProto(memory->key());
    const std::vector<double> value = *DoublesFromProto(memory->value());
    for (std::int64_t c = 0; c < kDim; ++c) {
      const double key_mean = static_cast<double>(key_sums[c] / end);
      const double value_mean = static_cast<double>(value_sums[c] / end);
      ASSERT_NEAR(key[c], key_mean, 1e-12 * std::abs(key_mean)) << "end " << end;
      ASSERT_NEAR(value[c], value_mean, 1e-12 * std::abs(value_mean)) << "end " << end;
    }
  }
}

// Row j has value j and all keys are equal, so the answer over the n rows that the response names
// is (n - 1) / 2: each answer is checked against its own prefix.
TEST_F(StreamingTest, LookupsBesideAStreamNeverFailAndAlwaysSeeAPrefix) {
  constexpr std::int64_t kBatches = 2000, kBatchRows = 50, kKeyDim = 16;
  Create("s", kKeyDim, 1);
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    auto stream = client_.OpenAppendStream("s");
    ASSERT_THAT(stream, IsOk());
    const std::vector<float> keys(kBatchRows * kKeyDim, 0.25f);
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      std::vector<float> values(kBatchRows);
      for (std::int64_t i = 0; i < kBatchRows; ++i) {
        values[i] = static_cast<float>(batch * kBatchRows + i);
      }
      ASSERT_THAT(stream->Append(View(keys, kKeyDim), View(values, 1)), IsOk());
    }
    const auto summary = stream->Finish();
    ASSERT_THAT(summary, IsOk());
    EXPECT_EQ(summary->acknowledged_rows, static_cast<std::uint64_t>(kBatches * kBatchRows));
    done = true;
  });
  std::uint64_t seen = 0;
  std::int64_t lookups = 0;
  const std::vector<float> queries(3 * kKeyDim, 1.0f);
  while (!done || seen < kBatches * kBatchRows) {
    const auto answer = client_.Lookup("s", View(queries, kKeyDim));
    ASSERT_THAT(answer, IsOk());
    ++lookups;
    ASSERT_GE(answer->row_count, seen);
    ASSERT_EQ(answer->row_count % kBatchRows, 0u);
    seen = answer->row_count;
    const double expected = seen == 0 ? 0 : (static_cast<double>(seen) - 1) / 2;
    for (const float value : answer->values.data) {
      ASSERT_NEAR(value, expected, 1e-5 * static_cast<double>(seen));
    }
    ASSERT_EQ(answer->stats[0].counted_rows(), seen);
  }
  writer.join();
  EXPECT_GE(lookups, 10);
}

// A store whose inputs take long to project where there are many of them.
v1::Store StoreWithInputs() {
  constexpr std::int64_t kInputDim = 64, kDim = 256;
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(kDim);
  store.set_value_dim(kDim);
  const v1::Matrix map = Message(std::vector<float>(kDim * kInputDim, 1), kInputDim);
  for (v1::Matrix* part :
       {store.mutable_projection()->mutable_query(), store.mutable_projection()->mutable_key(),
        store.mutable_projection()->mutable_value()}) {
    *part = map;
  }
  return store;
}

TEST_F(StreamingTest, AppendsOfInputsKeepTheirOrderHoweverLongTheirProjectionsTake) {
  ASSERT_THAT(client_.CreateStore(StoreWithInputs()), IsOk());
  constexpr std::uint32_t kAppends = 60, kFailing = 50;
  const auto rows_of = [](std::uint32_t append) { return append % 3 == 0 ? 256u : 1u; };
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  const auto stream = stub_->StreamAppend(&context);
  for (std::uint32_t append = 0; append < kAppends; ++append) {
    v1::AppendRequest request;
    request.set_store("s");
    request.set_writer("w");
    request.set_sequence(append + 1);
    std::vector<float> inputs(rows_of(append) * 64, 1);
    if (append == kFailing) inputs[0] = inputs[1] = 3e38f;  // Finite, but not its projection.
    *request.mutable_inputs() = Message(inputs, 64);
    if (!stream->Write(request)) break;
  }
  stream->WritesDone();
  v1::AppendResponse response;
  std::uint32_t responses = 0;
  std::uint64_t row_count = 0;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.sequence(), responses + 1);
    EXPECT_EQ(response.first_position(), row_count);
    row_count += rows_of(responses++);
  }
  EXPECT_EQ(responses, kFailing);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client_.GetStore("s")->row_count(), row_count);
}

}  // namespace
}  // namespace softlookup::testing
