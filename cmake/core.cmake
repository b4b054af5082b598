# The host: one static library of every core/<area>/*.cpp, the program over it, and a test executable an area.
# A file's name says what it is: *_test.cpp and *_bench.cpp belong to their executables, *_fuzz.cpp to none here.

if(TENON_CORE_AREAS)
  set(areas ${TENON_CORE_AREAS})
else()
  file(GLOB areas CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/core" "${PROJECT_SOURCE_DIR}/core/*")
endif()

set(core_sources "")
set(core_areas "")
foreach(area IN LISTS areas)
  if(NOT IS_DIRECTORY "${PROJECT_SOURCE_DIR}/core/${area}")
    continue()
  endif()
  list(APPEND core_areas "${area}")
  if(NOT area STREQUAL "cli")
    file(GLOB area_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/${area}/*.cpp")
    list(FILTER area_sources EXCLUDE REGEX "_(test|bench|fuzz|main)\\.cpp$")
    list(APPEND core_sources ${area_sources})
  endif()
endforeach()

if(core_sources)
  add_library(tenon_core STATIC ${core_sources})
  # `#include "core/graph/graph.hpp"`: only those who link tenon_core see the repository's root.
  target_include_directories(tenon_core PUBLIC "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(tenon_core PUBLIC BOOST_DLL_USE_STD_FS
                                        PRIVATE "TENON_VERSION_STRING=\"${PROJECT_VERSION}\"")
  target_link_libraries(tenon_core
    PUBLIC Tenon::plugin_api Boost::headers nlohmann_json::nlohmann_json spdlog::spdlog fmt::fmt Threads::Threads
           ${CMAKE_DL_LIBS}
    PRIVATE tenon_warnings)
endif()

foreach(area IN LISTS core_areas)
  if(NOT core_sources)
    break()
  endif()
  file(GLOB area_tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/${area}/*_test.cpp")
  if(BUILD_TESTING AND area_tests AND NOT area STREQUAL "cli")
    set(threads)
    if(area STREQUAL "runtime" OR area STREQUAL "pipeline")
      set(threads concurrent)
    endif()
    tenon_add_test("test_core_${area}" SOURCES ${area_tests} LIBS tenon_core LABELS core "${area}" ${threads})
  endif()

  file(GLOB area_benches CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/${area}/*_bench.cpp")
  if(area_benches AND TARGET benchmark::benchmark_main)
    add_executable("bench_core_${area}" EXCLUDE_FROM_ALL ${area_benches})
    target_link_libraries("bench_core_${area}" PRIVATE tenon_core benchmark::benchmark_main tenon_warnings)
  endif()
endforeach()

# The scan helper is a program of its own: the host starts it (posix_spawn), it never forks itself.
if(core_sources AND EXISTS "${PROJECT_SOURCE_DIR}/core/plugin/scan_main.cpp")
  add_executable(tenon-scan "${PROJECT_SOURCE_DIR}/core/plugin/scan_main.cpp")
  target_link_libraries(tenon-scan PRIVATE tenon_core tenon_warnings)
  set_target_properties(tenon-scan PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TENON_LIBEXEC_OUTPUT_DIRECTORY}")
endif()

file(GLOB cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/cli/*.cpp")
file(GLOB cli_tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/cli/*_test.cpp")
list(FILTER cli_sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$")
if(core_sources AND cli_sources AND "cli" IN_LIST core_areas)
  add_executable(tenon ${cli_sources})
  target_link_libraries(tenon PRIVATE tenon_core CLI11::CLI11 tenon_warnings)
  if(TARGET tenon-scan)
    add_dependencies(tenon tenon-scan)
  endif()
  if(BUILD_TESTING AND cli_tests)
    # The verbs without main(): a test calls them as functions.
    list(FILTER cli_sources EXCLUDE REGEX "/(main|[a-z_]+_main)\\.cpp$")
    tenon_add_test(test_core_cli SOURCES ${cli_tests} ${cli_sources} LIBS tenon_core CLI11::CLI11 LABELS core cli)
  endif()
endif()
