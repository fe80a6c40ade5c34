#ifndef SOFTLOOKUP_SERVER_PROCESS_LINES_H_
#define SOFTLOOKUP_SERVER_PROCESS_LINES_H_

#include <string>

#include "server/flags.h"

// Parts of lines that the server log has about the process as a whole.
namespace softlookup::server {

// Of a SIGHUP: which files the process has read again, and what it has not.
std::string ReloadLine(const Flags& flags);
// Of the start: where the stores are, and what scans them.
std::string PlaceOfStores(const Flags& flags);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_PROCESS_LINES_H_
