# The only planner of the run is this one.
add_test(NAME plans COMMAND "${TENON_PROGRAM}" explain "${CMAKE_CURRENT_SOURCE_DIR}/model.graph" --memory --shape x:64,16
                            --plugin "$<TARGET_FILE:@NAME@>" --set "plugins=[\"ops\", \"fusion\", \"rules\", \"cpu\"]")
set_tests_properties(plans PROPERTIES PASS_REGULAR_EXPRESSION "planner @ID@.longest-first/1")
