// `softlookup auth`, from its command line to the auth file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "client/tool/auth_file.h"
#include "tests/client/tool/run_tool.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// `softlookup auth add`.
class AuthAddTest : public ::testing::Test {
 protected:
  Outcome Add(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"auth", "add", path_});
    return RunTool("127.0.0.1:1", std::move(arguments));
  }

  std::string FileText() const { return TextOf(path_); }

  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static struct stat AttributesOf(const std::string& path) {
    struct stat attributes = {};
    EXPECT_EQ(stat(path.c_str(), &attributes), 0) << path;
    return attributes;
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/auth.json";
  const std::string token_path_ = directory_.path() + "/operator.token";
  // The flags of docker/compose.yaml, in its order.
  const std::vector<std::string> setup_ = {
      "operator", "--if-missing", "--role", "admin", "--stores", "*", "--token-out", token_path_};
};

TEST_F(AuthAddTest, PrintsATokenOfWhichTheFileHasTheDigestOnly) {
  const Outcome outcome = Add({"ingest", "--role", "write", "--stores", "acme/*", "--role", "read",
                               "--stores", "*", "--certificate-name", "ingest.acme",
                               "--requests-per-second", "1000", "--max-stores", "3"});
  ASSERT_EQ(outcome.error, "");
  ASSERT_THAT(outcome.out, MatchesRegex("[A-Za-z0-9_-]{43}\n"));
  const std::string token = outcome.out.substr(0, 43);
  EXPECT_THAT(outcome.notes, AllOf(HasSubstr("added ingest to " + path_), Not(HasSubstr(token))));
  EXPECT_THAT(FileText(), Not(HasSubstr(token)));
  EXPECT_EQ(nlohmann::json::parse(FileText()), nlohmann::json::parse(R"({"identities": [{
    "name": "ingest", "token_sha256": ")" + *TokenDigest(token) +
                                                                     R"(",
    "certificate_name": "ingest.acme",
    "grants": [{"role": "write", "stores": "acme/*"}, {"role": "read", "stores": "*"}],
    "limits": {"requests_per_second": 1000, "stores": 3}}]})"));
  EXPECT_EQ(AttributesOf(path_).st_mode & 07777, 0600u);
}

TEST_F(AuthAddTest, WithoutATokenTheCertificateAloneTellsWhoItIs) {
  const std::vector<std::string> add = {
      "ingest", "--no-token",         "--role",     "write", "--stores",
      "acme/*", "--certificate-name", "ingest.acme"};
  const Outcome outcome = Add(add);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.notes, "added ingest to " + path_ +
                               "; it has no token: a client certificate with the name ingest.acme "
                               "tells who it is\n");
  EXPECT_EQ(nlohmann::json::parse(FileText()), nlohmann::json::parse(R"({"identities": [{
    "name": "ingest", "certificate_name": "ingest.acme",
    "grants": [{"role": "write", "stores": "acme/*"}]}]})"));
  EXPECT_EQ(AttributesOf(path_).st_mode & 07777, 0600u);
  std::vector<std::string> again = add;
  again.push_back("--if-missing");
  EXPECT_EQ(Add(again).notes, path_ + " has an identity ingest already; nothing was changed\n");
  EXPECT_EQ(RunToolJson("127.0.0.1:1", {"auth", "add", path_, "b", "--no-token", "--role", "read",
                                        "--stores", "*", "--certificate-name", "b.acme"}),
            nlohmann::json({{"name", "b"}, {"added", true}}));
}

TEST_F(AuthAddTest, WithoutATokenACertificateMustTellWhoItIs) {
  const Outcome nothing = Add({"a", "--no-token", "--role", "read", "--stores", "*"});
  EXPECT_EQ(nothing.exit_code, ExitCode::kUsage);
  EXPECT_THAT(nothing.error, HasSubstr("--no-token needs --certificate-name"));
  const Outcome both = Add({"a", "--no-token", "--role", "read", "--stores", "*",
                            "--certificate-name", "a.acme", "--token-out", token_path_});
  EXPECT_EQ(both.exit_code, ExitCode::kUsage);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(fs::exists(token_path_));
}

