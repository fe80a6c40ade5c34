#include "tests/fuzz/wire_facts.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

namespace softlookup::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::internal::WireFormatLite;

WireFormatLite::WireType WireTypeOf(const FieldDescriptor& field) {
  return WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
}

WireFormatLite::WireType WireTypeOf(const UnknownField& field) {
  switch (field.type()) {
    case UnknownField::TYPE_VARINT:
      return WireFormatLite::WIRETYPE_VARINT;
    case UnknownField::TYPE_FIXED32:
      return WireFormatLite::WIRETYPE_FIXED32;
    case UnknownField::TYPE_FIXED64:
      return WireFormatLite::WIRETYPE_FIXED64;
    case UnknownField::TYPE_LENGTH_DELIMITED:
      return WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    case UnknownField::TYPE_GROUP:
      return WireFormatLite::WIRETYPE_START_GROUP;
  }
  return WireFormatLite::WIRETYPE_END_GROUP;
}

bool ArePackedNumbersWhole(WireFormatLite::WireType wire_type, const std::string& bytes) {
  if (wire_type == WireFormatLite::WIRETYPE_FIXED32) return bytes.size() % 4 == 0;
  if (wire_type == WireFormatLite::WIRETYPE_FIXED64) return bytes.size() % 8 == 0;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  std::uint64_t number;
  while (input.CurrentPosition() < static_cast<int>(bytes.size())) {
    if (!input.ReadVarint64(&number)) return false;
  }
  return true;
}

void AddFacts(const Descriptor& type, const std::string& bytes, WireFacts& facts) {
  google::protobuf::UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) facts.is_whole = false;
  for (int i = 0; facts.is_whole && i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const FieldDescriptor* const known = type.FindFieldByNumber(field.number());
    const WireFormatLite::WireType wire_type = WireTypeOf(field);
    const bool is_packed = known != nullptr && known->is_packable() &&
                           wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (known == nullptr || (wire_type != WireTypeOf(*known) && !is_packed)) {
      ++facts.unknown_count;
      facts.has_group |= wire_type == WireFormatLite::WIRETYPE_START_GROUP;
    } else if (is_packed) {
      facts.are_values_valid &= ArePackedNumbersWhole(WireTypeOf(*known), field.length_delimited());
    } else if (known->type() == FieldDescriptor::TYPE_STRING) {
      const std::string& text = field.length_delimited();
      facts.are_values_valid &= google::protobuf::internal::IsStructurallyValidUTF8(
          text.data(), static_cast<int>(text.size()));
    } else if (known->type() == FieldDescriptor::TYPE_MESSAGE) {
      AddFacts(*known->message_type(), field.length_delimited(), facts);
    }
  }
}

}  // namespace

WireFacts FactsOf(const Descriptor& type, const std::string& bytes) {
  WireFacts facts;
  AddFacts(type, bytes, facts);
  return facts;
}

}  // namespace softlookup::fuzz
