// Graph text through passes, and run before and after with awkward numbers.
#pragma once
#include <catch2/catch.hpp>

#include <memory>
#include <string>

#include "core/graph/graph.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::test {

struct Rewritten {
  std::unique_ptr<Graph> graph;
  OptimizeReport report;
  std::string ops;  // of the main region in order: "Neg Add"
  uint64_t applied(const std::string& step) const;
  std::string text() const;
  /// How often the text occurs in the graph's text form.
  size_t count(const std::string& part) const;
};

/// `passes`: their names with blanks between; `options` for the first one. `body`: lines of a graph.
Rewritten rewrite(const std::string& passes, const std::string& body, const std::string& options = "{}",
                  EngineOptions engine_options = {}, const std::string& precision = "faithful");

enum class Equal {
  bits,    // also the sign of zeros; any NaN is any other
  values,  // zeros have no sign
  nearly   // a few roundings
};

/// Rewrites with `passes` and "clean", wants these operators, and runs both graphs with the reference kernels
/// on numbers that include zeros of both signs, infinities, NaN and the ends of integer types (`tame`: none
/// of these, for operators that are not defined on them).
void check_rewrite(const std::string& passes, const std::string& body, const std::string& ops,
                   Equal equal = Equal::bits, const std::string& precision = "faithful", bool tame = false);

/// An input, one line and an output: "  input %x: TYPE\n LINES  output %y as \"y\"\n".
std::string around(const std::string& type, const std::string& lines);

}  // namespace tenon::test
