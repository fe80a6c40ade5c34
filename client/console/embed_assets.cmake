# Writes OUTPUT, a C++ source with the bytes of the console's pages:
#   cmake -DPAGES_DIR=... -DOUTPUT=... -P embed_assets.cmake
set(arrays "")
set(entries "")

# embed(FILE PATH TYPE): PATH is that of the URL.
macro(embed file path type)
  file(READ "${PAGES_DIR}/${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(MAKE_C_IDENTIFIER "${file}" name)
  string(APPEND arrays "constexpr unsigned char k_${name}[] = {${bytes}};\n")
  string(APPEND entries
    "      {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(k_${name}), sizeof(k_${name})}},\n")
endmacro()

embed(index.html / "text/html; charset=utf-8")
embed(app.js /app.js "text/javascript; charset=utf-8")
embed(app.css /app.css "text/css; charset=utf-8")
embed(icon.svg /icon.svg "image/svg+xml")
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
