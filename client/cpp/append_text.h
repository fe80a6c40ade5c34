#ifndef SOFTLOOKUP_CLIENT_CPP_APPEND_TEXT_H_
#define SOFTLOOKUP_CLIENT_CPP_APPEND_TEXT_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace softlookup::client_internal {

// Returns `error` with `text` appended to its message, and with the same payloads.
inline absl::Status AppendText(const absl::Status& error, absl::string_view text) {
  absl::Status longer(error.code(), absl::StrCat(error.message(), text));
  error.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    longer.SetPayload(type_url, payload);
  });
  return longer;
}

}  // namespace softlookup::client_internal

#endif  // SOFTLOOKUP_CLIENT_CPP_APPEND_TEXT_H_
