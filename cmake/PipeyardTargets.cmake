# pipeyard_library(NAME SOURCES a.cc ... [DEPS target ...] [NO_EXCEPTIONS])
# pipeyard_program(NAME SOURCES main.cc ... [DEPS target ...])      -> ${CMAKE_BINARY_DIR}/bin/NAME
# pipeyard_test(NAME SOURCES a_test.cc ... [DEPS target ...] [LABELS label ...] [TIMEOUT seconds] [PURE])
#   One program a room; each TEST is one ctest. Every *_test.cc of the tree must be named in one of these, else configuring fails.
#   PURE: of functions without threads, shared memory or state: not built for ThreadSanitizer, which has nothing to see there.
# pipeyard_fuzzer(NAME SOURCES a_fuzz.cc ... DEPS target ... RUNS n MAX_LENGTH bytes)
#   With PIPEYARD_FUZZ only: a libFuzzer program and a ctest of n runs from the committed corpus (the folder's corpus/), always with the same seed,
#   or with PIPEYARD_SEED. New inputs are kept in ${CMAKE_BINARY_DIR}/corpus/NAME: copy those worth keeping.
#
# Sources are listed by name: no GLOB.

add_library(pipeyard_options INTERFACE)
target_compile_options(pipeyard_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
target_include_directories(pipeyard_options INTERFACE ${CMAKE_SOURCE_DIR})
if(PIPEYARD_SANITIZE)
  target_compile_options(pipeyard_options INTERFACE -fsanitize=${PIPEYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(pipeyard_options INTERFACE -fsanitize=${PIPEYARD_SANITIZE})
endif()
if(PIPEYARD_SANITIZE MATCHES "thread")
  # protobuf's map_field.h gives its maps two more members under this macro, which Debian's library was built without.
  target_compile_options(pipeyard_options INTERFACE -U__SANITIZE_THREAD__)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pipeyard_options INTERFACE -Wno-unused-command-line-argument)
  if(NOT PIPEYARD_FUZZ)
    target_compile_options(pipeyard_options INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:PIPEYARD_IGNORES_LOCKS>>>:-Wthread-safety>)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 at -O3 (a Release build without a preset) warns of overlap in libstdc++'s own std::string that cannot be:
  # gcc.gnu.org/PR105651, mended in 13.
  target_compile_options(pipeyard_options INTERFACE -Wno-restrict)
endif()
find_program(MOLD mold)
if(MOLD)
  target_link_options(pipeyard_options INTERFACE -fuse-ld=mold)
endif()

function(pipeyard_library name)
  cmake_parse_arguments(ARG "NO_EXCEPTIONS" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC pipeyard_options ${ARG_DEPS})
  if(ARG_NO_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fno-exceptions)
  endif()
endfunction()

function(pipeyard_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pipeyard_options ${ARG_DEPS})
endfunction()

function(pipeyard_test name)
  if(NOT PIPEYARD_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "PURE" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  foreach(source ${ARG_SOURCES})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    set_property(GLOBAL APPEND PROPERTY PIPEYARD_TEST_SOURCES ${source})
  endforeach()
  if(ARG_PURE AND PIPEYARD_SANITIZE MATCHES "thread")
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE pipeyard_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  # Tests look into what only the holder of a lock may.
  set_target_properties(${name} PROPERTIES PIPEYARD_IGNORES_LOCKS ON)
  if(PIPEYARD_SANITIZE MATCHES "address")
    target_compile_options(${name} PRIVATE -O0)  # most of this build's time would go into optimizing tests
  endif()
  target_compile_definitions(${name} PRIVATE PIPEYARD_SOURCE_DIR="${CMAKE_SOURCE_DIR}" PIPEYARD_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABELS)
    list(APPEND properties LABELS ${ARG_LABELS})
  endif()
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}. PROPERTIES ${properties})
endfunction()

function(pipeyard_fuzzer name)
  if(NOT PIPEYARD_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "RUNS;MAX_LENGTH" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pipeyard_options ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
  set(found ${CMAKE_BINARY_DIR}/corpus/${name})
  add_test(NAME fuzz.${name}
    COMMAND sh -c "rm -rf ${found} && mkdir -p ${found} && exec $<TARGET_FILE:${name}> -runs=${ARG_RUNS} -max_len=${ARG_MAX_LENGTH} \
-seed=\${PIPEYARD_SEED:-1} -timeout=60 -artifact_prefix=${found}- ${found} ${CMAKE_CURRENT_SOURCE_DIR}/corpus")
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 600)
endfunction()

# Fails the configure step when a *_test.cc of the tree is in no pipeyard_test().
function(pipeyard_check_tests_registered)
  if(NOT PIPEYARD_BUILD_TESTS OR NOT PIPEYARD_BUILD_GRPC)
    return()
  endif()
  get_property(registered GLOBAL PROPERTY PIPEYARD_TEST_SOURCES)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/base/*_test.cc ${CMAKE_SOURCE_DIR}/proto/*_test.cc ${CMAKE_SOURCE_DIR}/workloads/*_test.cc
    ${CMAKE_SOURCE_DIR}/storage/*_test.cc ${CMAKE_SOURCE_DIR}/agent/*_test.cc ${CMAKE_SOURCE_DIR}/controller/*_test.cc
    ${CMAKE_SOURCE_DIR}/tests/*_test.cc)
  foreach(test ${found})
    if(NOT test IN_LIST registered)
      message(SEND_ERROR "${test} is in no pipeyard_test(): it would never run. Add it to the CMakeLists.txt of its folder.")
    endif()
  endforeach()
endfunction()
