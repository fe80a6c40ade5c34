#include "server/rpc/health.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_call.h"

namespace softlookup::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

grpc::ByteBuffer BytesOf(Health::Status status) {
  HealthCheckResponse response;
  response.set_status(status);
  return server::BytesOf(response);
}

}  // namespace

void Health::SetServing(bool serving) {
  std::vector<std::shared_ptr<HealthWatch>> watches;
  {
    absl::MutexLock lock(&mutex_);
    serving_ = serving;
    watches = watches_.Living();
  }
  for (const auto& watch : watches) watch->Proceed();
}

Health::Status Health::StatusOf(const std::string& service) const {
  if (!service.empty() && service != "softlookup.v1.SoftLookup") {
    return HealthCheckResponse::SERVICE_UNKNOWN;
  }
  return is_serving() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void Health::Add(const std::shared_ptr<HealthWatch>& watch) {
  absl::MutexLock lock(&mutex_);
  watches_.Add(watch);
}

void StartHealthCheck(std::unique_ptr<Call> call, Health& health) {
  StartCall<HealthCheckRequest, HealthCheckResponse>(
      std::move(call), UnaryCall::RunOn::kNetworkThread,
      [&health](Call&, const HealthCheckRequest& request,
                HealthCheckResponse& response) -> absl::Status {
        const Health::Status status = health.StatusOf(request.service());
        if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
          return absl::NotFoundError("There is no such service");
        }
        response.set_status(status);
        return absl::OkStatus();
      });
}

void HealthWatch::Start(std::unique_ptr<Call> call, Health& health) {
  const std::shared_ptr<HealthWatch> watch(new HealthWatch(std::move(call), health));
  watch->Begin();
}

void HealthWatch::OnRead(bool ok) {
  if (!ok) return Open(MalformedMessage(), "");
  HandleMessage([self = shared_from_this()] {
    HealthCheckRequest request;
    MessageCharge charge;
    const absl::Status status = self->call().Receive(self->bytes(), request, charge);
    self->Open(status, request.service());
  });
}

void HealthWatch::Open(const absl::Status& status, const std::string& service) {
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (end_.ok()) end_ = status;
    service_ = service;
  }
  if (status.ok()) health_.Add(shared_from_this());
  Proceed();
}

void HealthWatch::Proceed() {
  absl::MutexLock lock(&mutex_);
  if (finished_ || reading_ || writing_) return;
  if (!end_.ok()) {
    finished_ = true;
    return call().rpc().Finish(call().reporter().Answer(end_));
  }
  const Health::Status status = health_.StatusOf(service_);
  if (sent_ == status) return;
  sent_ = status;
  writing_ = true;
  StartWrite(BytesOf(status));
}

void HealthWatch::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && end_.ok()) end_ = absl::CancelledError("The caller is gone");
  }
  Proceed();
}

void HealthWatch::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_.ok()) end_ = status;
  }
  Proceed();
}

}  // namespace softlookup::server
