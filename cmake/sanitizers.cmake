# -DTENON_SANITIZE=address,undefined or =thread instruments the host, the plugins and the tests alike: a plain
# plugin in a TSan host would hide its races, and a host refuses plugins whose sanitizer it lacks.

if(TENON_SANITIZE)
  if(NOT TENON_SANITIZE MATCHES "^(address|undefined|address,undefined|thread)$")
    message(FATAL_ERROR "TENON_SANITIZE is '${TENON_SANITIZE}'; expected 'address', 'undefined', "
                        "'address,undefined' or 'thread'")
  endif()
  add_compile_options("-fsanitize=${TENON_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${TENON_SANITIZE}")
  if(TENON_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()

# -DTENON_FUZZ=ON: everything is instrumented for libFuzzer too, and tests/fuzz builds its programs. Clang only.
option(TENON_FUZZ "Build the libFuzzer programs (clang)" OFF)
if(TENON_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT TENON_SANITIZE STREQUAL "address,undefined")
    message(FATAL_ERROR "TENON_FUZZ needs clang and TENON_SANITIZE=address,undefined; the preset 'fuzz' sets both")
  endif()
  # Tables of C functions are filled with functions that take their own types, which `function` does not allow for;
  # `vptr` wants the type information of libraries that hide theirs.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize=function,vptr)
  # Instrumented code that is not optimised at all fuzzes a third as fast.
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
endif()
