// One store of a backup that is taken into the running server, over real sockets and by the tool:
// what it is afterwards, also after a restart, what is refused, and who may do it.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRestorePath[] = "/softlookup.admin.v1.Admin/RestoreStore";

// A server with a directory and one for backups. Its store "people" has 12 rows, of which 10 live.
// The backup "one" has the store as it was then.
class RestoreStoreTest : public ::testing::Test {
 protected:
  RestoreStoreTest() {
    Start();
    v1::Store store = StoreMessage("people", 2, 1);
    v1::MemorySpec& memory = *store.add_memories();
    memory.set_name("decayed");
    memory.set_kind(v1::MEMORY_KIND_DECAYED_AVERAGE);
    memory.set_decay(0.5);
    EXPECT_THAT(client_->CreateStore(store), IsOk());
    v1::AppendRequest rows;
    rows.set_store("people");
    *rows.mutable_keys() = Message(NormalFloats(24, 1), 2);
    *rows.mutable_values() = Message(NormalFloats(12, 2), 1);
    for (std::uint64_t id = 0; id < 12; ++id) {
      rows.add_ids(100 + id);
      rows.add_row_labels()->add_labels(id % 2 == 0 ? "even" : "odd");
    }
    rows.set_writer("writer");
    rows.set_sequence(7);
    EXPECT_THAT(client_->Append(rows), IsOk());
    v1::RowFilter two;
    two.set_begin(3);
    two.set_end(5);
    EXPECT_THAT(client_->DeleteRows("people", two), IsOk());
    backed_up_ = *client_->GetStore("people");
    answers_ = Answers("people");
    EXPECT_THAT(client_->CreateBackup("one"), IsOk());
  }

  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  void Start() {
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--data-dir", Path("data"), "--backup-dir", Path("backups")});
    client_ = std::make_unique<Client>(*Client::Connect(server_->grpc_address(), PatientOptions()));
  }
  CommandResult Tool(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {ToolBinary(), "--server", server_->grpc_address()});
    return RunCommand(arguments);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto stores = client_->ListStores();
    EXPECT_THAT(stores, IsOk());
    for (const v1::Store& store : *stores) names.push_back(store.name());
    return names;
  }
  // What the store answers, to the bit and but for its name.
  std::vector<std::string> Answers(const std::string& name) {
    std::vector<std::string> answers;
    const std::vector<float> queries = {-1, 0.5, 2, 0};
    LookupOptions options;
    options.attention.set_weights(v1::WEIGHTS_MODE_ALL);
    const auto answer = client_->Lookup(name, View(queries, 2), options);
    EXPECT_THAT(answer, IsOk());
    if (!answer.ok()) return answers;
    answers.push_back(Message(answer->values.data, 1).SerializeAsString());
    for (const v1::QueryWeights& weights : answer->weights) {
      answers.push_back(weights.SerializeAsString());
    }
    EXPECT_THAT(client_->ReadRows(name, {},
                                  [&](const v1::ReadRowsResponse& page) {
                                    for (const v1::Row& row : page.rows()) {
                                      answers.push_back(row.SerializeAsString());
                                    }
                                    return true;
                                  }),
                IsOk());
    for (const char* memory : {"average", "decayed"}) {
      for (std::uint64_t end = 0; end <= 12; ++end) {
        v1::GetMemoryRequest request;
        request.set_store(name);
        request.set_name(memory);
        request.set_end(end);
        const auto state = client_->GetMemory(request);
        EXPECT_THAT(state, IsOk());
        if (state.ok()) answers.push_back(state->SerializeAsString());
      }
    }
    const auto writer = client_->GetWriter(name, "writer");
    EXPECT_THAT(writer, IsOk());
    if (writer.ok()) answers.push_back(writer->SerializeAsString());
    return answers;
  }
  // `restored` is the store of the backup, but for its name.
  void ExpectIsAsBackedUp(v1::Store restored) {
    EXPECT_EQ(Answers(restored.name()), answers_) << restored.name();
    restored.set_name(backed_up_.name());
    restored.set_byte_size(backed_up_.byte_size());
    EXPECT_THAT(restored, IsMessage(backed_up_));
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
  v1::Store backed_up_;
  std::vector<std::string> answers_;
};

