// Who may do what, over real sockets: the whole matrix, and rules and certificates that change.
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

using grpc::StatusCode;

// What a method takes, as design/API.md has it.
enum Need { kNobody, kRead, kWrite, kManage, kAdmin };

struct MethodCase {
  std::string path;
  Need need;
  std::string request;  // About the store "a/x", where it is about one.
};

template <typename Request>
std::string AboutStore(const std::string& store) {
  Request request;
  request.set_store(store);
  return request.SerializeAsString();
}

template <typename Request>
std::string AboutName(const std::string& store) {
  Request request;
  request.set_name(store);
  return request.SerializeAsString();
}

// About a store that there is not, so that it may be asked for more than once.
std::string AboutRename(const std::string& store) {
  v1::RenameStoreRequest request;
  request.set_store(store + "/none");
  request.set_new_name(store + "/new");
  return request.SerializeAsString();
}

template <typename Request>
std::string AboutConfig(const std::string& store) {
  Request request;
  request.mutable_store()->set_name(store);
  return request.SerializeAsString();
}

std::vector<MethodCase> Methods(const std::string& store) {
  const std::string contract = "/softlookup.v1.SoftLookup/";
  return {
      {contract + "GetStore", kRead, AboutName<v1::GetStoreRequest>(store)},
      {contract + "ListStores", kRead, ""},
      {contract + "ReadRows", kRead, AboutStore<v1::ReadRowsRequest>(store)},
      {contract + "Lookup", kRead, AboutStore<v1::LookupRequest>(store)},
      {contract + "StreamLookup", kRead, AboutStore<v1::LookupRequest>(store)},
      {contract + "Attend", kRead, ""},
      {contract + "GetMemory", kRead, AboutStore<v1::GetMemoryRequest>(store)},
      {contract + "WatchMemory", kRead, AboutStore<v1::WatchMemoryRequest>(store)},
      {contract + "Append", kWrite, AboutStore<v1::AppendRequest>(store)},
      {contract + "StreamAppend", kWrite, AboutStore<v1::AppendRequest>(store)},
      {contract + "DeleteRows", kWrite, AboutStore<v1::DeleteRowsRequest>(store)},
      {contract + "GetWriter", kWrite, AboutStore<v1::GetWriterRequest>(store)},
      {contract + "CreateStore", kManage, AboutConfig<v1::CreateStoreRequest>(store)},
      {contract + "UpdateStore", kManage, AboutConfig<v1::UpdateStoreRequest>(store)},
      {contract + "RenameStore", kManage, AboutRename(store)},
      {contract + "CompactStore", kManage, AboutName<v1::CompactStoreRequest>(store + "/none")},
      {contract + "DeleteStore", kManage, AboutName<v1::DeleteStoreRequest>(store + "/none")},
      {"/softlookup.admin.v1.Admin/CreateBackup", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/ListBackups", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/RestoreStore", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/GetGroup", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/AddReplica", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/RemoveReplica", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/MovePrimary", kAdmin, ""},
      {"/softlookup.admin.v1.Admin/SplitStore", kAdmin,
       AboutStore<admin::v1::SplitStoreRequest>(store)},
      {"/softlookup.admin.v1.Admin/MoveRange", kAdmin,
       AboutStore<admin::v1::MoveRangeRequest>(store)},
      {"/softlookup.admin.v1.Admin/GetRanges", kAdmin,
       AboutStore<admin::v1::GetRangesRequest>(store)},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kAdmin, ""},
      {"/grpc.health.v1.Health/Check", kNobody, ""},
      {"/grpc.health.v1.Health/Watch", kNobody, ""},
  };
}

// A failed lookup of a stream is reported in its answer.
StatusCode CodeOf(const MethodCase& method, const RawAnswer& answer) {
  v1::LookupResponse response;
  const bool in_answer = method.path == "/softlookup.v1.SoftLookup/StreamLookup" &&
                         !answer.messages.empty() && response.ParseFromString(answer.messages[0]) &&
                         response.has_error();
  return in_answer ? static_cast<StatusCode>(response.error().code()) : answer.status.error_code();
}

