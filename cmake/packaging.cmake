# cmake --install: a tree that can be moved as a whole, and the package that vendors build plugins with.

include(CMakePackageConfigHelpers)

if(TARGET tenon)
  install(TARGETS tenon RUNTIME DESTINATION bin)
endif()
if(TARGET tenon-scan)
  install(TARGETS tenon-scan RUNTIME DESTINATION libexec/tenon)
endif()
set(sdk_targets tenon_plugin_api tenon_sdk)
if(TARGET tenon-sidecar)
  list(APPEND sdk_targets tenon-sidecar)
endif()
install(TARGETS ${sdk_targets} EXPORT TenonTargets RUNTIME DESTINATION bin)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION lib/cmake/Tenon)

foreach(headers plugin_api/include sdk/include)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${headers}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${headers}/" DESTINATION include
            FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  endif()
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/sdk/cmake/TenonConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/TenonConfig.cmake" INSTALL_DESTINATION lib/cmake/Tenon)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TenonConfig.cmake" "${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/sdk/cmake/TenonPlugin.cmake" DESTINATION lib/cmake/Tenon)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION share/doc/tenon)
