# The device's streams are threads of this process.
find_package(Threads REQUIRED)
target_link_libraries(@NAME@ PRIVATE Threads::Threads)
# Four nodes run on the device, and none when all is kept on the host.
set(run "${TENON_PROGRAM}" run "${CMAKE_CURRENT_SOURCE_DIR}/pipeline.json" --plugin "$<TARGET_FILE:@NAME@>" --random --shape x:3,4 --json)
add_test(NAME runs_on_device COMMAND ${run})
set_tests_properties(runs_on_device PROPERTIES PASS_REGULAR_EXPRESSION "\"@NAME@\": 4")
add_test(NAME runs_on_host COMMAND ${run} --device cpu)
set_tests_properties(runs_on_host PROPERTIES FAIL_REGULAR_EXPRESSION "\"@NAME@\": [1-9]")