TEST_F(AuthAddTest, LimitsOfBytesTakeUnits) {
  ASSERT_EQ(Add({"a", "--role", "write", "--stores", "*", "--store-bytes", "2GiB",
                 "--bytes-in-flight", "1000"})
                .error,
            "");
  EXPECT_EQ(nlohmann::json::parse(FileText())["identities"][0]["limits"],
            nlohmann::json({{"bytes_in_flight", 1000}, {"store_bytes", std::int64_t{2} << 30}}));
  for (const char* wrong : {"2GB", "0", "1.5GiB", "8193TiB"}) {
    EXPECT_EQ(Add({"b", "--role", "write", "--stores", "*", "--store-bytes", wrong}).exit_code,
              ExitCode::kUsage)
        << wrong;
  }
}

TEST_F(AuthAddTest, APatternThatEndsInASlashIsSaidToBeOneStore) {
  EXPECT_THAT(Add({"a", "--role", "read", "--stores", "acme/"}).notes,
              HasSubstr("softlookup: --stores acme/ is the one store of that name; --stores "
                        "'acme/*' are all stores below it\n"));
  EXPECT_THAT(Add({"b", "--role", "read", "--stores", "acme/*"}).notes, Not(HasSubstr("below it")));
}

TEST_F(AuthAddTest, NameThatIsThereIsRefusedAndTheFileStays) {
  ASSERT_EQ(Add({"a", "--role", "read", "--stores", "*"}).error, "");
  const std::string before = FileText();
  const Outcome outcome = Add({"a", "--role", "admin", "--stores", "*"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_THAT(outcome.error, HasSubstr(path_ + " has an identity a already"));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(FileText(), before);
}

TEST_F(AuthAddTest, SecondIdentityHasATokenOfItsOwn) {
  const auto first =
      RunToolJson("127.0.0.1:1", {"auth", "add", path_, "a", "--role", "read", "--stores", "*"});
  const auto second =
      RunToolJson("127.0.0.1:1", {"auth", "add", path_, "b", "--role", "read", "--stores", "*"});
  EXPECT_EQ(second["name"], "b");
  EXPECT_NE(first["token"], second["token"]);
  EXPECT_EQ(nlohmann::json::parse(FileText())["identities"].size(), 2u);
}

TEST_F(AuthAddTest, WhatTheServerWouldRefuseIsAUsageError) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"a"},
           {"a", "--role", "read"},
           {"a", "--role", "root", "--stores", "*"},
           {"a", "--role", "admin", "--stores", "acme/*"},
           {"a", "--role", "read", "--stores", "acme*"},
           {"a/b", "--role", "read", "--stores", "*"},
           {"a", "--role", "read", "--role", "write", "--stores", "*"}}) {
    EXPECT_EQ(Add(arguments).exit_code, ExitCode::kUsage) << ::testing::PrintToString(arguments);
  }
  EXPECT_EQ(FileText(), "");
  EXPECT_EQ(Add({"a", "--role", "read", "--role", "write", "--stores", "*"}).error,
            "each --role needs a --stores, but there are 2 and 1; for example --role read --stores "
            "'acme/*'");
  EXPECT_EQ(Add({"a", "--role", "admin", "--stores", "acme/*"}).error,
            "--role admin is for all stores: it needs --stores '*'");
  EXPECT_THAT(Add({"a", "--role", "read", "--stores", "acme*"}).error,
              HasSubstr("--stores takes a store's name, a prefix that ends in /*, or *"));
}

