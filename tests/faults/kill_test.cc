// Kills the server with SIGKILL at random moments of appending and deleting, starts it again on
// what is there, and holds that against what it had acknowledged. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it, as far as the
// machine's timing allows.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/memory/running_memory.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/faults/cycles.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr std::uint32_t kKeyDim = 24, kValueDim = 3;
constexpr int kWriters = 3;
constexpr std::uint64_t kCyclesOfAStore = 100;  // Then it is deleted, and a new one made.

// The rows that writer `writer` sends as its append `sequence`: who looks at one can tell which.
std::uint32_t RowsOf(std::uint64_t writer, std::uint64_t sequence) {
  const std::uint64_t mixed = (writer * 1'000'003 + sequence) * 0x9e3779b97f4a7c15u;
  return 1 + static_cast<std::uint32_t>((mixed >> 40) % ((mixed >> 60) == 0 ? 700 : 20));
}

std::vector<float> KeyOf(std::uint64_t writer, std::uint64_t sequence, std::uint32_t row) {
  std::vector<float> key(kKeyDim);
  for (std::uint32_t i = 0; i < kKeyDim; ++i) {
    key[i] = 0.1f * static_cast<float>((writer * 31 + sequence * 17 + row * 7 + i) % 101) - 3;
  }
  return key;
}

std::vector<float> ValueOf(std::uint64_t writer, std::uint64_t sequence, std::uint32_t row) {
  return {static_cast<float>(writer), static_cast<float>(sequence), static_cast<float>(row)};
}

void AddRow(const std::vector<float>& components, v1::Matrix* matrix) {
  matrix->set_rows(matrix->rows() + 1);
  matrix->set_cols(static_cast<std::uint32_t>(components.size()));
  matrix->mutable_data()->append(reinterpret_cast<const char*>(components.data()),
                                 components.size() * sizeof(float));
}

std::vector<float> Floats(const v1::Matrix& matrix) {
  std::vector<float> floats(matrix.data().size() / sizeof(float));
  std::memcpy(floats.data(), matrix.data().data(), matrix.data().size());
  return floats;
}

// What the test knows from acknowledgements alone.
struct Writer {
  std::uint64_t last_sent = 0;
  std::map<std::uint64_t, std::uint64_t> acknowledged;  // Sequence to first position.
};
struct Deleter {
  std::uint64_t last_id = 0;
  std::set<std::uint64_t> there;
  std::set<std::uint64_t> gone;
};

