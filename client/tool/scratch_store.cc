#include "client/tool/scratch_store.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/status_macros.h"

namespace softlookup::tool {
namespace {

std::atomic<bool> interrupted;
static_assert(std::atomic<bool>::is_always_lock_free, "It is written by a signal handler");

}  // namespace

class ScratchStore::SignalGuard {
 public:
  SignalGuard() {
    interrupted = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
      // Who ignores it, as under nohup, goes on ignoring it.
      if (before_[i].sa_handler == SIG_IGN) sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  ~SignalGuard() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

  absl::Status Check() const {
    return interrupted ? absl::CancelledError("interrupted") : absl::OkStatus();
  }

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
  std::array<struct sigaction, kSignals.size()> before_;
};

ScratchStore::ScratchStore(Client* client, std::string name)
    : client_(client), name_(std::move(name)), signal_guard_(std::make_unique<SignalGuard>()) {}

ScratchStore::~ScratchStore() {
  if (!name_.empty()) Delete().IgnoreError();
}

absl::StatusOr<std::unique_ptr<ScratchStore>> ScratchStore::Create(Client* client,
                                                                   std::string_view prefix,
                                                                   v1::Store store) {
  std::random_device random;
  const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
  store.set_name(
      absl::StrCat(std::string(prefix), "/", getpid(), "-", absl::Hex(bits, absl::kZeroPad16)));
  std::unique_ptr<ScratchStore> scratch(new ScratchStore(client, store.name()));
  const absl::Status created = client->CreateStore(store).status();
  // After any other failure, such as a lost answer, the store may be there.
  if (absl::IsAlreadyExists(created) || absl::IsInvalidArgument(created)) scratch->name_.clear();
  CLIENT_RETURN_IF_ERROR(created);
  return scratch;
}

absl::Status ScratchStore::Append(FloatMatrixView keys, FloatMatrixView values) {
  CLIENT_RETURN_IF_ERROR(signal_guard_->Check());
  return client_->Append(name_, keys, values).status();
}

absl::StatusOr<LookupAnswer> ScratchStore::Lookup(FloatMatrixView queries,
                                                  const LookupOptions& options) {
  CLIENT_RETURN_IF_ERROR(signal_guard_->Check());
  return client_->Lookup(name_, queries, options);
}

absl::Status ScratchStore::Delete() { return client_->DeleteStore(std::exchange(name_, {})); }

}  // namespace softlookup::tool
