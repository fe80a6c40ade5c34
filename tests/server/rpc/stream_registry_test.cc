#include "server/rpc/stream_registry.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace softlookup::server {
namespace {

class CountingStream : public DrainableStream {
 public:
  void Drain() override { ++drains; }
  void Recheck() override { ++rechecks; }
  int drains = 0;
  int rechecks = 0;
};

TEST(StreamRegistryTest, DrainsTheStreamsOfNowAndThoseThatCome) {
  StreamRegistry registry;
  std::vector<std::shared_ptr<CountingStream>> streams;
  for (int i = 0; i < 1000; ++i) {
    streams.push_back(std::make_shared<CountingStream>());
    registry.Add(streams.back());
    if (i % 3 != 0) streams.back() = nullptr;  // Over.
  }
  registry.Drain();
  for (const auto& stream : streams) {
    if (stream != nullptr) {
      EXPECT_EQ(stream->drains, 1);
    }
  }
  registry.Recheck();
  for (const auto& stream : streams) {
    if (stream != nullptr) {
      EXPECT_EQ(stream->rechecks, 1);
    }
  }
  const auto late = std::make_shared<CountingStream>();
  registry.Add(late);
  EXPECT_EQ(late->drains, 1);
}

}  // namespace
}  // namespace softlookup::server
