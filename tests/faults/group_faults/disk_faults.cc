// Disks that are full, lost, or put back from a copy, and what a power cut leaves of them.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/faults/group_faults/client.h"
#include "tests/faults/group_faults/contents.h"
#include "tests/faults/group_faults/faults.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

// A fault that loses what a disk has had must wait until all others have it, too: two disks that
// are lost at once can take what was acknowledged.
bool AwaitCopies(FaultScene& scene) {
  return AwaitEqual(scene.group, scene.traffic, absl::Seconds(30));
}

std::uint64_t LastSequence(Group& group) {
  std::uint64_t sequence = 0;
  const bool is_number = absl::SimpleAtoi(group.Field("commit-point", "sequence"), &sequence);
  return is_number ? sequence : 0;
}

// Whether etcd says that `node` has the last entry of the group on its disk, and that this entry
// came after `sequence`.
bool HasLaterEntry(Group& group, const std::string& node, std::uint64_t sequence) {
  constexpr std::uint64_t kSlots = 16'384;
  const std::uint64_t last = LastSequence(group);
  if (last <= sequence) return false;
  const std::vector<std::string> holders =
      absl::StrSplit(group.Field(absl::StrCat("log/", last % kSlots), "holders"), ',');
  return absl::c_linear_search(holders, node);
}

bool LoseDirectory(FaultScene& scene) {
  if (!AwaitCopies(scene)) return false;
  Node& node = scene.group.node(scene.AnyNode());
  node.Stop(SIGKILL);
  node.Wipe();
  return true;
}

// The directory of a node is put back from a copy, so what it has said to be on its disk is not.
// It must notice, and end.
bool PutBackCopy(FaultScene& scene) {
  if (!AwaitCopies(scene)) return false;
  Node& node = scene.group.node(scene.AnyNode());
  node.Stop(SIGTERM);
  const std::uint64_t sequence = LastSequence(scene.group);
  const std::string copy = node.directory() + ".copy";
  fs::remove_all(copy);
  fs::copy(node.directory(), copy, fs::copy_options::recursive);
  node.Start();
  EXPECT_TRUE(AwaitThat([&] {
    scene.group.StartMissing();
    return HasLaterEntry(scene.group, node.name(), sequence);
  }));
  if (!AwaitCopies(scene)) return false;
  node.Stop(SIGKILL);
  node.Wipe();
  fs::rename(copy, node.directory());
  const std::size_t logged = node.log().size();
  node.Start();
  std::optional<int> end;
  EXPECT_TRUE(AwaitThat([&] {
    end = node.TakeEnd();
    return end.has_value();
  })) << node.log().substr(logged);
  EXPECT_EQ(end, 1);
  const std::string log = node.log().substr(logged);
  // If the others no longer have the first entry that is missing, that is what it sees first.
  EXPECT_TRUE(absl::StrContains(log, "the disk has lost it") ||
              absl::StrContains(log, "is too far behind"))
      << log;
  if (absl::StrContains(log, "the disk has lost it")) node.Wipe();
  return true;
}

void CutPowerOf(FaultScene& scene, Node& node) {
  const PowerCut::Taken taken = node.CutPower(scene.draw);
  std::cout << "  node " << node.name() << " has lost " << taken.names << " names and "
            << taken.bytes << " bytes" << std::endl;
}

bool CutPower(FaultScene& scene) {
  Node& node = scene.group.node(scene.AnyNode());
  node.Stop(SIGKILL);
  CutPowerOf(scene, node);
  return true;
}

// All that was acknowledged is on two disks, so no other node is needed.
bool CutPowerOfAll(FaultScene& scene) {
  for (int i = 0; i < Group::kNodes; ++i) scene.group.node(i).Signal(SIGKILL);
  for (int i = 0; i < Group::kNodes; ++i) {
    scene.group.node(i).Stop(SIGKILL);
    CutPowerOf(scene, scene.group.node(i));
  }
  return true;
}

// A node gets all data from another one when the power is cut.
bool CutPowerOfSeeded(FaultScene& scene) {
  if (!AwaitCopies(scene)) return false;
  Node& node = scene.group.node(scene.AnyNode());
  node.Stop(SIGKILL);
  node.Wipe();
  const std::size_t logged = node.log().size();
  node.Start();
  EXPECT_TRUE(AwaitThat([&] {
    return absl::StrContains(node.log().substr(logged), "copies the records of its group");
  }));
  LetPass(absl::Milliseconds(scene.draw.Int(0, 500)));
  node.Stop(SIGKILL);
  CutPowerOf(scene, node);
  return true;
}