class KillTest : public ::testing::Test {
 protected:
  void Start() {
    server_.reset();
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--data-dir", directory_.path(), "--log-level", "warning"});
    stub_ = v1::SoftLookup::NewStub(
        grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  }

  void MakeStoresAnew() {
    writers_.assign(kWriters, {});
    deleter_ = {};
    for (const char* name : {"appended", "deleted"}) {
      grpc::ClientContext delete_context;
      v1::DeleteStoreRequest old;
      v1::DeleteStoreResponse deleted;
      old.set_name(name);
      stub_->DeleteStore(&delete_context, old, &deleted);  // The first time there is none.
      grpc::ClientContext context;
      v1::CreateStoreRequest request;
      v1::Store response;
      request.mutable_store()->set_name(name);
      request.mutable_store()->set_key_dim(kKeyDim);
      request.mutable_store()->set_value_dim(kValueDim);
      v1::MemorySpec* memory = request.mutable_store()->add_memories();
      memory->set_name("decayed");
      memory->set_kind(v1::MEMORY_KIND_DECAYED_SUM);
      memory->set_decay(0.999);
      ASSERT_TRUE(stub_->CreateStore(&context, request, &response).ok());
    }
  }

  // Appends until a call fails: the server is gone.
  void Append(std::uint64_t index, std::uint64_t first_sequence) {
    Writer& writer = writers_[index];
    for (std::uint64_t sequence = first_sequence;; ++sequence) {
      v1::AppendRequest request;
      request.set_store("appended");
      request.set_writer("w" + std::to_string(index));
      request.set_sequence(sequence);
      // What is visible but not yet synced survives the process, too.
      request.set_acknowledge(sequence % 3 == 0 ? v1::ACKNOWLEDGE_APPLIED
                                                : v1::ACKNOWLEDGE_DURABLE);
      for (std::uint32_t row = 0; row < RowsOf(index, sequence); ++row) {
        AddRow(KeyOf(index, sequence, row), request.mutable_keys());
        AddRow(ValueOf(index, sequence, row), request.mutable_values());
      }
      writer.last_sent = sequence;
      grpc::ClientContext context;
      v1::AppendResponse response;
      if (!stub_->Append(&context, request, &response).ok()) return;
      writer.acknowledged[sequence] = response.first_position();
      CountAcknowledgement();
    }
  }

  void AppendAndDelete() {
    for (;;) {
      const std::uint64_t id = ++deleter_.last_id;
      v1::AppendRequest append;
      append.set_store("deleted");
      append.add_ids(id);
      AddRow(KeyOf(9, id, 0), append.mutable_keys());
      AddRow(ValueOf(9, id, 0), append.mutable_values());
      grpc::ClientContext append_context;
      v1::AppendResponse appended;
      if (!stub_->Append(&append_context, append, &appended).ok()) return;
      deleter_.there.insert(id);
      CountAcknowledgement();
      if (id % 3 == 0) continue;
      v1::DeleteRowsRequest request;
      request.set_store("deleted");
      request.mutable_filter()->add_ids(id - id % 2);
      deleter_.there.erase(id - id % 2);  // Either way, until it is acknowledged.
      grpc::ClientContext context;
      v1::DeleteRowsResponse response;
      if (!stub_->DeleteRows(&context, request, &response).ok()) return;
      deleter_.gone.insert(id - id % 2);
    }
  }

  void CountAcknowledgement() {
    absl::MutexLock lock(&mutex_);
    ++acknowledgements_;
  }
  void AwaitAcknowledgements(std::uint64_t count) {
    absl::MutexLock lock(&mutex_);
    const std::uint64_t enough = acknowledgements_ + count;
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return acknowledgements_ >= enough;
    };
    mutex_.Await(absl::Condition(&reached));
  }

  std::uint64_t LastSequence(std::uint64_t index) {
    grpc::ClientContext context;
    v1::GetWriterRequest request;
    request.set_store("appended");
    request.set_writer("w" + std::to_string(index));
    v1::Writer response;
    const grpc::Status status = stub_->GetWriter(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) return 0;
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.last_sequence();
  }

  std::vector<v1::Row> ReadRows(const std::string& store) {
    grpc::ClientContext context;
    v1::ReadRowsRequest request;
    request.set_store(store);
    const auto reader = stub_->ReadRows(&context, request);
    std::vector<v1::Row> rows;
    v1::ReadRowsResponse page;
    while (reader->Read(&page)) rows.insert(rows.end(), page.rows().begin(), page.rows().end());
    EXPECT_TRUE(reader->Finish().ok());
    return rows;
  }

  // Each append that was acknowledged is there whole, once, where it was said to be; one that was
  // not is there whole, once, or not at all; and the memories are those of exactly these rows.
  void CheckAppended() {
    const std::vector<v1::Row> rows = ReadRows("appended");
    MemorySet memories({{.name = "average", .kind = MemoryKind::kAverage},
                        {.name = "decayed", .kind = MemoryKind::kDecayedSum, .decay = 0.999}},
                       kKeyDim, kValueDim);
    std::vector<std::map<std::uint64_t, std::uint64_t>> found(kWriters);
    for (std::size_t position = 0; position < rows.size();) {
      const std::vector<float> first = Floats(rows[position].value());
      const auto writer = static_cast<std::uint64_t>(first[0]);
      const auto sequence = static_cast<std::uint64_t>(first[1]);
      ASSERT_TRUE(found.at(writer).emplace(sequence, position).second)
          << "writer " << writer << "'s append " << sequence << " is there twice";
      const std::uint32_t count = RowsOf(writer, sequence);
      ASSERT_LE(position + count, rows.size()) << "half an append";
      for (std::uint32_t row = 0; row < count; ++row, ++position) {
        ASSERT_EQ(rows[position].position(), position);
        const std::vector<float> key = KeyOf(writer, sequence, row);
        const std::vector<float> value = ValueOf(writer, sequence, row);
        ASSERT_EQ(Floats(rows[position].key()), key);
        ASSERT_EQ(Floats(rows[position].value()), value);
        memories.Add(key.data(), 1, value.data());
      }
    }
    for (std::uint64_t index = 0; index < kWriters; ++index) {
      for (const auto& [sequence, position] : writers_[index].acknowledged) {
        const auto there = found[index].find(sequence);
        ASSERT_NE(there, found[index].end())
            << "writer " << index << "'s append " << sequence << " was acknowledged and is lost";
        ASSERT_EQ(there->second, position);
      }
      const std::uint64_t last = found[index].empty() ? 0 : found[index].rbegin()->first;
      ASSERT_EQ(LastSequence(index), last);
      ASSERT_LE(last, writers_[index].last_sent);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      grpc::ClientContext context;
      v1::GetMemoryRequest request;
      request.set_store("appended");
      request.set_name(i == 0 ? "average" : "decayed");
      v1::Memory memory;
      ASSERT_TRUE(stub_->GetMemory(&context, request, &memory).ok());
      const MemoryValue expected = memories[i].Read();
      ASSERT_EQ(memory.key().data(), BytesOf(expected.key, memory.key()));
      ASSERT_EQ(memory.value().data(), BytesOf(expected.value, memory.value()));
    }
  }

