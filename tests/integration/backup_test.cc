// Backups as the operator makes and restores them: the real server and the real tool.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// Exit codes of the tool.
constexpr int kInput = 3, kRefused = 4, kAlreadyExists = 6, kUnavailable = 7;

CommandResult RunTool(const ServerProcess& server, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {ToolBinary(), "--server", server.grpc_address()});
  return RunCommand(arguments);
}

// Appends on one stream until it goes, and counts what is acknowledged.
class StreamLoad {
 public:
  explicit StreamLoad(v1::SoftLookup::Stub& stub)
      : stream_(stub.StreamAppend(&context_)), sender_([this] { Send(); }), receiver_([this] {
          v1::AppendResponse response;
          while (stream_->Read(&response)) {
            absl::MutexLock lock(&mutex_);
            acknowledged_ = response.row_count();
          }
        }) {}
  ~StreamLoad() {
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
    }
    sender_.join();
    receiver_.join();
    EXPECT_THAT(stream_->Finish(), IsGrpcOk());
  }

  // The rows that are acknowledged once `count` more of them are.
  std::uint64_t RowsAfter(std::uint64_t count) {
    absl::MutexLock lock(&mutex_);
    const std::uint64_t enough = acknowledged_ + count;
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return acknowledged_ >= enough;
    };
    mutex_.Await(absl::Condition(&reached));
    return acknowledged_;
  }

 private:
  // Requests of two rows, not too many of them on the way.
  void Send() {
    for (std::uint64_t rows = 0;; rows += 2) {
      {
        absl::MutexLock lock(&mutex_);
        const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return stopped_ || rows < acknowledged_ + 200;
        };
        mutex_.Await(absl::Condition(&free));
        if (stopped_) break;
      }
      const auto x = static_cast<float>(rows % 1000);
      v1::AppendRequest request;
      if (rows == 0) request.set_store("s");
      *request.mutable_keys() = Message({x, 1, -x, 0.5f}, 2);
      *request.mutable_values() = Message({x, x + 1}, 1);
      if (!stream_->Write(request)) break;
    }
    stream_->WritesDone();
  }

  CallContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AppendRequest, v1::AppendResponse>> stream_;
  absl::Mutex mutex_;
  std::uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sender_;
  std::thread receiver_;
};

class BackupTest : public HasDirectory, public IntegrationTest {
 protected:
  BackupTest()
      : IntegrationTest({"--data-dir", Path("data"), "--backup-dir", Path("backups")}),
        admin_(admin::v1::Admin::NewStub(Channel(server_))) {}

  CommandResult Backup(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "backup");
    return RunTool(server_, std::move(arguments));
  }
  Json BackupJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const CommandResult result = Backup(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  CommandResult Restore(const std::string& backup, const std::string& target) {
    return Backup({"restore", Path("backups/" + backup), Path(target)});
  }

  std::vector<std::string> NamesIn(const std::string& name) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Path(name))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::unique_ptr<admin::v1::Admin::Stub> admin_;
};

TEST_F(BackupTest, ABackupMadeUnderLoadIsRestoredToAServerThatAnswersTheSame) {
  Create("s", 2, 1);
  std::uint64_t before = 0;
  Json created;
  {
    StreamLoad load(*stub_);
    before = load.RowsAfter(500);
    created = BackupJson({"create", "one"});
    load.RowsAfter(500);  // They go on.
  }
  EXPECT_EQ(created["name"], "one");
  EXPECT_GT(created["byte_size"], 0);
  EXPECT_EQ(BackupJson({"list"}), (Json{{"backups", {created}}}));
  EXPECT_THAT(Backup({"list"}).out, HasSubstr(created["create_time"].get<std::string>()));

  const CommandResult restored = Restore("one", "restored");
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  const ServerProcess second({"--data-dir", Path("restored")});
  Client client = *Client::Connect(second.grpc_address(), PatientOptions());
  const std::uint64_t rows = client.GetStore("s")->row_count(), all = GetStore("s").row_count();
  EXPECT_GE(rows, before);
  EXPECT_LT(rows, all);
  EXPECT_EQ(rows % 2, 0u) << "half an append";

  v1::GetMemoryRequest memory;
  memory.set_store("s");
  memory.set_end(rows);
  v1::Memory expected = *client_.GetMemory(memory);
  expected.set_revision(client.GetStore("s")->revision());
  EXPECT_THAT(*client.GetMemory(memory), IsMessage(expected));
  LookupOptions first_rows;
  first_rows.filter.set_end(rows);
  const std::vector<float> queries = {0.25f, 1, -2, 3};
  EXPECT_EQ(client.Lookup("s", View(queries, 2))->values.data,
            client_.Lookup("s", View(queries, 2), first_rows)->values.data);
  EXPECT_THAT(client.Append("s", View(queries, 2), View({1, 2}, 1)), IsOk());
  EXPECT_EQ(GetStore("s").row_count(), all);
}

