#include "server/rpc/row_stream.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

// Approximate maximum of the bytes of a page. A page has at least one row, even if that row is
// larger. A request may ask for fewer rows. With this maximum, a hundred clients that do not read
// make the server hold 25 MiB.
constexpr std::int64_t kPageBytesMax = std::int64_t{256} << 10;
// Upper bound on the wire bytes of a row besides its key and value. A row has at most 16 labels of
// 64 bytes, each with 2 bytes for its tag and length. The position, the id, and the tags and
// lengths of all other fields take at most 64 bytes more.
constexpr std::int64_t kRowOverheadBytes = 16 * 66 + 64;

}  // namespace

void RowStream::Start(std::unique_ptr<Call> call, Engine& engine) {
  const std::shared_ptr<RowStream> stream(new RowStream(std::move(call), engine));
  stream->Begin();
}

void RowStream::OnRead(bool ok) {
  absl::Status status = ok ? absl::OkStatus() : MalformedMessage();
  if (ok) {
    status = call().limiters().workers.Post(call().turn(),
                                            [self = shared_from_this()] { self->OpenAndWrite(); });
  }
  if (status.ok()) return;
  absl::MutexLock lock(&mutex_);
  Finish(status);
}

void RowStream::OpenAndWrite() {
  if (const absl::Status status = Open(); !status.ok()) {
    absl::MutexLock lock(&mutex_);
    return Finish(status);
  }
  Write(ReadPage());
}

absl::Status RowStream::Open() {
  v1::ReadRowsRequest request;
  MessageCharge charge;
  SOFTLOOKUP_RETURN_IF_ERROR(call().Receive(bytes(), request, charge));
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().Enter(request.store()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const RowFilter filter, DecodeFilter(request.filter()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(fields_, DecodeReadMask(request.read_mask()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(reader_, engine_.ReadRows(request.store(), filter));
  const std::int64_t row_bytes = reader_->row_bytes() + kRowOverheadBytes;
  const std::int64_t rows_max = std::max<std::int64_t>(1, kPageBytesMax / row_bytes);
  page_rows_ =
      request.page_rows() == 0 ? rows_max : std::min<std::int64_t>(request.page_rows(), rows_max);
  return absl::OkStatus();
}

v1::ReadRowsResponse RowStream::ReadPage() {
  v1::ReadRowsResponse page;
  page.set_revision(reader_->revision());
  for (const Row& row : reader_->Next(page_rows_)) EncodeRow(row, fields_, *page.add_rows());
  return page;
}

void RowStream::Write(const v1::ReadRowsResponse& page) {
  const grpc::ByteBuffer page_bytes = BytesOf(page);
  absl::MutexLock lock(&mutex_);
  if (!cut_.ok()) return Finish(cut_);
  StartWrite(page_bytes);
}

void RowStream::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    if (!ok && cut_.ok()) cut_ = absl::CancelledError("The caller is gone");
    if (!cut_.ok()) return Finish(cut_);
  }
  call().limiters().workers.PostNext(call().turn(), [self = shared_from_this()] {
    const v1::ReadRowsResponse page = self->ReadPage();
    if (page.rows_size() > 0) return self->Write(page);
    const absl::Status status = self->reader_->status();
    absl::MutexLock lock(&self->mutex_);
    self->Finish(status);
  });
}

void RowStream::Recheck() {
  const absl::Status status = call().gate().Recheck();
  if (!status.ok()) Cut(status);
}

void RowStream::Cut(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (cut_.ok()) cut_ = status;
}

void RowStream::Finish(const absl::Status& status) {
  if (std::exchange(finished_, true)) return;
  // Releases the rows now: the client may take long to receive the status.
  reader_.reset();
  call().rpc().Finish(call().reporter().Answer(status));
}

}  // namespace softlookup::server
