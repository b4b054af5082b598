# The kernel runs where it should, and its answer is that of the operator's meaning.
set(model "${CMAKE_CURRENT_SOURCE_DIR}/model.graph")
add_test(NAME kernel_is_chosen COMMAND "${TENON_PROGRAM}" run "${model}" --plugin "$<TARGET_FILE:@NAME@>" --random --json)
set_tests_properties(kernel_is_chosen PROPERTIES PASS_REGULAR_EXPRESSION "\"kernels\": {[^}]*\"@NAME@\": 1")