TEST_F(BackupTest, AppendsThatAreAppliedButNotYetSyncedAreInABackup) {
  Create("s", 2, 1);
  v1::AppendRequest request = TwoRows();
  request.set_acknowledge(v1::ACKNOWLEDGE_APPLIED);
  ASSERT_THAT(Append(request), IsGrpcOk());
  BackupJson({"create", "one"});
  ASSERT_EQ(Restore("one", "restored").exit_code, 0);
  const ServerProcess second({"--data-dir", Path("restored")});
  EXPECT_EQ(Client::Connect(second.grpc_address(), PatientOptions())->GetStore("s")->row_count(),
            2u);
}

TEST_F(BackupTest, BackupsAreListedFromTheOldestOn) {
  EXPECT_EQ(BackupJson({"list"}), (Json{{"backups", Json::array()}}));
  for (const char* name : {"z", "a", "m"}) BackupJson({"create", name});
  std::vector<std::string> names;
  const Json listed = BackupJson({"list"});
  for (const Json& backup : listed["backups"]) names.push_back(backup["name"]);
  EXPECT_THAT(names, ElementsAre("z", "a", "m"));
}

TEST_F(BackupTest, WithoutANameItIsTheTime) {
  const std::string name = BackupJson({"create"})["name"].get<std::string>();
  EXPECT_TRUE(std::regex_match(name, std::regex("\\d{8}T\\d{6}Z"))) << name;
  EXPECT_THAT(NamesIn("backups"), ElementsAre(name));
}

TEST_F(BackupTest, ANameThatIsTakenOrWrongIsRefused) {
  const std::string longest(64, 'x');
  BackupJson({"create", longest});
  const CommandResult taken = Backup({"create", longest});
  EXPECT_EQ(taken.exit_code, kAlreadyExists);
  EXPECT_THAT(taken.err, HasSubstr("BACKUP_EXISTS"));
  for (const std::string& name : {longest + "x", std::string(".hidden"), std::string(".."),
                                  std::string("a/b"), std::string("a b"), std::string("ä")}) {
    const CommandResult refused = Backup({"create", name});
    EXPECT_EQ(refused.exit_code, kRefused) << name;
    EXPECT_THAT(refused.err, HasSubstr("INVALID_NAME"));
  }
  EXPECT_THAT(NamesIn("backups"), ElementsAre(longest));
  admin::v1::CreateBackupRequest request;
  request.set_name("a/b");
  admin::v1::Backup response;
  CallContext context;
  const grpc::Status status = admin_->CreateBackup(&context, request, &response);
  EXPECT_EQ(ReasonOf(status), "INVALID_NAME");
  EXPECT_EQ(InfoOf(status).metadata().at("field"), "name");
}

TEST_F(BackupTest, OneIsMadeAtATime) {
  fs::create_directory(Path("backups"));
  const int other = open(Path("backups").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);  // As another server that shares the directory.
  const CommandResult refused = Backup({"create", "one"});
  EXPECT_EQ(refused.exit_code, kUnavailable);
  EXPECT_THAT(refused.err, HasSubstr("BACKUP_IN_PROGRESS"));
  close(other);
  EXPECT_EQ(BackupJson({"create", "one"})["name"], "one");
}

TEST_F(BackupTest, WhatACrashLeftIsNoBackupAndGoesWithTheNextOne) {
  for (const char* leftover : {".cut.partial", ".cut.partial.tmp", "stranger"}) {
    fs::create_directories(Path("backups") + "/" + leftover);
    std::ofstream(Path("backups") + "/" + leftover + "/CURRENT") << "MANIFEST-000001\n";
  }
  EXPECT_EQ(BackupJson({"list"})["backups"], Json::array());
  BackupJson({"create", "cut"});
  EXPECT_THAT(NamesIn("backups"), ElementsAre("cut", "stranger"));
}

TEST_F(BackupTest, ADirectoryThatCannotBeMadeFailsTheBackupAlone) {
  fs::remove(Path("backups"));
  std::ofstream(Path("backups")) << "a file";
  const CommandResult failed = Backup({"create", "one"});
  EXPECT_EQ(failed.exit_code, kUnavailable);
  EXPECT_THAT(failed.err, HasSubstr("STORAGE_FAILED"));
  EXPECT_THAT(failed.err, HasSubstr(Path("backups")));
  Create("s", 2, 1);
  EXPECT_THAT(Append(TwoRows()), IsGrpcOk());
}

