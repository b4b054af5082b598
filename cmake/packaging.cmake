# cmake --install: a tree that can be moved as a whole; the CMake and pkg-config packages that plugins and embedding
# programs are built with; and, through CPack, .deb and .tar.gz. What runs is the component `runtime` (the default of
# every install rule), what one builds with is `development`: two Debian packages, one archive.

include(CMakePackageConfigHelpers)

if(TARGET tenon)
  install(TARGETS tenon RUNTIME DESTINATION bin)
endif()
if(TARGET tenon-scan)
  install(TARGETS tenon-scan RUNTIME DESTINATION libexec/tenon)
endif()
if(TARGET tenon AND NOT CMAKE_CROSSCOMPILING)
  # The program writes its own manual pages.
  set(man_folder "${CMAKE_BINARY_DIR}/share/man/man1")
  add_custom_command(OUTPUT "${man_folder}/tenon.1"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${man_folder}"
    # What a sanitized build leaves allocated at its end is no matter here.
    COMMAND "${CMAKE_COMMAND}" -E env ASAN_OPTIONS=detect_leaks=0 "$<TARGET_FILE:tenon>" --write-man-pages "${man_folder}"
    DEPENDS tenon VERBATIM)
  add_custom_target(man_pages ALL DEPENDS "${man_folder}/tenon.1")
  install(DIRECTORY "${man_folder}/" DESTINATION share/man/man1)
endif()
# Which version the rules and schemas beside it belong to, for `tenon doctor`.
file(CONFIGURE OUTPUT "${TENON_SHARE_OUTPUT_DIRECTORY}/VERSION" CONTENT "${PROJECT_VERSION}\n")
install(FILES "${TENON_SHARE_OUTPUT_DIRECTORY}/VERSION" DESTINATION share/tenon)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION share/doc/tenon)
# Debian's name for it.
install(FILES "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION share/doc/tenon RENAME copyright)
install(FILES "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION share/doc/tenon-dev RENAME copyright COMPONENT development)

# --- what one builds with: a set of targets for each component of find_package(Tenon)
set(cmake_package lib/cmake/Tenon)
install(TARGETS tenon_plugin_api EXPORT TenonTargets)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION "${cmake_package}" COMPONENT development)
set(sdk_targets tenon_sdk)
if(TARGET tenon-sidecar)
  list(APPEND sdk_targets tenon-sidecar)
endif()
install(TARGETS ${sdk_targets} EXPORT TenonSDKTargets RUNTIME DESTINATION bin COMPONENT development)
install(EXPORT TenonSDKTargets NAMESPACE Tenon:: DESTINATION "${cmake_package}" COMPONENT development)
set(header_folders plugin_api/include sdk/include)
set(pkgconfig_files tenon-sdk.pc)
if(TARGET tenon_library)
  install(TARGETS tenon_library EXPORT TenonRuntimeTargets
          LIBRARY DESTINATION lib NAMELINK_COMPONENT development)
  install(EXPORT TenonRuntimeTargets NAMESPACE Tenon:: DESTINATION "${cmake_package}" COMPONENT development)
  list(APPEND header_folders lib/include)
  list(APPEND pkgconfig_files tenon.pc)
endif()
foreach(headers IN LISTS header_folders)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${headers}/" DESTINATION include COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endforeach()
configure_package_config_file("${PROJECT_SOURCE_DIR}/sdk/cmake/TenonConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/TenonConfig.cmake" INSTALL_DESTINATION "${cmake_package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TenonConfig.cmake" "${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/sdk/cmake/TenonPlugin.cmake"
        DESTINATION "${cmake_package}" COMPONENT development)
foreach(file IN LISTS pkgconfig_files)
  configure_file("${PROJECT_SOURCE_DIR}/sdk/cmake/${file}.in" "${PROJECT_BINARY_DIR}/${file}" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${file}" DESTINATION lib/pkgconfig COMPONENT development)
endforeach()

# --- cpack --config build/CPackConfig.cmake
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_VENDOR "The Tenon authors")
set(CPACK_PACKAGE_CONTACT "The Tenon authors <tenon@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_FILE_NAME "tenon-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME tenon)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
    "The program tenon, its plugins and fusion rules, and libtenon for programs that embed it.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# The loader's cache learns of libtenon; programs that link it get a dependency on this package by dpkg-shlibdeps.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME tenon-dev)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "What plugins and programs that embed it are built with: headers, CMake package, tenon-sidecar.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "tenon (= ${PROJECT_VERSION})")
include(CPack)
