#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/cluster/grpc_peers.h"
#include "server/cluster/peer_credentials.h"
#include "server/cluster/peer_server.h"
#include "tests/client/test_certificates.h"
#include "tests/server/cluster/peers_fixture.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using testing::IsOk;
using testing::StatusIs;

using StageDone = ScriptedRequests::StageDone;
using FetchDone = ScriptedRequests::FetchDone;

TEST_F(PeersTest, AnEntryIsStagedWithAllItsFields) {
  std::promise<Entry> staged;
  requests_.on_stage = [&](Entry entry, StageDone done) {
    staged.set_value(std::move(entry));
    done(absl::OkStatus());
  };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  const Entry sent = EntryOf(3, PatternOf((3 << 20) + 7));
  ASSERT_THAT(peers.Stage("b", sent).get(), IsOk());
  const Entry got = staged.get_future().get();
  EXPECT_EQ(got.epoch, sent.epoch);
  EXPECT_EQ(got.sequence, sent.sequence);
  EXPECT_EQ(got.previous, sent.previous);
  EXPECT_EQ(got.digest, sent.digest);
  EXPECT_TRUE(got.bytes == sent.bytes);
}

TEST_F(PeersTest, EntriesOfEachSizeAreStagedAndFetchedAsTheyWere) {
  absl::Mutex mutex;
  std::optional<Entry> held;
  requests_.on_stage = [&](Entry entry, StageDone done) {
    absl::MutexLock lock(&mutex);
    held = std::move(entry);
    done(absl::OkStatus());
  };
  requests_.on_fetch = [&](std::uint64_t sequence, const EntryDigest& digest, FetchDone done) {
    absl::MutexLock lock(&mutex);
    EXPECT_EQ(sequence, held->sequence);
    EXPECT_EQ(digest, held->digest);
    done(held->bytes);
  };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  std::uint64_t sequence = 0;
  for (const std::size_t size : {0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 7}) {
    Entry entry = EntryOf(++sequence, PatternOf(size));
    // Each has a digest of its own, as entries with different bytes have.
    entry.digest = DigestOfDigit('b').substr(1) + std::to_string(sequence);
    ASSERT_THAT(peers.Stage("b", entry).get(), IsOk()) << size;
    {
      absl::MutexLock lock(&mutex);
      ASSERT_TRUE(held->bytes == entry.bytes) << size;
      held->digest = DigestOfDigit('b');
    }
    const auto fetched = peers.Fetch("b", sequence).get();
    ASSERT_THAT(fetched, IsOk()) << size;
    EXPECT_TRUE(*fetched == entry.bytes) << size;
  }
}

TEST_F(PeersTest, ErrorsKeepTheirCodeAndMessage) {
  requests_.on_fetch = [](std::uint64_t, const EntryDigest&, FetchDone done) {
    done(absl::OutOfRangeError("no longer here: \xff\n"));
  };
  requests_.on_stage = [](Entry, StageDone done) { done(absl::AbortedError("disk")); };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  EXPECT_EQ(peers.Fetch("b", 1).get().status(), absl::OutOfRangeError("no longer here: \xff\n"));
  EXPECT_EQ(peers.Stage("b", EntryOf(1, "x")).get(), absl::AbortedError("disk"));
}

TEST_F(PeersTest, ACallForAnotherReplicaIsRefused) {
  requests_.on_stage = [](Entry, const StageDone&) { FAIL(); };
  StartServer();
  const auto stage = [this](PeerOptions options, const std::string& node) {
    PeersOnThread peers(std::move(options));
    peers.SetAddress(node, address());
    // Of many chunks, of which the server refuses the header.
    return peers.Stage(node, EntryOf(1, std::string(8 << 20, 'x'))).get();
  };
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(stage(Caller("other"), "b"),
              StatusIs(kRefused, "is for group \"other\", and this is group \"g\""));
  EXPECT_THAT(stage(Caller(), "other"),
              StatusIs(kRefused, "is for node \"other\", and this is node \"b\""));
  PeerOptions of_other_cluster = Caller();
  of_other_cluster.cluster = "";
  EXPECT_THAT(stage(of_other_cluster, "b"),
              StatusIs(kRefused, "is for cluster \"\", and this is cluster \"c\""));
  PeersOnThread peers(Caller("other"));
  peers.SetAddress("b", address());
  EXPECT_THAT(peers.Fetch("b", 1).get(), StatusIs(kRefused, "group"));
}

