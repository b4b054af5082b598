# Precompiled headers for the sanitizer builds, which compile everything unoptimised and spend a third of their time in
# the same headers. The release build has none, so that a missing #include is an error there.

function(tenon_precompile target)
  foreach(header IN LISTS ARGN)
    target_precompile_headers("${target}" PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
  endforeach()
endfunction()

if(TENON_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(TARGET tenon_core)
    tenon_precompile(tenon_core "<fmt/format.h>" "<nlohmann/json.hpp>" "<filesystem>" "<functional>" "<map>" "<string>"
                     "<vector>" "${PROJECT_SOURCE_DIR}/core/graph/graph.hpp")
  endif()
  get_property(plugin_targets GLOBAL PROPERTY TENON_PLUGIN_TARGETS)
  foreach(target IN LISTS plugin_targets)
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    if(count GREATER 4)  # below that the header costs more than it saves
      tenon_precompile(${target} "<algorithm>" "<cmath>" "<tenon/sdk/plugin.hpp>")
    endif()
  endforeach()
endif()
