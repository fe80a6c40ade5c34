#include "server/router/list_all_stores.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "server/router/primary_call.h"
#include "server/router/routed_unary.h"
#include "server/router/running_route.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/message_reader.h"
#include "server/rpc/unary_call.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {
namespace {

// Asks one group after the other for a page, so that only two pages are held at a time.
class ListAllStores final : public MessageCall<v1::ListStoresRequest, v1::ListStoresResponse> {
 public:
  ListAllStores(std::unique_ptr<Call> call, const RouterParts& parts)
      : MessageCall(std::move(call), RunOn::kNetworkThread), parts_(parts) {}

  void OnCancel() override { running_.Cancel(); }

 private:
  void Run() override;
  void AskNextGroup();
  // Adds a page of a group to the response.
  void Merge(v1::ListStoresResponse page);
  // Leaves out of the response what is beyond the page, or beyond where the listing is whole.
  void CutPage();

  const RouterParts& parts_;
  std::vector<std::string> groups_;  // That are to be asked, from the back.
  bool is_merged_ = false;           // Several groups are asked.
  // The listing is whole up to this name. Empty: up to the end.
  std::string whole_to_;
  RunningRoute running_;
};

void ListAllStores::Run() {
  const std::size_t slash = request_.prefix().find('/');
  if (slash == std::string::npos) {
    for (const ClusterMap::Group& group : parts_.watch.map()->groups) {
      groups_.push_back(group.name);
    }
    if (groups_.empty()) return Refuse(ClusterUnavailable("The router knows no group yet"));
    is_merged_ = groups_.size() > 1;
    return AskNextGroup();
  }
  parts_.tenants.FindGroup(request_.prefix(), [this](const absl::StatusOr<std::string>& group) {
    if (!group.ok()) return Refuse(group.status());
    groups_.push_back(*group);
    AskNextGroup();
  });
}

void ListAllStores::AskNextGroup() {
  if (groups_.empty()) return Answer(absl::OkStatus(), response_);
  const std::string group = groups_.back();
  groups_.pop_back();
  const std::shared_ptr<RoutedCall> routed = PrimaryCall::Make(
      parts_,
      {.queue = &call().rpc().queue(),
       .method = std::string(call().spec().path),
       .bytes = BytesOf(request_),
       .deadline = call().deadline(),
       .caller = CallerOf(call())},
      "", Repeat::kAllowed, nullptr, [this](const absl::Status& status, grpc::ByteBuffer bytes) {
        if (!status.ok()) return Refuse(status);
        v1::ListStoresResponse page;
        MessageReader reader(bytes);
        if (!page.ParseFromZeroCopyStream(&reader.stream())) {
          return Refuse(absl::InternalError("A node has sent a malformed listing"));
        }
        Merge(std::move(page));
        AskNextGroup();
      });
  running_.Set(routed);
  routed->StartIn(group);
}

void ListAllStores::Merge(v1::ListStoresResponse page) {
  if (!is_merged_) {
    response_ = std::move(page);
    return;
  }
  if (!page.next_page_token().empty() &&
      (whole_to_.empty() || page.next_page_token() < whole_to_)) {
    whole_to_ = page.next_page_token();
  }
  for (v1::Store& store : *page.mutable_stores()) *response_.add_stores() = std::move(store);
  CutPage();
}

void ListAllStores::CutPage() {
  auto& stores = *response_.mutable_stores();
  std::sort(stores.begin(), stores.end(),
            [](const v1::Store& a, const v1::Store& b) { return a.name() < b.name(); });
  const std::int64_t asked = request_.page_size();
  const std::int64_t count_max =
      asked <= 0 ? kListPageSizeDefault : std::min<std::int64_t>(asked, kListPageSizeMax);
  // Half the limit leaves room for what surrounds the stores.
  const auto bytes_max =
      static_cast<std::size_t>(call().limiters().limits.engine.message_bytes_max) / 2;
  std::size_t bytes = 0;
  int kept = 0;
  while (kept < stores.size() && kept < count_max &&
         (whole_to_.empty() || stores[kept].name() <= whole_to_)) {
    bytes += stores[kept].ByteSizeLong();
    if (bytes > bytes_max && kept > 0) break;
    ++kept;
  }
  if (kept < stores.size()) {
    stores.DeleteSubrange(kept, stores.size() - kept);
    if (kept > 0) whole_to_ = stores[kept - 1].name();
  }
  response_.set_next_page_token(whole_to_);
}

}  // namespace

void StartListAllStores(std::unique_ptr<Call> call, const RouterParts& parts) {
  (new ListAllStores(std::move(call), parts))->Start();
}

}  // namespace softlookup::server