TEST_F(RestoreStoreTest, AStoreComesBackAsItWasBesideTheOthers) {
  v1::RowFilter all;
  all.set_begin(0);
  ASSERT_THAT(client_->DeleteRows("people", all), IsOk());
  const v1::Store emptied = *client_->GetStore("people");
  const CommandResult tool =
      Tool({"backup", "restore-store", "one", "people", "--as", "old/people"});
  ASSERT_EQ(tool.exit_code, 0) << tool.err;
  EXPECT_EQ(tool.out, "restored people of one as old/people: 12 rows, 10 live\n");
  EXPECT_THAT(Names(), ElementsAre("old/people", "people"));
  ExpectIsAsBackedUp(*client_->GetStore("old/people"));
  EXPECT_THAT(*client_->GetStore("people"), IsMessage(emptied));

  ASSERT_THAT(client_->RenameStore("old/people", "people", {.replace = true}), IsOk());
  ASSERT_THAT(client_->DeleteStore("people"), IsOk());
  const auto restored = client_->RestoreStore("one", "people");
  ASSERT_THAT(restored, IsOk());
  EXPECT_EQ(restored->name(), "people");
  ExpectIsAsBackedUp(*restored);
  ASSERT_EQ(server_->Stop(SIGTERM), 0);
  Start();
  EXPECT_THAT(Names(), ElementsAre("people"));
  ExpectIsAsBackedUp(*client_->GetStore("people"));
  EXPECT_EQ(Tool({"backup", "verify", Path("backups/one")}).exit_code, 0) << "it was only read";
}

TEST_F(RestoreStoreTest, TheToolSaysItAsJson) {
  const CommandResult tool =
      Tool({"backup", "restore-store", "one", "people", "--as", "t", "-o", "json"});
  ASSERT_EQ(tool.exit_code, 0) << tool.err;
  const auto json = nlohmann::json::parse(tool.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(json["restored"], "people");
  EXPECT_EQ(json["backup"], "one");
  EXPECT_EQ(json["store"]["name"], "t");
  EXPECT_EQ(json["store"]["row_count"], 12);
  EXPECT_EQ(json["store"]["live_row_count"], 10);
}

TEST_F(RestoreStoreTest, WrongRequestsAreRefusedAndChangeNothing) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  const std::string long_name(200, 'x');
  const struct {
    std::string backup, store, name;
    absl::StatusCode code;
    std::string reason, key, value;
  } cases[] = {
      {"two", "people", "t", kNotFound, "BACKUP_NOT_FOUND", "backup", "two"},
      {"", "people", "t", kInvalid, "INVALID_NAME", "field", "backup"},
      {"..", "people", "t", kInvalid, "INVALID_NAME", "field", "backup"},
      {".one.partial", "people", "t", kInvalid, "INVALID_NAME", "field", "backup"},
      {"../backups/one", "people", "t", kInvalid, "INVALID_NAME", "field", "backup"},
      {"one/", "people", "t", kInvalid, "INVALID_NAME", "field", "backup"},
      {"one", "", "t", kInvalid, "INVALID_NAME", "field", "store"},
      {"one", "../people", "t", kInvalid, "INVALID_NAME", "field", "store"},
      {"one", "people", "..", kInvalid, "INVALID_NAME", "field", "name"},
      {"one", "people", long_name, kInvalid, "INVALID_NAME", "field", "name"},
      {"one", "peoples", "t", kNotFound, "STORE_NOT_FOUND", "store", "peoples"},
      {"one", "people", "", absl::StatusCode::kAlreadyExists, "STORE_EXISTS", "store", "people"},
  };
  for (const auto& wrong : cases) {
    SCOPED_TRACE(absl::StrCat(wrong.backup, " ", wrong.store, " ", wrong.name));
    const absl::Status status =
        client_->RestoreStore(wrong.backup, wrong.store, wrong.name).status();
    EXPECT_EQ(status.code(), wrong.code) << status;
    EXPECT_EQ(ErrorReason(status), wrong.reason);
    EXPECT_EQ(ErrorMetadata(status)[wrong.key], wrong.value);
  }
  const CommandResult none = Tool({"backup", "restore-store", "one", "peoples"});
  EXPECT_EQ(none.exit_code, 5);
  EXPECT_THAT(none.err, HasSubstr("no store \"peoples\" in the backup, which has people"));
  const CommandResult no_backup = Tool({"backup", "restore-store", "two", "people", "--as", "t"});
  EXPECT_EQ(no_backup.exit_code, 5);
  EXPECT_THAT(no_backup.err, HasSubstr("BACKUP_NOT_FOUND"));
  const CommandResult taken = Tool({"backup", "restore-store", "one", "people"});
  EXPECT_EQ(taken.exit_code, 6);
  EXPECT_THAT(taken.err, AllOf(HasSubstr("STORE_EXISTS"), HasSubstr("--as")));
  EXPECT_THAT(Names(), ElementsAre("people"));
}

