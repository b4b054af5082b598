# Language level, output folders, flags of the build types, linker and compiler cache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The build tree has the shape of an installed one, so the program finds its plugins, rules and schemas
# the same way in both: relative to itself.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(TENON_PLUGIN_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/tenon/plugins")
set(TENON_SHARE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/share/tenon")
set(TENON_LIBEXEC_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/libexec/tenon")
set(TENON_TEST_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
# -g1 keeps function names and lines in a backtrace at a third of the compile-time cost of -g.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
# The sanitizer builds: assertions stay in. Not optimised, which halves the time to compile what a sanitizer adds.
if(TENON_SANITIZE)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O0 -g1")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O0 -g1")
endif()

# No machine's folder names in a binary; and it lets two build trees share one compiler cache.
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")

find_program(TENON_MOLD mold)
if(TENON_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX "-fuse-ld=mold" TENON_LINKER_ACCEPTS_MOLD)
  if(TENON_LINKER_ACCEPTS_MOLD)
    add_link_options("-fuse-ld=mold")
  endif()
endif()

find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${TENON_CCACHE}")
    endif()
  endforeach()
endif()
