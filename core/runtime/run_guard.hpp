// Canaries behind every buffer of the arena, written when it comes to life and looked at after each step.
#pragma once
#include <string>

#include "core/runtime/plan.hpp"

namespace tenon {

class GuardWords {
 public:
  GuardWords(const Segment& segment, uint8_t* base) : segment_(segment), base_(base) {}
  void before(uint32_t step);
  std::string after(uint32_t step, const Graph& graph) const;  // empty: nothing was written over

 private:
  const Segment& segment_;
  uint8_t* base_;
};

}  // namespace tenon