TEST_F(RestoreStoreTest, AServerThatIsNoReplicaKeepsNoRanges) {
  admin::v1::RestoreStoreRequest request;
  request.set_backup("one");
  request.set_store("people");
  request.set_name("t");
  request.set_keep_ranges(true);
  const absl::Status status = client_->RestoreStore(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(ErrorReason(status), "NO_CLUSTER");
  EXPECT_THAT(Names(), ElementsAre("people"));
}

TEST_F(RestoreStoreTest, NothingIsTakenFromADamagedBackup) {
  namespace fs = std::filesystem;
  for (const auto& file : fs::directory_iterator(Path("backups/one"))) {
    const std::string name = file.path().filename().string();
    if (file.file_size() == 0) continue;
    SCOPED_TRACE(name);
    fs::copy(Path("backups/one"), Path("backups/copy"));
    {
      // The last byte of the manifest is that of a closing brace, or the end of its line.
      std::fstream text(Path("backups/copy/" + name),
                        std::ios::in | std::ios::out | std::ios::binary);
      text.seekp(name == "BACKUP.json" ? 0 : static_cast<std::streamoff>(file.file_size()) - 1);
      text.put('\x7f');
    }
    const absl::Status status = client_->RestoreStore("copy", "people", "t").status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, name));
    EXPECT_EQ(ErrorReason(status), "DATA_LOSS");
    fs::remove_all(Path("backups/copy"));
  }
  fs::remove(Path("backups/one/CURRENT"));
  EXPECT_THAT(client_->RestoreStore("one", "people", "t"),
              StatusIs(absl::StatusCode::kDataLoss, "CURRENT is missing"));
  EXPECT_THAT(Names(), ElementsAre("people"));
  EXPECT_EQ(Answers("people"), answers_);
}