TEST_F(AuthAddTest, FileThatIsNoAuthFileIsAnInputErrorAndStays) {
  std::ofstream(path_) << "{}";
  const Outcome outcome = Add({"a", "--role", "read", "--stores", "*"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr(path_ + ": is not an auth file"));
  EXPECT_EQ(FileText(), "{}");
  EXPECT_EQ(Add(setup_).exit_code, ExitCode::kInput);
  EXPECT_FALSE(fs::exists(token_path_));
}

TEST_F(AuthAddTest, IfMissingAddsANameOnceWhateverItsRole) {
  const std::vector<std::string> add = {"a", "--if-missing", "--role", "read", "--stores", "*"};
  const Outcome first = Add(add);
  ASSERT_EQ(first.error, "");
  EXPECT_THAT(first.out, MatchesRegex("[A-Za-z0-9_-]{43}\n"));
  const struct stat before = AttributesOf(path_);
  for (const char* role : {"read", "write"}) {
    const Outcome again = Add({"a", "--if-missing", "--role", role, "--stores", "*"});
    EXPECT_EQ(again.exit_code, ExitCode::kOk);
    EXPECT_EQ(again.error, "");
    EXPECT_EQ(again.out, "");
    EXPECT_EQ(again.notes, path_ + " has an identity a already; nothing was changed\n");
  }
  EXPECT_EQ(AttributesOf(path_).st_ino, before.st_ino);
  EXPECT_EQ(nlohmann::json::parse(FileText())["identities"].size(), 1u);
  EXPECT_EQ(Add({"b", "--if-missing", "--role", "read", "--stores", "*"}).error, "");
}

TEST_F(AuthAddTest, IfMissingRefusesTheCertificateOfAnother) {
  ASSERT_EQ(Add({"a", "--role", "read", "--stores", "*", "--certificate-name", "c"}).error, "");
  const Outcome outcome =
      Add({"b", "--if-missing", "--role", "read", "--stores", "*", "--certificate-name", "c"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
}

TEST_F(AuthAddTest, TokenOutHasTheTokenForItsOwnerAloneAndTheOutputHasNot) {
  const mode_t loose = umask(0);
  const Outcome outcome = Add(setup_);
  umask(loose);
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out, "");
  ASSERT_THAT(TextOf(token_path_), MatchesRegex("[A-Za-z0-9_-]{43}\n"));
  const std::string token = TextOf(token_path_).substr(0, 43);
  EXPECT_THAT(outcome.notes,
              AllOf(HasSubstr("its token is in " + token_path_), Not(HasSubstr(token))));
  EXPECT_THAT(FileText(), AllOf(HasSubstr(*TokenDigest(token)), Not(HasSubstr(token))));
  EXPECT_EQ(AttributesOf(token_path_).st_mode & 07777, 0600u);
  EXPECT_EQ(directory_.entry_count(), 2);
}

TEST_F(AuthAddTest, IfMissingLeavesTheTokenFileAlone) {
  ASSERT_EQ(Add(setup_).error, "");
  const struct stat before = AttributesOf(token_path_);
  const std::string token = TextOf(token_path_);
  EXPECT_EQ(Add(setup_).error, "");
  EXPECT_EQ(AttributesOf(token_path_).st_ino, before.st_ino);
  EXPECT_EQ(TextOf(token_path_), token);
}

TEST_F(AuthAddTest, IfMissingSaysThatALostTokenCannotBeRecovered) {
  ASSERT_EQ(Add(setup_).error, "");
  const std::string before = FileText();
  fs::remove(token_path_);
  const Outcome outcome = Add(setup_);
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("cannot be recovered; `softlookup auth remove " + path_ +
                                       " operator`, then add it again"));
  EXPECT_FALSE(fs::exists(token_path_));
  EXPECT_EQ(FileText(), before);
}

TEST_F(AuthAddTest, LeftoverOfTokenOutIsReplaced) {
  ASSERT_EQ(Add({"other", "--role", "read", "--stores", "*"}).error, "");
  // As it is if the first try ended between the two files.
  const std::string leftover = *NewToken() + "\n";
  std::ofstream(token_path_) << leftover;
  ASSERT_EQ(Add(setup_).error, "");
  const std::string token = TextOf(token_path_).substr(0, 43);
  EXPECT_NE(token + "\n", leftover);
  EXPECT_THAT(FileText(), HasSubstr(*TokenDigest(token)));
  EXPECT_EQ(AttributesOf(token_path_).st_mode & 07777, 0600u);
}

TEST_F(AuthAddTest, TokenOutThatCannotBeWrittenLeavesTheAuthFileAsItWas) {
  const Outcome outcome = Add(
      {"a", "--role", "read", "--stores", "*", "--token-out", directory_.path() + "/none/token"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(AuthAddTest, TokenOutReplacesNothingButALeftover) {
  ASSERT_EQ(Add(setup_).error, "");
  const std::string before = FileText(), token = TextOf(token_path_);
  const std::string text = directory_.path() + "/text", link = directory_.path() + "/link",
                    stray = directory_.path() + "/stray";
  std::ofstream(text) << "mine\n";
  std::ofstream(stray) << *NewToken() << "\n";
  fs::create_symlink(stray, link);
  // A token in use, another kind of file, a link, a directory.
  for (const std::string& path : {token_path_, text, link, directory_.path()}) {
    const Outcome outcome = Add({"a", "--role", "read", "--stores", "*", "--token-out", path});
    EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists) << path;
    EXPECT_THAT(outcome.error, HasSubstr(path + " exists and is not overwritten"));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(TextOf(token_path_), token);
  EXPECT_EQ(TextOf(text), "mine\n");
  EXPECT_EQ(FileText(), before);
}

TEST_F(AuthAddTest, TokenOutStaysIfTheNameIsThere) {
  ASSERT_EQ(Add(setup_).error, "");
  const std::string token = TextOf(token_path_);
  const Outcome outcome =
      Add({"operator", "--role", "read", "--stores", "*", "--token-out", token_path_});
  EXPECT_EQ(outcome.exit_code, ExitCode::kAlreadyExists);
  EXPECT_THAT(outcome.error, HasSubstr("has an identity operator already"));
  EXPECT_EQ(TextOf(token_path_), token);
}

TEST_F(AuthAddTest, TokenOutIsNotTheAuthFile) {
  for (const std::string& path : {path_, directory_.path() + "/./auth.json"}) {
    EXPECT_EQ(Add({"a", "--role", "read", "--stores", "*", "--token-out", path}).exit_code,
              ExitCode::kUsage);
  }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(AuthAddTest, SetupsAtOnceAgreeOnOneToken) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Add(setup_).error, ""); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(nlohmann::json::parse(FileText())["identities"].size(), 1u);
  EXPECT_THAT(FileText(), HasSubstr(*TokenDigest(TextOf(token_path_).substr(0, 43))));
}

TEST_F(AuthAddTest, JsonSaysWhatWasDone) {
  std::vector<std::string> arguments = setup_;
  arguments.insert(arguments.begin(), {"auth", "add", path_});
  EXPECT_EQ(RunToolJson("127.0.0.1:1", arguments),
            nlohmann::json({{"name", "operator"}, {"added", true}, {"token_file", token_path_}}));
  EXPECT_EQ(RunToolJson("127.0.0.1:1", arguments),
            nlohmann::json({{"name", "operator"}, {"added", false}}));
}

// `softlookup auth list` and `auth remove`.
class AuthEditTest : public AuthAddTest {
 protected:
  AuthEditTest() {
    EXPECT_EQ(Add({"boss", "--role", "admin", "--stores", "*"}).error, "");
    EXPECT_EQ(Add({"ingest", "--role", "write", "--stores", "acme/*", "--role", "read", "--stores",
                   "*", "--certificate-name", "ingest.acme", "--max-stores", "3"})
                  .error,
              "");
  }

  Outcome Remove(const std::string& name) {
    return RunTool("127.0.0.1:1", {"auth", "remove", path_, name});
  }
};

TEST_F(AuthEditTest, ListShowsWhoMayDoWhatAndNoDigest) {
  const Outcome outcome = RunTool("127.0.0.1:1", {"auth", "list", path_});
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("boss"), HasSubstr("admin *"), HasSubstr("none"),
                                 HasSubstr("write acme/*, read *"), HasSubstr("stores 3"),
                                 HasSubstr("token, certificate ingest.acme")));
  const nlohmann::json json = RunToolJson("127.0.0.1:1", {"auth", "list", path_});
  EXPECT_EQ(json, nlohmann::json::parse(R"({"identities": [
    {"name": "boss", "has_token": true, "grants": [{"role": "admin", "stores": "*"}]},
    {"name": "ingest", "has_token": true, "certificate_name": "ingest.acme",
     "grants": [{"role": "write", "stores": "acme/*"}, {"role": "read", "stores": "*"}],
     "limits": {"stores": 3}}]})"));
  const auto file = nlohmann::json::parse(FileText());
  for (const auto& identity : file["identities"]) {
    EXPECT_THAT(outcome.out, Not(HasSubstr(identity["token_sha256"].get<std::string>())));
  }
}

