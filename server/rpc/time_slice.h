#ifndef SOFTLOOKUP_SERVER_RPC_TIME_SLICE_H_
#define SOFTLOOKUP_SERVER_RPC_TIME_SLICE_H_

namespace softlookup::server {

// Asks the kernel for short time slices for the calling thread. The thread then runs sooner once it
// has work, even if all processors are busy. It gets no more processor time than before. Needs no
// privilege. Kernels before Linux 6.12 ignore the request.
void AskForShortTimeSlices();

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_TIME_SLICE_H_
