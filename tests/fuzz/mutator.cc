#include "tests/fuzz/mutator.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>

namespace softlookup::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::size_t kInputBytesMax = 4096;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::uint64_t> kIntegers = {0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              5,
                                              63,
                                              64,
                                              65,
                                              65536,
                                              0x7fffffff,
                                              0x80000000,
                                              0xffffffff,
                                              0x7fffffffffffffff,
                                              0xffffffffffffffff};
const std::vector<double> kNumbers = {0,      -0.0,  1,    -1,     0.5,  1e-6, 1e6,  1e-7,  0.999,
                                      3.4e38, -3e38, 1e39, 1e-320, 1e38, -100, kInf, -kInf, kNan};
const std::vector<std::string> kStrings = {"",
                                           "s",
                                           "heads",
                                           "average",
                                           "sum",
                                           "mean",
                                           "gate",
                                           "gated-mean",
                                           "score",
                                           "temperature",
                                           "projection",
                                           "labels",
                                           "acme/a-1",
                                           "a..b",
                                           std::string(9, '\0'),
                                           std::string(128, 'x'),
                                           "\xc3\xa4",
                                           "-a",
                                           std::string(129, 'x')};
// Ends of the ranges of a byte or varint, a float32, a float64.
const std::vector<std::string> kBytes = {std::string(1, '\0'),
                                         "\x01",
                                         "\x7f",
                                         "\x80\x01",
                                         "\xff\xff\xff\xff\x0f",
                                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                         std::string("\x01\x00\x00\x00", 4),
                                         std::string("\x00\x00\x80\x7f", 4),
                                         std::string("\x00\x00\xc0\x7f", 4),
                                         "\xff\xff\x7f\xff",
                                         std::string("\x00\x00\x00\x00\x00\x00\xf0\x7f", 8),
                                         "\xff\xff\xff\xff\xff\xff\xef\x7f"};

// Maps in a fixed order, too.
std::string Serialize(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

std::string Mutator::RandomBytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

std::string Mutator::Next() {
  const Message& seed = *OneOf(corpus_);
  const std::unique_ptr<Message> message(seed.New());
  message->CopyFrom(seed);
  for (std::size_t left = Below(4); left > 0; --left) MutateMessage(*message);
  std::string bytes = Serialize(*message);
  if (Below(2) == 0) MutateBytes(bytes);
  if (bytes.size() > kInputBytesMax) bytes.resize(kInputBytesMax);
  return bytes;
}

void Mutator::MutateMessage(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set_fields;
  reflection.ListFields(message, &set_fields);
  const FieldDescriptor& field = !set_fields.empty() && Below(4) != 0
                                     ? *OneOf(set_fields)
                                     : *message.GetDescriptor()->field(static_cast<int>(
                                           Below(message.GetDescriptor()->field_count())));
  if (Below(8) == 0) {
    reflection.ClearField(&message, &field);
  } else {
    SetField(message, field);
  }
}

void Mutator::SetField(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 0;
  // The entries of a map have no order to choose one by.
  const bool adds = field.is_repeated() && (count == 0 || field.is_map() || Below(4) == 0);
  const int index = count == 0 ? 0 : static_cast<int>(Below(count));
  const auto put = [&](auto set, auto set_repeated, auto add, auto value) {
    if (adds) {
      (reflection.*add)(&message, &field, value);
    } else if (field.is_repeated()) {
      (reflection.*set_repeated)(&message, &field, index, value);
    } else {
      (reflection.*set)(&message, &field, value);
    }
  };
#define PUT(Type, value) \
  put(&Reflection::Set##Type, &Reflection::SetRepeated##Type, &Reflection::Add##Type, value)
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return PUT(Int32, static_cast<std::int32_t>(OneOf(kIntegers)));
    case FieldDescriptor::CPPTYPE_INT64:
      return PUT(Int64, static_cast<std::int64_t>(OneOf(kIntegers)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return PUT(UInt32, static_cast<std::uint32_t>(OneOf(kIntegers)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return PUT(UInt64, OneOf(kIntegers));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return PUT(Double, OneOf(kNumbers));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return PUT(Float, static_cast<float>(OneOf(kNumbers)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return PUT(Bool, Below(2) == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return PUT(EnumValue, static_cast<int>(Below(8)) - 1);
    case FieldDescriptor::CPPTYPE_STRING: {
      if (field.type() != FieldDescriptor::TYPE_BYTES) return PUT(String, OneOf(kStrings));
      std::string bytes = reflection.GetString(message, &field);
      MutateBytes(bytes);
      return PUT(String, bytes);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MutateMessage(adds ? *reflection.AddMessage(&message, &field)
                           : field.is_repeated()
                               ? *reflection.MutableRepeatedMessage(&message, &field, index)
                               : *reflection.MutableMessage(&message, &field));
  }
#undef PUT
}

void Mutator::MutateBytes(std::string& bytes) {
  if (bytes.empty()) bytes = RandomBytes(4 * (1 + Below(4)));
  const std::size_t at = Below(bytes.size());
  const std::size_t length = std::min(1 + Below(8), bytes.size() - at);
  switch (Below(6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
      break;
    case 1: {
      const std::string& end = OneOf(kBytes);
      bytes.replace(at, std::min(end.size(), bytes.size() - at), end);
      break;
    }
    case 2:
      bytes.insert(at, RandomBytes(1 + Below(8)));
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(Below(bytes.size()), bytes.substr(at, length));
      break;
    case 5:  // Two requests in a row: protobuf merges them.
      bytes += Serialize(*OneOf(corpus_));
      break;
  }
}

}  // namespace softlookup::fuzz
