# The plugins that were built when the boundary was frozen, loaded by this host: each does what it did.
# Needs TENON, FIXTURES (a folder of fixtures/) and EXAMPLES.
function(expect name text)
  execute_process(COMMAND "${TENON}" ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE said RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(SEND_ERROR "${name}: exit code ${code}\n${out}${said}")
  elseif(NOT "${out}${said}" MATCHES "${text}")
    message(SEND_ERROR "${name}: expected ${text}, found\n${out}${said}")
  endif()
endfunction()

expect(pass "\"nodes_after\": 8," run "${EXAMPLES}/pass/pipeline.json" --plugin "${FIXTURES}/libredundant_clip.so" --random --json --verify-graph)
expect(pass_explains "the bounds are .0, 0.5., Cos is within .-1, 1."
       explain "${EXAMPLES}/pass/pipeline.json" --plugin "${FIXTURES}/libredundant_clip.so" --rule drop_redundant_clip)
foreach(model iris binary regression)
  expect(frontend_${model} "" run "${EXAMPLES}/frontend/models/${model}.model" --plugin "${FIXTURES}/libliblinear.so" --random --verify-graph)
endforeach()
# Its rules and operator; its kernel only as long as that draft is this host's.
expect(rules "AcmeSquaredRelu" explain "${EXAMPLES}/rule_pack/model.graph" --plugin "${FIXTURES}/libsquared_relu.so" --rule AcmeSquaredRelu)
expect(rules_run "" run "${EXAMPLES}/rule_pack/model.graph" --plugin "${FIXTURES}/libsquared_relu.so" --random --verify-graph)
