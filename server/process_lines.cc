#include "server/process_lines.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace softlookup::server {

std::string ReloadLine(const Flags& flags) {
  std::vector<std::string> done;
  if (!flags.tls_certificate.empty()) done.push_back("looked at the certificates for changes");
  if (!flags.auth.empty()) done.push_back("looked at the auth file for changes");
  if (!flags.audit_log.empty()) done.push_back("opened the audit log anew");
  return absl::StrCat(
      "SIGHUP: ",
      done.empty() ? "there are no certificates, no auth file and no audit log to read again"
                   : absl::StrJoin(done, ", "),
      flags.config.empty() ? "; flags are read"
                           : absl::StrCat("; flags and --config ", flags.config, " are read"),
      " at the start only");
}

std::string PlaceOfStores(const Flags& flags) {
  if (flags.router) return absl::StrCat("passes calls on to the nodes of cluster ", flags.cluster);
  return absl::StrCat("scans with ", flags.threads, " threads, keeps everything in ",
                      flags.data_dir.empty() ? "memory" : flags.data_dir);
}

}  // namespace softlookup::server
