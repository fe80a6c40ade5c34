#include "server/admin/http_response.h"

#include "absl/strings/str_cat.h"

namespace softlookup::server {

std::string HttpResponse(absl::string_view status, absl::string_view body, bool with_body,
                         absl::string_view type) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n\r\n",
                      with_body ? body : "");
}

}  // namespace softlookup::server
