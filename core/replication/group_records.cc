#include "core/replication/group_records.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace softlookup {
namespace {

constexpr std::size_t kDigestDigits = 2 * SHA256_DIGEST_LENGTH;

// Reads "name=value name=value ..." field by field, in the order in which it was written.
class FieldReader {
 public:
  FieldReader(absl::string_view what, absl::string_view text)
      : what_(what), text_(text), fields_(absl::StrSplit(text, ' ')) {}

  // Returns the value of the next field; "" and an error in status() if that is not `name`.
  absl::string_view Text(absl::string_view name) {
    if (next_ < fields_.size()) {
      const std::size_t equals = fields_[next_].find('=');
      if (equals != absl::string_view::npos && fields_[next_].substr(0, equals) == name) {
        return fields_[next_++].substr(equals + 1);
      }
    }
    return Bad(name);
  }
  // Like Text(), for a field that may not be empty.
  std::string Name(absl::string_view name) {
    const absl::string_view text = Text(name);
    return std::string(text.empty() ? Bad(name) : text);
  }
  // Numbers have the form that StrCat() gives them.
  std::uint64_t Number(absl::string_view name) {
    const absl::string_view text = Text(name);
    std::uint64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || absl::AlphaNum(number).Piece() != text) Bad(name);
    return number;
  }
  EntryDigest Digest(absl::string_view name) {
    const absl::string_view text = Text(name);
    const bool is_digest =
        text.empty() || (text.size() == kDigestDigits && std::ranges::all_of(text, [](char c) {
                           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                         }));
    return std::string(is_digest ? text : Bad(name));
  }
  std::vector<std::string> Names(absl::string_view name) {
    std::vector<std::string> names = absl::StrSplit(Text(name), ',', absl::SkipEmpty());
    return names;
  }

  // Makes status() an error at `name`, unless it is one already. Returns "".
  absl::string_view Bad(absl::string_view name) {
    if (bad_.empty()) bad_ = std::string(name);
    return "";
  }

  // Returns DATA_LOSS if a field was missing or malformed, or if there are more fields.
  absl::Status status() const {
    if (bad_.empty() && next_ == fields_.size()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("etcd's value of ", what_, " is malformed",
                                            bad_.empty() ? "" : absl::StrCat(" at ", bad_), ": ",
                                            absl::CHexEscape(text_.substr(0, kShownBytes))));
  }

 private:
  static constexpr std::size_t kShownBytes = 100;

  const absl::string_view what_;
  const absl::string_view text_;
  const std::vector<absl::string_view> fields_;  // Of `text_`.
  std::size_t next_ = 0;
  std::string bad_;  // Name of the first bad field.
};

}  // namespace

EntryDigest DigestOf(absl::string_view previous, std::uint64_t epoch, absl::string_view bytes) {
  // The length tells where `previous` ends, and the space where the epoch does.
  const std::string begin = absl::StrCat(previous.size(), " ", previous, epoch, " ");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  // EVP_sha256() would be looked up each time.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SOFTLOOKUP_CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), sha256, nullptr) == 1 &&
                   EVP_DigestUpdate(context.get(), begin.data(), begin.size()) == 1 &&
                   EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                   EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1)
      << "SHA-256";
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string EncodeCommitPoint(const CommitPoint& point) {
  return absl::StrCat("epoch=", point.epoch, " sequence=", point.sequence, " digest=", point.digest,
                      " nonce=", point.nonce);
}

absl::StatusOr<CommitPoint> ParseCommitPoint(absl::string_view text) {
  FieldReader reader("commit-point", text);
  CommitPoint point;
  point.epoch = reader.Number("epoch");
  point.sequence = reader.Number("sequence");
  point.digest = reader.Digest("digest");
  point.nonce = reader.Name("nonce");
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  return point;
}

std::string EncodePrimary(const Primary& primary) {
  return absl::StrCat("node=", primary.node, " nonce=", primary.nonce);
}

absl::StatusOr<Primary> ParsePrimary(absl::string_view text) {
  FieldReader reader("primary", text);
  Primary primary;
  primary.node = reader.Name("node");
  primary.nonce = reader.Name("nonce");
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  return primary;
}

