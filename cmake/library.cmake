# libtenon: the host for programs that embed it. The same core as the program's, inside one shared library that exports
# the C interface and nothing else.

if(NOT TARGET tenon_core OR NOT IS_DIRECTORY "${PROJECT_SOURCE_DIR}/lib" OR TENON_CORE_AREAS)
  return()
endif()

file(GLOB library_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/lib/*.cpp")
list(FILTER library_sources EXCLUDE REGEX "_test\\.cpp$")
add_library(tenon_library SHARED ${library_sources})
add_library(Tenon::tenon ALIAS tenon_library)
target_include_directories(tenon_library
  PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/include>" "$<INSTALL_INTERFACE:include>")
target_link_libraries(tenon_library PUBLIC Tenon::plugin_api PRIVATE tenon_core tenon_warnings)
set_target_properties(tenon_library PROPERTIES
  OUTPUT_NAME tenon EXPORT_NAME tenon VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}"
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib" INSTALL_RPATH "$ORIGIN"
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/lib/exports.map")
target_link_options(tenon_library PRIVATE
  "-Wl,--version-script=${PROJECT_SOURCE_DIR}/lib/exports.map" "-Wl,--exclude-libs,ALL"
  # Plugins are never unmapped and hold pointers into the host, so the host is not either.
  "-Wl,-z,nodelete")
if(NOT TENON_SANITIZE)
  target_link_options(tenon_library PRIVATE "-Wl,-z,defs")
endif()
if(TARGET tenon-scan)
  add_dependencies(tenon_library tenon-scan)
endif()

if(BUILD_TESTING)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  tenon_add_test(test_embed SOURCES "${PROJECT_SOURCE_DIR}/lib/embed_test.cpp" LIBS Tenon::tenon
                 LABELS library concurrent)
  target_compile_definitions(test_embed PRIVATE "TENON_PROJECT_VERSION=\"${PROJECT_VERSION}\"")
  add_test(NAME libtenon_exports
           COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/cmake/check_exports.py" --nm "${CMAKE_NM}"
                   --header "${PROJECT_SOURCE_DIR}/lib/include/tenon/tenon.h" "$<TARGET_FILE:tenon_library>")
  # The headers as programs compile them: the C one as C11 and as C++, the C++ one as C++17 and C++20.
  foreach(check "c:11:tenon.h" "cpp:17:tenon.h" "cpp:17:tenon.hpp" "cpp:20:tenon.hpp")
    string(REPLACE ":" ";" check "${check}")
    list(GET check 0 ending)
    list(GET check 1 standard)
    list(GET check 2 header)
    string(MAKE_C_IDENTIFIER "library_${header}_${standard}" name)
    set(unit "${PROJECT_BINARY_DIR}/header_checks/${name}.${ending}")
    file(CONFIGURE OUTPUT "${unit}" @ONLY
         CONTENT "#include <tenon/${header}>\n#include <tenon/${header}>\ntypedef int tenon_header_check;\n")
    add_library("tenon_header_check_${name}_${ending}" OBJECT "${unit}")
    target_link_libraries("tenon_header_check_${name}_${ending}" PRIVATE Tenon::plugin_api tenon_warnings)
    target_include_directories("tenon_header_check_${name}_${ending}" PRIVATE "${PROJECT_SOURCE_DIR}/lib/include")
    target_compile_options("tenon_header_check_${name}_${ending}" PRIVATE -Wpedantic)
    if(ending STREQUAL "c")
      set_target_properties("tenon_header_check_${name}_${ending}" PROPERTIES C_STANDARD "${standard}")
    else()
      set_target_properties("tenon_header_check_${name}_${ending}" PROPERTIES CXX_STANDARD "${standard}")
    endif()
  endforeach()
endif()
