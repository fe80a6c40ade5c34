#include "client/console/access.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"

namespace softlookup::console {
namespace {

// Returns 256 random bits as text.
std::string RandomText() {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) abort();
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Compares in a time that does not tell where the texts differ.
bool IsSecret(std::string_view candidate, const std::string& secret) {
  return candidate.size() == secret.size() &&
         CRYPTO_memcmp(candidate.data(), secret.data(), secret.size()) == 0;
}

}  // namespace

Access::Access(std::vector<std::string> hosts) : hosts_(std::move(hosts)), token_(RandomText()) {
  if (hosts_.empty()) abort();
}

bool Access::IsOwnHost(std::string_view host) const {
  return std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
}

bool Access::IsOwnOrigin(std::string_view origin) const {
  constexpr std::string_view kScheme = "http://";
  return origin.substr(0, kScheme.size()) == kScheme && IsOwnHost(origin.substr(kScheme.size()));
}

std::string Access::token() const {
  absl::MutexLock lock(&mutex_);
  return token_;
}

std::optional<Access::Session> Access::Enter(std::string_view token) {
  absl::MutexLock lock(&mutex_);
  if (!IsSecret(token, token_)) return std::nullopt;
  token_ = RandomText();
  sessions_.push_back({.cookie = RandomText(), .key = RandomText()});
  if (sessions_.size() > kSessionsMax) sessions_.pop_front();
  return sessions_.back();
}

bool Access::Admits(std::string_view cookie, std::string_view key) const {
  absl::MutexLock lock(&mutex_);
  bool admitted = false;
  for (const Session& session : sessions_) {
    admitted |= IsSecret(cookie, session.cookie) && IsSecret(key, session.key);
  }
  return admitted;
}

std::vector<std::string_view> CookiesIn(std::string_view header, std::string_view name) {
  std::vector<std::string_view> values;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    std::string_view pair = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (!pair.empty() && pair.front() == ' ') pair.remove_prefix(1);
    if (pair.size() > name.size() && pair.substr(0, name.size()) == name &&
        pair[name.size()] == '=') {
      values.push_back(pair.substr(name.size() + 1));
    }
  }
  return values;
}

}  // namespace softlookup::console
