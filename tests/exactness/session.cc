#include "tests/exactness/session.h"

#include <csignal>

#include "absl/strings/str_cat.h"
#include "tests/exactness/lookup_maker.h"

namespace softlookup::exactness {
namespace {

constexpr std::size_t kStoresMax = 6;
// Run() appends rows only to a store that has fewer. LookUpBesideWrite() appends to any.
constexpr std::int64_t kRowsMax = 12'000;
// The same where stores are cut.
constexpr std::int64_t kCutRowsMax = 70'000;
// A range begins at a multiple of this or of fewer rows.
constexpr std::uint64_t kRangeStepMax = 8192;

}  // namespace

Session::Session(std::uint64_t seed, bool cuts_stores, Tally& tally)
    : seed_(seed), cuts_stores_(cuts_stores), draw_(seed), tally_(tally) {
  if (cuts_stores) etcd_ = std::make_unique<testing::EtcdMembers>(1);
  Start();
  AddStore();
}

void Session::Start() {
  constexpr const char* kThreads[] = {"1", "2", "3", "4", "7"};
  std::vector<std::string> flags = {"--data-dir", directory_.path() + "/data", "--threads",
                                    kThreads[draw_.Int(0, 4)]};
  if (cuts_stores_) {
    const std::vector<std::string> cluster = {"--cluster", "c", "--cluster-etcd",
                                              etcd_->endpoints()[0]};
    flags.insert(flags.end(), cluster.begin(), cluster.end());
    flags.insert(flags.end(), {"--group", "g", "--node", "n", "--cluster-listen", "127.0.0.1:0"});
    node_.emplace(flags);
    flags = cluster;
    flags.push_back("--router");
  }
  server_.emplace(flags);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      server_->grpc_address(), grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::SoftLookup::NewStub(channel);
  admin_stub_ = admin::v1::Admin::NewStub(channel);
}

void Session::Run(std::uint64_t number) {
  operation_ = number;
  if (cuts_stores_ && !stores_.empty() && draw_.Chance(0.06)) return Cut(AnyStore());
  const double how = draw_.Real(0, 1);
  if (stores_.empty() || how < 0.05) {
    AddStore();
  } else if (how < 0.10) {
    OneStore& store = AnyStore();
    const std::int64_t rows_max = cuts_stores_ ? kCutRowsMax : kRowsMax;
    if (static_cast<std::int64_t>(store.kept.row_count()) < rows_max) {
      Append(store, draw_.Chance(0.1) ? draw_.Int(1, 1100) : draw_.Int(1, 40));
    }
  } else if (how < 0.13) {
    Delete(AnyStore());
  } else if (how < 0.16) {
    for (int i = 0; i < 4; ++i) CheckMemory(AnyStore());
  } else if (how < 0.24) {
    RepeatAlone();
  } else if (how < 0.29) {
    RepeatTogether("among others");
  } else if (how < 0.34) {
    LookUpBesideWrite(AnyStore());
  } else if (how < 0.355) {
    Restart();
  } else {
    LookUp(AnyStore());
  }
}

Session::OneStore& Session::AnyStore() {
  return *stores_[draw_.Int(0, static_cast<std::int64_t>(stores_.size()) - 1)];
}

void Session::Fail(const std::string& what) {
  failures_.push_back(absl::StrCat("seed ", seed_, ", operation ", operation_, ": ", what));
}

void Session::Fail(const KeptStore& store, const std::string& request, const std::string& what) {
  Fail(absl::StrCat(store.description(), " of ", store.row_count(), " rows at revision ",
                    store.revision(), ": ", request, ": ", what));
}

bool Session::RequireOk(const KeptStore& store, const grpc::Status& status,
                        const std::string& what) {
  if (status.ok()) return true;
  Fail(store, what,
       absl::StrCat("failed with ", static_cast<int>(status.error_code()), ", ",
                    status.error_message()));
  return false;
}

void Session::Forget(const OneStore& store) {
  std::erase_if(remembered_, [&](const Remembered& lookup) {
    return lookup.store == &store && lookup.revision != store.kept.revision();
  });
}

void Session::AddStore() {
  if (stores_.size() == kStoresMax) {
    DropStore(static_cast<std::size_t>(draw_.Int(0, static_cast<std::int64_t>(kStoresMax) - 1)));
  }
  const auto store_seed = static_cast<std::uint64_t>(draw_.Int(0, 1'000'000'000));
  auto store =
      std::make_unique<OneStore>(store_seed, absl::StrCat("s", ++store_count_), cuts_stores_);
  ++counts_.stores;
  v1::CreateStoreRequest request;
  *request.mutable_store() = store->maker.config();
  v1::Store response;
  grpc::ClientContext context;
  if (!RequireOk(store->kept, stub_->CreateStore(&context, request, &response), "CreateStore")) {
    return;
  }
  stores_.push_back(std::move(store));
  OneStore& added = *stores_.back();
  for (const std::int64_t count : added.maker.first_appends()) Append(added, count);
  if (cuts_stores_) Cut(added);
}

void Session::Cut(OneStore& store) {
  constexpr std::uint32_t kRangeCounts[] = {1, 2, 3, 7};
  KeptStore& kept = store.kept;
  const std::uint32_t count = kRangeCounts[draw_.Int(0, 3)];
  admin::v1::SplitStoreRequest request;
  request.set_store(kept.name());
  request.set_range_count(count);
  admin::v1::StoreRanges response;
  grpc::ClientContext context;
  const grpc::Status status = admin_stub_->SplitStore(&context, request, &response);
  const bool has_too_few_rows = (kept.row_count() + kRangeStepMax - 1) / kRangeStepMax < count;
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT && has_too_few_rows) return;
  const std::string what = absl::StrCat("SplitStore {", request.ShortDebugString(), "}");
  if (!RequireOk(kept, status, what)) return;
  if (response.revision() != kept.revision() && response.revision() != kept.revision() + 1) {
    Fail(kept, what, absl::StrCat("made revision ", response.revision()));
  }
  kept.set_revision(response.revision());
  store.range_count = count;
  CheckRanges(store, response, what);
  if (count > 1) ++counts_.cuts;
  Forget(store);
}

void Session::CheckRanges(const OneStore& store, const admin::v1::StoreRanges& ranges,
                          const std::string& what) {
  // A store that is not cut has no ranges.
  const int expected = store.range_count == 1 ? 0 : static_cast<int>(store.range_count);
  if (ranges.ranges_size() == expected) return;
  Fail(store.kept, what,
       absl::StrCat(ranges.ranges_size(), " ranges, has to be cut into ", store.range_count));
}

void Session::DropStore(std::size_t index) {
  OneStore& store = *stores_[index];
  v1::DeleteStoreRequest request;
  request.set_name(store.kept.name());
  v1::DeleteStoreResponse response;
  grpc::ClientContext context;
  RequireOk(store.kept, stub_->DeleteStore(&context, request, &response), "DeleteStore");
  std::erase_if(remembered_, [&](const Remembered& lookup) { return lookup.store == &store; });
  stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Session::LookUp(OneStore& store) {
  const v1::LookupRequest request = MakeLookup(store.maker, store.kept);
  v1::LookupResponse response;
  grpc::ClientContext context;
  const grpc::Status status = stub_->Lookup(&context, request, &response);
  Check(store, request, status, response, /*remembers=*/true);
}

void Session::Restart() {
  ++counts_.restarts;
  server_->Stop(SIGKILL);
  if (node_.has_value()) node_->Stop(SIGKILL);
  Start();
  RepeatTogether("after a crash");
  for (const auto& store : stores_) {
    v1::GetStoreRequest request;
    request.set_name(store->kept.name());
    v1::Store response;
    grpc::ClientContext context;
    if (!RequireOk(store->kept, stub_->GetStore(&context, request, &response), "GetStore"))
      continue;
    if (response.revision() != store->kept.revision() ||
        response.row_count() != store->kept.row_count()) {
      Fail(store->kept, "after a crash",
           absl::StrCat("revision ", response.revision(), ", ", response.row_count(), " rows"));
    }
    if (!cuts_stores_) continue;
    admin::v1::GetRangesRequest of_ranges;
    of_ranges.set_store(store->kept.name());
    admin::v1::StoreRanges ranges;
    grpc::ClientContext ranges_context;
    const grpc::Status status = admin_stub_->GetRanges(&ranges_context, of_ranges, &ranges);
    if (RequireOk(store->kept, status, "GetRanges")) CheckRanges(*store, ranges, "after a crash");
  }
}

}  // namespace softlookup::exactness
