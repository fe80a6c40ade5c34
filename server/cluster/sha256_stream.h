#ifndef SOFTLOOKUP_SERVER_CLUSTER_SHA256_STREAM_H_
#define SOFTLOOKUP_SERVER_CLUSTER_SHA256_STREAM_H_

#include <openssl/evp.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// Computes the SHA-256 of bytes that come in pieces.
class Sha256Stream {
 public:
  Sha256Stream();

  void Add(absl::string_view bytes);
  // Returns the SHA-256 of the bytes so far, as 64 digits of [0-9a-f].
  std::string Digest() const;

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_SHA256_STREAM_H_
