#include "core/engine/store_table.h"

#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/validate.h"

namespace softlookup {

absl::Status StoreNotFound(absl::string_view name) {
  return MakeError(reasons::kStoreNotFound, absl::StrCat("There is no store \"", name, "\""),
                   {{"store", std::string(name)}});
}

absl::Status StoreReplaced(absl::string_view name) {
  return MakeError(
      reasons::kStoreNotFound,
      absl::StrCat("The store \"", name, "\" of this call was deleted, renamed or replaced"),
      {{"store", std::string(name)}});
}

absl::Status StoreExists(absl::string_view name) {
  return MakeError(reasons::kStoreExists, absl::StrCat("There already is a store \"", name, "\""),
                   {{"store", std::string(name)}});
}

absl::StatusOr<std::shared_ptr<Store>> StoreTable::Find(absl::string_view field,
                                                        absl::string_view name) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName(field, name));
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = stores_.find(name);
  if (found == stores_.end()) return StoreNotFound(name);
  return found->second;
}

ListResult StoreTable::List(absl::string_view prefix, absl::string_view after,
                            std::int64_t count_max) const {
  ListResult result;
  absl::ReaderMutexLock lock(&mutex_);
  auto it =
      after >= prefix && !after.empty() ? stores_.upper_bound(after) : stores_.lower_bound(prefix);
  for (; it != stores_.end() && absl::StartsWith(it->first, prefix); ++it) {
    if (!it->second.ok()) continue;
    if (static_cast<std::int64_t>(result.stores.size()) == count_max) {
      result.more = true;
      break;
    }
    result.stores.push_back((*it->second)->info());
  }
  return result;
}

absl::Status StoreTable::Reserve(const std::string& name, std::int64_t count_max) {
  absl::MutexLock lock(&mutex_);
  if (static_cast<std::int64_t>(stores_.size() + reserved_.size()) >= count_max) {
    return MakeError(reasons::kTooManyStores,
                     absl::StrCat("The server holds its limit of ", count_max, " stores"),
                     {{"limit", absl::StrCat(count_max)}});
  }
  if (stores_.contains(name) || reserved_.contains(name)) return StoreExists(name);
  reserved_.insert(name);
  return absl::OkStatus();
}

void StoreTable::Release(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  reserved_.erase(name);
}

void StoreTable::Add(const std::string& name, std::shared_ptr<Store> store) {
  absl::MutexLock lock(&mutex_);
  reserved_.erase(name);
  stores_.emplace(name, std::move(store));
}

void StoreTable::AddLoaded(const std::string& name, absl::StatusOr<std::shared_ptr<Store>> store) {
  absl::MutexLock lock(&mutex_);
  stores_.emplace(name, std::move(store));
}

void StoreTable::Remove(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  stores_.erase(stores_.find(name));
}

void StoreTable::Rename(const std::string& name, const std::string& new_name,
                        std::shared_ptr<Store> store) {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(!reserved_.contains(new_name)) << new_name << " is reserved";
  const std::size_t removed = stores_.erase(name);
  SOFTLOOKUP_CHECK(removed == 1) << "no store " << name;
  stores_.insert_or_assign(new_name, std::move(store));
}

}  // namespace softlookup
