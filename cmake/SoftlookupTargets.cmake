# How targets are declared here: one library a folder, a test program or a few a folder, one binary folder.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
# -O2 without -DNDEBUG: an assertion that holds costs nothing next to a scan.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
# Debug builds: core/ adds -O1, as scans without it take minutes; nothing else is worth its compile time.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

add_library(softlookup_build_flags INTERFACE)
target_compile_options(softlookup_build_flags INTERFACE -Wall -Wextra -Wno-unused-parameter
  -Wno-missing-field-initializers)
# Checks that take time are for builds that are slow anyway (core/base/check.h).
target_compile_definitions(softlookup_build_flags INTERFACE $<$<CONFIG:Debug>:SOFTLOOKUP_DCHECKS>)
# Results must not depend on which products the compiler happens to fuse.
target_compile_options(softlookup_build_flags INTERFACE -ffp-contract=off)

if(SOFTLOOKUP_SANITIZE)
  # A null pointer ends in a report all the same, and Debian's libraries have no types to compare;
  # those two checks double the time to compile.
  add_compile_options(-fsanitize=${SOFTLOOKUP_SANITIZE} -fno-sanitize=null,vptr -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SOFTLOOKUP_SANITIZE})
endif()
find_program(SOFTLOOKUP_LLD NAMES ld.lld)
if(SOFTLOOKUP_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# softlookup_library(NAME SOURCES ... [PUBLIC targets ...] [PRIVATE targets ...])
# Declares softlookup_NAME with the alias softlookup::NAME. Headers are included as seen from the
# root of the tree.
function(softlookup_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(softlookup_${name} STATIC ${ARG_SOURCES})
  add_library(softlookup::${name} ALIAS softlookup_${name})
  set_target_properties(softlookup_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(softlookup_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(softlookup_${name} PUBLIC ${ARG_PUBLIC}
    PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:softlookup_build_flags>)
endfunction()

# softlookup_inner_proto(NAME PROTOCOL): makes softlookup::NAME_proto of NAME/NAME.proto in the current
# folder. These protocols stay out of proto/ and its library: clients do not speak them.
function(softlookup_inner_proto name protocol)
  set(generated_dir "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(proto "${CMAKE_CURRENT_SOURCE_DIR}/${name}/${name}.proto")
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  set(stem "${generated_dir}/${folder}/${name}")
  file(MAKE_DIRECTORY "${generated_dir}")
  set(sources "${stem}.pb.cc" "${stem}.pb.h" "${stem}.grpc.pb.cc" "${stem}.grpc.pb.h")
  add_custom_command(
    OUTPUT ${sources}
    COMMAND protobuf::protoc -I "${PROJECT_SOURCE_DIR}" -I "${PROJECT_SOURCE_DIR}/proto" --cpp_out "${generated_dir}"
      --grpc_out "${generated_dir}" "--plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN}" "${proto}"
    DEPENDS "${proto}"
    COMMENT "Generating the protocol of ${protocol}"
    VERBATIM)
  add_library(softlookup_${name}_proto STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(softlookup::${name}_proto ALIAS softlookup_${name}_proto)
  set_target_properties(softlookup_${name}_proto PROPERTIES UNITY_BUILD OFF)
  target_include_directories(softlookup_${name}_proto SYSTEM PUBLIC "${generated_dir}")
  target_link_libraries(softlookup_${name}_proto PUBLIC gRPC::grpc++ protobuf::libprotobuf ${ARGN})
endfunction()

# Every program that is built for tsan gets what tells it of Debian's Abseil and gRPC.
function(softlookup_tell_tsan program)
  if(SOFTLOOKUP_SANITIZE MATCHES "thread")
    target_sources(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests/testing/tsan_absl_mutex.cc"
      "${PROJECT_SOURCE_DIR}/tests/testing/tsan_grpc.cc")
  endif()
endfunction()

# softlookup_test(NAME SOURCES ... DEPENDS targets ... [LABELS ...] [SHARDS count] [TIMEOUT seconds]
#   [COST seconds] [ENVIRONMENT ...])
# Every TEST becomes a ctest of its own, found on the machine that runs it. With SHARDS, the program
# becomes `count` ctests instead, NAME.1 and so on, each a process that runs its part of all TESTs:
# for hundreds of tests that take less time than a process takes to start. ENVIRONMENT entries reach
# the test as NAME=VALUE. Tests of a larger COST start before others. The target LABEL_tests builds all
# tests of a label.
function(softlookup_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS;COST" "SOURCES;DEPENDS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
    if(SOFTLOOKUP_SANITIZE)
      set(ARG_TIMEOUT 600)
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  softlookup_tell_tsan(${name})
  foreach(label IN LISTS ARG_LABELS)
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${name})
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} softlookup::random GTest::gmock
    GTest::gtest_main softlookup_build_flags)
  # A test's time is what it calls, not its own code, which compiles a quarter faster without
  # optimization.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0> -pthread)
  target_precompile_headers(${name} REUSE_FROM softlookup_test_headers)
  set(cost)
  if(ARG_COST)
    set(cost COST ${ARG_COST})
  endif()
  if(ARG_SHARDS)
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}.${shard} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index};${ARG_ENVIRONMENT}"
        ${cost})
    endforeach()
    return()
  endif()
  # Listing them takes a busy machine a while, above all under a sanitizer.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ENVIRONMENT "${ARG_ENVIRONMENT}" ${cost})
endfunction()
