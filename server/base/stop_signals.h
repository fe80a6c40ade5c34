#ifndef SOFTLOOKUP_SERVER_BASE_STOP_SIGNALS_H_
#define SOFTLOOKUP_SERVER_BASE_STOP_SIGNALS_H_

#include <signal.h>

namespace softlookup::server {

// Blocks the signals that the server waits for, in this thread and in all threads that it starts,
// so that only sigwait() sees them. Ignores SIGPIPE. Returns the blocked signals.
sigset_t BlockSignals();

// Returns whether a blocked signal that stops the server has come and was not taken yet.
bool IsStopRequested();

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_STOP_SIGNALS_H_
