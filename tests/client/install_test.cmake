# Installs the build in BUILD_DIR to a prefix of its own and builds EXAMPLE_DIR against it, with
# nothing from this source tree in reach.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed (${result}):\n${output}")
  endif()
endfunction()

set(prefix "${WORK_DIR}/prefix")
set(example_build "${WORK_DIR}/build")
file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}" --config "${CONFIG}")

run("${CMAKE_COMMAND}" -S "${EXAMPLE_DIR}" -B "${example_build}" -G "${GENERATOR}"
  "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${CMAKE_COMMAND}" --build "${example_build}")

# Nobody listens on port 1: the example must say so and fail.
execute_process(COMMAND "${example_build}/soft_lookup" 127.0.0.1:1
  RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 1 OR NOT errors MATCHES "UNAVAILABLE")
  message(FATAL_ERROR "the example without a server exits with ${result} and says: ${errors}")
endif()
run("${prefix}/bin/softlookup" --version)
