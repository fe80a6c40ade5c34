# Debian 12's packages, or newer ones. Debian's gRPC and cpp-httplib bring pkg-config files only, so
# those two are looked up both ways and end in the same target names.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
include(SoftlookupGrpc)

if(SOFTLOOKUP_BUILD_SERVER)
  find_package(hwy REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(httplib CONFIG QUIET)
  if(NOT TARGET httplib::httplib)
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
    add_library(httplib::httplib ALIAS PkgConfig::HTTPLIB)
  endif()
endif()

if(SOFTLOOKUP_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
