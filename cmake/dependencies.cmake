# Every third-party package of the build (docs/dependencies.md says why each is here). Header-only ones
# that bring no CMake package (protozero) come with the compiler's own search path.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)            # headers: Graph and DLL
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(PkgConfig REQUIRED)
# .npz files. Debian's libzip-config.cmake wants the command-line tools of another package; pkg-config does not.
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET GLOBAL libzip)
# Regular expressions of RegexFullMatch.
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET GLOBAL re2)

# What only some plugins need. A plugin folder asks `if(TARGET dnnl::dnnl)` and leaves itself out when absent.
# Debian's dnnl-config.cmake insists on OpenCL's headers, which its CPU part does not use: looked up by hand.
find_path(TENON_DNNL_INCLUDE_DIR dnnl.hpp)
find_library(TENON_DNNL_LIBRARY dnnl)
if(TENON_DNNL_INCLUDE_DIR AND TENON_DNNL_LIBRARY)
  add_library(dnnl::dnnl SHARED IMPORTED GLOBAL)
  set_target_properties(dnnl::dnnl PROPERTIES IMPORTED_LOCATION "${TENON_DNNL_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${TENON_DNNL_INCLUDE_DIR}")
  set(dnnl_FOUND TRUE)
endif()
find_package(hwy QUIET CONFIG)
find_package(benchmark QUIET CONFIG)
foreach(optional_package dnnl hwy benchmark)
  if(NOT ${optional_package}_FOUND)
    message(STATUS "${optional_package} was not found: what needs it is left out")
  endif()
endforeach()

if(BUILD_TESTING)
  find_package(Catch2 2.13 REQUIRED)
endif()
