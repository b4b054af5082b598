# The pass fires once on model.graph, and not when it is switched off.
set(run "${TENON_PROGRAM}" run "${CMAKE_CURRENT_SOURCE_DIR}/pipeline.json" --plugin "$<TARGET_FILE:@NAME@>" --random --json --verify-graph)
add_test(NAME fires COMMAND ${run})
set_tests_properties(fires PROPERTIES PASS_REGULAR_EXPRESSION "\"nodes_after\": 2,")
add_test(NAME switched_off COMMAND ${run} "--optimization_switch=@NAME@:off")
set_tests_properties(switched_off PROPERTIES PASS_REGULAR_EXPRESSION "\"nodes_after\": 3,")
