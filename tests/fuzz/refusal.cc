#include "tests/fuzz/refusal.h"

#include "core/base/error.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/status.h"
#include "tests/fuzz/require.h"

namespace softlookup::fuzz {

void CheckRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
      break;
    default:
      REQUIRE(!"a code that blames the request");
  }
  REQUIRE(!ReasonOf(status).empty());
  google::rpc::Status details;
  REQUIRE(details.ParseFromString(server::ToGrpcStatus(status).error_details()));
  REQUIRE(details.code() == static_cast<int>(status.code()));
}

}  // namespace softlookup::fuzz
