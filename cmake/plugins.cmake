# Every plugins/<name>/CMakeLists.txt and plugins/<kind>/<name>/CMakeLists.txt: a new plugin is a new folder.

file(GLOB plugin_lists CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/*/CMakeLists.txt"
     "${PROJECT_SOURCE_DIR}/plugins/*/*/CMakeLists.txt")
foreach(plugin_list IN LISTS plugin_lists)
  get_filename_component(plugin_folder "${plugin_list}" DIRECTORY)
  file(RELATIVE_PATH plugin_name "${PROJECT_SOURCE_DIR}/plugins" "${plugin_folder}")
  if(TENON_PLUGINS AND NOT plugin_name IN_LIST TENON_PLUGINS)
    continue()
  endif()
  add_subdirectory("${plugin_folder}")
endforeach()

# Proves that no plugin sees core/ and that each exports the one symbol and nothing else.
get_property(plugin_targets GLOBAL PROPERTY TENON_PLUGIN_TARGETS)
if(BUILD_TESTING AND plugin_targets)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_test(NAME no_private_door
           COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/cmake/check_no_private_door.py"
                   --source "${PROJECT_SOURCE_DIR}" --build "${PROJECT_BINARY_DIR}"
                   --plugins "${TENON_PLUGIN_OUTPUT_DIRECTORY}" --nm "${CMAKE_NM}")
endif()
