#include "core/engine/store_table.h"

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
  if (const auto* store = std::get_if<std::shared_ptr<Store>>(&found->second)) return *store;
  return std::get<std::shared_ptr<const DamagedStore>>(found->second)->error;
}

std::shared_ptr<const DamagedStore> StoreTable::FindDamaged(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = stores_.find(name);
  if (found == stores_.end()) return nullptr;
  const auto* store = std::get_if<std::shared_ptr<const DamagedStore>>(&found->second);
  return store == nullptr ? nullptr : *store;
}

std::string StoreTable::NameOf(std::uint64_t number) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = names_.find(number);
  return found == names_.end() ? "" : found->second;
}

absl::StatusOr<StoreInfo> StoreTable::Info(absl::string_view field, absl::string_view name) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName(field, name));
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = stores_.find(name);
  if (found == stores_.end()) return StoreNotFound(name);
  return InfoOf(found->second);
}

bool StoreTable::IsWhole(const Entry& entry) {
  return std::holds_alternative<std::shared_ptr<Store>>(entry);
}

std::uint64_t StoreTable::NumberOf(const Entry& entry) {
  if (const auto* store = std::get_if<std::shared_ptr<Store>>(&entry)) return (*store)->number();
  return std::get<std::shared_ptr<const DamagedStore>>(entry)->number;
}

StoreInfo StoreTable::InfoOf(const Entry& entry) {
  if (const auto* store = std::get_if<std::shared_ptr<Store>>(&entry)) return (*store)->info();
  return std::get<std::shared_ptr<const DamagedStore>>(entry)->info;
}

ListResult StoreTable::List(absl::string_view prefix, absl::string_view after,
                            std::int64_t count_max) const {
  ListResult result;
  absl::ReaderMutexLock lock(&mutex_);
  auto it =
      after >= prefix && !after.empty() ? stores_.upper_bound(after) : stores_.lower_bound(prefix);
  for (; it != stores_.end() && absl::StartsWith(it->first, prefix); ++it) {
    if (static_cast<std::int64_t>(result.stores.size()) == count_max) {
      result.more = true;
      break;
    }
    result.stores.push_back(InfoOf(it->second));
  }
  return result;
}

std::vector<std::shared_ptr<Store>> StoreTable::Stores() const {
  std::vector<std::shared_ptr<Store>> stores;
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [name, entry] : stores_) {
    if (IsWhole(entry)) stores.push_back(std::get<std::shared_ptr<Store>>(entry));
  }
  return stores;
}

std::vector<std::string> StoreTable::DamagedNames() const {
  std::vector<std::string> names;
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [name, entry] : stores_) {
    if (!IsWhole(entry)) names.push_back(name);
  }
  return names;
}

absl::Status StoreTable::CheckNewLocked(const std::string& name, std::int64_t count_max) const {
  // Looks at the name first. A client that creates a store only if it is missing then hears
  // STORE_EXISTS, even if the server holds its limit of stores.
  if (stores_.contains(name) || reserved_.contains(name)) return StoreExists(name);
  if (static_cast<std::int64_t>(stores_.size() + reserved_.size()) >= count_max) {
    return MakeError(reasons::kTooManyStores,
                     absl::StrCat("The server holds its limit of ", count_max, " stores"),
                     {{"limit", absl::StrCat(count_max)}});
  }
  return absl::OkStatus();
}

absl::Status StoreTable::CheckNew(const std::string& name, std::int64_t count_max) const {
  absl::ReaderMutexLock lock(&mutex_);
  return CheckNewLocked(name, count_max);
}

absl::Status StoreTable::Reserve(const std::string& name, std::int64_t count_max) {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_RETURN_IF_ERROR(CheckNewLocked(name, count_max));
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
  names_[store->number()] = name;
  stores_.emplace(name, std::move(store));
}

void StoreTable::AddLoaded(const std::string& name, std::shared_ptr<Store> store) {
  absl::MutexLock lock(&mutex_);
  names_[store->number()] = name;
  stores_.emplace(name, std::move(store));
}

void StoreTable::AddDamaged(const std::string& name, DamagedStore store) {
  SOFTLOOKUP_CHECK(!store.error.ok() && !store.info.damage.empty()) << name;
  absl::MutexLock lock(&mutex_);
  names_[store.number] = name;
  stores_.emplace(name, std::make_shared<const DamagedStore>(std::move(store)));
}

void StoreTable::Remove(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = stores_.find(name);
  SOFTLOOKUP_CHECK(found != stores_.end()) << "no store " << name;
  names_.erase(NumberOf(found->second));
  stores_.erase(found);
}

void StoreTable::Rename(const std::string& name, const std::string& new_name,
                        std::shared_ptr<Store> store) {
  absl::MutexLock lock(&mutex_);
  SOFTLOOKUP_CHECK(!reserved_.contains(new_name)) << new_name << " is reserved";
  const auto found = stores_.find(name);
  SOFTLOOKUP_CHECK(found != stores_.end()) << "no store " << name;
  SOFTLOOKUP_CHECK(IsWhole(found->second)) << name << " is damaged";
  stores_.erase(found);
  names_[store->number()] = new_name;
  const auto [replaced, is_new] = stores_.try_emplace(new_name, store);
  if (is_new) return;
  SOFTLOOKUP_CHECK(IsWhole(replaced->second)) << new_name << " is damaged";
  names_.erase(NumberOf(replaced->second));
  replaced->second = std::move(store);
}

}  // namespace softlookup
