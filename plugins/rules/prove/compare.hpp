// Runs graphs of the host and compares what they yield.
#pragma once
#include "prove/prove.hpp"

namespace tenon::rules {

struct Outputs {
  std::vector<sdk::OwnedTensor> tensors;
  std::string failure;  // empty: it ran
  bool unsupported = false;
};

Outputs run_graph(const TestServices& services, tn_graph* graph, const std::vector<sdk::OwnedTensor>& inputs);

/// The rule's own tolerance for the type, else what the type can hold.
Tolerance tolerance_of(const Rule& rule, tn_dtype dtype);

/// Empty when equal within the tolerance. `finite_only`: elements that were no finite numbers before are not
/// looked at.
std::string compare(const sdk::OwnedTensor& wanted, const sdk::OwnedTensor& got, const Tolerance& tolerance,
                    bool finite_only);
/// Of all results, each by its type. `chosen`: the inputs are those of the rule's author; else the tolerance
/// is wider, and as wide as `computed_in` asks for.
std::string compare(const Rule& rule, const Outputs& wanted, const Outputs& got, tn_dtype computed_in,
                    bool chosen);

}  // namespace tenon::rules
