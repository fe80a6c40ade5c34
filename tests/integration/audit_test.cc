// The audit log of a server, over real sockets.
#include <signal.h>

#include "absl/strings/str_split.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"

namespace softlookup::testing {
namespace {

TEST(AuditTest, HasALineForEveryChangeDenialAndFailedLogin) {
  const SecurityFiles files;
  const std::string manage = files.AddIdentity("m", "manage", "*");
  const std::string read = files.AddIdentity("r", "read", "*");
  std::vector<std::string> flags = files.Flags(Transport::kPlaintext);
  flags.insert(flags.end(), {"--audit-log", files.Path("audit.log"), "--log-format", "json"});
  ServerProcess server(flags);
  const auto channel =
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
  v1::CreateStoreRequest create;
  *create.mutable_store() = StoreMessage("s", 2, 1);
  const std::string request = create.SerializeAsString();
  const std::string path = "/softlookup.v1.SoftLookup/CreateStore";
  CallRaw(channel, path, request, manage);
  CallRaw(channel, path, request, read);
  const grpc::Status malformed = CallRaw(channel, path, "\xff", read).status;
  EXPECT_EQ(malformed.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  v1::RenameStoreRequest rename;
  rename.set_store("s\n");
  rename.set_new_name(std::string(1000, 't'));
  CallRaw(channel, "/softlookup.v1.SoftLookup/RenameStore", rename.SerializeAsString(), read);
  CallRaw(channel, path, request, "guess");
  CallRaw(channel, "/softlookup.v1.SoftLookup/ListStores", "", read);
  ASSERT_EQ(server.Stop(SIGTERM), 0);
  const std::string log = Contents(files.Path("audit.log"));
  EXPECT_THAT(
      log,
      ::testing::MatchesRegex(
          ".*\"event\":\"change\",\"identity\":\"m\",.*\"store\":\"s\",\"result\":\"OK\".*\n"
          ".*\"event\":\"denial\",\"identity\":\"r\",.*\"store\":\"s\",.*\"PERMISSION_DENIED\".*\n"
          ".*\"event\":\"denial\",\"identity\":\"r\",.*\"store\":\"\",.*\"PERMISSION_DENIED\".*\n"
          ".*\"store\":\"s\\\\n\",\"new_name\":\"t+\",\"result\":\"PERMISSION_DENIED\".*\n"
          ".*\"event\":\"login_failure\",\"identity\":\"\",.*\"UNAUTHENTICATED\".*\n"));
  EXPECT_LT(log.size(), 5000u) << "names are cut";
  for (const std::string& secret : {manage, read, std::string("guess")}) {
    EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr(secret)));
  }
}

// The end of the stream once left a second line, about the store that the stream had named last.
TEST(AuditTest, ADeniedLookupOfAStreamHasOneLineOfItsOwn) {
  const SecurityFiles files;
  const std::string token = files.AddIdentity("r", "read", "a/*");
  std::vector<std::string> flags = files.Flags(Transport::kPlaintext);
  flags.insert(flags.end(), {"--audit-log", files.Path("audit.log"), "--log-format", "json"});
  ServerProcess server(flags);
  {
    const auto channel =
        grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials());
    RawCall call(channel, "/softlookup.v1.SoftLookup/StreamLookup", token);
    for (const char* store : {"b/1", "b/2", "a/1"}) {
      v1::LookupRequest request;
      request.set_store(store);
      const bool is_last = store == std::string("a/1");
      ASSERT_TRUE(call.Write(request.SerializeAsString(), is_last));
      ASSERT_NE(call.Read(), std::nullopt) << store;
    }
    EXPECT_EQ(call.Read(), std::nullopt);
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
  ASSERT_EQ(server.Stop(SIGTERM), 0);
  const std::vector<std::string> lines =
      absl::StrSplit(Contents(files.Path("audit.log")), '\n', absl::SkipEmpty());
  const auto is_denial_in = [](const std::string& store) {
    return ::testing::AllOf(::testing::HasSubstr("\"event\":\"denial\""),
                            ::testing::HasSubstr("\"store\":\"" + store + "\""));
  };
  EXPECT_THAT(lines, ::testing::ElementsAre(is_denial_in("b/1"), is_denial_in("b/2")));
}

}  // namespace
}  // namespace softlookup::testing