TEST_F(PeersTest, ANodeWithoutAnAddressOrAServerIsUnavailable) {
  StartServer();
  PeersOnThread peers(Caller());
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(peers.Stage("b", EntryOf(1, "x")).get(), StatusIs(kUnavailable, "address of node b"));
  EXPECT_THAT(peers.Fetch("b", 1).get(), StatusIs(kUnavailable, "address of node b"));
  peers.SetAddress("b", address());
  EXPECT_THAT(peers.Stage("b", EntryOf(1, "x")).get(), IsOk());
  server_.reset();
  EXPECT_THAT(peers.Stage("b", EntryOf(2, "x")).get(), StatusIs(kUnavailable, ""));
  StartServer();
  peers.SetAddress("b", address());
  EXPECT_THAT(peers.Stage("b", EntryOf(3, "x")).get(), IsOk());
  peers.SetAddress("b", "");
  EXPECT_THAT(peers.Stage("b", EntryOf(4, "x")).get(), StatusIs(kUnavailable, "address of node b"));
}

TEST_F(PeersTest, AnEntryIsStagedOnceAtATime) {
  std::promise<StageDone> first_done;
  std::atomic<int> count = 0;
  requests_.on_stage = [&](Entry, StageDone done) {
    if (++count == 1) return first_done.set_value(std::move(done));
    done(absl::OkStatus());
  };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  auto first = peers.Stage("b", EntryOf(1, "x"));
  StageDone done = first_done.get_future().get();
  EXPECT_THAT(peers.Stage("b", EntryOf(1, "x")).get(),
              StatusIs(absl::StatusCode::kUnavailable, "in progress"));
  EXPECT_EQ(count, 1);
  EXPECT_THAT(peers.Stage("b", EntryOf(2, "x")).get(), IsOk());
  done(absl::OkStatus());
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(peers.Stage("b", EntryOf(1, "x")).get(), IsOk());
  EXPECT_EQ(count, 3);
}

TEST_F(PeersTest, ACallInProgressOutlivesTheAddressThatItWentTo) {
  std::promise<StageDone> first_done;
  requests_.on_stage = [&](Entry, StageDone done) { first_done.set_value(std::move(done)); };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  auto first = peers.Stage("b", EntryOf(1, "x"));
  StageDone done = first_done.get_future().get();
  peers.SetAddress("b", "");
  done(absl::OkStatus());
  EXPECT_THAT(first.get(), IsOk());
}

TEST_F(PeersTest, NoCallbackRunsAfterTheClientIsGone) {
  std::promise<StageDone> stage_done;
  std::promise<FetchDone> fetch_done;
  requests_.on_stage = [&](Entry, StageDone done) { stage_done.set_value(std::move(done)); };
  requests_.on_fetch = [&](std::uint64_t, const EntryDigest&, FetchDone done) {
    fetch_done.set_value(std::move(done));
  };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  const auto token = std::make_shared<int>(0);
  peers.Stage("b", EntryOf(1, "x"), [token](const absl::Status&) { FAIL(); });
  auto fetched = peers.Fetch("b", 1);
  StageDone stage = stage_done.get_future().get();
  FetchDone fetch = fetch_done.get_future().get();
  peers.End();
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_THROW((void)fetched.get(),
               std::future_error);  // Its callback was destroyed without a call.
  stage(absl::OkStatus());
  fetch("");
  server_.reset();  // Its calls use the promises.
}