TEST_F(AuthEditTest, IdentitiesWithoutATokenAreListedAndRemoved) {
  ASSERT_EQ(Add({"scan", "--no-token", "--role", "read", "--stores", "*", "--certificate-name",
                 "scan.acme"})
                .error,
            "");
  EXPECT_THAT(RunTool("127.0.0.1:1", {"auth", "list", path_}).out,
              AllOf(HasSubstr("certificate scan.acme"), Not(HasSubstr("token, certificate scan"))));
  EXPECT_EQ(RunToolJson("127.0.0.1:1", {"auth", "list", path_})["identities"][2],
            nlohmann::json::parse(R"({"name": "scan", "has_token": false,
              "certificate_name": "scan.acme", "grants": [{"role": "read", "stores": "*"}]})"));
  EXPECT_EQ(Remove("scan").error, "");
  EXPECT_FALSE(*HasIdentity(FileText(), "scan"));
}

TEST_F(AuthEditTest, ListNamesAFileThatItCannotTake) {
  std::ofstream(path_) << R"({"identities": [{}]})";
  const Outcome outcome = RunTool("127.0.0.1:1", {"auth", "list", path_});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_EQ(outcome.error, path_ + ": identities[0] has no name");
  std::ofstream(path_) << R"({"identities": [{"name": "a", "certificatename": "b"}]})";
  EXPECT_EQ(RunTool("127.0.0.1:1", {"auth", "list", path_}).error,
            path_ + ": identities[0] has an unknown member \"certificatename\"");
  std::ofstream(path_) << R"({"identities": [{"name": "a", "certificate_name": "b",
                              "grants": [{"role": "writer", "stores": "*"}]}]})";
  EXPECT_THAT(RunTool("127.0.0.1:1", {"auth", "list", path_}).error,
              HasSubstr("identities[0] has the role \"writer\", which is none of "));
  EXPECT_EQ(RunTool("127.0.0.1:1", {"auth", "list", path_ + "x"}).error,
            path_ + "x: No such file or directory");
}

