#ifndef SOFTLOOKUP_SERVER_RPC_MESSAGE_SCANS_H_
#define SOFTLOOKUP_SERVER_RPC_MESSAGE_SCANS_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "core/base/limits.h"
#include "server/rpc/message_scan.h"

namespace softlookup::server {

// One MessageScan for each request type of this server. Immutable.
class MessageScans {
 public:
  explicit MessageScans(const Limits& limits);

  // The scan of `type`, which must be a request type of this server.
  const MessageScan& Of(const google::protobuf::Descriptor& type) const {
    return *scans_.at(&type);
  }

 private:
  absl::flat_hash_map<const google::protobuf::Descriptor*, std::unique_ptr<MessageScan>> scans_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_MESSAGE_SCANS_H_
