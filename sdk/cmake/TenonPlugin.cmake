# tenon_add_plugin(<target> ID <com.acme.name>
#                  [NAME <short name>]     lib<short name>.so; the last part of ID when omitted
#                  [VERSION <x.y.z>]       the project's version when omitted
#                  [SOURCES <file>...]     every *.cpp of this folder and below that is no test when omitted
#                  [LIBS <target>...]      what the plugin links besides Tenon::sdk
#                  [INCLUDES <folder>...]  further private include folders
#                  [RULES <folder>]        fusion rules (*.json) that the plugin carries in itself: its sources see them
#                                          as `tenon_plugin_rules`, `#include "tenon_plugin_rules.hpp"`
#                  [TESTS <file>...])      Catch2 tests that may call the plugin's internals
#
# Builds the plugin as a module that exports one symbol and resolves all others at link time, writes its sidecar
# lib<name>.plugin.json beside it, and installs both into lib/tenon/plugins. The sources see TENON_PLUGIN_ID,
# TENON_PLUGIN_NAME and TENON_PLUGIN_VERSION as string literals. <target> is an ordinary CMake target: per-file
# flags and further options go on it as usual.
include_guard(GLOBAL)

function(tenon_add_plugin target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ID;NAME;VERSION;RULES" "SOURCES;LIBS;INCLUDES;TESTS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "tenon_add_plugin(${target}): cannot use '${arg_UNPARSED_ARGUMENTS}"
                        "${arg_KEYWORDS_MISSING_VALUES}'; expected ID, NAME, VERSION, SOURCES, LIBS, INCLUDES, RULES, "
                        "TESTS, each with a value")
  endif()
  if(NOT arg_ID MATCHES "^[a-z0-9_-]+(\\.[a-z0-9_-]+)+$")
    message(FATAL_ERROR "tenon_add_plugin(${target}): ID is '${arg_ID}'; expected a dotted lower-case name that you "
                        "own, such as com.acme.kernels")
  endif()
  if(NOT arg_NAME)
    string(REGEX REPLACE "^.*\\." "" arg_NAME "${arg_ID}")
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION "${PROJECT_VERSION}")
  endif()
  if(NOT arg_VERSION MATCHES "^[0-9]+\\.[0-9]+")
    message(FATAL_ERROR "tenon_add_plugin(${target}): VERSION is '${arg_VERSION}'; give VERSION 1.0.0 here or to "
                        "project()")
  endif()

  if(NOT arg_SOURCES)
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
    _tenon_drop_build_folder(arg_SOURCES)
    list(FILTER arg_SOURCES EXCLUDE REGEX "_(test|bench|fuzz)\\.cpp$")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "tenon_add_plugin(${target}): ${CMAKE_CURRENT_SOURCE_DIR} has no .cpp file; name SOURCES")
  endif()

  if(TENON_PLUGIN_OUTPUT_DIRECTORY)
    set(output "${TENON_PLUGIN_OUTPUT_DIRECTORY}")
  else()
    set(output "${CMAKE_CURRENT_BINARY_DIR}")
  endif()

  add_library("${target}" MODULE ${arg_SOURCES})
  target_link_libraries("${target}" PRIVATE Tenon::sdk ${arg_LIBS})
  if(TARGET tenon_warnings)
    target_link_libraries("${target}" PRIVATE tenon_warnings)
  endif()
  target_include_directories("${target}" PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" ${arg_INCLUDES})
  target_compile_definitions("${target}" PRIVATE "TENON_PLUGIN_ID=\"${arg_ID}\"" "TENON_PLUGIN_NAME=\"${arg_NAME}\""
                                                 "TENON_PLUGIN_VERSION=\"${arg_VERSION}\"")
  set_target_properties("${target}" PROPERTIES
    PREFIX lib SUFFIX .so OUTPUT_NAME "${arg_NAME}" LIBRARY_OUTPUT_DIRECTORY "${output}"
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

  # Unique symbols would bind two plugins to one another and pin both in memory.
  target_compile_options("${target}" PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>")
  set(exports "${CMAKE_CURRENT_BINARY_DIR}/${target}.exports.map")
  file(CONFIGURE OUTPUT "${exports}" CONTENT "{ global: tenon_plugin_entry; local: *; };\n" @ONLY)
  target_link_options("${target}" PRIVATE "-Wl,--version-script=${exports}" "-Wl,--exclude-libs,ALL")
  set_property(TARGET "${target}" APPEND PROPERTY LINK_DEPENDS "${exports}")
  # A sanitizer's runtime comes from the host's executable, so there undefined symbols are its business.
  if(NOT TENON_SANITIZE AND NOT "${CMAKE_CXX_FLAGS} ${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-fsanitize=")
    target_link_options("${target}" PRIVATE "-Wl,-z,defs")
  endif()

  set(sidecar "${output}/lib${arg_NAME}.plugin.json")
  if(TARGET Tenon::sidecar)
    add_custom_command(TARGET "${target}" POST_BUILD
      COMMAND Tenon::sidecar --expect-id "${arg_ID}" --expect-version "${arg_VERSION}" "$<TARGET_FILE:${target}>"
      BYPRODUCTS "${sidecar}"
      VERBATIM)
    install(FILES "${sidecar}" DESTINATION lib/tenon/plugins)
  endif()
  install(TARGETS "${target}" LIBRARY DESTINATION lib/tenon/plugins)
  set_property(GLOBAL APPEND PROPERTY TENON_PLUGIN_TARGETS "${target}")

  if(arg_RULES)
    _tenon_embed_rules("${target}" "${arg_RULES}" "${arg_NAME}")
  endif()

  if(BUILD_TESTING OR arg_TESTS)
    _tenon_add_plugin_test()
  endif()
endfunction()

# A build folder inside the plugin's own folder holds generated sources that are not the plugin's.
function(_tenon_drop_build_folder list_name)
  set(kept "")
  foreach(file IN LISTS ${list_name})
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR "${file}" in_build_folder)
    if(NOT file MATCHES "/CMakeFiles/" AND (NOT in_build_folder OR CMAKE_BINARY_DIR STREQUAL CMAKE_SOURCE_DIR))
      list(APPEND kept "${file}")
    endif()
  endforeach()
  set(${list_name} "${kept}" PARENT_SCOPE)
endfunction()

# Writes tenon_plugin_rules.hpp: every rule file of the folder as a tn_rule_source (tenon/abi/rules.h).
function(_tenon_embed_rules target folder name)
  get_filename_component(folder "${folder}" ABSOLUTE)
  file(GLOB rule_files CONFIGURE_DEPENDS "${folder}/*.json")
  if(NOT rule_files)
    message(FATAL_ERROR "tenon_add_plugin(${target}): RULES folder '${folder}' has no *.json file")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${rule_files})
  set(texts "")
  set(table "")
  set(number 0)
  foreach(rule_file IN LISTS rule_files)
    get_filename_component(file_name "${rule_file}" NAME)
    file(READ "${rule_file}" text)
    string(APPEND texts "inline constexpr char tenon_plugin_rule_${number}[] = R\"tenonrule(${text})tenonrule\";\n")
    set(path "plugin ${name}: ${file_name}")
    string(LENGTH "${path}" path_length)
    string(APPEND table "    {{\"${path}\", ${path_length}}, "
                        "{tenon_plugin_rule_${number}, sizeof tenon_plugin_rule_${number} - 1}, 0, 0},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  set(header "${CMAKE_CURRENT_BINARY_DIR}/${target}_rules/tenon_plugin_rules.hpp")
  set(content
"// Generated from the plugin's rule files.
#pragma once
#include <tenon/abi/rules.h>

${texts}
inline constexpr tn_rule_source tenon_plugin_rules[] = {
${table}};
")
  set(previous "")
  if(EXISTS "${header}")
    file(READ "${header}" previous)
  endif()
  if(NOT previous STREQUAL content)  # an unchanged header compiles nothing again
    file(WRITE "${header}" "${content}")
  endif()
  target_include_directories("${target}" PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${target}_rules")
endfunction()

# The tests link the plugin's own objects, compiled once, so they may call what the plugin does not export.
macro(_tenon_add_plugin_test)
  if(NOT arg_TESTS)
    file(GLOB_RECURSE arg_TESTS CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp")
    _tenon_drop_build_folder(arg_TESTS)
  endif()
  if(arg_TESTS AND BUILD_TESTING)
    if(NOT TARGET Tenon::test_main)
      message(FATAL_ERROR "tenon_add_plugin(${target}): TESTS need a target Tenon::test_main that brings Catch2 and "
                          "its main(); define it, or configure with -DBUILD_TESTING=OFF")
    endif()
    set(test "test_plugin_${arg_NAME}")
    add_executable("${test}" ${arg_TESTS} "$<TARGET_OBJECTS:${target}>")
    target_link_libraries("${test}" PRIVATE Tenon::sdk ${arg_LIBS} Tenon::test_main)
    if(TARGET tenon_warnings)
      target_link_libraries("${test}" PRIVATE tenon_warnings)
    endif()
    target_include_directories("${test}" PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" ${arg_INCLUDES})
    target_compile_options("${test}" PRIVATE ${TENON_TEST_COMPILE_OPTIONS})
    if(TENON_TEST_OUTPUT_DIRECTORY)
      set_target_properties("${test}" PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${TENON_TEST_OUTPUT_DIRECTORY}")
    endif()
    add_test(NAME "${test}" COMMAND "${test}")
    set_property(TEST "${test}" PROPERTY LABELS plugin "${arg_NAME}")
    if(COMMAND tenon_configure_test)
      tenon_configure_test("${test}")
    endif()
  endif()
endmacro()
