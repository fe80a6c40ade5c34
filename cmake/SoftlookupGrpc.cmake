# gRPC::grpc++ and gRPC::grpc++_reflection, from gRPC's CMake package or from pkg-config. Installed
# beside softlookupConfig.cmake, which needs the same.
find_package(gRPC CONFIG QUIET)
if(NOT TARGET gRPC::grpc++)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(GRPCXX REQUIRED IMPORTED_TARGET GLOBAL grpc++>=1.51)
  add_library(gRPC::grpc++ INTERFACE IMPORTED GLOBAL)
  target_link_libraries(gRPC::grpc++ INTERFACE PkgConfig::GRPCXX)
  find_library(GRPCXX_REFLECTION_LIBRARY NAMES grpc++_reflection)
  if(GRPCXX_REFLECTION_LIBRARY)
    add_library(gRPC::grpc++_reflection INTERFACE IMPORTED GLOBAL)
    # Its registration is a static initialiser that nothing else refers to.
    target_link_libraries(gRPC::grpc++_reflection INTERFACE
      -Wl,--no-as-needed ${GRPCXX_REFLECTION_LIBRARY} -Wl,--as-needed PkgConfig::GRPCXX)
  endif()
endif()
