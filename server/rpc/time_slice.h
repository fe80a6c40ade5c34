#ifndef SOFTLOOKUP_SERVER_RPC_TIME_SLICE_H_
#define SOFTLOOKUP_SERVER_RPC_TIME_SLICE_H_

namespace softlookup::server {

// Asks the kernel for short time slices for the calling thread. It then runs sooner once it has
// something to do, also where all processors compute, and gets no more of their time than before.
// Needs no privilege. Kernels before Linux 6.12 ignore it.
void AskForShortTimeSlices();

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_TIME_SLICE_H_
