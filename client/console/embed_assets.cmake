# Writes OUTPUT, a C++ source with the bytes of the console's pages:
#   cmake -DPAGES_DIR=... -DOUTPUT=... -P embed_assets.cmake
set(files index.html app.js app.css icon.svg)
set(paths / /app.js /app.css /icon.svg)
set(types "text/html; charset=utf-8" "text/javascript; charset=utf-8" "text/css; charset=utf-8" "image/svg+xml")

set(arrays "")
set(entries "")
foreach(file path type IN ZIP_LISTS files paths types)
  file(READ "${PAGES_DIR}/${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(MAKE_C_IDENTIFIER "${file}" name)
  string(APPEND arrays "constexpr unsigned char k_${name}[] = {${bytes}};\n")
  string(APPEND entries
    "      {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(k_${name}), sizeof(k_${name})}},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by embed_assets.cmake.
#include \"client/console/assets.h\"

namespace softlookup::console {
namespace {
${arrays}}  // namespace

absl::Span<const Asset> Assets() {
  static const Asset kAssets[] = {
${entries}  };
  return kAssets;
}

}  // namespace softlookup::console
")
