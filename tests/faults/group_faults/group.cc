#include "tests/faults/group_faults/group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/testing/etcdctl.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

// The end of a text that can be long.
std::string Tail(const std::string& text) {
  constexpr std::size_t kShownBytes = 4000;
  return text.substr(text.size() - std::min(text.size(), kShownBytes));
}

}  // namespace

Group::Group(const GroupOptions& options) {
  if (options.has_small_disks) {
    // The member's directory moves to the small disk.
    const int last = kMembers - 1;
    const std::string place = member_disk_.path() + "/member";
    etcd_.Kill(last);
    fs::create_directories(etcd_.directory(last));
    fs::copy(etcd_.directory(last), place, fs::copy_options::recursive);
    fs::remove_all(etcd_.directory(last));
    fs::create_directory_symlink(place, etcd_.directory(last));
    etcd_.Start(last);
  }
  std::optional<std::uint64_t> cuts = options.cuts;
  for (int i = 0; i < kNodes; ++i) {
    const bool is_on_small_disk = options.has_small_disks && i == kNodes - 1;
    nodes_.push_back(std::make_unique<Node>(absl::StrCat("n", ++names_),
                                            is_on_small_disk ? node_disk_.path() : parent_.path(),
                                            etcd_.endpoints(), cuts));
    if (cuts.has_value()) *cuts += 100;
  }
  router_ = std::make_unique<Router>(parent_.path(), etcd_.endpoints(), cuts);
}

void Group::Start() {
  nodes_[0]->Start();
  for (int i = 1; i < kNodes; ++i) {
    ASSERT_TRUE(AwaitThat([&] { return Ask("add", nodes_[i]->name()); }));
    nodes_[i]->Start();
  }
  router_->Start();
}

void Group::AwaitCopies() {
  ASSERT_TRUE(AwaitThat([&] { return Field("config", "copies") == "2"; })) << Logs();
}

void Group::StartMissing() {
  const auto start = [](auto& process, const std::string& name) {
    if (const std::optional<int> end = process.TakeEnd()) {
      ADD_FAILURE() << name << " has ended with " << *end << ":\n" << Tail(process.log());
    }
    if (!process.is_running()) process.Start();
  };
  for (const auto& node : nodes_) start(*node, node->name());
  start(*router_, "the router");
}

void Group::MendLinks() {
  for (const auto& node : nodes_) {
    node->peer_link().SetLink({});
    for (int member = 0; member < kMembers; ++member) node->etcd_link(member).SetLink({});
  }
  router_->client_link().SetLink({});
  for (int member = 0; member < kMembers; ++member) router_->etcd_link(member).SetLink({});
}

bool Group::Ask(const std::string& command, const std::string& argument) {
  for (const auto& node : nodes_) {
    if (!node->is_running()) continue;
    std::vector<std::string> words = {ToolBinary(), "cluster", command};
    if (!argument.empty()) words.push_back(argument);
    words.insert(words.end(), {"--server", node->address()});
    if (RunCommand(words).exit_code == 0) return true;
  }
  return false;
}

void Group::ReplaceNode(int index) {
  Node& node = *nodes_[index];
  std::optional<int> end;
  ASSERT_TRUE(AwaitThat([&] {
    // The primary cannot be removed. A change whose answer was lost has been made.
    if (Primary() == index) Ask("move-leader");
    const bool was_removed = Ask("remove", node.name());
    end = node.TakeEnd();
    return was_removed || end.has_value();
  }));
  ASSERT_TRUE(AwaitThat([&] {
    if (!end.has_value()) end = node.TakeEnd();
    return end.has_value();
  })) << node.name();
  EXPECT_EQ(*end, 1) << Tail(node.log());
  node.Wipe();
  node.Rename(absl::StrCat("n", ++names_));
  ASSERT_TRUE(AwaitThat([&] {
    return Ask("add", node.name()) || absl::StrContains(Field("config", "replicas"), node.name());
  }));
  node.Start();
}

void Group::ReplaceMember(int member) {
  const int other = (member + 1) % kMembers;
  const std::string name = absl::StrCat("m", member);
  etcd_.Kill(member);
  ASSERT_TRUE(AwaitThat([&] {
    const std::string members = AskEtcd(other, "member list").value_or("");
    for (const absl::string_view line : absl::StrSplit(members, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> fields = absl::StrSplit(line, ", ");
      if (fields.size() < 4 || fields[3] != etcd_.peer_url(member)) continue;
      AskEtcd(other, absl::StrCat("member remove ", fields[0]));
      return false;
    }
    return !members.empty();
  }));
  etcd_.Wipe(member);
  ASSERT_TRUE(AwaitThat([&] {
    AskEtcd(other, absl::StrCat("member add ", name, " --peer-urls ", etcd_.peer_url(member)));
    return absl::StrContains(AskEtcd(other, "member list").value_or(""), etcd_.peer_url(member));
  }));
  etcd_.Start(member);
}

std::optional<int> Group::Primary() {
  const std::string name = Field("primary", "node");
  for (int i = 0; i < kNodes; ++i) {
    if (name == nodes_[i]->name()) return i;
  }
  return std::nullopt;
}

std::optional<int> Group::EtcdLeader() {
  for (int member = 0; member < kMembers; ++member) {
    const std::string status = AskEtcd(member, "endpoint status").value_or("");
    const std::vector<std::string> fields = absl::StrSplit(status, ", ");
    if (fields.size() > 4 && fields[4] == "true") return member;
  }
  return std::nullopt;
}

std::string Group::Field(const std::string& key, const std::string& field) {
  for (int member = 0; member < kMembers; ++member) {
    const std::optional<std::string> value =
        AskEtcd(member, absl::StrCat("get --print-value-only /softlookup/c/groups/g/", key));
    if (!value.has_value()) continue;
    for (const absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(*value), ' ')) {
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      if (pair.first == field) return std::string(pair.second);
    }
    return "";
  }
  return "";
}

std::string Group::Logs() const {
  std::string logs;
  for (const auto& node : nodes_) {
    absl::StrAppend(&logs, "node ", node->name(), ":\n", Tail(node->log()), "\n");
  }
  absl::StrAppend(&logs, "the router:\n", Tail(router_->log()), "\n");
  return logs;
}

std::optional<std::string> Group::AskEtcd(int member, const std::string& arguments) {
  CommandResult result =
      RunEtcdctl(etcd_.endpoints()[member], absl::StrSplit(arguments, ' '), /*seconds=*/3);
  if (result.exit_code != 0) return std::nullopt;
  return std::move(result.out);
}

}  // namespace softlookup::testing
