# The version and commit that /version, --version and the log header report.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE CONDUCTOR_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT CONDUCTOR_COMMIT)
  set(CONDUCTOR_COMMIT "unknown")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/generated/conductor_version.h @ONLY)