TEST_F(AuthEditTest, RemoveTakesOneIdentityAndKeepsTheMode) {
  fs::permissions(path_, fs::perms(0640));
  const Outcome outcome = Remove("ingest");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.notes, "removed ingest from " + path_ + "\n");
  EXPECT_EQ(AttributesOf(path_).st_mode & 07777, 0640u);
  EXPECT_FALSE(*HasIdentity(FileText(), "ingest"));
  EXPECT_TRUE(*HasIdentity(FileText(), "boss"));
  EXPECT_EQ(directory_.entry_count(), 1);
}

TEST_F(AuthEditTest, RemoveOfAnUnknownNameTellsTheNearestAndChangesNothing) {
  const std::string before = FileText();
  const Outcome outcome = Remove("injest");
  EXPECT_EQ(outcome.exit_code, ExitCode::kNotFound);
  EXPECT_EQ(outcome.error, "NOT_FOUND: " + path_ + " has no identity injest; did you mean ingest?");
  EXPECT_EQ(FileText(), before);
  EXPECT_EQ(RunTool("127.0.0.1:1", {"auth", "remove", path_ + "x", "a"}).exit_code,
            ExitCode::kInput);
  EXPECT_FALSE(fs::exists(path_ + "x"));
}

TEST_F(AuthEditTest, RemoveOfTheLastAdminIsWarnedOf) {
  ASSERT_EQ(Add({"boss-2", "--role", "admin", "--stores", "*"}).error, "");
  EXPECT_THAT(Remove("boss").notes, Not(HasSubstr("admin")));
  EXPECT_THAT(Remove("boss-2").notes, HasSubstr(path_ + " has no admin any more"));
  EXPECT_THAT(Remove("ingest").notes, Not(HasSubstr("admin")));
}

TEST_F(AuthEditTest, RemoveSaysInJsonWhatItDid) {
  EXPECT_EQ(RunToolJson("127.0.0.1:1", {"auth", "remove", path_, "boss"}),
            nlohmann::json({{"name", "boss"}, {"removed", true}}));
}

}  // namespace
}  // namespace softlookup::tool