TEST_F(PeersTest, AServerThatStopsEndsTheCallsThatWait) {
  std::promise<StageDone> stage_done;
  std::promise<FetchDone> fetch_done;
  requests_.on_stage = [&](Entry, StageDone done) { stage_done.set_value(std::move(done)); };
  requests_.on_fetch = [&](std::uint64_t, const EntryDigest&, FetchDone done) {
    fetch_done.set_value(std::move(done));
  };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  auto staged = peers.Stage("b", EntryOf(1, "x"));
  auto fetched = peers.Fetch("b", 1);
  StageDone stage = stage_done.get_future().get();
  FetchDone fetch = fetch_done.get_future().get();
  server_.reset();
  EXPECT_FALSE(staged.get().ok());
  EXPECT_FALSE(fetched.get().ok());
  // Later than all that waited for them.
  stage(absl::OkStatus());
  fetch("late");
}

TEST_F(PeersTest, ACallBeyondTheMaximumIsRefused) {
  absl::Mutex mutex;
  std::vector<FetchDone> waiting;
  requests_.on_fetch = [&](std::uint64_t, const EntryDigest&, FetchDone done) {
    absl::MutexLock lock(&mutex);
    waiting.push_back(std::move(done));
  };
  StartServer();
  PeersOnThread peers(Caller());
  peers.SetAddress("b", address());
  std::vector<std::future<absl::StatusOr<std::string>>> fetched;
  for (int i = 0; i < PeerServer::kCallsMax; ++i) fetched.push_back(peers.Fetch("b", 1));
  {
    absl::MutexLock lock(&mutex);
    const auto all_wait = [&] { return waiting.size() == fetched.size(); };
    mutex.Await(absl::Condition(&all_wait));
  }
  EXPECT_THAT(peers.Stage("b", EntryOf(1, "x")).get(),
              StatusIs(absl::StatusCode::kResourceExhausted, "16 calls"));
  for (FetchDone& done : waiting) done("bytes");
  for (auto& fetch : fetched) EXPECT_EQ(*fetch.get(), "bytes");
  // A call's thread ends it after the caller has its answer.
  while (!peers.Stage("b", EntryOf(1, "x")).get().ok()) {
  }
}

TEST_F(PeersTest, MutualTlsLetsInOnlyWhoHasACertificateOfTheAuthority) {
  const testing::TestCertificates certificates, of_others;
  const PeerPem ours{.ca = certificates.authority.pem().certificate,
                     .certificate = certificates.server.certificate,
                     .key = certificates.server.key};
  StartServer(PeerServerCredentials(ours));
  const auto stage = [this](std::shared_ptr<grpc::ChannelCredentials> credentials) {
    PeersOnThread peers(Caller("g", std::move(credentials)));
    peers.SetAddress("b", address());
    return peers.Stage("b", EntryOf(1, "x")).get();
  };
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(stage(PeerChannelCredentials(ours)), IsOk());
  EXPECT_THAT(stage(PeerChannelCredentials({})), StatusIs(kUnavailable, ""));
  // Trusts the server, but has no certificate, or one of another authority.
  EXPECT_THAT(stage(grpc::SslCredentials(
                  {.pem_root_certs = ours.ca, .pem_private_key = "", .pem_cert_chain = ""})),
              StatusIs(kUnavailable, ""));
  EXPECT_THAT(stage(PeerChannelCredentials({.ca = ours.ca,
                                            .certificate = of_others.server.certificate,
                                            .key = of_others.server.key})),
              StatusIs(kUnavailable, ""));
  // Does not trust the server.
  EXPECT_THAT(stage(PeerChannelCredentials({.ca = of_others.authority.pem().certificate,
                                            .certificate = ours.certificate,
                                            .key = ours.key})),
              StatusIs(kUnavailable, ""));
  server_.reset();
  // The server's certificate is for another host.
  const auto elsewhere = certificates.authority.IssueServer({"elsewhere.example"});
  StartServer(PeerServerCredentials(
      {.ca = ours.ca, .certificate = elsewhere->certificate, .key = elsewhere->key}));
  EXPECT_THAT(stage(PeerChannelCredentials(ours)), StatusIs(kUnavailable, ""));
}

}  // namespace
}  // namespace softlookup::server