class MatrixTest : public ::testing::TestWithParam<Transport> {
 protected:
  // The code that `method` is refused with by who calls, or nothing: it is let in.
  static StatusCode RefusalOf(const MethodCase& method, const RawAnswer& answer) {
    const StatusCode code = CodeOf(method, answer);
    const bool is_refusal = code == StatusCode::UNAUTHENTICATED ||
                            code == StatusCode::PERMISSION_DENIED ||
                            code == StatusCode::UNAVAILABLE;
    return is_refusal ? code : StatusCode::OK;
  }
  void Expect(const std::shared_ptr<grpc::Channel>& channel, const std::string& who,
              const std::string& token, int role, const std::string& store) {
    for (const MethodCase& method : Methods(store)) {
      const StatusCode expected = role >= method.need ? StatusCode::OK
                                  : role < 0          ? StatusCode::UNAUTHENTICATED
                                                      : StatusCode::PERMISSION_DENIED;
      const RawAnswer answer = CallRaw(channel, method.path, method.request, token, 1);
      EXPECT_EQ(RefusalOf(method, answer), method.need == kNobody ? StatusCode::OK : expected)
          << who << " " << method.path << ": " << answer.status.error_message();
    }
  }
};

TEST_P(MatrixTest, EveryMethodTakesItsRole) {
  const SecurityFiles files;
  const std::string read = files.AddIdentity("r", "read", "a/*");
  const std::string write = files.AddIdentity("w", "write", "a/*");
  const std::string manage = files.AddIdentity("m", "manage", "a/*");
  const std::string admin = files.AddIdentity("o", "admin", "*");
  const ServerProcess server(files.Flags(GetParam()));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), files.ClientCredentials(GetParam()));
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("a/x", 2, 1);
  ASSERT_THAT(
      CallRaw(channel, "/softlookup.v1.SoftLookup/CreateStore", create.SerializeAsString(), manage)
          .status,
      IsGrpcOk());
  Expect(channel, "nobody", "", -1, "a/x");
  Expect(channel, "unknown", "x" + read, -1, "a/x");
  Expect(channel, "reader", read, kRead, "a/x");
  Expect(channel, "writer", write, kWrite, "a/x");
  Expect(channel, "manager", manage, kManage, "a/x");
  Expect(channel, "admin", admin, kAdmin, "a/x");
}

TEST_P(MatrixTest, ARoleOnAnotherStoreIsNoneAndTellsNothing) {
  const SecurityFiles files;
  const std::string other = files.AddIdentity("other", "manage", "b/*");
  const std::string admin = files.AddIdentity("o", "admin", "*");
  const ServerProcess server(files.Flags(GetParam()));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), files.ClientCredentials(GetParam()));
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("a/x", 2, 1);
  ASSERT_THAT(
      CallRaw(channel, "/softlookup.v1.SoftLookup/CreateStore", create.SerializeAsString(), admin)
          .status,
      IsGrpcOk());
  const std::vector<MethodCase> there = Methods("a/x"), nowhere = Methods("a/y");
  for (std::size_t i = 0; i < there.size(); ++i) {
    const bool is_about_a_store = there[i].request != nowhere[i].request;
    if (!is_about_a_store) continue;
    const RawAnswer refused = CallRaw(channel, there[i].path, there[i].request, other, 1);
    const RawAnswer unknown = CallRaw(channel, nowhere[i].path, nowhere[i].request, other, 1);
    EXPECT_EQ(CodeOf(there[i], refused), StatusCode::PERMISSION_DENIED) << there[i].path;
    EXPECT_EQ(refused.status.error_message(),
              absl::StrReplaceAll(unknown.status.error_message(), {{"a/y", "a/x"}}));
  }
  const RawAnswer list = CallRaw(channel, "/softlookup.v1.SoftLookup/ListStores", "", other);
  v1::ListStoresResponse stores;
  ASSERT_TRUE(list.status.ok() && stores.ParseFromString(list.messages.at(0)));
  EXPECT_EQ(stores.stores_size(), 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, MatrixTest,
                         ::testing::Values(Transport::kPlaintext, Transport::kTls,
                                           Transport::kMutualTls));

class HandshakeTest : public ::testing::Test {
 protected:
  static grpc::Status Health(const std::string& address,
                             const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    return CallRaw(grpc::CreateChannel(address, credentials), "/grpc.health.v1.Health/Check", "",
                   "")
        .status;
  }

  const SecurityFiles files_;
};