  // `vector` in the element type of `like`.
  static std::string BytesOf(const std::vector<double>& vector, const v1::Matrix& like) {
    std::string bytes;
    for (const double component : vector) {
      const float narrow = static_cast<float>(component);
      if (like.element_type() == v1::ELEMENT_TYPE_FLOAT64) {
        bytes.append(reinterpret_cast<const char*>(&component), sizeof(component));
      } else {
        bytes.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
      }
    }
    return bytes;
  }

  void CheckDeleted() {
    std::set<std::uint64_t> ids;
    for (const v1::Row& row : ReadRows("deleted")) ids.insert(row.id());
    for (const std::uint64_t id : deleter_.there) {
      ASSERT_TRUE(ids.contains(id)) << "row " << id << " was acknowledged and is lost";
    }
    for (const std::uint64_t id : deleter_.gone) {
      ASSERT_FALSE(ids.contains(id)) << "row " << id << "'s deletion was acknowledged and is lost";
    }
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
  std::vector<Writer> writers_{kWriters};
  Deleter deleter_;
  absl::Mutex mutex_;
  std::uint64_t acknowledgements_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(KillTest, NothingAcknowledgedIsLostAndNothingIsThereTwice) {
  const std::uint64_t seed = FirstSeed();
  const std::uint64_t cycles = static_cast<std::uint64_t>(Cycles(50, 1000));
  SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 generator(seed);
  Start();
  std::uint64_t acknowledged = 0;
  for (std::uint64_t cycle = 0; cycle < cycles && !HasFatalFailure(); ++cycle) {
    if (cycle % kCyclesOfAStore == 0) {
      ASSERT_NO_FATAL_FAILURE(MakeStoresAnew());
    }
    std::vector<std::thread> threads;
    for (std::uint64_t index = 0; index < kWriters; ++index) {
      const std::uint64_t next = LastSequence(index) + 1;
      threads.emplace_back([this, index, next] { Append(index, next); });
    }
    threads.emplace_back([this] { AppendAndDelete(); });
    AwaitAcknowledgements(generator() % 200);
    EXPECT_EQ(server_->Stop(SIGKILL), 128 + SIGKILL);
    for (std::thread& thread : threads) thread.join();
    Start();
    // Every row is read, so not every time.
    if (cycle % 10 == 9 || cycle + 1 == cycles) {
      ASSERT_NO_FATAL_FAILURE(CheckAppended()) << "cycle " << cycle;
      ASSERT_NO_FATAL_FAILURE(CheckDeleted()) << "cycle " << cycle;
    }
    if (cycle % kCyclesOfAStore == kCyclesOfAStore - 1 || cycle + 1 == cycles) {
      for (const Writer& writer : writers_) acknowledged += writer.acknowledged.size();
    }
  }
  std::printf("%lu kills, %lu appends acknowledged\n", cycles, acknowledged);
  EXPECT_GT(acknowledged, cycles);
}

}  // namespace
}  // namespace softlookup::testing
