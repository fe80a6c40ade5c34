# Sets SOFTLOOKUP_COMMIT to the commit that is built, which --version names: to
# SOFTLOOKUP_SOURCE_COMMIT, or else to what git says. Empty if neither knows it.
set(SOFTLOOKUP_SOURCE_COMMIT "" CACHE STRING "Commit of the sources, where git cannot tell")
set(SOFTLOOKUP_COMMIT "${SOFTLOOKUP_SOURCE_COMMIT}")
# Sources that are copied into another repository are of none of its commits.
if(NOT SOFTLOOKUP_COMMIT AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --short=12 HEAD
    OUTPUT_VARIABLE SOFTLOOKUP_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --absolute-git-dir
    OUTPUT_VARIABLE git_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # A line is added to this file whenever another commit is checked out or made.
  if(git_dir AND EXISTS "${git_dir}/logs/HEAD")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${git_dir}/logs/HEAD")
  endif()
endif()

# softlookup_name_version(SOURCE): defines SOFTLOOKUP_VERSION_TEXT in a source of the current folder,
# such as "0.2.0 (0123456789ab)". The source is small or alone, because each commit compiles it anew.
function(softlookup_name_version source)
  set(text "${PROJECT_VERSION}")
  if(SOFTLOOKUP_COMMIT)
    string(APPEND text " (${SOFTLOOKUP_COMMIT})")
  endif()
  set_source_files_properties("${source}" PROPERTIES
    COMPILE_DEFINITIONS "SOFTLOOKUP_VERSION_TEXT=\"${text}\"" SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON)
endfunction()