TEST_F(RestoreStoreTest, OneIsRestoredAtATime) {
  std::vector<std::string> restored = {"people"};
  absl::Mutex mutex;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, name = absl::StrCat("t", i)] {
      const auto store = client_->RestoreStore("one", "people", name);
      if (store.ok()) {
        absl::MutexLock lock(&mutex);
        restored.push_back(name);
      } else {
        EXPECT_EQ(ErrorReason(store.status()), "RESTORE_IN_PROGRESS") << store.status();
        EXPECT_TRUE(RetryDelay(store.status()).has_value());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(restored.size(), 2u);
  EXPECT_THAT(Names(), ::testing::UnorderedElementsAreArray(restored));
  for (const std::string& name : restored) EXPECT_EQ(Answers(name), answers_);
}

// The grace of this server is an hour, so a stop that waits for a whole restore would show.
TEST_F(RestoreStoreTest, AStopOfTheServerEndsItAndLosesNothing) {
  absl::Status status;
  std::thread caller([&] { status = client_->RestoreStore("one", "people", "t").status(); });
  EXPECT_EQ(server_->Stop(SIGTERM), 0);
  caller.join();
  // A call that comes while gRPC shuts down is cancelled.
  EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status)) << status;
  Start();
  EXPECT_EQ(Answers("people"), answers_);
  if (Names().size() == 1) {
    EXPECT_THAT(client_->RestoreStore("one", "people", "t"), IsOk());
  }
  EXPECT_EQ(Answers("t"), answers_);
}

TEST_F(RestoreStoreTest, WhatDoesNotFitIsRefused) {
  ASSERT_EQ(server_->Stop(SIGTERM), 0);
  server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
      "--data-dir", Path("data"), "--backup-dir", Path("backups"), "--max-stores", "1"});
  client_ = std::make_unique<Client>(*Client::Connect(server_->grpc_address(), PatientOptions()));
  const absl::Status status = client_->RestoreStore("one", "people", "t").status();
  EXPECT_EQ(ErrorReason(status), "TOO_MANY_STORES") << status;
  EXPECT_THAT(Names(), ElementsAre("people"));
}

TEST(RestoreStoreRightsTest, TakesAdminAndLeavesALineWithBothNames) {
  const SecurityFiles files;
  const std::string admin = files.AddIdentity("o", "admin", "*");
  const std::string manage = files.AddIdentity("m", "manage", "*");
  std::vector<std::string> flags = files.Flags(Transport::kPlaintext);
  flags.insert(flags.end(),
               {"--audit-log", files.Path("audit.log"), "--log-format", "json", "--data-dir",
                files.Path("data"), "--backup-dir", files.Path("backups")});
  ServerProcess server(flags);
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  const auto call = [&](const std::string& path, const auto& request, const std::string& token) {
    return CallRaw(channel, path, request.SerializeAsString(), token);
  };
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("s", 2, 1);
  ASSERT_THAT(call("/softlookup.v1.SoftLookup/CreateStore", create, admin).status, IsGrpcOk());
  admin::v1::CreateBackupRequest backup;
  backup.set_name("one");
  ASSERT_THAT(call("/softlookup.admin.v1.Admin/CreateBackup", backup, admin).status, IsGrpcOk());

  admin::v1::RestoreStoreRequest restore;
  restore.set_backup("one");
  restore.set_store("s");
  restore.set_name("t");
  const grpc::Status denied = call(kRestorePath, restore, manage).status;
  EXPECT_THAT(denied, IsGrpcError(grpc::StatusCode::PERMISSION_DENIED, ""));
  EXPECT_EQ(ReasonOf(denied), "PERMISSION_DENIED");
  const RawAnswer answer = call(kRestorePath, restore, admin);
  ASSERT_THAT(answer.status, IsGrpcOk());
  admin::v1::RestoreStoreResponse restored;
  ASSERT_TRUE(restored.ParseFromString(answer.messages.at(0)));
  EXPECT_EQ(restored.store().name(), "t");
  EXPECT_EQ(restored.store().key_dim(), 2u);
  ASSERT_EQ(server.Stop(SIGTERM), 0);
  const std::vector<std::string> lines =
      absl::StrSplit(Contents(files.Path("audit.log")), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines.back(),
              AllOf(HasSubstr("\"event\":\"admin\",\"identity\":\"o\""),
                    HasSubstr("\"method\":\"RestoreStore\",\"store\":\"s\",\"new_name\":\"t\","
                              "\"result\":\"OK\",\"changes\":1,\"rows\":0")));
}

}  // namespace
}  // namespace softlookup::testing
