#ifndef SOFTLOOKUP_TESTS_TESTING_PATIENT_OPTIONS_H_
#define SOFTLOOKUP_TESTS_TESTING_PATIENT_OPTIONS_H_

#include "absl/time/time.h"
#include "softlookup/client.h"

namespace softlookup::testing {

// Longer than the library's own deadline, which a call on a busy machine may miss.
inline constexpr absl::Duration kPatientDeadline = absl::Seconds(100);

inline ClientOptions PatientOptions() {
  ClientOptions options;
  options.deadline = kPatientDeadline;
  return options;
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_PATIENT_OPTIONS_H_
