# The files beside the program: rules, schemas, plugin templates. The build tree's copies follow the sources,
# also when a file is renamed or deleted.

function(tenon_share folder destination)
  if(NOT IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}")
    return()
  endif()
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*")
  set(stamp "${PROJECT_BINARY_DIR}/share-${destination}.stamp")
  # The list of files is part of the rule: a deleted file changes it, and the copy runs again.
  string(SHA256 file_list "${files}")
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${TENON_SHARE_OUTPUT_DIRECTORY}/${destination}"
    COMMAND "${CMAKE_COMMAND}" -E copy_directory "${PROJECT_SOURCE_DIR}/${folder}"
            "${TENON_SHARE_OUTPUT_DIRECTORY}/${destination}"
    COMMAND "${CMAKE_COMMAND}" -E echo "${file_list}" > "${stamp}"
    DEPENDS ${files}
    COMMENT "Copying ${folder}/ to share/tenon/${destination}"
    VERBATIM)
  add_custom_target("share_${destination}" ALL DEPENDS "${stamp}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/" DESTINATION "share/tenon/${destination}" USE_SOURCE_PERMISSIONS)
endfunction()

tenon_share(rules rules)
tenon_share(schemas schemas)
tenon_share(sdk/templates templates)
tenon_share(sdk/check check)  # graphs that `tenon plugins check` works on
