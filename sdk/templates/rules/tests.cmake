# Every rule proved, and the model's one place rewritten.
file(GLOB rule_files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/rules/*.json")
foreach(file IN LISTS rule_files)
  get_filename_component(name "${file}" NAME_WE)
  add_test(NAME "proved_${name}" COMMAND "${TENON_PROGRAM}" rules test "${file}")
endforeach()
add_test(NAME fires COMMAND "${TENON_PROGRAM}" run "${CMAKE_CURRENT_SOURCE_DIR}/model.graph" --random --json
                            --plugin "$<TARGET_FILE:@NAME@>")
set_tests_properties(fires PROPERTIES PASS_REGULAR_EXPRESSION "\"nodes_after\": 1,")
