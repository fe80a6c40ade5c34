#ifndef SOFTLOOKUP_SERVER_RPC_ROW_STREAM_H_
#define SOFTLOOKUP_SERVER_RPC_ROW_STREAM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/call.h"
#include "server/rpc/codec.h"
#include "server/rpc/stream_call.h"
#include "softlookup/engine.h"
#include "softlookup/v1/row.pb.h"

namespace softlookup::server {

// One ReadRows call. Workers read the rows page by page. A worker makes a page only after the
// previous one was written.
class RowStream final : public StreamCall<RowStream> {
 public:
  static void Start(std::unique_ptr<Call> call, Engine& engine);

  void OnCancel() override { Cut(absl::CancelledError("The caller is gone")); }
  // Does nothing: the call ends by itself.
  void Drain() override {}
  void Recheck() override;

 private:
  RowStream(std::unique_ptr<Call> call, Engine& engine)
      : StreamCall(std::move(call)), engine_(engine) {}

  void OnRead(bool ok) override;
  void OnWritten(bool ok) override;
  // Parses and checks the request, and makes the reader of its rows.
  absl::Status Open();
  // Calls Open(), then writes the first page. Ends the stream if Open() fails. The first page is
  // sent even if it is empty, since it has the revision.
  void OpenAndWrite();
  // Reads the next page. An empty page means that there are no more rows.
  v1::ReadRowsResponse ReadPage();
  // Writes `page`, or ends the stream if it was cut.
  void Write(const v1::ReadRowsResponse& page);
  // Makes the stream end with `status` at its next step. Only the first call counts.
  void Cut(const absl::Status& status);
  void Finish(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine& engine_;

  // Used by the step in progress only: one worker at a time.
  std::unique_ptr<RowReader> reader_;
  RowFields fields_;
  std::int64_t page_rows_ = 0;  // Maximum number of rows of a page.

  absl::Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status cut_ ABSL_GUARDED_BY(mutex_);  // Not OK: the stream is to end with it.
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_ROW_STREAM_H_
