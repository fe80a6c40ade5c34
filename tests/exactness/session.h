// A real server, what it has to hold, and random operations on both.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_SESSION_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_SESSION_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/exactness/judge.h"
#include "tests/exactness/kept_store.h"
#include "tests/exactness/store_maker.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::exactness {

class Session {
 public:
  // What its answers add up to goes into `tally`. With `cuts_stores`, the server is the only node
  // of a cluster, calls go through a router, and most stores have up to seven ranges of rows.
  Session(std::uint64_t seed, bool cuts_stores, Tally& tally);

  // Operation `number`, drawn from the seed.
  void Run(std::uint64_t number);

  struct Counts {
    std::uint64_t stores = 0, appends = 0, deletions = 0, lookups = 0, alone = 0, together = 0,
                  beside_writes = 0, memories = 0, restarts = 0, rows = 0, cuts = 0;
  };
  const Counts& counts() const { return counts_; }
  // What was wrong, with the operation and the request.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct OneStore {
    OneStore(std::uint64_t seed, const std::string& name, bool may_be_cut)
        : maker(seed, name, may_be_cut), kept(maker.config(), maker.description()) {}
    StoreMaker maker;
    KeptStore kept;
    std::uint32_t range_count = 1;  // 1: it is not cut.
  };
  // A lookup, and the bits of its answer, a query each.
  struct Remembered {
    OneStore* store = nullptr;
    v1::LookupRequest request;
    std::uint64_t revision = 0;
    std::uint64_t operation = 0;
    std::vector<std::string> bits;
  };
  // A lookup in flight.
  struct Flight {
    v1::LookupRequest request;
    v1::LookupResponse response;
    grpc::ClientContext context;
    grpc::Status status;
  };

  struct Landing;  // Waits for all lookups in flight.

  void Start();
  void AddStore();
  void DropStore(std::size_t index);
  // Cuts the store into some ranges, in place of those that it has, if it has rows enough.
  void Cut(OneStore& store);
  void CheckRanges(const OneStore& store, const admin::v1::StoreRanges& ranges,
                   const std::string& what);
  void Append(OneStore& store, std::int64_t count);
  // The rows that an append has to leave; nothing if it has to fail.
  std::optional<std::vector<int>> RowsThatStay(const KeptStore& kept,
                                               const v1::AppendRequest& request) const;
  void ReadAppended(OneStore& store, const v1::AppendRequest& request,
                    const std::vector<int>& rows);
  void CheckKept(const KeptStore& kept, const std::vector<float>& sent,
                 const std::vector<float>& kept_part, const std::string& what);
  void Delete(OneStore& store);
  void CheckMemory(OneStore& store);

  void LookUp(OneStore& store);
  // Judges an answer. Remembers it, if it is to, and if its snapshot is still the newest.
  void Check(OneStore& store, const v1::LookupRequest& request, const grpc::Status& status,
             const v1::LookupResponse& response, bool remembers);
  void JudgeAnswer(const KeptStore& store, const v1::LookupRequest& request,
                   const v1::LookupResponse& response);
  // Holds an answer's bits against those that its queries had before.
  void Compare(const Remembered& before, const v1::LookupResponse& response, std::size_t first,
               const std::string& how);
  void RepeatAlone();
  void RepeatTogether(const std::string& how);
  void RepeatOnStream(const std::vector<const Remembered*>& lookups, const std::string& how);
  void LookUpBesideWrite(OneStore& store);
  void Restart();

  std::vector<std::unique_ptr<Flight>> Launch(std::vector<v1::LookupRequest> requests,
                                              Landing& landing);
  void Forget(const OneStore& store);
  OneStore& AnyStore();
  void Fail(const std::string& what);
  void Fail(const KeptStore& store, const std::string& request, const std::string& what);
  bool RequireOk(const KeptStore& store, const grpc::Status& status, const std::string& what);

  const std::uint64_t seed_;
  const bool cuts_stores_;
  Draw draw_;
  std::uint64_t operation_ = 0;
  std::uint64_t store_count_ = 0;
  testing::TemporaryDirectory directory_;
  // Set if stores are cut, as node_ is.
  std::unique_ptr<testing::EtcdMembers> etcd_;
  std::optional<testing::ServerProcess> node_;
  std::optional<testing::ServerProcess> server_;  // Takes the calls.
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
  std::unique_ptr<admin::v1::Admin::Stub> admin_stub_;
  std::vector<std::unique_ptr<OneStore>> stores_;
  std::vector<Remembered> remembered_;
  Counts counts_;
  Tally& tally_;
  std::vector<std::string> failures_;
};

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_SESSION_H_
