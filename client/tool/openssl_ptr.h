#ifndef SOFTLOOKUP_CLIENT_TOOL_OPENSSL_PTR_H_
#define SOFTLOOKUP_CLIENT_TOOL_OPENSSL_PTR_H_

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace softlookup::tool {

// Deleter for pointers that own OpenSSL objects.
template <auto Free>
struct OpensslFree {
  template <typename Object>
  void operator()(Object* object) const {
    Free(object);
  }
};

using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using BignumPtr = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;
using Asn1OctetStringPtr = std::unique_ptr<ASN1_OCTET_STRING, OpensslFree<ASN1_OCTET_STRING_free>>;
using EvpDigestPtr = std::unique_ptr<EVP_MD_CTX, OpensslFree<EVP_MD_CTX_free>>;
using EvpKeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using X509ExtensionPtr = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_OPENSSL_PTR_H_
