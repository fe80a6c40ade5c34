#include "server/rpc/message_scan.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/error.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Bytes that a parsed string, submessage or map entry takes beside its own content: the
// std::string, the pointer to the element, and the allocator's overhead. Unused capacity counts,
// too: a std::string of 16 to 30 bytes has a capacity of 30.
constexpr std::int64_t kStringBytes = 72;
constexpr std::int64_t kPointerBytes = 24;
constexpr std::int64_t kMapEntryBytes = 160;
// Bytes that an UnknownField takes in its vector. The vector's spare capacity counts, too: its
// capacity doubles as it grows.
constexpr std::int64_t kUnknownFieldBytes = 48;
// Maximum nesting depth. No message of the contract nests as deep. The parser's maximum is 100.
constexpr int kDepthMax = 90;

constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

// No type of the contract has more fields.
constexpr int kFieldsMax = 32;

// Bytes of one element of a repeated number field, packed or not.
std::int64_t ElementBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    default:
      return 4;
  }
}

}  // namespace

struct MessageScan::Field {
  const FieldDescriptor* descriptor = nullptr;
  const Type* message = nullptr;  // The type of the field's values if they are messages, else null.
  std::int64_t element_bytes = 0;
  std::int64_t count_max = kUnlimited;
  int index = 0;  // Its index among the fields of its type, in the order of the .proto file.
  // Copies of what the descriptor says, which is slow to ask each time.
  WireFormatLite::WireType wire_type = WireFormatLite::WIRETYPE_VARINT;
  bool is_repeated = false;
  bool is_packable = false;
};

struct MessageScan::Type {
  const Descriptor* descriptor = nullptr;
  std::int64_t own_bytes = 0;
  // Whether the type has repeated fields or submessages. A singular submessage of this type may
  // come in several parts, and the parser merges them. If `has_many` is true, the counts of one
  // part continue in the next, so that limits hold for all parts together. Otherwise each part
  // counts from 0. A string field that several parts have then counts several times, which only
  // makes the bound larger.
  bool has_many = false;
  // By field number. An entry without a descriptor stands for no field.
  std::vector<Field> fields;

  const Field* Find(int number) const {
    const auto index = static_cast<std::size_t>(number);
    if (index >= fields.size() || fields[index].descriptor == nullptr) return nullptr;
    return &fields[index];
  }
};

// One walk over one message.
class MessageScan::Reader {
 public:
  explicit Reader(google::protobuf::io::ZeroCopyInputStream& message) : input_(&message) {}

  absl::StatusOr<std::int64_t> Measure(const Type& type) {
    bytes_ = type.own_bytes;
    Counts counts;
    if (!ReadMessage(type, /*depth=*/0, counts)) return error_.ok() ? MalformedMessage() : error_;
    if (!input_.ConsumedEntireMessage()) return MalformedMessage();
    return bytes_;
  }

 private:
  // How many values of each field of a message have come, by Field::index. Values of singular
  // number fields are not counted. A singular submessage may come in parts, and the parser merges
  // them. So `parts` keeps the counts of one part for the next.
  struct Counts {
    Counts& PartOf(const Field& field) {
      for (auto& [known, counts] : parts) {
        if (known == &field) return *counts;
      }
      return *parts.emplace_back(&field, std::make_unique<Counts>()).second;
    }

    std::int64_t of[kFieldsMax] = {};
    std::vector<std::pair<const Field*, std::unique_ptr<Counts>>> parts;
  };

  // A submessage that is being read.
  struct Step {
    const Field* field;
    std::int64_t row;  // Index among the elements of a repeated field; -1 if the field is singular.
  };

  bool ReadMessage(const Type& type, int depth, Counts& counts) {
    for (;;) {
      const std::uint32_t tag = input_.ReadTag();
      if (tag == 0) return true;  // The end or a bad tag; the caller checks which.
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (number == 0) return false;
      const Field* field = type.Find(number);
      // The parser, too, treats a field with the wrong wire type as unknown.
      const bool is_known = field != nullptr && HasWireType(*field, tag);
      if (!(is_known ? ReadKnown(*field, tag, depth, counts) : SkipUnknown(tag, depth)))
        return false;
    }
  }

  static bool HasWireType(const Field& field, std::uint32_t tag) {
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    return wire_type == field.wire_type ||
           (wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && field.is_packable);
  }