std::string EncodeSlot(const Slot& slot) {
  return absl::StrCat("epoch=", slot.epoch, " sequence=", slot.sequence,
                      " previous=", slot.previous, " digest=", slot.digest, " size=", slot.size,
                      " holders=", absl::StrJoin(slot.holders, ","));
}

absl::StatusOr<Slot> ParseSlot(absl::string_view text) {
  FieldReader reader("a slot", text);
  Slot slot;
  slot.epoch = reader.Number("epoch");
  slot.sequence = reader.Number("sequence");
  slot.previous = reader.Digest("previous");
  slot.digest = reader.Digest("digest");
  if (slot.sequence == 0 || slot.digest.empty()) reader.Bad("digest");
  slot.size = reader.Number("size");
  slot.holders = reader.Names("holders");
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  return slot;
}

std::string EncodeGroupConfig(const GroupConfig& config) {
  return absl::StrCat("version=", config.version, " copies=", config.copies,
                      " replicas=", absl::StrJoin(config.replicas, ","));
}

absl::StatusOr<GroupConfig> ParseGroupConfig(absl::string_view text) {
  FieldReader reader("config", text);
  GroupConfig config;
  config.version = reader.Number("version");
  config.copies = reader.Number("copies");
  config.replicas = reader.Names("replicas");
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  if (config.copies == 0 || config.copies > config.replicas.size()) {
    return absl::DataLossError(absl::StrCat("etcd's value of config asks for ", config.copies,
                                            " copies on ", config.replicas.size(), " replicas"));
  }
  return config;
}

std::string EncodeApplied(std::uint64_t sequence) { return absl::StrCat("sequence=", sequence); }

absl::StatusOr<std::uint64_t> ParseApplied(absl::string_view text) {
  FieldReader reader("applied", text);
  const std::uint64_t sequence = reader.Number("sequence");
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  return sequence;
}

std::string EncodeNode(const NodeRecord& node) {
  return absl::StrCat("address=", node.address, node.group.empty() ? "" : " group=", node.group);
}

absl::StatusOr<NodeRecord> ParseNode(absl::string_view text) {
  // Later versions may write further fields.
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ' ');
  FieldReader reader("nodes", fields[0]);
  NodeRecord node{.address = reader.Name("address")};
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  absl::string_view group = fields.size() > 1 ? fields[1] : "";
  if (absl::ConsumePrefix(&group, "group=")) node.group = std::string(group);
  return node;
}

NodesRange::NodesRange(absl::string_view cluster)
    : begin(absl::StrCat("/softlookup/", cluster, "/nodes/")),
      end(absl::StrCat("/softlookup/", cluster, "/nodes0")) {}  // '0' comes after '/'.

std::string EncodeTenant(const TenantRecord& tenant) {
  return absl::StrCat("group=", tenant.group);
}

absl::StatusOr<TenantRecord> ParseTenant(absl::string_view text) {
  FieldReader reader("tenants", text.substr(0, text.find(' ')));  // As ParseNode().
  TenantRecord tenant{.group = reader.Name("group")};
  SOFTLOOKUP_RETURN_IF_ERROR(reader.status());
  return tenant;
}

TenantKeys::TenantKeys(absl::string_view cluster)
    : prefix_(absl::StrCat("/softlookup/", cluster, "/tenants/")) {}

std::string TenantKeys::tenant(absl::string_view tenant) const {
  return absl::StrCat(prefix_, tenant);
}

std::string TenantKeys::end() const {
  // The least key that comes after all that begin with the prefix.
  std::string end = prefix_;
  ++end.back();
  return end;
}

GroupKeys::GroupKeys(absl::string_view cluster, absl::string_view group, std::uint64_t slots)
    : group_(group),
      nodes_prefix_(NodesRange(cluster).begin),
      prefix_(absl::StrCat("/softlookup/", cluster, "/groups/", group, "/")),
      slots_(slots) {}

std::string GroupKeys::applied(absl::string_view node) const {
  return absl::StrCat(prefix_, "applied/", node);
}

std::string GroupKeys::node(absl::string_view node) const {
  return absl::StrCat(nodes_prefix_, node);
}

std::string GroupKeys::barrier(absl::string_view node) const {
  return absl::StrCat(prefix_, "barrier/", node);
}

std::string GroupKeys::slot(std::uint64_t sequence) const {
  return absl::StrCat(prefix_, "log/", sequence % slots_);
}

}  // namespace softlookup
