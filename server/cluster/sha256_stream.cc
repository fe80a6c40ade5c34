#include "server/cluster/sha256_stream.h"

#include <openssl/sha.h>

#include <array>

#include "absl/strings/escaping.h"
#include "core/base/check.h"

namespace softlookup::server {

Sha256Stream::Sha256Stream() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  SOFTLOOKUP_CHECK(context_ != nullptr &&
                   EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1)
      << "SHA-256";
}

void Sha256Stream::Add(absl::string_view bytes) {
  SOFTLOOKUP_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1) << "SHA-256";
}

std::string Sha256Stream::Digest() const {
  const Sha256Stream ended;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SOFTLOOKUP_CHECK(EVP_MD_CTX_copy_ex(ended.context_.get(), context_.get()) == 1 &&
                   EVP_DigestFinal_ex(ended.context_.get(), digest.data(), nullptr) == 1)
      << "SHA-256";
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

}  // namespace softlookup::server
