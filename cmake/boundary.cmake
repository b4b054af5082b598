# The boundary (C headers), the header-only SDK over it, and the tool that writes a plugin's sidecar.

add_library(tenon_plugin_api INTERFACE)
add_library(Tenon::plugin_api ALIAS tenon_plugin_api)
target_include_directories(tenon_plugin_api INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/plugin_api/include>" "$<INSTALL_INTERFACE:include>")
target_compile_features(tenon_plugin_api INTERFACE c_std_11)
set_target_properties(tenon_plugin_api PROPERTIES EXPORT_NAME plugin_api)

add_library(tenon_sdk INTERFACE)
add_library(Tenon::sdk ALIAS tenon_sdk)
target_include_directories(tenon_sdk INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sdk/include>" "$<INSTALL_INTERFACE:include>")
target_link_libraries(tenon_sdk INTERFACE tenon_plugin_api)
target_compile_features(tenon_sdk INTERFACE cxx_std_17)
set_target_properties(tenon_sdk PROPERTIES EXPORT_NAME sdk)

if(EXISTS "${PROJECT_SOURCE_DIR}/sdk/tools/sidecar.cpp")
  add_executable(tenon-sidecar "${PROJECT_SOURCE_DIR}/sdk/tools/sidecar.cpp")
  add_executable(Tenon::sidecar ALIAS tenon-sidecar)
  target_link_libraries(tenon-sidecar PRIVATE Tenon::plugin_api tenon_warnings ${CMAKE_DL_LIBS})
  set_target_properties(tenon-sidecar PROPERTIES EXPORT_NAME sidecar CXX_STANDARD 17)
endif()

if(BUILD_TESTING)
  file(GLOB sdk_tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugin_api/*_test.c*"
       "${PROJECT_SOURCE_DIR}/sdk/include/tenon/sdk/*_test.cpp" "${PROJECT_SOURCE_DIR}/sdk/tests/*_test.cpp")
  if(sdk_tests)
    tenon_add_test(test_sdk SOURCES ${sdk_tests} LIBS Tenon::sdk LABELS sdk)
    # The SDK promises C++17 to vendors, so its own tests are compiled as that.
    set_target_properties(test_sdk PROPERTIES CXX_STANDARD 17)
  endif()
endif()

# Every boundary header compiles alone as C11, every SDK header alone as C++17: what vendors are promised.
if(BUILD_TESTING)
  set(header_checks "")
  file(GLOB abi_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/plugin_api/include"
       "${PROJECT_SOURCE_DIR}/plugin_api/include/tenon/abi/*.h")
  file(GLOB sdk_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/sdk/include"
       "${PROJECT_SOURCE_DIR}/sdk/include/tenon/sdk/*.hpp")
  foreach(header IN LISTS abi_headers sdk_headers)
    string(MAKE_C_IDENTIFIER "${header}" unit)
    if(header MATCHES "[.]hpp$")
      set(unit "${PROJECT_BINARY_DIR}/header_checks/${unit}.cpp")
    else()
      set(unit "${PROJECT_BINARY_DIR}/header_checks/${unit}.c")
    endif()
    # The second include sees to the include guard, the typedef to ISO C's wish for a unit that declares something.
    file(CONFIGURE OUTPUT "${unit}" @ONLY
         CONTENT "#include <${header}>\n#include <${header}>\ntypedef int tenon_header_check;\n")
    list(APPEND header_checks "${unit}")
  endforeach()
  if(header_checks)
    add_library(tenon_header_checks OBJECT ${header_checks})
    target_link_libraries(tenon_header_checks PRIVATE Tenon::sdk tenon_warnings)
    target_compile_options(tenon_header_checks PRIVATE -Wpedantic)
    set_target_properties(tenon_header_checks PROPERTIES C_STANDARD 11 CXX_STANDARD 17)
  endif()
endif()
