# The warnings of our own code. Linked PRIVATE, so that no user of the SDK inherits them.

add_library(tenon_warnings INTERFACE)
target_compile_options(tenon_warnings INTERFACE -Wall -Wextra -Wshadow)
if(TENON_WERROR)
  target_compile_options(tenon_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of GCC 12 inside std::string and std::vector once they are inlined (GCC PR 105329, 105651,
  # 107852): reported against lines that are not ours.
  target_compile_options(tenon_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
                                                  -Wno-stringop-overread)
  if(TENON_SANITIZE)
    # Instrumentation hides initialisations from the flow analysis.
    target_compile_options(tenon_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
