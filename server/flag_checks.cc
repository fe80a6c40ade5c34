#include "server/flag_checks.h"

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/base/host_port.h"

namespace softlookup::server {
namespace {

// Whether `a` and `b` name the same directory, after following links. The directories need not
// exist. False if `a` is empty.
bool IsSamePlace(const std::string& a, const std::string& b) {
  const auto resolved = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path + "/", error);
    return std::filesystem::weakly_canonical(absolute, error);
  };
  return !a.empty() && !resolved(a).empty() && resolved(a) == resolved(b);
}

// The directory of the file at `path`.
std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Returns an error if the flags of clusters are neither those of a node nor those of a router.
std::optional<std::string> UnclearRole(const Flags& flags, bool is_ephemeral, bool sets_data_dir) {
  if (flags.cluster_etcd.empty()) return std::nullopt;
  if (!flags.router) {
    if (flags.group.empty() || flags.node.empty()) {
      return "--cluster-etcd takes --group and --node for a node that keeps stores, or --router";
    }
    if (flags.cluster_ca.empty() || !flags.cluster_listen.empty()) return std::nullopt;
    return "--cluster-ca takes --cluster-listen or --router";
  }
  const std::pair<const char*, bool> nodes_flags[] = {
      {"--group", !flags.group.empty()},
      {"--node", !flags.node.empty()},
      {"--founder", !flags.founder.empty()},
      {"--cluster-listen", !flags.cluster_listen.empty()},
      {"--data-dir", sets_data_dir},
      {"--ephemeral", is_ephemeral},
      {"--backup-dir", !flags.backup_dir.empty()},
      {"--verify", flags.verify}};
  for (const auto& [flag, is_set] : nodes_flags) {
    if (is_set) return absl::StrCat("--router keeps no stores, so it excludes ", flag);
  }
  return std::nullopt;
}

// Returns an error if other machines could speak for another node.
std::optional<std::string> UnsafeNodes(const Flags& flags) {
  if (flags.cluster_listen.empty() || !flags.cluster_ca.empty() || flags.insecure) {
    return std::nullopt;
  }
  if (IsLoopback(SplitHostPort(flags.cluster_listen)->host)) return std::nullopt;
  return absl::StrCat(
      "--cluster-listen ", flags.cluster_listen,
      " lets other machines in, so it takes --cluster-ca with --cluster-certificate "
      "and --cluster-key; or say --insecure if everybody on that network may do "
      "everything");
}

// Returns an error if other nodes could not reach the address that they are told.
std::optional<std::string> UselessAddress(const Flags& flags) {
  if (!flags.advertise.empty()) {
    if (SplitHostPort(flags.advertise)->port != 0) return std::nullopt;
    return absl::StrCat("--advertise ", flags.advertise, " has no port");
  }
  if (flags.cluster_listen.empty()) return std::nullopt;
  const std::string host = SplitHostPort(flags.cluster_listen)->host;
  if (host != "0.0.0.0" && host != "::" && !host.empty()) return std::nullopt;
  return absl::StrCat("--cluster-listen ", flags.cluster_listen,
                      " is every address of this machine, so --advertise must say at which of them "
                      "the other nodes reach it");
}

// Returns an error if other machines could speak for a member of etcd.
std::optional<std::string> UnsafeEtcd(const Flags& flags) {
  if (flags.cluster_etcd.empty() || !flags.cluster_etcd_ca.empty() || flags.insecure) {
    return std::nullopt;
  }
  const std::vector<std::string> addresses = absl::StrSplit(flags.cluster_etcd, ',');
  for (const std::string& address : addresses) {
    const std::optional<HostPort> parsed = SplitHostPort(address);
    if (!parsed.has_value()) continue;  // The socket of a process on this machine.
    if (IsLoopback(parsed->host)) continue;
    return absl::StrCat("--cluster-etcd ", address,
                        " is on another machine, so it takes --cluster-etcd-ca; or say --insecure "
                        "if everybody on that network may do everything");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> NonFiniteFlag(const Flags& flags) {
  const std::pair<const char*, double> numbers[] = {
      {"--compact-above", flags.compact_above},
      {"--shutdown-grace", flags.shutdown_grace_seconds},
      {"--max-waiting-work", flags.lookup_wait_ms_max},
      {"--keepalive-seconds", flags.keepalive_seconds},
      {"--handshake-timeout", flags.handshake_timeout_seconds},
      {"--stall-timeout", flags.stall_timeout_seconds},
      {"--receive-timeout", flags.receive_timeout_seconds},
      {"--revision-timeout", flags.revision_timeout_seconds},
      {"--tenant-requests-per-second", flags.tenant_requests_per_second},
      {"--tenant-rows-per-second", flags.tenant_rows_per_second}};
  for (const auto& [flag, value] : numbers) {
    if (!std::isfinite(value)) return absl::StrCat(flag, ": not a number");
  }
  return std::nullopt;
}

std::optional<std::string> FlagConflict(const Flags& flags, bool is_ephemeral, bool sets_data_dir) {
  if (std::optional<std::string> error = UnclearRole(flags, is_ephemeral, sets_data_dir)) {
    return error;
  }
  if (flags.router) return UnsafeEtcd(flags);
  if (is_ephemeral) {
    if (sets_data_dir) return "--ephemeral and --data-dir exclude each other";
    if (!flags.cluster_etcd.empty()) {
      return "--ephemeral and --cluster-etcd exclude each other: a replica keeps its data on disk";
    }
    if (flags.verify) return "--verify checks a --data-dir, which --ephemeral has not";
    if (flags.backup_dir.empty()) return std::nullopt;
    return "--ephemeral and --backup-dir exclude each other: what is in memory only cannot be "
           "backed "
           "up";
  }
  if (flags.data_dir.empty()) {
    return "--data-dir: must not be empty; without it, use --ephemeral";
  }
  if (IsSamePlace(flags.backup_dir, flags.data_dir)) {
    return "--backup-dir must not be the data directory itself";
  }
  if (std::optional<std::string> error = UnsafeEtcd(flags)) return error;
  if (std::optional<std::string> error = UnsafeNodes(flags)) return error;
  if (std::optional<std::string> error = UselessAddress(flags)) return error;
  if (!flags.audit_log.empty() && IsSamePlace(DirectoryOf(flags.audit_log), flags.data_dir)) {
    return "--audit-log must not be in the data directory";
  }
  return std::nullopt;
}

}  // namespace softlookup::server
