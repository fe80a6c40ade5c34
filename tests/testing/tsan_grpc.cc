// Part of every program that is built for tsan. Debian's gRPC is not built for it. So tsan does not
// see that the event which ends an operation of a call comes after the operation was started, with
// the same tag. The definitions here stand before the library's, tell tsan, and call the library's.
// Callbacks can come on other threads than events: server/base/event_order.h.
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include "tests/testing/library_function.h"

namespace {

using ::softlookup::testing::LibraryFunction;

// Tells tsan that what comes next is after the start of the operation of `event`.
grpc_event AfterStart(const grpc_event& event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t op_count,
                                      void* tag, void* reserved) {
  static auto* const function =
      LibraryFunction<decltype(&grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return function(call, ops, op_count, tag, reserved);
}

grpc_call_error grpc_server_request_call(grpc_server* server, grpc_call** call,
                                         grpc_call_details* details,
                                         grpc_metadata_array* request_metadata,
                                         grpc_completion_queue* queue_of_call,
                                         grpc_completion_queue* queue_of_event, void* tag) {
  static auto* const function =
      LibraryFunction<decltype(&grpc_server_request_call)>("grpc_server_request_call");
  __tsan_release(tag);
  return function(server, call, details, request_metadata, queue_of_call, queue_of_event, tag);
}

grpc_call_error grpc_server_request_registered_call(
    grpc_server* server, void* method, grpc_call** call, gpr_timespec* deadline,
    grpc_metadata_array* request_metadata, grpc_byte_buffer** payload,
    grpc_completion_queue* queue_of_call, grpc_completion_queue* queue_of_event, void* tag) {
  static auto* const function = LibraryFunction<decltype(&grpc_server_request_registered_call)>(
      "grpc_server_request_registered_call");
  __tsan_release(tag);
  return function(server, method, call, deadline, request_metadata, payload, queue_of_call,
                  queue_of_event, tag);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const function =
      LibraryFunction<decltype(&grpc_completion_queue_next)>("grpc_completion_queue_next");
  return AfterStart(function(queue, deadline, reserved));
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const function =
      LibraryFunction<decltype(&grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  return AfterStart(function(queue, tag, deadline, reserved));
}

}  // extern "C"
