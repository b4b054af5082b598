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