TEST_F(BackupTest, OnlyAWholeBackupIsRestoredAndOnlyToANewDirectory) {
  BackupJson({"create", "one"});
  const std::vector<std::string> there = NamesIn(".");
  fs::create_directory(Path("taken"));
  std::ofstream(Path("taken/file")) << "mine";
  const CommandResult taken = Restore("one", "taken");
  EXPECT_EQ(taken.exit_code, kAlreadyExists);
  EXPECT_THAT(taken.err, HasSubstr("not empty"));
  EXPECT_THAT(NamesIn("taken"), ElementsAre("file"));
  fs::remove_all(Path("taken"));

  const CommandResult none = Backup({"restore", Path("data"), Path("restored")});
  EXPECT_EQ(none.exit_code, kInput);
  EXPECT_THAT(none.err, HasSubstr("is not a backup"));
  EXPECT_THAT(Backup({"verify", Path("missing")}).err,
              HasSubstr(Path("missing") + ": No such file or directory"));

  std::ofstream(Path("backups/one/CURRENT"), std::ios::app) << "more";
  const CommandResult changed = Restore("one", "restored");
  EXPECT_EQ(changed.exit_code, kInput);
  EXPECT_THAT(changed.err, HasSubstr("CURRENT"));
  fs::remove(Path("backups/one/CURRENT"));
  const CommandResult missing = Restore("one", "restored");
  EXPECT_EQ(missing.exit_code, kInput);
  EXPECT_THAT(missing.err, HasSubstr("CURRENT"));

  for (const char* manifest : {"{\"format\": 2}", "{\"format\": 3}", "{\"files\": []}", "half of {",
                               "{\"format\": 1, \"files\": [{\"name\": \"../file\"}]}"}) {
    std::ofstream(Path("backups/one/BACKUP.json")) << manifest;
    const CommandResult unknown = Restore("one", "restored");
    EXPECT_EQ(unknown.exit_code, kInput) << manifest;
    EXPECT_THAT(unknown.err, HasSubstr("BACKUP.json"));
  }
  EXPECT_EQ(NamesIn("."), there);
}

// The first two bits of a file's last byte are flipped.
void Damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get());
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 3));
}

TEST_F(BackupTest, ADamagedBackupIsNeitherCalledWholeNorRestored) {
  Create("s", 2, 1);
  ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
  BackupJson({"create", "one"});
  const CommandResult whole = Backup({"verify", Path("backups/one")});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("whole: "));
  EXPECT_EQ(BackupJson({"verify", Path("backups/one")})["checksums"], true);
  for (const std::string& name : NamesIn("backups/one")) {
    if (name == "BACKUP.json" || fs::file_size(Path("backups/one/" + name)) == 0) continue;
    SCOPED_TRACE(name);
    fs::copy(Path("backups/one"), Path("copy"));
    Damage(Path("copy/" + name));
    for (const CommandResult& refused :
         {Backup({"verify", Path("copy")}), Backup({"restore", Path("copy"), Path("restored")})}) {
      EXPECT_EQ(refused.exit_code, kInput);
      EXPECT_THAT(refused.err, HasSubstr(Path("copy/" + name) + ": is damaged"));
    }
    EXPECT_FALSE(fs::exists(Path("restored")));
    fs::remove_all(Path("copy"));
  }
}

TEST_F(BackupTest, ABackupIsNotServed) {
  BackupJson({"create", "one"});
  const std::vector<std::string> files = NamesIn("backups/one");
  const std::string backup = Path("backups/one");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, std::vector<std::string>{"--verify"}}) {
    std::vector<std::string> command = {ServerBinary(), "--data-dir",    backup,       "--listen",
                                        "127.0.0.1:0",  "--http-listen", "127.0.0.1:0"};
    command.insert(command.end(), flags.begin(), flags.end());
    const CommandResult refused = RunCommand(command);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.out + refused.err,
                HasSubstr(backup + " is a backup, and serving it would change it"));
    EXPECT_THAT(refused.out + refused.err, HasSubstr("softlookup backup restore " + backup));
  }
  EXPECT_EQ(NamesIn("backups/one"), files);
  EXPECT_EQ(Backup({"verify", backup}).exit_code, 0);
}

TEST_F(BackupTest, AnEmptyDirectoryAndWhatAnAttemptLeftAreReplaced) {
  BackupJson({"create", "one"});
  fs::create_directory(Path("restored"));
  fs::create_directory(Path(".restored.restoring"));
  std::ofstream(Path(".restored.restoring/CURRENT")) << "half";
  ASSERT_EQ(Restore("one", "restored/").exit_code, 0);
  EXPECT_THAT(NamesIn("."), Not(::testing::Contains(".restored.restoring")));
  const ServerProcess second({"--data-dir", Path("restored")});
  EXPECT_THAT(Client::Connect(second.grpc_address(), PatientOptions())->ListStores(), IsOk());
}

TEST(BackupsDisabledTest, AServerWithoutADirectoryForBackupsSaysSo) {
  const ServerProcess server;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"backup", "create"}, {"backup", "list"}, {"backup", "restore-store", "b", "s"}}) {
    const CommandResult refused = RunTool(server, arguments);
    EXPECT_EQ(refused.exit_code, kRefused);
    EXPECT_THAT(refused.err, HasSubstr("BACKUPS_DISABLED"));
    EXPECT_THAT(refused.err, HasSubstr("--backup-dir"));
    EXPECT_THAT(refused.out, IsEmpty());
  }
}

}  // namespace
}  // namespace softlookup::testing