  bool ReadKnown(const Field& field, std::uint32_t tag, int depth, Counts& counts) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      bytes_ += field.element_bytes;
      return Count(field, 1, counts) && WireFormatLite::SkipField(&input_, tag);
    }
    int length = 0;
    if (!input_.ReadVarintSizeAsInt(&length)) return false;
    if (field.wire_type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      const std::optional<std::int64_t> elements = CountPacked(field.wire_type, length);
      if (!elements) return false;
      bytes_ += *elements * field.element_bytes;
      return Count(field, *elements, counts);
    }
    // A singular field that comes again is merged into the previous one, or replaces it. So its
    // element bytes count once.
    if (field.is_repeated || counts.of[field.index]++ == 0) bytes_ += field.element_bytes;
    if (field.is_repeated && !Count(field, 1, counts)) return false;
    if (field.message == nullptr) {
      bytes_ += length;
      return input_.Skip(length);
    }
    // If a submessage reaches beyond the outer one, PushLimit() would shorten it without an error.
    // At depth 0 there is no limit to reach beyond.
    if (depth == kDepthMax || (depth > 0 && length > input_.BytesUntilLimit())) return false;
    const auto limit = input_.PushLimit(length);
    path_.push_back({&field, field.is_repeated ? counts.of[field.index] - 1 : -1});
    Counts own_counts;
    const bool counts_on = !field.is_repeated && field.message->has_many;
    Counts& part = counts_on ? counts.PartOf(field) : own_counts;
    // The submessage is not whole if it ends within a tag, or if the outer message ends first.
    const bool is_whole = ReadMessage(*field.message, depth + 1, part) &&
                          input_.ConsumedEntireMessage() && input_.BytesUntilLimit() == 0;
    path_.pop_back();
    input_.PopLimit(limit);
    return is_whole;
  }

  bool Count(const Field& field, std::int64_t elements, Counts& counts) {
    if (!field.is_repeated) return true;
    counts.of[field.index] += elements;
    if (counts.of[field.index] <= field.count_max) return true;
    error_ = TooMany(field);
    return false;
  }

  // An error whose text has the path to the field. Its metadata name the field. But if the field is
  // inside a repeated message, they name that message and its index, as the row. If repeated
  // messages are inside each other, they name the outermost one.
  absl::Status TooMany(const Field& field) const {
    std::string where, rest;
    ErrorMetadata metadata;
    for (const Step& step : path_) {
      absl::StrAppend(metadata.empty() ? &where : &rest, step.field->descriptor->name(), ".");
      if (step.row < 0 || !metadata.empty()) continue;
      where.pop_back();
      metadata = {{"field", where}, {"row", absl::StrCat(step.row)}};
      absl::StrAppend(&where, ": row ", step.row, ": ");
    }
    absl::StrAppend(&where, rest, field.descriptor->name());
    if (metadata.empty()) metadata = {{"field", where}};
    metadata.emplace_back("limit", absl::StrCat(field.count_max));
    return MakeError(reasons::kLimitExceeded,
                     absl::StrCat(where, ": more than ", field.count_max, " elements"),
                     std::move(metadata));
  }

  // Skips `length` bytes of packed numbers, each with the wire type `own`. Returns how many numbers
  // they hold, or nullopt if the message ends first.
  std::optional<std::int64_t> CountPacked(WireFormatLite::WireType own, int length) {
    if (own != WireFormatLite::WIRETYPE_VARINT) {
      const int width = own == WireFormatLite::WIRETYPE_FIXED64 ? 8 : 4;
      return input_.Skip(length) ? std::optional(length / width) : std::nullopt;
    }
    std::int64_t elements = 0;
    while (length > 0) {
      const void* data = nullptr;
      int size = 0;
      if (!input_.GetDirectBufferPointer(&data, &size) || size == 0) return std::nullopt;
      size = std::min(size, length);
      const auto* bytes = static_cast<const unsigned char*>(data);
      // Each varint has one byte below 0x80, its last.
      elements += std::count_if(bytes, bytes + size, [](unsigned char b) { return b < 0x80; });
      if (!input_.Skip(size)) return std::nullopt;
      length -= size;
    }
    return elements;
  }

  // Skips a group, and counts each field in it as unknown. The contract has no groups, but the
  // parser keeps those that a client sends.
  bool SkipGroup(int number, int depth) {
    if (depth == kDepthMax) return false;
    for (;;) {
      const std::uint32_t tag = input_.ReadTag();
      if (tag == WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_END_GROUP)) return true;
      if (WireFormatLite::GetTagFieldNumber(tag) == 0 || !SkipUnknown(tag, depth + 1)) return false;
    }
  }

  bool SkipUnknown(std::uint32_t tag, int depth) {
    bytes_ += kUnknownFieldBytes;
    if (++unknown_count_ > kUnknownFieldsMax) {
      error_ = MakeError(reasons::kLimitExceeded,
                         absl::StrCat("The message has more than ", kUnknownFieldsMax,
                                      " fields that this server does not know"),
                         {{"limit", absl::StrCat(kUnknownFieldsMax)}});
      return false;
    }
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_START_GROUP) {
      return SkipGroup(WireFormatLite::GetTagFieldNumber(tag), depth);
    }
    const int before = input_.CurrentPosition();
    if (!WireFormatLite::SkipField(&input_, tag)) return false;
    bytes_ += kStringBytes + input_.CurrentPosition() - before;
    return true;
  }

  CodedInputStream input_;
  absl::InlinedVector<Step, 8> path_;  // The submessages around the field being read.
  std::int64_t bytes_ = 0;
  std::int64_t unknown_count_ = 0;
  absl::Status error_;  // Why a field was refused. OK: none was, or the message is malformed.
};

