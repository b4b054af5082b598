// A table of (operands, node, what is inferred), checked row by row.
#pragma once
#include <catch2/catch.hpp>

#include <initializer_list>

#include "one_node.hpp"

namespace tenon::test {

struct Case {
  const char* given;
  const char* node;
  const char* expected;
  int results = 1;
};

inline void check(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    INFO(c.node << "  of  " << c.given);
    CHECK(types_of(c.given, c.node, c.results) == c.expected);
  }
}

/// `expected` must be part of the message.
inline void check_refused(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    INFO(c.node << "  of  " << c.given);
    CHECK_THAT(types_of(c.given, c.node, c.results),
               Catch::StartsWith("error: ") && Catch::Contains(c.expected));
  }
}

}  // namespace tenon::test
