#ifndef SOFTLOOKUP_TESTS_FUZZ_REQUEST_FUZZ_H_
#define SOFTLOOKUP_TESTS_FUZZ_REQUEST_FUZZ_H_

#include <google/protobuf/message.h>

#include <string>

namespace softlookup::fuzz {

// The bytes that FuzzRequest() takes for this request, whole.
std::string RequestInput(const google::protobuf::Message& request);

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_REQUEST_FUZZ_H_
