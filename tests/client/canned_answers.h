#ifndef SOFTLOOKUP_TESTS_CLIENT_CANNED_ANSWERS_H_
#define SOFTLOOKUP_TESTS_CLIENT_CANNED_ANSWERS_H_

#include <functional>
#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/client/scripted_service.h"

namespace softlookup::testing {

// Answers to the calls about rows and memories that are written before the first call, and the last
// request of each kind, to be read after the call.
class CannedAnswers {
 public:
  CannedAnswers() = default;
  CannedAnswers(const CannedAnswers&) = delete;
  CannedAnswers& operator=(const CannedAnswers&) = delete;

  // Sets handlers of `service`, which this must outlive.
  void Serve(ScriptedService* service) {
    service->create_store = [this](auto*, const v1::CreateStoreRequest& request, v1::Store* store) {
      create_store = request;
      *store = request.store();
      return Result();
    };
    service->stream_append = [this](auto*, ScriptedService::AppendServerStream* stream) {
      v1::AppendRequest request;
      while (stream->Read(&request)) {
        appends.push_back(request);
        v1::AppendResponse response;
        response.set_appended_count(request.ids_size());
        stream->Write(response);
      }
      return Result();
    };
    Answer(&service->delete_rows, &delete_rows, &deleted);
    Answer(&service->lookup, &lookup, &answer);
    Answer(&service->attend, &attend, &attended);
    AnswerAll(&service->read_rows, &read_rows, &pages);
    AnswerAll(&service->watch_memory, &watch_memory, &memories);
  }

  std::vector<v1::ReadRowsResponse> pages;
  std::vector<v1::Memory> memories;
  v1::AttendResponse attended;
  v1::DeleteRowsResponse deleted;
  v1::LookupResponse answer;
  std::vector<grpc::Status> results;  // Of calls in turn; OK after the last.

  v1::ReadRowsRequest read_rows;
  v1::WatchMemoryRequest watch_memory;
  v1::AttendRequest attend;
  v1::DeleteRowsRequest delete_rows;
  v1::LookupRequest lookup;
  v1::CreateStoreRequest create_store;
  std::vector<v1::AppendRequest> appends;
  std::size_t calls = 0;

 private:
  grpc::Status Result() {
    const std::size_t call = calls++;
    return call < results.size() ? results[call] : grpc::Status::OK;
  }

  template <typename Request, typename Response>
  void Answer(ScriptedService::Handler<Request, Response>* handler, Request* last,
              const Response* canned) {
    *handler = [this, last, canned](auto*, const Request& request, Response* response) {
      *last = request;
      *response = *canned;
      return Result();
    };
  }

  template <typename Request, typename Response>
  void AnswerAll(ScriptedService::StreamHandler<Request, Response>* handler, Request* last,
                 const std::vector<Response>* canned) {
    *handler = [this, last, canned](auto*, const Request& request,
                                    grpc::ServerWriter<Response>* stream) {
      *last = request;
      // A client that has had enough cancels, so a write may fail.
      for (const Response& response : *canned) {
        if (!stream->Write(response)) break;
      }
      return Result();
    };
  }
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_CANNED_ANSWERS_H_
