# Every operator is run by its kernel here.
add_test(NAME kernels_are_chosen COMMAND "${TENON_PROGRAM}" run "${CMAKE_CURRENT_SOURCE_DIR}/model.graph"
                                         --plugin "$<TARGET_FILE:@NAME@>" --random --json)
set_tests_properties(kernels_are_chosen PROPERTIES PASS_REGULAR_EXPRESSION "\"kernels\": {[^}]*\"@NAME@\": @OP_COUNT@")
