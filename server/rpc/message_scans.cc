#include "server/rpc/message_scans.h"

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/ranges/ranges.pb.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/v1/attention.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/memory.pb.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::server {

MessageScans::MessageScans(const Limits& limits) {
  const MessageScan::CountLimits counts = ContractCountLimits(limits);
  for (const google::protobuf::Descriptor* type :
       {v1::CreateStoreRequest::descriptor(),
        v1::GetStoreRequest::descriptor(),
        v1::ListStoresRequest::descriptor(),
        v1::UpdateStoreRequest::descriptor(),
        v1::RenameStoreRequest::descriptor(),
        v1::CompactStoreRequest::descriptor(),
        v1::DeleteStoreRequest::descriptor(),
        v1::AppendRequest::descriptor(),
        v1::ReadRowsRequest::descriptor(),
        v1::DeleteRowsRequest::descriptor(),
        v1::LookupRequest::descriptor(),
        v1::AttendRequest::descriptor(),
        v1::GetMemoryRequest::descriptor(),
        v1::WatchMemoryRequest::descriptor(),
        v1::GetWriterRequest::descriptor(),
        admin::v1::CreateBackupRequest::descriptor(),
        admin::v1::ListBackupsRequest::descriptor(),
        admin::v1::RestoreStoreRequest::descriptor(),
        admin::v1::GetGroupRequest::descriptor(),
        admin::v1::AddReplicaRequest::descriptor(),
        admin::v1::RemoveReplicaRequest::descriptor(),
        admin::v1::MovePrimaryRequest::descriptor(),
        admin::v1::SplitStoreRequest::descriptor(),
        admin::v1::MoveRangeRequest::descriptor(),
        admin::v1::GetRangesRequest::descriptor(),
        cluster::v1::BeginLookupRequest::descriptor(),
        cluster::v1::AnswerPartRequest::descriptor(),
        cluster::v1::SumRowsRequest::descriptor(),
        grpc::health::v1::HealthCheckRequest::descriptor(),
        grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()}) {
    scans_.emplace(type, std::make_unique<MessageScan>(*type, counts));
  }
}

}  // namespace softlookup::server
