#ifndef SOFTLOOKUP_SERVER_ROW_STREAM_H_
#define SOFTLOOKUP_SERVER_ROW_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "server/call.h"
#include "server/codec.h"
#include "softlookup/engine.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// One ReadRows call: a page is made when the one before is written. Deletes itself when the call is
// over.
class RowStream final : public grpc::ServerWriteReactor<v1::ReadRowsResponse> {
 public:
  static RowStream* Start(CallTracker& calls, const CallInfo& info, Engine& engine,
                          const v1::ReadRowsRequest& request);

  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  RowStream(CallTracker& calls, const CallInfo& info)
      : call_(calls, info), writes_(calls.stalls(), info.context) {}

  absl::Status Open(Engine& engine, const v1::ReadRowsRequest& request);
  // Reads the next page into page_; an empty one is the end.
  void ReadPage();
  void WritePage();

  const CallTracker::Call call_;
  StallWatch::Writes writes_;
  std::unique_ptr<RowReader> reader_;
  RowFields fields_;
  std::int64_t page_rows_ = 0;
  v1::ReadRowsResponse page_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROW_STREAM_H_
