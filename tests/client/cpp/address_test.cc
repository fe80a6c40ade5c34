#include "client/cpp/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "softlookup/client.h"

namespace softlookup::client_internal {
namespace {

using ::testing::HasSubstr;

TEST(CheckAddressTest, TakesHostAndPortAndTheNamesOfGrpc) {
  for (const char* address :
       {"127.0.0.1:7471", "localhost:1", "softlookup.example:65535", "[::1]:7471",
        "[fe80::1%eth0]:7471", "dns:softlookup:7471", "dns:///softlookup:7471",
        "dns://8.8.8.8/softlookup:7471", "dns:///[::1]:7471", "ipv4:10.0.0.1:7471",
        "ipv4:10.0.0.1:7471,10.0.0.2:7471", "ipv6:[::1]:7471", "ipv6:%5B::1%5D:7471",
        "unix:/run/softlookup.sock", "unix:///run/softlookup.sock", "unix:softlookup.sock"}) {
    const absl::Status status = CheckAddress(address);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(CheckAddressTest, RefusesWhatIsNoAddressAndSaysWhy) {
  for (const auto& [address, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "it is empty"},
           {"http://127.0.0.1:18200", "leave out what ends in ://"},
           {"localhost", "the port is missing"},
           {"dns:///localhost", "the port is missing"},
           {"dns://localhost:7471", "the port is missing"},
           {":7471", "the host is missing"},
           {"[]:7471", "the host is missing"},
           {"[::1]", "the port is missing"},
           {"[::1]7471", "the port is missing"},
           {"[::1:7471", "the bracket does not end"},
           {"::1:7471", "takes brackets"},
           {"localhost:", "the port is missing"},
           {"localhost:http", "the port is no number"},
           {"localhost:-1", "the port is no number"},
           {"localhost:+7471", "the port is no number"},
           {"localhost:0", "not in [1, 65535]"},
           {"localhost:65536", "not in [1, 65535]"},
           {"localhost:99999", "not in [1, 65535]"},
           {"localhost:99999999999999999999", "not in [1, 65535]"},
           {"localhost:7471/", "no slash"},
           {"local host:7471", "space"},
           {"localhost:7471\n", "control character"},
           {"ipv4:10.0.0.1:7471,10.0.0.2", "the port is missing"},
           {"unix:", "the path is missing"}}) {
    const absl::Status status = CheckAddress(address);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr("an address is HOST:PORT"));
  }
}

TEST(CheckAddressTest, ConnectChecksItsAddress) {
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect("http://127.0.0.1:18200").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect("127.0.0.1:99999").status()));
}

}  // namespace
}  // namespace softlookup::client_internal
