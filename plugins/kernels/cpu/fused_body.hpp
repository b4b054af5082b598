// The body of a tenon::FusedElementwise as a list of row calls.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "activation.hpp"
#include "reduce_rows.hpp"
#include "rows.hpp"
#include "typed_rows.hpp"

namespace tenon::cpu {

/// Where an operand of a step is: an operand of the node, or a slot of the workspace.
struct Source {
  enum Kind : uint8_t { nothing, outside, slot } kind = nothing;
  uint32_t index = 0;
};

constexpr uint32_t result_slot = UINT32_MAX;

struct Step {
  enum Kind : uint8_t { unary, two, clip, typed } kind = unary;
  Activation act;
  Binary binary = Binary::Add;
  RowFunction row = nullptr;
  std::array<Source, 3> from;
  uint32_t slot = result_slot;
};

/// A reduction over the last axes behind the steps.
struct Tail {
  Reduction op;
  const RowReduction* rows;
  uint32_t axes;  // how many of the last axes; they are gone, or 1, in the result
};

struct Body {
  std::vector<Step> steps;
  uint32_t slots = 0;
  uint32_t slot_width = 4;              // bytes of the widest element in a slot
  std::vector<uint32_t> operand_width;  // bytes of an element, by operand of the node
  uint32_t result_width = 4;            // of what the last step yields
  uint32_t rank = 0;                    // of what the steps compute
  std::optional<Tail> tail;
  uint32_t tail_slot = 0;  // where the last step's row is, when a tail reads it
  /// The result may be written where any operand is that has as many bytes.
  bool in_place() const;
};

/// Reads the body of the node; declines what the row functions do not have.
Body fused_body(const sdk::PlanView& v);

}  // namespace tenon::cpu
