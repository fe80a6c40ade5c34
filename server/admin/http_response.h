#ifndef SOFTLOOKUP_SERVER_ADMIN_HTTP_RESPONSE_H_
#define SOFTLOOKUP_SERVER_ADMIN_HTTP_RESPONSE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace softlookup::server {

inline constexpr absl::string_view kPlainText = "text/plain";

// Returns an HTTP response, after which the connection ends. `status` is a code with its reason,
// such as "200 OK", which further header lines may follow. `type` is the body's content type.
// Without `with_body`, as a HEAD request wants it, the headers still describe `body`.
std::string HttpResponse(absl::string_view status, absl::string_view body, bool with_body = true,
                         absl::string_view type = kPlainText);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ADMIN_HTTP_RESPONSE_H_
