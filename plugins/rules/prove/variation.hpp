// What else a pattern may meet than its cases say: operand orders, and attributes, shapes, numbers and types
// that the rule's guards must either bear or refuse.
#pragma once
#include "prove/prove_graph.hpp"

namespace tenon::rules {

/// Operand orders of the whole variant: every combination up to `most`, else each node's by itself and some
/// drawn. The first is the pattern's own.
std::vector<std::vector<Order>> operand_orders(const Variant& variant, const OpCatalog& ops, size_t most,
                                               Random& random);
/// "mul swapped" ; empty: the pattern's own order.
std::string order_text(const Variant& variant, const std::vector<Order>& orders);

/// One change at a time, of what the case (or the pattern) leaves free. `shapes`: of the graph as it was
/// built.
std::vector<CaseSetup::Change> changes(const Variant& variant, const OpCatalog& ops, const Json* base,
                                       const std::vector<std::pair<uint32_t, std::vector<int64_t>>>& shapes);

}  // namespace tenon::rules
