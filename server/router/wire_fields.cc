#include "server/router/wire_fields.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/limits.h"
#include "server/rpc/message_reader.h"

namespace softlookup::server {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

// Calls `read` at each field that ends `path` and has the wire type `type`. Returns false at the
// first mistake.
bool VisitField(CodedInputStream& message, const int* path, const int* path_end,
                WireFormatLite::WireType type, const std::function<bool()>& read) {
  const bool is_last = std::next(path) == path_end;
  const std::uint32_t wanted =
      WireFormatLite::MakeTag(*path, is_last ? type : WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  while (const std::uint32_t tag = message.ReadTag()) {
    if (tag != wanted) {
      if (!WireFormatLite::SkipField(&message, tag)) return false;
      continue;
    }
    if (is_last) {
      if (!read()) return false;
      continue;
    }
    const CodedInputStream::Limit limit = message.ReadLengthAndPushLimit();
    if (!VisitField(message, std::next(path), path_end, type, read)) return false;
    if (!message.CheckEntireMessageConsumedAndPopLimit(limit)) return false;
  }
  return true;
}

// Whether `message` is a sequence of whole fields.
bool HasWholeFields(grpc::ByteBuffer message) {
  MessageReader reader(message);
  CodedInputStream input(&reader.stream());
  while (const std::uint32_t tag = input.ReadTag()) {
    if (!WireFormatLite::SkipField(&input, tag)) return false;
  }
  return input.ConsumedEntireMessage();
}

grpc::ByteBuffer With(const grpc::ByteBuffer& message, const std::string& added) {
  std::vector<grpc::Slice> slices;
  if (!HasWholeFields(message) || !message.Dump(&slices).ok()) return message;
  slices.emplace_back(added);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace

std::string TextField(grpc::ByteBuffer& message, std::initializer_list<int> path) {
  MessageReader reader(message);
  CodedInputStream input(&reader.stream());
  std::string text;
  VisitField(input, path.begin(), path.end(), WireFormatLite::WIRETYPE_LENGTH_DELIMITED, [&] {
    constexpr int kKeptMax = kNameLengthMax + 1;
    int size = 0;
    if (!input.ReadVarintSizeAsInt(&size)) return false;
    const int kept = std::min(size, kKeptMax);
    std::string read;
    if (!input.ReadString(&read, kept) || !input.Skip(size - kept)) return false;
    text = std::move(read);
    return true;
  });
  return text;
}

std::uint64_t NumberField(grpc::ByteBuffer& message, std::initializer_list<int> path) {
  MessageReader reader(message);
  CodedInputStream input(&reader.stream());
  std::uint64_t number = 0;
  VisitField(input, path.begin(), path.end(), WireFormatLite::WIRETYPE_VARINT, [&] {
    std::uint64_t value = 0;
    if (!input.ReadVarint64(&value)) return false;
    number = value;
    return true;
  });
  return number;
}

bool HasField(grpc::ByteBuffer& message, int field) {
  MessageReader reader(message);
  CodedInputStream input(&reader.stream());
  bool is_there = false;
  VisitField(input, &field, &field + 1, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, [&] {
    int size = 0;
    is_there = true;
    return input.ReadVarintSizeAsInt(&size) && input.Skip(size);
  });
  return is_there;
}

grpc::ByteBuffer WithNumber(const grpc::ByteBuffer& message, int field, std::uint64_t value) {
  std::string added;
  {
    StringOutputStream stream(&added);
    CodedOutputStream output(&stream);
    WireFormatLite::WriteUInt64(field, value, &output);
  }
  return With(message, added);
}

grpc::ByteBuffer WithText(const grpc::ByteBuffer& message, int field, absl::string_view value) {
  std::string added;
  {
    StringOutputStream stream(&added);
    CodedOutputStream output(&stream);
    WireFormatLite::WriteString(field, std::string(value), &output);
  }
  return With(message, added);
}

grpc::ByteBuffer WithMessage(const grpc::ByteBuffer& message, int field,
                             const grpc::ByteBuffer& value) {
  std::string head;
  {
    StringOutputStream stream(&head);
    CodedOutputStream output(&stream);
    output.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    output.WriteVarint64(value.Length());
  }
  std::vector<grpc::Slice> slices = {grpc::Slice(head)};
  for (const grpc::ByteBuffer* const part : {&value, &message}) {
    std::vector<grpc::Slice> own;
    if (part->Dump(&own).ok()) slices.insert(slices.end(), own.begin(), own.end());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace softlookup::server
