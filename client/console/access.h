#ifndef SOFTLOOKUP_CLIENT_CONSOLE_ACCESS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_ACCESS_H_

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::console {

// Who may use the console. A browser enters with a token, which works once, and gets a session: a
// cookie, and a key that its pages send with every call. Both are needed. The browser also sends
// the cookie to other ports of this machine, and for pages of other ports, so the cookie alone
// proves too little. A page of another origin cannot read the key.
//
// Thread-safe.
class Access {
 public:
  struct Session {
    std::string cookie;
    std::string key;
  };

  // `hosts` are the values of the header Host that the console answers to, such as
  // "127.0.0.1:8471". Aborts if there is none, or if the system has no random bytes.
  explicit Access(std::vector<std::string> hosts);

  const std::vector<std::string>& hosts() const { return hosts_; }
  // Whether the header Host names the console. A page of another site whose name resolves to this
  // machine (DNS rebinding) sends that name.
  bool IsOwnHost(std::string_view host) const;
  // Whether the header Origin names a page of the console.
  bool IsOwnOrigin(std::string_view origin) const;

  // Returns the token that lets the next browser in.
  std::string token() const;
  // If `token` is token(), begins a session, and makes another token. A token of old lets nobody
  // in. More than kSessionsMax sessions end the oldest one.
  std::optional<Session> Enter(std::string_view token);
  // Whether `key` and `cookie` are those of one session.
  bool Admits(std::string_view cookie, std::string_view key) const;

  static constexpr std::size_t kSessionsMax = 16;

 private:
  const std::vector<std::string> hosts_;
  mutable absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  std::deque<Session> sessions_ ABSL_GUARDED_BY(mutex_);
};

// Returns the values of the cookies `name` in the header Cookie. A program at another port of the
// host may have set one, too, which may come first.
std::vector<std::string_view> CookiesIn(std::string_view header, std::string_view name);

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_ACCESS_H_