TEST_F(HandshakeTest, WithAClientAuthorityNobodyElseGetsIn) {
  files_.MakeAuthority("foreign");
  const ServerProcess server(files_.Flags(Transport::kMutualTls));
  const std::string& address = server.grpc_address();
  EXPECT_THAT(Health(address, files_.ClientCredentials(Transport::kMutualTls)), IsGrpcOk());
  EXPECT_EQ(Health(address, files_.ClientCredentials(Transport::kTls)).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health(address, files_.ClientCredentials(Transport::kMutualTls, "foreign/client"))
                .error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(Health(address, grpc::InsecureChannelCredentials()).error_code(),
            StatusCode::UNAVAILABLE);
}

TEST_F(HandshakeTest, ACertificatesNameIsAnIdentity) {
  Replace(files_.auth(), R"({"identities": [{"name": "c", "certificate_name": "client",
                             "grants": [{"role": "read", "stores": "*"}]}]})");
  const ServerProcess server(files_.Flags(Transport::kMutualTls));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), files_.ClientCredentials(Transport::kMutualTls));
  EXPECT_THAT(CallRaw(channel, "/softlookup.v1.SoftLookup/ListStores", "", "").status, IsGrpcOk());
  EXPECT_EQ(CallRaw(channel, "/softlookup.v1.SoftLookup/CreateStore", "", "").status.error_code(),
            StatusCode::PERMISSION_DENIED);
}