// The disk of a node has lost some of what it said to have synced. The node gets it from the
// others, or it must notice, and end.
bool CutPowerOfLiar(FaultScene& scene) {
  if (!AwaitCopies(scene)) return false;
  const std::uint64_t written = scene.traffic.acknowledged() + scene.draw.Int(1, 200);
  EXPECT_TRUE(AwaitThat([&] { return scene.traffic.acknowledged() >= written; }));
  Node& node = scene.group.node(scene.AnyNode());
  node.Stop(SIGKILL);
  CutPowerOf(scene, node);
  const std::int64_t lost =
      CutNewestLog(node.directory(), scene.draw.Int(1, 1 << scene.draw.Int(1, 20)));
  const std::size_t logged = node.log().size();
  node.Start();
  std::optional<int> end;
  EXPECT_TRUE(AwaitThat([&] {
    end = node.TakeEnd();
    return end.has_value() || Answers(*node.NewStub());
  })) << node.log().substr(logged);
  std::cout << "  and " << lost << " bytes that were synced; "
            << (end.has_value() ? "it has noticed" : "it has got them again") << std::endl;
  if (!end.has_value()) return true;
  EXPECT_EQ(end, 1);
  const std::string log = node.log().substr(logged);
  if (absl::StrContains(log, "is too far behind")) return true;  // It will get all anew.
  EXPECT_TRUE(absl::StrContains(log, "the disk has lost it") ||
              absl::StrContains(log, "its log ends after"))
      << log;
  node.Wipe();
  return true;
}

// Writes more than a log has room for beforehand, to a store that is deleted afterwards.
void WriteBulk(FaultScene& scene) {
  constexpr int kAppends = 90;
  constexpr std::uint32_t kRows = 65'536;
  Client client(scene.group);
  const auto call = [&](const Client::Call& call) {
    EXPECT_TRUE(AwaitThat([&] { return client.TryOnce(call).ok(); }));
  };
  call([](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
    v1::CreateStoreRequest request;
    request.mutable_store()->set_name("bulk");
    request.mutable_store()->set_key_dim(1);
    request.mutable_store()->set_value_dim(1);
    v1::Store response;
    const grpc::Status status = stub.CreateStore(&context, request, &response);
    return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status::OK : status;
  });
  for (int sequence = 1; sequence <= kAppends; ++sequence) {
    call([sequence](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
      v1::AppendRequest request;
      request.set_store("bulk");
      request.set_writer("bulk");
      request.set_sequence(static_cast<std::uint64_t>(sequence));
      SetRows(kRows, 1, 1, request);
      v1::AppendResponse response;
      return stub.Append(&context, request, &response);
    });
  }
  call([](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
    v1::DeleteStoreRequest request;
    request.set_name("bulk");
    v1::DeleteStoreResponse response;
    const grpc::Status status = stub.DeleteStore(&context, request, &response);
    return status.error_code() == grpc::StatusCode::NOT_FOUND ? grpc::Status::OK : status;
  });
}

bool FillDiskOfNode(FaultScene& scene) {
  const SmallDisk& disk = scene.group.node_disk();
  if (!disk.can_be_filled() || !AwaitCopies(scene)) return false;
  disk.Fill();
  // The two others go on with what clients write.
  WriteBulk(scene);
  LetPass(scene.AnyTime(1, 5));
  disk.Free();
  return true;
}

bool FillDiskOfPrimary(FaultScene& scene) {
  constexpr int kOnSmallDisk = Group::kNodes - 1;
  scene.group.StartMissing();
  const bool is_primary = AwaitThat([&] {
    const std::optional<int> primary = scene.group.Primary();
    if (primary.has_value() && *primary != kOnSmallDisk) scene.group.Ask("move-leader");
    return primary == kOnSmallDisk;
  });
  return is_primary && FillDiskOfNode(scene);
}

bool FillDiskOfMember(FaultScene& scene) {
  const SmallDisk& disk = scene.group.member_disk();
  if (!disk.can_be_filled()) return false;
  disk.Fill();
  LetPass(scene.AnyTime(3, 10));
  disk.Free();
  scene.group.etcd().StartIfEnded(Group::kMembers - 1);
  return true;
}

}  // namespace

std::vector<FaultKind> DiskFaults() {
  return {{.name = "a node's directory lost", .run = LoseDirectory, .leaves_lookups = true},
          {"a node's directory put back from a copy", PutBackCopy},
          {.name = "a power cut", .run = CutPower, .leaves_lookups = true},
          {"a power cut of all nodes", CutPowerOfAll},
          {"a power cut of a node that is being seeded", CutPowerOfSeeded},
          {"a power cut of a node whose disk had lied", CutPowerOfLiar},
          {"a node's disk full", FillDiskOfNode, /*is_long=*/true},
          {"the primary's disk full", FillDiskOfPrimary, /*is_long=*/true},
          {"a member's disk full", FillDiskOfMember}};
}

}  // namespace softlookup::testing
