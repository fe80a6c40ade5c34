#include "tests/benchmarks/echo_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::testing {
namespace {

// Calls that a completion queue has room for before it must ask for more.
constexpr int kAcceptedCallsMax = 64;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// All that is ever sent there. Closing would not end it: children that are split off later have the
// socket, too.
void Send(int socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0) Die("send");
    sent += static_cast<std::size_t>(count);
  }
  shutdown(socket, SHUT_WR);
}

std::string ReadToEnd(int fd) {
  std::string bytes;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(fd, buffer.data(), buffer.size())) > 0;) {
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return bytes;
}

class CallbackEcho final : public v1::SoftLookup::CallbackService {
 public:
  explicit CallbackEcho(const v1::LookupResponse& response) : response_(response) {}

  grpc::ServerUnaryReactor* Lookup(grpc::CallbackServerContext* context, const v1::LookupRequest*,
                                   v1::LookupResponse* response) override {
    *response = response_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const v1::LookupResponse& response_;
};

// One call of a completion queue: accepted, then answered. It is its own tag.
struct QueuedCall {
  grpc::ServerContext context;
  v1::LookupRequest request;
  grpc::ServerAsyncResponseWriter<v1::LookupResponse> responder{&context};
  bool answered = false;
};

void Accept(v1::SoftLookup::AsyncService& service, grpc::ServerCompletionQueue& queue) {
  auto* call = new QueuedCall;
  service.RequestLookup(&call->context, &call->request, &call->responder, &queue, &queue, call);
}

void OnQueuedEvent(v1::SoftLookup::AsyncService& service, grpc::ServerCompletionQueue& queue,
                   const v1::LookupResponse& response, void* tag) {
  auto* call = static_cast<QueuedCall*>(tag);
  if (call->answered) {
    delete call;
    return;
  }
  Accept(service, queue);
  call->answered = true;
  call->responder.Finish(response, grpc::Status::OK, call);
}

// One call whose messages are bytes. Two of its operations run at a time: the one that answers it,
// and the one that ends with the call. Both come out of one queue, which one thread serves.
struct GenericCall {
  enum class Step { kAccept, kRead, kAnswer };
  struct Tag {
    GenericCall* call;
    bool is_end;
  };

  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ByteBuffer message;
  Tag step_tag{this, false}, end_tag{this, true};
  Step step = Step::kAccept;
  bool is_answered = false, is_over = false;
};

void Accept(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue) {
  auto* call = new GenericCall;
  call->context.AsyncNotifyWhenDone(&call->end_tag);
  service.RequestCall(&call->context, &call->stream, &queue, &queue, &call->step_tag);
}

// Parses the request and serializes the response, as gRPC does for messages of known types.
grpc::Status AnswerOf(grpc::ByteBuffer& message, const v1::LookupResponse& response,
                      grpc::ByteBuffer& answer) {
  v1::LookupRequest request;
  bool own_buffer = false;
  grpc::Status status =
      grpc::SerializationTraits<v1::LookupRequest>::Deserialize(&message, &request);
  if (!status.ok()) return status;
  return grpc::SerializationTraits<v1::LookupResponse>::Serialize(response, &answer, &own_buffer);
}

void Answer(GenericCall& call, const v1::LookupResponse& response) {
  grpc::ByteBuffer bytes;
  const grpc::Status status = AnswerOf(call.message, response, bytes);
  if (!status.ok()) return call.stream.Finish(status, &call.step_tag);
  call.stream.WriteAndFinish(bytes, {}, grpc::Status::OK, &call.step_tag);
}

void OnGenericEvent(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
                    const v1::LookupResponse& response, void* event) {
  const auto& tag = *static_cast<GenericCall::Tag*>(event);
  GenericCall& call = *tag.call;
  if (tag.is_end) {
    call.is_over = true;
  } else if (call.step == GenericCall::Step::kAccept) {
    Accept(service, queue);
    call.step = GenericCall::Step::kRead;
    call.stream.Read(&call.message, &call.step_tag);
  } else if (call.step == GenericCall::Step::kRead) {
    call.step = GenericCall::Step::kAnswer;
    Answer(call, response);
  } else {
    call.is_answered = true;
  }
  if (call.is_answered && call.is_over) delete &call;
}

// Accepts calls and passes the tags that come out of the queue to `on_event`, until the process is
// killed.
template <typename Service, typename OnEvent>
[[noreturn]] void ServeQueue(Service& service, grpc::ServerCompletionQueue& queue,
                             const OnEvent& on_event) {
  for (int i = 0; i < kAcceptedCallsMax; ++i) Accept(service, queue);
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) on_event(tag);
  std::abort();  // Nobody shuts it down.
}

std::shared_ptr<grpc::ServerCredentials> Credentials(
    const std::optional<PemKeyCertPair>& certificate) {
  if (!certificate.has_value()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(*certificate);
  return grpc::SslServerCredentials(options);
}

// What the child does for the rest of its life.
[[noreturn]] void Serve(EchoApi api, const std::optional<PemKeyCertPair>& certificate, int socket) {
  v1::LookupResponse response;
  if (!response.ParseFromString(ReadToEnd(socket))) _exit(1);
  v1::SoftLookup::AsyncService queue_service;
  grpc::AsyncGenericService generic_service;
  CallbackEcho callback_service(response);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", Credentials(certificate), &port);
  // One queue and one thread a core, as gRPC's guide to performance has it.
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  if (api == EchoApi::kCallback) {
    builder.RegisterService(&callback_service);
  } else {
    if (api == EchoApi::kGenericQueue) {
      builder.RegisterAsyncGenericService(&generic_service);
    } else {
      builder.RegisterService(&queue_service);
    }
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      queues.push_back(builder.AddCompletionQueue());
    }
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) _exit(1);
  std::vector<std::thread> threads;
  for (const auto& queue : queues) {
    threads.emplace_back([&] {
      if (api == EchoApi::kGenericQueue) {
        ServeQueue(generic_service, *queue,
                   [&](void* tag) { OnGenericEvent(generic_service, *queue, response, tag); });
      }
      ServeQueue(queue_service, *queue,
                 [&](void* tag) { OnQueuedEvent(queue_service, *queue, response, tag); });
    });
  }
  Send(socket, absl::StrCat("127.0.0.1:", port));
  server->Wait();
  std::abort();  // Nobody shuts it down.
}

}  // namespace

EchoServer::EchoServer(EchoApi api, const std::optional<PemKeyCertPair>& certificate) {
  std::array<int, 2> sockets;  // Ours, the child's.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) Die("socketpair");
  pid_ = fork();
  if (pid_ < 0) Die("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(sockets[0]);
    Serve(api, certificate, sockets[1]);
  }
  close(sockets[1]);
  socket_ = sockets[0];
}

EchoServer::~EchoServer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(socket_);
}

std::string EchoServer::Start(const v1::LookupResponse& response) {
  Send(socket_, response.SerializeAsString());
  std::string address = ReadToEnd(socket_);
  if (address.empty()) {
    std::fprintf(stderr, "the echo server did not start\n");
    std::exit(1);
  }
  return address;
}

}  // namespace softlookup::testing
