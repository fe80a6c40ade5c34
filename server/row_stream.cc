#include "server/row_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace softlookup::server {
namespace {

// A page of about this size, or a row, unless the request wants fewer rows: what a hundred clients
// that do not read make the server hold is still little.
constexpr std::int64_t kPageBytesMax = std::int64_t{256} << 10;
// A row's position, id, labels and tags on the wire, at most.
constexpr std::int64_t kRowOverheadBytes = 16 * 66 + 64;

}  // namespace

RowStream* RowStream::Start(CallTracker& calls, const CallInfo& info, Engine& engine,
                            const v1::ReadRowsRequest& request) {
  auto* stream = new RowStream(calls, info);
  const absl::Status status = stream->Open(engine, request);
  if (!status.ok()) {
    stream->Finish(stream->call_.Answer(status));
    return stream;
  }
  // The first page is sent even if it is empty, for its revision.
  stream->ReadPage();
  stream->WritePage();
  return stream;
}

absl::Status RowStream::Open(Engine& engine, const v1::ReadRowsRequest& request) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RowFilter filter, DecodeFilter(request.filter()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(fields_, DecodeReadMask(request.read_mask()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(reader_, engine.ReadRows(request.store(), filter));
  const std::int64_t row_bytes = reader_->row_bytes() + kRowOverheadBytes;
  const std::int64_t rows_max = std::max<std::int64_t>(1, kPageBytesMax / row_bytes);
  page_rows_ =
      request.page_rows() == 0 ? rows_max : std::min<std::int64_t>(request.page_rows(), rows_max);
  return absl::OkStatus();
}

void RowStream::ReadPage() {
  page_.Clear();
  page_.set_revision(reader_->revision());
  for (const Row& row : reader_->Next(page_rows_)) EncodeRow(row, fields_, *page_.add_rows());
}

void RowStream::WritePage() {
  writes_.OnStart();
  StartWrite(&page_);
}

void RowStream::OnWriteDone(bool ok) {
  writes_.OnDone();
  if (!ok) {
    Finish(call_.Answer(absl::CancelledError("The caller is gone")));
    return;
  }
  ReadPage();
  if (page_.rows_size() > 0) {
    WritePage();
  } else {
    Finish(call_.Answer(absl::OkStatus()));
  }
}

}  // namespace softlookup::server