MessageScan::MessageScan(const Descriptor& type, const CountLimits& limits)
    : root_(TypeOf(type, limits)) {}

MessageScan::~MessageScan() = default;

const MessageScan::Type* MessageScan::TypeOf(const Descriptor& descriptor,
                                             const CountLimits& limits) {
  for (const auto& type : types_) {
    if (type->descriptor == &descriptor) return type.get();
  }
  Type& type = *types_.emplace_back(std::make_unique<Type>());
  type.descriptor = &descriptor;
  const google::protobuf::Message& prototype =
      *google::protobuf::MessageFactory::generated_factory()->GetPrototype(&descriptor);
  SOFTLOOKUP_CHECK(descriptor.field_count() <= kFieldsMax)
      << descriptor.full_name() << " has " << descriptor.field_count() << " fields";
  type.own_bytes = static_cast<std::int64_t>(prototype.SpaceUsedLong());
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    const auto number = static_cast<std::size_t>(field.number());
    if (type.fields.size() <= number) type.fields.resize(number + 1);
    Field& entry = type.fields[number];
    entry.descriptor = &field;
    entry.index = i;
    entry.wire_type =
        WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
    entry.is_repeated = field.is_repeated();
    entry.is_packable = field.is_packable();
    type.has_many |= field.is_repeated() || field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field.is_repeated()) {
      if (const auto limit = limits.find(field.full_name()); limit != limits.end()) {
        entry.count_max = limit->second;
      }
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Type* const element = TypeOf(*field.message_type(), limits);
      type.fields[number].message = element;
      type.fields[number].element_bytes =
          field.is_map() ? kMapEntryBytes : element->own_bytes + kPointerBytes;
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      entry.element_bytes = kStringBytes;
    } else {
      // A repeated number's array doubles as it grows.
      entry.element_bytes = field.is_repeated() ? 2 * ElementBytes(field) : 0;
    }
  }
  return &type;
}

absl::StatusOr<std::int64_t> MessageScan::Measure(
    google::protobuf::io::ZeroCopyInputStream& message) const {
  return Reader(message).Measure(*root_);
}

MessageScan::CountLimits ContractCountLimits(const Limits& limits) {
  return {{"softlookup.v1.AppendRequest.ids", limits.rows_per_append_max},
          {"softlookup.v1.AppendRequest.row_labels", limits.rows_per_append_max},
          {"softlookup.v1.AppendRequest.return_memories", kMemoryCountMax + 1},
          {"softlookup.v1.RowLabels.labels", kRowLabelCountMax},
          {"softlookup.v1.RowFilter.any_labels", kFilterLabelCountMax},
          {"softlookup.v1.RowFilter.no_labels", kFilterLabelCountMax},
          {"softlookup.v1.RowFilter.ids", kFilterIdCountMax},
          {"softlookup.v1.RowFilter.exclude_ids", kFilterIdCountMax},
          {"softlookup.v1.Store.memories", kMemoryCountMax},
          {"softlookup.v1.Store.labels", kStoreLabelCountMax},
          {"softlookup.admin.v1.MoveRangeRequest.nodes", kRangeNodeCountMax},
          {"google.protobuf.FieldMask.paths", kMaskPathCountMax}};
}

}  // namespace softlookup::server