TEST(ListStoresTest, ShowsWhatTheCallerMayReadInPages) {
  const SecurityFiles files;
  const std::string admin = files.AddIdentity("o", "admin", "*");
  const CommandResult added =
      RunCommand({ToolBinary(), "auth", "add", files.auth(), "two", "--role", "read", "--stores",
                  "b/*", "--role", "read", "--stores", "c"});
  ASSERT_EQ(added.exit_code, 0) << added.err;
  const std::string token = added.out.substr(0, added.out.size() - 1);
  const ServerProcess server(files.Flags(Transport::kPlaintext));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  for (const char* name : {"a/1", "b/1", "b/2", "b/3", "bb", "c", "c/1", "d"}) {
    v1::CreateStoreRequest create;
    *create.mutable_store() = StoreMessage(name, 1, 1);
    ASSERT_THAT(
        CallRaw(channel, "/softlookup.v1.SoftLookup/CreateStore", create.SerializeAsString(), admin)
            .status,
        IsGrpcOk());
  }
  std::vector<std::string> names;
  v1::ListStoresRequest request;
  request.set_page_size(2);
  do {
    const RawAnswer page = CallRaw(channel, "/softlookup.v1.SoftLookup/ListStores",
                                   request.SerializeAsString(), token);
    v1::ListStoresResponse stores;
    ASSERT_TRUE(page.status.ok() && stores.ParseFromString(page.messages.at(0)));
    for (const v1::Store& store : stores.stores()) names.push_back(store.name());
    request.set_page_token(stores.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ::testing::ElementsAre("b/1", "b/2", "b/3", "c"));
}

// Two grants cover store a, which counts once all the same.
TEST(IdentityLimitsTest, AreTheIdentitysWhateverItNames) {
  const SecurityFiles files;
  const CommandResult added = RunCommand({ToolBinary(), "auth", "add", files.auth(), "m", "--role",
                                          "manage", "--stores", "*", "--role", "manage", "--stores",
                                          "a", "--max-stores", "2", "--store-bytes", "1000000"});
  ASSERT_EQ(added.exit_code, 0) << added.err;
  const std::string token = added.out.substr(0, added.out.size() - 1);
  const ServerProcess server(files.Flags(Transport::kPlaintext));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  const auto create = [&](const std::string& name) {
    v1::CreateStoreRequest request;
    *request.mutable_store() = StoreMessage(name, 64, 64);
    return CallRaw(channel, "/softlookup.v1.SoftLookup/CreateStore", request.SerializeAsString(),
                   token)
        .status;
  };
  EXPECT_THAT(create("a"), IsGrpcOk());
  // One more is allowed, whichever of those asked for at the same time.
  std::atomic<int> made{0};
  std::vector<std::thread> makers;
  for (int i = 0; i < 8; ++i) {
    makers.emplace_back([&, i] {
      const grpc::Status status = create(absl::StrCat("b", i));
      if (status.ok()) {
        ++made;
      } else {
        EXPECT_EQ(ReasonOf(status), "IDENTITY_LIMIT");
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(ReasonOf(create("a")), "STORE_EXISTS");
  const auto append = [&](std::int64_t rows) {
    v1::AppendRequest request;
    request.set_store("a");
    *request.mutable_keys() = Message(std::vector<float>(static_cast<std::size_t>(rows * 64)), 64);
    *request.mutable_values() = request.keys();
    return CallRaw(channel, "/softlookup.v1.SoftLookup/Append", request.SerializeAsString(), token)
        .status;
  };
  EXPECT_THAT(append(1000), IsGrpcOk());
  EXPECT_EQ(ReasonOf(append(2000)), "IDENTITY_LIMIT");
}

TEST(ReloadTest, ChangesUnderLoadFailNobodyWhoStaysAllowed) {
  const SecurityFiles files;
  const std::string token = files.AddIdentity("stays", "manage", "*");
  const ServerProcess server(files.Flags(Transport::kMutualTls));
  const auto credentials = files.ClientCredentials(Transport::kMutualTls);
  std::atomic<bool> done{false};
  std::atomic<int> calls{0};
  std::vector<std::string> failures;
  // Each call on a connection of its own, so that every one shakes hands.
  std::thread load([&] {
    while (!done) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      const auto channel = grpc::CreateCustomChannel(server.grpc_address(), credentials, arguments);
      const grpc::Status status =
          CallRaw(channel, "/softlookup.v1.SoftLookup/ListStores", "", token).status;
      if (!status.ok()) failures.push_back(status.error_message());
      ++calls;
    }
  });
  const std::string auth = Contents(files.auth());
  const std::string certificate = Contents(files.Path("tls/server.pem"));
  const int reloads = BinariesAreSanitized() ? 30 : 100;
  for (int i = 0; i < reloads; ++i) {
    const int before = calls;
    if (i % 3 == 0) {
      Replace(files.auth(), "{broken");
    } else {
      files.AddIdentity(absl::StrCat("new", i), "read", "*");
    }
    if (i % 3 == 1) Replace(files.Path("tls/server.pem"), "broken");
    kill(server.pid(), SIGHUP);
    EXPECT_TRUE(AwaitThat([&] { return calls != before; }));
    if (i % 3 == 0) Replace(files.auth(), auth);
    if (i % 3 == 1) Replace(files.Path("tls/server.pem"), certificate);
  }
  done = true;
  load.join();
  EXPECT_THAT(failures, ::testing::IsEmpty());
}

TEST(ReloadTest, WhoLosesTheRightIsRefusedInTheMiddleOfAStream) {
  const SecurityFiles files;
  const std::string token = files.AddIdentity("leaves", "manage", "*");
  const ServerProcess server(files.Flags(Transport::kPlaintext));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  const auto stub = v1::SoftLookup::NewStub(channel);
  const auto context = [&] {
    auto made = std::make_unique<CallContext>();
    made->AddMetadata("authorization", "Bearer " + token);
    return made;
  };
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("s", 2, 1);
  v1::Store store;
  ASSERT_THAT(stub->CreateStore(context().get(), create, &store), IsGrpcOk());

  v1::WatchMemoryRequest watch;
  watch.set_store("s");
  const auto watch_context = context(), lookup_context = context(), append_context = context();
  const auto watching = stub->WatchMemory(watch_context.get(), watch);
  v1::Memory memory;
  ASSERT_TRUE(watching->Read(&memory));
  const auto looking = stub->StreamLookup(lookup_context.get());
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_queries() = Message({1, 2}, 2);
  v1::LookupResponse looked;
  ASSERT_TRUE(looking->Write(lookup) && looking->Read(&looked));
  EXPECT_FALSE(looked.has_error());
  const auto appending = stub->StreamAppend(append_context.get());
  v1::AppendRequest append;
  append.set_store("s");
  *append.mutable_keys() = Message({1, 2}, 2);
  *append.mutable_values() = Message({1}, 1);
  v1::AppendResponse appended;
  ASSERT_TRUE(appending->Write(append) && appending->Read(&appended));

  Replace(files.auth(), R"({"identities": []})");
  kill(server.pid(), SIGHUP);
  while (watching->Read(&memory)) {
  }
  EXPECT_EQ(watching->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_FALSE(looking->Read(&looked));
  EXPECT_EQ(looking->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_FALSE(appending->Read(&appended));
  EXPECT_EQ(appending->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stub->CreateStore(context().get(), create, &store).error_code(),
            StatusCode::UNAUTHENTICATED);
}

TEST(ReloadTest, WhoIsNoAdminAnyMoreIsRefusedInTheMiddleOfReflection) {
  const SecurityFiles files;
  const std::string token = files.AddIdentity("demoted", "admin", "*");
  const ServerProcess server(files.Flags(Transport::kPlaintext));
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  RawCall reflection(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                     token);
  ASSERT_TRUE(reflection.Write("") && reflection.Read().has_value());
  const std::string rules = Contents(files.auth());
  const std::string demoted = absl::StrReplaceAll(rules, {{"\"admin\"", "\"manage\""}});
  ASSERT_NE(demoted, rules);
  Replace(files.auth(), demoted);
  kill(server.pid(), SIGHUP);
  EXPECT_EQ(reflection.Read(), std::nullopt);
  EXPECT_EQ(reflection.Finish().error_code(), StatusCode::PERMISSION_DENIED);
}

// Without its first message, a call would hold its place for as long as its client likes.
TEST(ReflectionTest, EndsIfItsFirstMessageDoesNotCome) {
  const ServerProcess server({"--receive-timeout", "1"});
  RawCall reflection(grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()),
                     "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "");
  EXPECT_EQ(reflection.Read(), std::nullopt);
  const grpc::Status status = reflection.Finish();
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("STREAM_STALLED"));
}

TEST(ListenTest, BeyondLoopbackTakesTlsAndAnAuthFile) {
  const SecurityFiles files;
  const auto start = [](std::vector<std::string> flags) {
    std::vector<std::string> command = {ServerBinary(), "--ephemeral",   "--listen",
                                        "0.0.0.0:0",    "--http-listen", "127.0.0.1:0"};
    command.insert(command.end(), flags.begin(), flags.end());
    return RunCommand(command);
  };
  for (const auto& flags : {std::vector<std::string>{}, files.Flags(Transport::kPlaintext)}) {
    const CommandResult refused = start(flags);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, ::testing::HasSubstr("--insecure"));
    EXPECT_THAT(refused.err, ::testing::HasSubstr("softlookup tls init"));
  }
  const ServerProcess trusting({"--listen", "0.0.0.0:0", "--insecure"});
  std::vector<std::string> safe = files.Flags(Transport::kTls);
  safe.insert(safe.end(), {"--listen", "0.0.0.0:0"});
  const ServerProcess secure(safe);
}

TEST(StartTest, WhatTheFlagsAloneRefuseMakesNoDataDirectory) {
  const SecurityFiles files;
  const ServerProcess other;
  const std::string data = files.Path("data");
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--listen", "0.0.0.0:0"},
           {"--listen", other.grpc_address()},
           {"--listen", "127.0.0.1:0", "--http-listen", other.http_address()},
           {"--listen", "127.0.0.1:0", "--backup-dir", files.auth()},
           {"--listen", "127.0.0.1:0", "--auth", files.Path("none.json")},
           {"--listen", "127.0.0.1:0", "--tls-certificate", files.Path("tls/server.pem"),
            "--tls-key", files.Path("tls/client-key.pem")}}) {
    std::vector<std::string> command = {ServerBinary(), "--data-dir", data};
    command.insert(command.end(), flags.begin(), flags.end());
    if (flags.size() < 3 || flags[2] != "--http-listen") {
      command.insert(command.end(), {"--http-listen", "127.0.0.1:0"});
    }
    const CommandResult refused = RunCommand(command);
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(data)) << refused.err;
  }
}

TEST(StartTest, FilesThatCannotBeUsedAreClearErrors) {
  const SecurityFiles files;
  const auto error_of = [](std::vector<std::string> flags) {
    std::vector<std::string> command = {ServerBinary(), "--ephemeral",   "--listen",
                                        "127.0.0.1:0",  "--http-listen", "127.0.0.1:0"};
    command.insert(command.end(), flags.begin(), flags.end());
    const CommandResult result = RunCommand(command);
    EXPECT_NE(result.exit_code, 0);
    return result.err;
  };
  using ::testing::HasSubstr;
  Replace(files.Path("bad.json"), R"({"identities": [{"name": "x", "grants": []}]})");
  EXPECT_THAT(error_of({"--auth", files.Path("bad.json")}), HasSubstr("identities[0]"));
  EXPECT_THAT(error_of({"--auth", files.Path("none.json")}), HasSubstr("none.json"));
  EXPECT_THAT(error_of({"--tls-certificate", files.Path("tls/server.pem")}),
              HasSubstr("--tls-key"));
  EXPECT_THAT(error_of({"--tls-certificate", files.Path("tls/server.pem"), "--tls-key",
                        files.Path("tls/client-key.pem")}),
              HasSubstr("--tls-key: is not the key of the certificate in --tls-certificate"));
  EXPECT_THAT(
      error_of({"--tls-certificate", files.auth(), "--tls-key", files.Path("tls/client-key.pem")}),
      HasSubstr("no certificate"));
}

}  // namespace
}  // namespace softlookup::testing
