# Warnings and sanitizers, the same for every target of ours.
add_library(conductor_flags INTERFACE)
target_compile_options(conductor_flags INTERFACE -Wall -Wextra -Werror -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these two inside libstdc++ at -O2 and above.
  target_compile_options(conductor_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
  if(CONDUCTOR_SANITIZER)
    # Instrumented inlining makes it call a string's inner buffer too small for what is on the heap.
    target_compile_options(conductor_flags INTERFACE -Wno-array-bounds)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(conductor_flags INTERFACE -Wthread-safety)
endif()
# Paths from the root of the tree: "src/result.h" shows the floor of every include.
target_include_directories(conductor_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)

if(NOT CONDUCTOR_SANITIZER STREQUAL "")
  add_compile_definitions(CONDUCTOR_INSTRUMENTED)
endif()
if(CONDUCTOR_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=address,undefined)
elseif(CONDUCTOR_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -g1)
  add_link_options(-fsanitize=thread
                   -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/hide_symbols.map)
elseif(NOT CONDUCTOR_SANITIZER STREQUAL "")
  message(FATAL_ERROR "CONDUCTOR_SANITIZER: expected '', address or thread, got '${CONDUCTOR_SANITIZER}'")
endif()

if(CONDUCTOR_FUZZ)
  # Coverage for libFuzzer in every library; only the fuzzers themselves link its main.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# conductor_library(NAME sources... LINK libs...): a static library of one folder.
function(conductor_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC conductor_flags ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# conductor_test(NAME SOURCES ... LINK ...): one test binary per folder, one ctest entry per case.
function(conductor_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(CONDUCTOR_SANITIZER)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE conductor_flags ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE CONDUCTOR_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             CONDUCTOR_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
