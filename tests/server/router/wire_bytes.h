#ifndef SOFTLOOKUP_TESTS_SERVER_ROUTER_WIRE_BYTES_H_
#define SOFTLOOKUP_TESTS_SERVER_ROUTER_WIRE_BYTES_H_

#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/limits.h"

namespace softlookup::server {

// Returns `bytes`, in slices of `slice_bytes`.
inline grpc::ByteBuffer BufferOf(absl::string_view bytes, std::size_t slice_bytes = 1 << 20) {
  std::vector<grpc::Slice> slices;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(slice_bytes, bytes.size()))) {
    slices.emplace_back(std::string(bytes.substr(0, slice_bytes)));
  }
  if (slices.empty()) slices.emplace_back(std::string());
  return {slices.data(), slices.size()};
}

inline std::string BytesIn(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

inline std::string Varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

// Fields as they are on the wire.
inline std::string TextBytes(int field, absl::string_view text) {
  return Varint(static_cast<std::uint64_t>(field) << 3 | 2) + Varint(text.size()) +
         std::string(text);
}
inline std::string NumberBytes(int field, std::uint64_t value) {
  return Varint(static_cast<std::uint64_t>(field) << 3) + Varint(value);
}

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_ROUTER_WIRE_BYTES_H_
