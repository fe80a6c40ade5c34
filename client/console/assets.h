#ifndef SOFTLOOKUP_CLIENT_CONSOLE_ASSETS_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_ASSETS_H_

#include <string_view>

#include "absl/types/span.h"

namespace softlookup::console {

// A file of the console's pages, which is part of the program.
struct Asset {
  std::string_view path;  // Of the URL, such as "/app.js".
  std::string_view type;  // Its content type.
  std::string_view bytes;
};

// Returns all files. The build makes this function from web/ (embed_assets.cmake).
absl::Span<const Asset> Assets();

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_ASSETS_H_
