// The one main() of every Catch2 executable: it takes tens of seconds to compile, so it is compiled once.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
