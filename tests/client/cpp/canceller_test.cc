#include "softlookup/canceller.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "softlookup/client.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/patient_options.h"

namespace softlookup {
namespace {

TEST(CancellerTest, EndsAWatchOfAMemoryThatDoesNotChangeAndTheNextOneAtOnce) {
  absl::Notification over;
  testing::ScriptedService service;
  service.watch_memory = [&](grpc::ServerContext*, const v1::WatchMemoryRequest&,
                             grpc::ServerWriter<v1::Memory>* writer) {
    writer->Write(v1::Memory());
    over.WaitForNotification();
    return grpc::Status::OK;
  };
  Client client = *Client::Connect(service.address(), testing::PatientOptions());
  Canceller canceller;
  absl::Notification begun;
  std::thread stopper([&] {
    begun.WaitForNotification();
    canceller.Cancel();
  });
  const auto watch = [&] {
    return client.WatchMemory("people", "",
                              [&](const v1::Memory&) {
                                if (!begun.HasBeenNotified()) begun.Notify();
                                return true;
                              },
                              {.canceller = &canceller});
  };
  EXPECT_TRUE(absl::IsCancelled(watch()));
  stopper.join();
  EXPECT_TRUE(absl::IsCancelled(watch()));
  EXPECT_TRUE(absl::IsCancelled(client.ReadRows(
      "people", {}, [](const v1::ReadRowsResponse&) { return true; }, {.canceller = &canceller})));
  over.Notify();
}

}  // namespace
}  // namespace softlookup
