# The model's three nodes are written.
set(out "${CMAKE_CURRENT_BINARY_DIR}/model.@NAME@")
add_test(NAME writes COMMAND "${TENON_PROGRAM}" optimize "${CMAKE_CURRENT_SOURCE_DIR}/model.graph" --set "pipeline=[]"
                             --plugin "$<TARGET_FILE:@NAME@>" -o "${out}")
set_tests_properties(writes PROPERTIES FIXTURES_SETUP written)
add_test(NAME written COMMAND "${CMAKE_COMMAND}" -E cat "${out}")
set_tests_properties(written PROPERTIES FIXTURES_REQUIRED written PASS_REGULAR_EXPRESSION "label=\"Neg\"")
