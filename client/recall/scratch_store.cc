#include "client/recall/scratch_store.h"

#include <unistd.h>

#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"

namespace softlookup::recall {

ScratchStore::ScratchStore(Client* client, std::string name, const std::atomic<bool>& interrupted)
    : client_(client), name_(std::move(name)), interrupted_(interrupted) {}

ScratchStore::~ScratchStore() {
  if (!name_.empty()) Delete().IgnoreError();
}

absl::StatusOr<std::unique_ptr<ScratchStore>> ScratchStore::Create(
    Client* client, std::string_view prefix, v1::Store store,
    const std::atomic<bool>& interrupted) {
  std::random_device random;
  const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
  store.set_name(
      absl::StrCat(std::string(prefix), "/", getpid(), "-", absl::Hex(bits, absl::kZeroPad16)));
  std::unique_ptr<ScratchStore> scratch(new ScratchStore(client, store.name(), interrupted));
  const absl::Status created = client->CreateStore(store).status();
  // These two errors mean that this call made no store. After any other failure, such as a lost
  // answer, the store may exist and must be deleted.
  if (absl::IsAlreadyExists(created) || absl::IsInvalidArgument(created)) scratch->name_.clear();
  CLIENT_RETURN_IF_ERROR(created);
  return scratch;
}

absl::Status ScratchStore::CheckInterrupted() const {
  return interrupted_ ? absl::CancelledError("interrupted") : absl::OkStatus();
}

absl::Status ScratchStore::Append(FloatMatrixView keys, FloatMatrixView values) {
  CLIENT_RETURN_IF_ERROR(CheckInterrupted());
  return client_->Append(name_, keys, values).status();
}

absl::StatusOr<LookupAnswer> ScratchStore::Lookup(FloatMatrixView queries,
                                                  const LookupOptions& options) {
  CLIENT_RETURN_IF_ERROR(CheckInterrupted());
  return client_->Lookup(name_, queries, options);
}

absl::Status ScratchStore::Delete() { return client_->DeleteStore(std::exchange(name_, {})); }

}  // namespace softlookup::recall
