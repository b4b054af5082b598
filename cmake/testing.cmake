# tenon_add_test(<name> SOURCES <file>... [LIBS <target>...] [INCLUDES <folder>...] [LABELS <label>...])
#   builds a Catch2 executable <name> and registers it with CTest. The label `concurrent` is for tests of what runs in
#   threads: they run under ThreadSanitizer too.
# tenon_configure_test(<ctest name>) gives a test made with add_test the environment every test here has.

if(NOT BUILD_TESTING)
  return()
endif()
enable_testing()

# Assertion macros take a quarter longer at -O2 and run no faster. What is under test keeps its own flags.
set(TENON_TEST_COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")

# Catch2's main takes longer to compile than most tests, so it is compiled once. test_paths.cpp is here so that
# one object, not every test, depends on where the tree lies.
add_library(tenon_test_main OBJECT
            "${PROJECT_SOURCE_DIR}/tests/support/catch_main.cpp" "${PROJECT_SOURCE_DIR}/tests/support/test_paths.cpp")
add_library(Tenon::test_main ALIAS tenon_test_main)
target_link_libraries(tenon_test_main PUBLIC Catch2::Catch2 PRIVATE tenon_warnings)
target_include_directories(tenon_test_main PUBLIC "${PROJECT_SOURCE_DIR}/tests/support")
target_compile_options(tenon_test_main PRIVATE ${TENON_TEST_COMPILE_OPTIONS})
set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/support/test_paths.cpp" PROPERTIES COMPILE_DEFINITIONS
  "TENON_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";TENON_BINARY_DIR=\"${PROJECT_BINARY_DIR}\"")

function(tenon_configure_test name)
  # intercept_tls_get_addr: the leak checker, looking for the blocks of thread_local variables of libraries opened later,
  # now and then reads beside them and ends the test ("Tracer caught signal 11").
  set_property(TEST "${name}" APPEND PROPERTY ENVIRONMENT
    "ASAN_OPTIONS=detect_stack_use_after_return=0:allocator_may_return_null=1:intercept_tls_get_addr=0"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:ignore_noninstrumented_modules=1")
  if(TENON_SANITIZE)  # libraries many times their size, in child processes of a machine that does other things too
    set_property(TEST "${name}" APPEND PROPERTY ENVIRONMENT "TENON_SCAN_TIMEOUT_MS=120000")
  endif()
  get_test_property("${name}" TIMEOUT timeout)
  if(NOT timeout)
    set_property(TEST "${name}" PROPERTY TIMEOUT 600)
  endif()
endfunction()

function(tenon_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;INCLUDES;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_test(${name}): unknown arguments '${arg_UNPARSED_ARGUMENTS}'; expected SOURCES, "
                        "LIBS, INCLUDES, LABELS")
  endif()
  add_executable("${name}" ${arg_SOURCES})
  target_link_libraries("${name}" PRIVATE ${arg_LIBS} Tenon::test_main tenon_warnings)
  target_include_directories("${name}" PRIVATE ${arg_INCLUDES})
  target_compile_options("${name}" PRIVATE ${TENON_TEST_COMPILE_OPTIONS})
  set_target_properties("${name}" PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TENON_TEST_OUTPUT_DIRECTORY}")
  add_test(NAME "${name}" COMMAND "${name}")
  tenon_configure_test("${name}")
  if(arg_LABELS)
    set_property(TEST "${name}" APPEND PROPERTY LABELS ${arg_LABELS})
  endif()
  if("concurrent" IN_LIST arg_LABELS)
    set_property(GLOBAL APPEND PROPERTY TENON_CONCURRENT_TESTS "${name}")
  endif()
endfunction()
