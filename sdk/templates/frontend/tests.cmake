# A model is read and run; a wrong one is refused with the place.
add_test(NAME runs COMMAND "${TENON_PROGRAM}" run "${CMAKE_CURRENT_SOURCE_DIR}/model.@NAME@" --plugin "$<TARGET_FILE:@NAME@>"
                           --random --verify-graph)
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/wrong.@NAME@" "@NAME@ 1\ninput 3\ndense 1  0.5 x\n")
add_test(NAME names_the_line COMMAND "${TENON_PROGRAM}" run "${CMAKE_CURRENT_BINARY_DIR}/wrong.@NAME@"
                                     --plugin "$<TARGET_FILE:@NAME@>" --random)
set_tests_properties(names_the_line PROPERTIES PASS_REGULAR_EXPRESSION "line 3: expected a number, found 'x'")
