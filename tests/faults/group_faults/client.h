#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_CLIENT_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/faults/group_faults/group.h"

namespace softlookup::testing {

// What a client knows of a write after one call.
enum class Outcome { kMade, kNotMade, kUnknown };

// Reads it from the status of the call. A server says that it has not made a write by telling when
// to send it again.
Outcome OutcomeOf(const grpc::Status& status);

// Sets the deadline of a call.
void SetDeadline(std::int64_t seconds, grpc::ClientContext& context);

// Sets rows of one component, all the same.
void SetRows(std::uint32_t count, float key, float value, v1::AppendRequest& request);
// Returns the component of a matrix that has one.
float ComponentOf(const v1::Matrix& matrix);

// Calls `visit` with each message of a store's rows. Returns whether all came.
bool ReadStore(v1::SoftLookup::Stub& stub, const std::string& store,
               const std::function<void(const v1::ReadRowsResponse&)>& visit);

// Talks to the nodes of a group, or to its router. Used on one thread.
class Client {
 public:
  using Call = std::function<grpc::Status(v1::SoftLookup::Stub&, grpc::ClientContext&)>;

  explicit Client(const Group& group);
  explicit Client(const Router& router);

  v1::SoftLookup::Stub& node(std::size_t index) { return *stubs_[index]; }
  // Calls `call` at the node that answered the last one. After an error the next call goes to the
  // next node; the router is the only one.
  grpc::Status TryOnce(const Call& call);
  // Does so until one answers OK, or `stop` is set. Returns whether one has.
  bool Try(const std::atomic<bool>& stop, const Call& call);

 private:
  std::vector<std::unique_ptr<v1::SoftLookup::Stub>> stubs_;
  std::size_t next_ = 0;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_CLIENT_H_
