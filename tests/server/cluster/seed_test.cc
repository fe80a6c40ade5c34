#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/cluster/fetch_seed.h"
#include "server/cluster/peers/peers.grpc.pb.h"
#include "server/cluster/sha256_stream.h"
#include "tests/server/cluster/peers_fixture.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;
using cluster::v1::SeedResponse;
using testing::IsOk;
using testing::StatusIs;

bool Never() { return false; }

class SeedTest : public PeersTest {
 protected:
  std::string target() const { return directory_.path() + "/target"; }
  absl::Status Seed(absl::FunctionRef<bool()> should_stop = Never) {
    return FetchSeed(address(), Caller(), "b", target(), should_stop);
  }
};

TEST_F(SeedTest, BringsAllFilesOfACopyAndRemovesTheCopy) {
  const std::string large = PatternOf(3 << 20);
  requests_.on_copy = [&](const std::string& directory) {
    EXPECT_TRUE(fs::create_directory(directory));
    WriteFile(directory + "/large.sst", large);
    WriteFile(directory + "/EMPTY", "");
    WriteFile(directory + "/small", "small");
    return absl::OkStatus();
  };
  StartServer();
  ASSERT_THAT(Seed(), IsOk());
  EXPECT_EQ(std::distance(fs::directory_iterator(target()), {}), 3);
  EXPECT_TRUE(ContentsOf(target() + "/large.sst") == large);
  EXPECT_EQ(ContentsOf(target() + "/EMPTY"), "");
  EXPECT_TRUE(fs::exists(target() + "/EMPTY"));
  EXPECT_EQ(ContentsOf(target() + "/small"), "small");
  struct stat status;
  ASSERT_EQ(stat((target() + "/small").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600);
  server_.reset();  // The call's thread removes the copy after the caller has its answer.
  EXPECT_TRUE(fs::is_empty(scratch()));
}

TEST_F(SeedTest, AnExistingDirectoryIsLeftAlone) {
  StartServer();
  fs::create_directory(target());
  WriteFile(target() + "/file", "kept");
  EXPECT_THAT(Seed(), StatusIs(absl::StatusCode::kAlreadyExists, target()));
  EXPECT_EQ(ContentsOf(target() + "/file"), "kept");
}

TEST_F(SeedTest, ACopyThatFailsLeavesNothing) {
  requests_.on_copy = [](const std::string& directory) {
    EXPECT_TRUE(fs::create_directory(directory));
    WriteFile(directory + "/file", "half");
    return absl::DataLossError("damaged");
  };
  StartServer();
  EXPECT_EQ(Seed(), absl::DataLossError("damaged"));
  EXPECT_FALSE(fs::exists(target()));
  server_.reset();
  EXPECT_TRUE(fs::is_empty(scratch()));
}

TEST_F(SeedTest, ACopyWithADirectoryInItIsRefused) {
  requests_.on_copy = [](const std::string& directory) {
    EXPECT_TRUE(fs::create_directories(directory + "/inner"));
    return absl::OkStatus();
  };
  StartServer();
  EXPECT_THAT(Seed(), StatusIs(absl::StatusCode::kInternal, "is not a file"));
  EXPECT_FALSE(fs::exists(target()));
}

TEST_F(SeedTest, ANodeThatIsAnotherOrAwayGivesNothing) {
  StartServer();
  EXPECT_THAT(FetchSeed(address(), Caller("other"), "b", target(), Never),
              StatusIs(absl::StatusCode::kFailedPrecondition, "group"));
  EXPECT_THAT(FetchSeed(address(), Caller(), "other", target(), Never),
              StatusIs(absl::StatusCode::kFailedPrecondition, "node"));
  const std::string away = address();
  server_.reset();
  EXPECT_THAT(FetchSeed(away, Caller(), "b", target(), Never),
              StatusIs(absl::StatusCode::kUnavailable, ""));
  EXPECT_FALSE(fs::exists(target()));
}

TEST_F(SeedTest, OneCopyIsMadeAtATimeAndItsCallerCanStop) {
  absl::Notification is_copying, may_end;
  requests_.on_copy = [&](const std::string&) {
    is_copying.Notify();
    may_end.WaitForNotification();
    return absl::UnavailableError("late");
  };
  StartServer();
  absl::Notification stop;
  auto first =
      std::async(std::launch::async, [&] { return Seed([&] { return stop.HasBeenNotified(); }); });
  is_copying.WaitForNotification();
  EXPECT_THAT(FetchSeed(address(), Caller(), "b", target() + "2", Never),
              StatusIs(absl::StatusCode::kResourceExhausted, "for another call"));
  EXPECT_FALSE(fs::exists(target() + "2"));
  stop.Notify();
  // No response has come yet.
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_FALSE(fs::exists(target()));
  may_end.Notify();
  server_.reset();  // Its call uses the notifications.
}

TEST_F(SeedTest, ACallerThatStopsAmongTheChunksEndsTheCall) {
  requests_.on_copy = [](const std::string& directory) {
    EXPECT_TRUE(fs::create_directory(directory));
    WriteFile(directory + "/large", std::string(8 << 20, 'x'));
    return absl::OkStatus();
  };
  StartServer();
  EXPECT_THAT(Seed([this] { return fs::exists(target() + "/large"); }),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_FALSE(fs::exists(target()));
  server_.reset();
  EXPECT_TRUE(fs::is_empty(scratch()));
}

TEST_F(SeedTest, CopiesOfAnEarlierProcessAreRemoved) {
  fs::create_directories(scratch() + "/seed-0123/inner");
  WriteFile(scratch() + "/seed-0123/inner/file", "left over");
  WriteFile(scratch() + "/other", "kept");
  StartServer();
  EXPECT_FALSE(fs::exists(scratch() + "/seed-0123"));
  EXPECT_EQ(ContentsOf(scratch() + "/other"), "kept");
}

// A service that answers a Seed with what a test says.
class ScriptedSeed final : public cluster::v1::PeerService::Service {
 public:
  explicit ScriptedSeed(std::vector<SeedResponse> responses) : responses_(std::move(responses)) {}

  grpc::Status Seed(grpc::ServerContext*, const cluster::v1::SeedRequest*,
                    grpc::ServerWriter<SeedResponse>* writer) override {
    for (const SeedResponse& response : responses_) writer->Write(response);
    return grpc::Status::OK;
  }

 private:
  const std::vector<SeedResponse> responses_;
};

class MalformedSeedTest : public SeedTest {
 protected:
  static SeedResponse File(const std::string& name, std::uint64_t size) {
    SeedResponse response;
    response.mutable_file()->set_name(name);
    response.mutable_file()->set_size(size);
    return response;
  }
  static SeedResponse Chunk(const std::string& bytes) {
    SeedResponse response;
    response.set_chunk(bytes);
    return response;
  }
  static SeedResponse Sha256(const std::string& bytes) {
    Sha256Stream sha256;
    sha256.Add(bytes);
    SeedResponse response;
    response.set_sha256(sha256.Take());
    return response;
  }
  static SeedResponse End(std::uint64_t file_count) {
    SeedResponse response;
    response.set_file_count(file_count);
    return response;
  }
  absl::Status SeedOf(const std::vector<SeedResponse>& responses) {
    ScriptedSeed service(responses);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    const absl::Status fetched =
        FetchSeed(absl::StrCat("127.0.0.1:", port), Caller(), "b", target(), Never);
    EXPECT_EQ(fs::exists(target()), fetched.ok());
    fs::remove_all(target());
    return fetched;
  }
};

TEST_F(MalformedSeedTest, IsRefusedAndLeavesNothing) {
  constexpr auto kLost = absl::StatusCode::kDataLoss;
  const SeedResponse file = File("f", 3), sha256 = Sha256("xyz");
  EXPECT_THAT(SeedOf({file, Chunk("xy"), Chunk("z"), sha256, End(1)}), IsOk());
  EXPECT_THAT(SeedOf({End(0)}), IsOk());
  EXPECT_THAT(SeedOf({file, Chunk("xy"), Chunk("Z"), sha256, End(1)}), StatusIs(kLost, "checksum"));
  EXPECT_THAT(SeedOf({file, Chunk("xy"), sha256, End(1)}), StatusIs(kLost, "lacks 1 bytes"));
  EXPECT_THAT(SeedOf({file, Chunk("xyz!"), sha256, End(1)}), StatusIs(kLost, "4 bytes come"));
  EXPECT_THAT(SeedOf({file, Chunk(""), sha256, End(1)}), StatusIs(kLost, "0 bytes come"));
  EXPECT_THAT(SeedOf({Chunk("x")}), StatusIs(kLost, "outside of a file"));
  EXPECT_THAT(SeedOf({sha256}), StatusIs(kLost, "outside of a file"));
  EXPECT_THAT(SeedOf({file, file}), StatusIs(kLost, "begins in another"));
  EXPECT_THAT(SeedOf({file, End(1)}), StatusIs(kLost, "ends in a file"));
  EXPECT_THAT(SeedOf({}), StatusIs(kLost, "no end"));
  EXPECT_THAT(SeedOf({file, Chunk("xyz"), sha256}), StatusIs(kLost, "no end"));
  EXPECT_THAT(SeedOf({file, Chunk("xyz"), sha256, End(2)}), StatusIs(kLost, "1 of 2 files"));
  EXPECT_THAT(SeedOf({End(0), End(0)}), StatusIs(kLost, "after its end"));
  EXPECT_THAT(SeedOf({SeedResponse()}), StatusIs(kLost, "empty"));
  EXPECT_THAT(SeedOf({file, Chunk("xyz"), sha256, file}),
              StatusIs(absl::StatusCode::kAlreadyExists, "/f"));
}

TEST_F(MalformedSeedTest, CannotWriteOutsideOfTheDirectory) {
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("/f"),
        std::string("../f"), std::string("a/f"), std::string("f\0", 2)}) {
    EXPECT_THAT(SeedOf({File(name, 0), Sha256(""), End(1)}),
                StatusIs(absl::StatusCode::kDataLoss, "cannot have the name"))
        << name;
  }
  EXPECT_FALSE(fs::exists(directory_.path() + "/f"));
}

}  // namespace
}  // namespace softlookup::server
