// One test's model loaded, optimised, run and compared.
#pragma once
#include <memory>
#include <string>

#include "cases.hpp"
#include "modes.hpp"

namespace tenon::conformance {

// The plugins and rules of one mode, loaded once for all its tests.
class Runner {
 public:
  explicit Runner(const Mode& mode);  // throws Error
  ~Runner();

  // What is wrong, in words; empty: the test passes. Throws nothing.
  std::string run(const Case& one, bool shape_only);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::conformance
