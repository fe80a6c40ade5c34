#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
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
  // A call that its caller has ended may go on at the server for a while, and no other is taken
  // meanwhile.
  void EndCalls() {
    server_.reset();
    StartServer();
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

TEST_F(SeedTest, WhatIsNotOfTheCopyIsRemoved) {
  requests_.on_copy = [&](const std::string& directory) {
    EXPECT_TRUE(fs::create_directory(directory));
    WriteFile(directory + "/file", "of the copy");
    return absl::OkStatus();
  };
  StartServer();
  fs::create_directories(target() + "/inner/inner");
  WriteFile(target() + "/file", "of another, and longer than that of this copy");
  WriteFile(target() + "/other", "of another");
  fs::create_symlink("file", target() + "/link");
  ASSERT_THAT(Seed(), IsOk());
  EXPECT_EQ(ContentsOf(target() + "/file"), "of the copy");
  EXPECT_EQ(std::distance(fs::directory_iterator(target()), {}), 1);
}

TEST_F(SeedTest, ALinkOfTheNameOfAFileIsNotFollowed) {
  requests_.on_copy = [&](const std::string& directory) {
    EXPECT_TRUE(fs::create_directory(directory));
    WriteFile(directory + "/file", "of the copy");
    return absl::OkStatus();
  };
  StartServer();
  WriteFile(directory_.path() + "/outside", "left alone");
  fs::create_directory(target());
  fs::create_symlink(directory_.path() + "/outside", target() + "/file");
  EXPECT_FALSE(Seed().ok());
  EndCalls();
  EXPECT_THAT(Seed(), IsOk());  // The first one has removed the directory.
  EXPECT_EQ(ContentsOf(directory_.path() + "/outside"), "left alone");
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
  EXPECT_TRUE(fs::exists(target() + "/large"));
  server_.reset();
  EXPECT_TRUE(fs::is_empty(scratch()));
}

// What a Seed sends to a caller that has some files already.
class KeptFilesTest : public SeedTest {
 protected:
  struct SentFile {
    std::uint64_t size = 0, kept_size = 0;
    std::string bytes;
    std::string sha256;
  };

  void SetUp() override {
    requests_.on_copy = [this](const std::string& directory) {
      EXPECT_TRUE(fs::create_directory(directory));
      for (const auto& [name, bytes] : files_) WriteFile(directory + "/" + name, bytes);
      return absl::OkStatus();
    };
    StartServer();
  }

  static std::string Sha256Of(const std::string& bytes) {
    Sha256Stream sha256;
    sha256.Add(bytes);
    return sha256.Digest();
  }
  void Keep(const std::string& name, std::uint64_t size, const std::string& sha256) {
    cluster::v1::KeptFile& file = *request_.add_kept();
    file.set_name(name);
    file.set_size(size);
    file.set_sha256(sha256);
  }
  std::map<std::string, SentFile> Call() {
    *request_.mutable_caller() = CallerOf(Caller(), "b");
    const auto stub = cluster::v1::PeerService::NewStub(
        OpenPeerChannel(address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    const auto reader = stub->Seed(&context, request_);
    std::map<std::string, SentFile> sent;
    SentFile* last = nullptr;
    SeedResponse response;
    while (reader->Read(&response)) {
      if (response.has_file()) {
        last = &sent[response.file().name()];
        last->size = response.file().size();
        last->kept_size = response.file().kept_size();
      }
      if (response.has_chunk()) last->bytes += response.chunk();
      if (response.has_sha256()) last->sha256 = response.sha256();
    }
    EXPECT_TRUE(reader->Finish().ok());
    EXPECT_EQ(sent.size(), files_.size());
    for (const auto& [name, file] : sent) {
      EXPECT_EQ(file.size, files_.at(name).size()) << name;
      EXPECT_EQ(file.sha256, Sha256Of(files_.at(name))) << name;
      EXPECT_TRUE(file.bytes == files_.at(name).substr(file.kept_size)) << name;
    }
    return sent;
  }

  const std::string large_ = PatternOf(3 << 20);
  const std::map<std::string, std::string> files_ = {
      {"empty", ""}, {"large", large_}, {"small", "small"}};
  cluster::v1::SeedRequest request_;
};

TEST_F(KeptFilesTest, FirstBytesThatAreTheCopysAreNotSent) {
  Keep("large", 2000000, Sha256Of(large_.substr(0, 2000000)));
  Keep("small", 5, Sha256Of("small"));
  Keep("gone", 5, Sha256Of("small"));
  const auto sent = Call();
  EXPECT_EQ(sent.at("large").kept_size, 2000000);
  EXPECT_EQ(sent.at("small").kept_size, 5);
  EXPECT_EQ(sent.at("empty").kept_size, 0);
}

TEST_F(KeptFilesTest, OtherBytesAreOfNoUse) {
  Keep("large", 2000000, Sha256Of(large_.substr(1, 2000000)));
  Keep("small", 6, Sha256Of("small!"));
  Keep("empty", std::uint64_t{1} << 63, "no digest");
  for (const auto& [name, file] : Call()) EXPECT_EQ(file.kept_size, 0) << name;
}

TEST_F(KeptFilesTest, ACopyThatWasCutGoesOn) {
  ASSERT_THAT(Seed([this] { return fs::exists(target() + "/large"); }),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
  ASSERT_TRUE(fs::exists(target() + "/large"));
  // What has come may be any part. This is one of some size.
  WriteFile(target() + "/large", large_.substr(0, 1234567));
  EndCalls();
  ASSERT_THAT(Seed(), IsOk());
  EXPECT_TRUE(ContentsOf(target() + "/large") == large_);
  EXPECT_EQ(ContentsOf(target() + "/small"), "small");
  EXPECT_EQ(std::distance(fs::directory_iterator(target()), {}), 3);
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

  const cluster::v1::SeedRequest& request() const { return request_; }

  grpc::Status Seed(grpc::ServerContext*, const cluster::v1::SeedRequest* request,
                    grpc::ServerWriter<SeedResponse>* writer) override {
    request_ = *request;
    for (const SeedResponse& response : responses_) writer->Write(response);
    return grpc::Status::OK;
  }

 private:
  const std::vector<SeedResponse> responses_;
  cluster::v1::SeedRequest request_;
};

class MalformedSeedTest : public SeedTest {
 protected:
  static SeedResponse File(const std::string& name, std::uint64_t size,
                           std::uint64_t kept_size = 0) {
    SeedResponse response;
    response.mutable_file()->set_name(name);
    response.mutable_file()->set_size(size);
    response.mutable_file()->set_kept_size(kept_size);
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
    response.set_sha256(sha256.Digest());
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
  EXPECT_THAT(SeedOf({file, Chunk("xyz"), sha256, file}), StatusIs(kLost, "comes twice"));
  EXPECT_THAT(SeedOf({File("f", 3, 2), Chunk("z"), sha256, End(1)}), StatusIs(kLost, "not there"));
}

TEST_F(MalformedSeedTest, AFileGoesOnOnlyAfterWhatIsThere) {
  constexpr auto kLost = absl::StatusCode::kDataLoss;
  const auto seed = [this](const SeedResponse& file, const std::string& rest) {
    fs::create_directory(target());
    WriteFile(target() + "/f", "xy");
    return SeedOf({file, Chunk(rest), Sha256("xyz"), End(1)});
  };
  EXPECT_THAT(seed(File("f", 3, 2), "z"), IsOk());
  EXPECT_THAT(seed(File("f", 3), "xyz"), IsOk());
  EXPECT_THAT(seed(File("f", 3, 2), "Z"), StatusIs(kLost, "checksum"));
  EXPECT_THAT(seed(File("f", 3, 1), "yz"), StatusIs(kLost, "not there"));
  EXPECT_THAT(seed(File("f", 1, 2), ""), StatusIs(kLost, "not there"));
  EXPECT_THAT(seed(File("g", 3, 2), "z"), StatusIs(kLost, "not there"));
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
