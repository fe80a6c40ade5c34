#ifndef SOFTLOOKUP_TESTS_SERVER_CLUSTER_WAITING_CLIENT_H_
#define SOFTLOOKUP_TESTS_SERVER_CLUSTER_WAITING_CLIENT_H_

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/task_thread.h"

namespace softlookup::server {

// A client of its own thread, whose calls wait for their answers.
class WaitingClient {
 public:
  explicit WaitingClient(std::vector<std::string> endpoints,
                         absl::Duration call_timeout = EtcdOptions().call_timeout) {
    Do([&] {
      client_ = std::make_unique<EtcdClient>(
          EtcdOptions{.endpoints = std::move(endpoints),
                      .credentials = grpc::InsecureChannelCredentials(),
                      .call_timeout = call_timeout},
          [this](absl::AnyInvocable<void()> task) { thread_.Post(std::move(task)); });
    });
  }
  ~WaitingClient() {
    Do([this] { client_.reset(); });
  }

  absl::StatusOr<EtcdTxnResult> Run(const EtcdTxn& txn) {
    return Ask<EtcdTxnResult>([&](auto done) { client_->Run(txn, std::move(done)); });
  }
  absl::StatusOr<std::vector<EtcdKeyValue>> List(const std::string& begin, const std::string& end) {
    return Ask<std::vector<EtcdKeyValue>>(
        [&](auto done) { client_->List(begin, end, std::move(done)); });
  }
  // Lists them until a member answers.
  std::vector<EtcdKeyValue> ListUntilAnswered(const std::string& begin, const std::string& end) {
    while (true) {
      absl::StatusOr<std::vector<EtcdKeyValue>> listed = List(begin, end);
      if (listed.ok()) return *std::move(listed);
    }
  }
  // Runs it `count` times at once. Returns how many were answered.
  int RunAtOnce(const EtcdTxn& txn, int count) {
    std::vector<std::promise<bool>> answers(count);
    Do([&] {
      for (std::promise<bool>& answer : answers) {
        client_->Run(txn, [&answer](const absl::StatusOr<EtcdTxnResult>& result) {
          answer.set_value(result.ok());
        });
      }
    });
    int answered = 0;
    for (std::promise<bool>& answer : answers) answered += answer.get_future().get() ? 1 : 0;
    return answered;
  }
  // Runs it until a member answers.
  EtcdTxnResult RunUntilAnswered(const EtcdTxn& txn) {
    while (true) {
      absl::StatusOr<EtcdTxnResult> result = Run(txn);
      if (result.ok()) return *std::move(result);
    }
  }
  absl::StatusOr<std::int64_t> GrantLease() {
    return Ask<std::int64_t>(
        [&](auto done) { client_->GrantLease(absl::Seconds(60), std::move(done)); });
  }
  absl::StatusOr<bool> KeepAlive(std::int64_t lease) {
    return Ask<bool>([&](auto done) { client_->KeepAlive(lease, std::move(done)); });
  }
  void RevokeLease(std::int64_t lease) {
    Do([&] { client_->RevokeLease(lease); });
  }
  void Watch(const std::string& key, OnEtcdChange on_change) {
    Do([&] { client_->Watch(key, key + '\0', std::move(on_change)); });
  }
  std::optional<std::string> Value(const std::string& key) {
    return RunUntilAnswered({.compares = {}, .puts = {}, .reads = {key}}).values[0];
  }

 private:
  void Do(absl::AnyInvocable<void()> act) {
    absl::Notification done;
    thread_.Post([&] {
      act();
      done.Notify();
    });
    done.WaitForNotification();
  }
  template <typename Result, typename Act>
  absl::StatusOr<Result> Ask(Act act) {
    std::promise<absl::StatusOr<Result>> answer;
    thread_.Post([&] {
      act(Etcd::Callback<Result>(
          [&](absl::StatusOr<Result> result) { answer.set_value(std::move(result)); }));
    });
    return answer.get_future().get();
  }

  std::unique_ptr<EtcdClient> client_;
  TaskThread thread_{[this] {
                       if (client_ != nullptr) client_->Tick();
                     },
                     absl::Milliseconds(100)};
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_TESTS_SERVER_CLUSTER_WAITING_CLIENT_H_
