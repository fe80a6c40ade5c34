// What a PeerServer and a GrpcPeers make of streams that do not keep to the protocol.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/cluster/peer_protocol.h"
#include "server/cluster/peer_server.h"
#include "server/cluster/peers/peers.grpc.pb.h"
#include "tests/server/cluster/peers_fixture.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using cluster::v1::StageRequest;
using testing::IsOk;
using testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class PeerStreamsTest : public PeersTest {
 protected:
  // A Stage whose requests the test makes.
  struct RawStage {
    RawStage(cluster::v1::PeerService::Stub& stub, absl::Duration timeout) {
      if (timeout != absl::InfiniteDuration()) {
        context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
      }
      writer = stub.Stage(&context, &response);
    }
    absl::Status Finish() {
      writer->WritesDone();
      return FromPeerStatus(writer->Finish());
    }

    grpc::ClientContext context;
    cluster::v1::StageResponse response;
    std::unique_ptr<grpc::ClientWriter<StageRequest>> writer;
  };

  void SetUp() override {
    requests_.on_stage = [](const Entry& entry, ScriptedRequests::StageDone done) {
      EXPECT_EQ(entry.bytes, "x");  // Of streams that are as they must be.
      done(absl::OkStatus());
    };
    StartServer();
    stub_ = std::make_unique<cluster::v1::PeerService::Stub>(
        grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  }

  static StageRequest Header(std::uint64_t size) {
    StageRequest request;
    cluster::v1::StageHeader& header = *request.mutable_header();
    *header.mutable_caller() = CallerOf(Caller(), "b");
    header.set_digest(DigestOfDigit('b'));
    header.set_size(size);
    return request;
  }
  static StageRequest Chunk(std::string bytes) {
    StageRequest request;
    request.set_chunk(std::move(bytes));
    return request;
  }
  absl::Status Stage(const std::vector<StageRequest>& requests,
                     absl::Duration timeout = absl::Seconds(60)) {
    RawStage stage(*stub_, timeout);
    for (const StageRequest& request : requests) {
      if (!stage.writer->Write(request)) break;  // The server has ended the call.
    }
    return stage.Finish();
  }

  std::unique_ptr<cluster::v1::PeerService::Stub> stub_;
};

TEST_F(PeerStreamsTest, AStageHasOneHeaderAndAllItsBytes) {
  EXPECT_THAT(Stage({Header(1), Chunk("x")}), IsOk());
  EXPECT_THAT(Stage({}), StatusIs(kInvalid, "no request"));
  EXPECT_THAT(Stage({Chunk("x")}), StatusIs(kInvalid, "no header"));
  EXPECT_THAT(Stage({Chunk("x"), Header(1)}), StatusIs(kInvalid, "no header"));
  EXPECT_THAT(Stage({StageRequest()}), StatusIs(kInvalid, "no header"));
  EXPECT_THAT(Stage({Header(1), Header(1), Chunk("x")}), StatusIs(kInvalid, "no chunk"));
  EXPECT_THAT(Stage({Header(1), StageRequest()}), StatusIs(kInvalid, "no chunk"));
  EXPECT_THAT(Stage({Header(1), Chunk("")}), StatusIs(kInvalid, "A chunk has 0 bytes"));
  EXPECT_THAT(Stage({Header(1)}), StatusIs(kInvalid, "0 bytes came of the 1"));
  EXPECT_THAT(Stage({Header(3), Chunk("x"), Chunk("y")}), StatusIs(kInvalid, "2 bytes came"));
  EXPECT_THAT(Stage({Header(1), Chunk("xy")}), StatusIs(kInvalid, "More bytes came"));
  EXPECT_THAT(Stage({Header(1), Chunk("x"), Chunk("y")}), StatusIs(kInvalid, "More bytes came"));
  EXPECT_THAT(Stage({Header(0), Chunk("x")}), StatusIs(kInvalid, "More bytes came"));
}

TEST_F(PeerStreamsTest, SizesBeyondTheMaximumAreRefused) {
  EXPECT_THAT(Stage({Header(Entry::kBytesMax + 1)}), StatusIs(kInvalid, "1073741825 bytes"));
  EXPECT_THAT(Stage({Header(~std::uint64_t{0}), Chunk("x")}), StatusIs(kInvalid, "bytes"));
  EXPECT_THAT(Stage({Header(Entry::kBytesMax), Chunk(std::string(kPeerChunkBytesMax + 1, 'x'))}),
              StatusIs(kInvalid, "A chunk has 1048577 bytes"));
  EXPECT_THAT(Stage({Header(Entry::kBytesMax), Chunk(std::string(2 * kPeerMessageBytesMax, 'x'))}),
              StatusIs(absl::StatusCode::kResourceExhausted, "larger than max"));
}

TEST_F(PeerStreamsTest, DigestsThatAreNoneAreRefused) {
  for (const std::string& digest :
       {std::string(), std::string(63, 'b'), std::string(65, 'b'), std::string(64, 'g'),
        std::string(64, 'B'), std::string(64, '\0')}) {
    StageRequest header = Header(1);
    header.mutable_header()->set_digest(digest);
    EXPECT_THAT(Stage({header, Chunk("x")}), StatusIs(kInvalid, "`digest`")) << digest;
    if (digest.empty()) continue;  // The first entry has none before it.
    header = Header(1);
    header.mutable_header()->set_previous(digest);
    EXPECT_THAT(Stage({header, Chunk("x")}), StatusIs(kInvalid, "`previous`")) << digest;
  }
}

TEST_F(PeerStreamsTest, ACallNeedsADeadline) {
  EXPECT_THAT(Stage({Header(1), Chunk("x")}, absl::InfiniteDuration()),
              StatusIs(kInvalid, "deadline"));
  EXPECT_THAT(Stage({Header(1), Chunk("x")}, absl::Minutes(16)), StatusIs(kInvalid, "deadline"));
  EXPECT_THAT(Stage({Header(1), Chunk("x")}, absl::Minutes(14)), IsOk());
  grpc::ClientContext fetch_context, seed_context;
  cluster::v1::FetchResponse fetched;
  cluster::v1::SeedResponse seed;
  const auto fetch = stub_->Fetch(&fetch_context, {});
  EXPECT_FALSE(fetch->Read(&fetched));
  EXPECT_THAT(FromPeerStatus(fetch->Finish()), StatusIs(kInvalid, "deadline"));
  const auto seeds = stub_->Seed(&seed_context, {});
  EXPECT_FALSE(seeds->Read(&seed));
  EXPECT_THAT(FromPeerStatus(seeds->Finish()), StatusIs(kInvalid, "deadline"));
}

TEST_F(PeerStreamsTest, AStalledStageEndsByItsDeadline) {
  RawStage stage(*stub_, absl::Milliseconds(200));
  stage.writer->Write(Header(Entry::kBytesMax));
  EXPECT_THAT(FromPeerStatus(stage.writer->Finish()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  // The server's part of it ends, too: the bytes that it announced are free again.
  RawStage first(*stub_, absl::Seconds(60));
  ASSERT_TRUE(first.writer->Write(Header(Entry::kBytesMax)));
  EXPECT_TRUE(testing::AwaitThat([&] { return Stage({Header(1), Chunk("x")}).ok(); }));
}

TEST_F(PeerStreamsTest, TheBytesOfAllStagesAreBounded) {
  RawStage first(*stub_, absl::Seconds(60)), second(*stub_, absl::Seconds(60));
  ASSERT_TRUE(first.writer->Write(Header(Entry::kBytesMax)));
  ASSERT_TRUE(second.writer->Write(Header(Entry::kBytesMax)));
  absl::Status third;
  while (third.ok()) third = Stage({Header(1), Chunk("x")});  // Until both headers have been read.
  EXPECT_THAT(third, StatusIs(absl::StatusCode::kResourceExhausted, "2147483648 bytes"));
  first.context.TryCancel();
  EXPECT_TRUE(testing::AwaitThat([&] { return Stage({Header(1), Chunk("x")}).ok(); }));
}

// A service that answers a Fetch with what a test says.
class ScriptedFetch final : public cluster::v1::PeerService::Service {
 public:
  explicit ScriptedFetch(std::vector<cluster::v1::FetchResponse> responses)
      : responses_(std::move(responses)) {}

  grpc::Status Fetch(grpc::ServerContext*, const cluster::v1::FetchRequest*,
                     grpc::ServerWriter<cluster::v1::FetchResponse>* writer) override {
    for (const auto& response : responses_) writer->Write(response);
    return grpc::Status::OK;
  }

 private:
  const std::vector<cluster::v1::FetchResponse> responses_;
};

absl::StatusOr<std::string> FetchOf(const std::vector<cluster::v1::FetchResponse>& responses,
                                    const PeerOptions& options) {
  ScriptedFetch service(responses);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  PeersOnThread peers(options);
  peers.SetAddress("b", absl::StrCat("127.0.0.1:", port));
  return peers.Fetch("b", 1).get();
}

TEST_F(PeerStreamsTest, AFetchTakesNothingButTheBytesThatWereAnnounced) {
  const auto size = [](std::uint64_t announced) {
    cluster::v1::FetchResponse response;
    response.set_size(announced);
    return response;
  };
  const auto chunk = [](const std::string& bytes) {
    cluster::v1::FetchResponse response;
    response.set_chunk(bytes);
    return response;
  };
  constexpr auto kInternal = absl::StatusCode::kInternal;
  EXPECT_EQ(*FetchOf({size(3), chunk("xy"), chunk("z")}, Caller()), "xyz");
  EXPECT_THAT(FetchOf({}, Caller()), StatusIs(kInternal, "no size"));
  EXPECT_THAT(FetchOf({chunk("x")}, Caller()), StatusIs(kInternal, "not the first"));
  EXPECT_THAT(FetchOf({size(1), size(1), chunk("x")}, Caller()), StatusIs(kInternal, "the first"));
  EXPECT_THAT(FetchOf({size(2), chunk("x")}, Caller()),
              StatusIs(kInternal, "1 bytes came of the 2"));
  EXPECT_THAT(FetchOf({size(1), chunk("xy")}, Caller()), StatusIs(kInternal, "More bytes"));
  EXPECT_THAT(FetchOf({size(1), chunk("")}, Caller()), StatusIs(kInternal, "A chunk has 0"));
  EXPECT_THAT(FetchOf({size(Entry::kBytesMax + 1)}, Caller()), StatusIs(kInternal, "1073741825"));
}

}  // namespace
}  // namespace softlookup::server
