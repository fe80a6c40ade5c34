#include "server/rpc/message_buffer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "softlookup/v1/store.pb.h"

namespace softlookup::server {
namespace {

std::string TextOf(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

TEST(BytesOfTest, AMessageWithoutFieldsHasAValidBufferOfNoBytes) {
  const grpc::ByteBuffer bytes = BytesOf(v1::GetStoreRequest());
  EXPECT_TRUE(bytes.Valid());
  EXPECT_EQ(bytes.Length(), 0u);
}

TEST(BytesOfTest, ALargeMessageIsWhole) {
  v1::GetStoreRequest message;
  message.set_name(std::string(std::size_t{3} << 20, 'a'));
  EXPECT_EQ(TextOf(BytesOf(message)), message.SerializeAsString());
}

}  // namespace
}  // namespace softlookup::server
