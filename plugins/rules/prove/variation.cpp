#include "prove/variation.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::rules {
namespace {

bool commutes(const VariantNode& n, const OpCatalog& ops) {
  if (n.from->commute) return *n.from->commute;
  const tn_op_def* def = ops.find(n.what->ops[0]);
  return def && (def->flags & TN_OP_COMMUTATIVE);
}

/// The orders of one node, its own first.
std::vector<Order> orders_of(const VariantNode& n, const OpCatalog& ops) {
  std::vector<Order> all{Order{}};
  const size_t operands = n.in.size();
  if (n.what->any_operands) return all;  // chains feed one operand, which the item's first is
  if (n.from->assoc && operands > 2) {
    std::vector<uint32_t> places(operands);
    for (uint32_t i = 0; i < operands; ++i) places[i] = i;
    all.clear();
    do {
      all.push_back({places, false});
      all.push_back({places, true});
    } while (all.size() < 48 && std::next_permutation(places.begin(), places.end()));
    return all;
  }
  if (operands >= 2 && commutes(n, ops)) {
    std::vector<uint32_t> places(operands);
    for (uint32_t i = 0; i < operands; ++i) places[i] = i;
    std::swap(places[0], places[1]);
    if (n.in[0] != n.in[1] || n.in[0] == none) all.push_back({places, false});
  }
  return all;
}

std::string number_text(double d) { return sdk::format("%.7g", d); }

std::vector<int64_t> leading(const std::vector<int64_t>& dims, int64_t extent) {
  std::vector<int64_t> d{extent};
  d.insert(d.end(), dims.begin(), dims.end());
  return d;
}

}  // namespace

std::vector<std::vector<Order>> operand_orders(const Variant& v, const OpCatalog& ops, size_t most,
                                               Random& random) {
  std::vector<std::vector<Order>> of_node;
  size_t product = 1;
  for (const auto& n : v.nodes) {
    of_node.push_back(orders_of(n, ops));
    product = std::min<size_t>(product * of_node.back().size(), 1u << 20);
  }
  std::vector<std::vector<Order>> all;
  const auto combination = [&](const std::vector<size_t>& at) {
    std::vector<Order> one;
    for (size_t n = 0; n < at.size(); ++n) one.push_back(of_node[n][at[n]]);
    all.push_back(std::move(one));
  };
  std::vector<size_t> at(v.nodes.size(), 0);
  if (product <= most) {
    for (;;) {
      combination(at);
      size_t i = at.size();
      while (i > 0 && ++at[i - 1] == of_node[i - 1].size()) at[--i] = 0;
      if (i == 0) return all;
    }
  }
  combination(at);
  for (size_t n = 0; n < at.size() && all.size() < most; ++n)
    for (size_t k = 1; k < of_node[n].size() && all.size() < most; ++k) {
      std::vector<size_t> one(at.size(), 0);
      one[n] = k;
      combination(one);
    }
  while (all.size() < most) {
    std::vector<size_t> one;
    for (const auto& orders : of_node) one.push_back(random.next() % orders.size());
    combination(one);
  }
  return all;
}

std::string order_text(const Variant& v, const std::vector<Order>& orders) {
  std::string text;
  for (size_t n = 0; n < orders.size(); ++n) {
    const Order& o = orders[n];
    if (o.places.empty() || (std::is_sorted(o.places.begin(), o.places.end()) && !o.leans_right)) continue;
    text += (text.empty() ? "" : ", ") +
            (v.nodes[n].node == none ? std::string("a copy") : v.rule->nodes[v.nodes[n].node]) +
            (v.nodes[n].from->assoc ? " as another tree" : " swapped");
  }
  return text;
}

std::vector<CaseSetup::Change> changes(const Variant& v, const OpCatalog& ops, const Json* base,
                                       const std::vector<std::pair<uint32_t, std::vector<int64_t>>>& shapes) {
  using Change = CaseSetup::Change;
  std::vector<Change> all;
  const Rule& rule = *v.rule;
  // Attributes that the pattern leaves free.
  for (uint32_t n = 0; n < v.nodes.size(); ++n) {
    const VariantNode& vn = v.nodes[n];
    const tn_op_def* def = ops.find(vn.what->ops[0]);
    if (!def || vn.node == none) continue;
    for (uint32_t k = 0; k < def->attr_count; ++k) {
      const tn_attr_def& a = def->attrs[k];
      const std::string name(sdk::view(a.name));
      const tn_sym symbol = ops.symbol(name);
      if (std::any_of(vn.what->attrs.begin(), vn.what->attrs.end(), [&](const AttributeWish& w) {
            return w.symbol == symbol && w.wish.one_of.size() == 1;
          }))
        continue;
      const auto add = [&](auto fill, const std::string& text) {
        Change c;
        c.kind = Change::Attribute;
        c.index = n;
        c.attribute = std::make_shared<OwnedAttribute>();
        c.attribute->name = symbol;
        c.attribute->kind = a.kind;
        fill(*c.attribute);
        c.text = rule.nodes[vn.node] + "." + name + " = " + text;
        all.push_back(std::move(c));
      };
      if (a.kind == TN_ATTR_INT) {
        for (const int64_t x : {0, 1, 2, -1, -2})
          if (!a.has_default || x != a.default_int)
            add([x](OwnedAttribute& o) { o.i = x; }, std::to_string(x));
      } else if (a.kind == TN_ATTR_FLOAT) {
        for (const double x : {0.5, 2.0, 0.0})
          if (!a.has_default || x != a.default_float)
            add([x](OwnedAttribute& o) { o.f = x; }, number_text(x));
      } else if (a.kind == TN_ATTR_INTS) {
        for (const std::vector<int64_t>& x : {std::vector<int64_t>{0, 1},
                                              {1, 0},
                                              {0, 1, 2},
                                              {0, 2, 1},
                                              {1, 0, 2},
                                              {2, 1, 0},
                                              {0, 1, 2, 3},
                                              {0, 2, 1, 3},
                                              {0, 3, 2, 1},
                                              {1, 0, 3, 2},
                                              {2, 2},
                                              {1, 1, 1, 1}})
          add([&x](OwnedAttribute& o) { o.ints = x; }, sdk::dims_text(x));
      }
    }
  }
  // Axes of reductions, where the graph has some.
  const bool has_axes = std::any_of(v.nodes.begin(), v.nodes.end(), [&](const VariantNode& n) {
    const tn_op_def* def = ops.find(n.what->ops[0]);
    for (size_t i = 0; def && i < n.in.size() && i < def->input_count; ++i)
      if (sdk::view(def->inputs[i].name) == "axes") return true;
    return false;
  });
  if (has_axes)
    for (const std::vector<int64_t>& x :
         {std::vector<int64_t>{0}, {1}, {-2}, {-1}, {0, 1}, {-2, -1}, {0, 2}, {0, -1}}) {
      Change c;
      c.kind = Change::Axes;
      c.dims = x;
      c.text = "axes = " + sdk::dims_text(x);
      all.push_back(std::move(c));
    }
  // Shapes: broadcast, of another rank, of one element.
  std::vector<uint32_t> seen;
  for (const auto& [value, dims] : shapes) {
    if (std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
    seen.push_back(value);
    std::vector<std::vector<int64_t>> others{{}, {1}, {dims.back()}, leading(dims, 1), leading(dims, 2)};
    for (size_t i = 0; i < dims.size(); ++i) {
      others.push_back(dims);
      others.back()[i] = 1;
      others.push_back(dims);
      others.back()[i] += 1;
    }
    if (dims.size() >= 2) {
      others.emplace_back(dims.begin() + 1, dims.end());
      others.push_back(dims);
      std::swap(others.back()[dims.size() - 1], others.back()[dims.size() - 2]);
    }
    for (auto& o : others) {
      if (o == dims) continue;
      Change c;
      c.kind = Change::Shape;
      c.index = value;
      c.text = rule.values[value] + " of shape " + sdk::dims_text(o);
      c.dims = std::move(o);
      all.push_back(std::move(c));
    }
  }
  // Constants of one number, and optional operands.
  std::vector<uint32_t> numbers, optional;
  for (const auto& n : v.nodes)
    for (size_t i = 0; i < n.in.size(); ++i) {
      const Slot& slot = n.what->in[i];
      if (n.in[i] == none || n.in[i] >= rule.values.size() || v.producer[n.in[i]] != none) continue;
      auto& list = slot.optional ? optional : numbers;
      if ((slot.optional || (slot.constant && slot.literal.empty())) &&
          std::find(list.begin(), list.end(), n.in[i]) == list.end())
        list.push_back(n.in[i]);
    }
  for (const uint32_t value : numbers)
    for (const double factor : {1.5, -1.0, 1e-3, 0.0}) {
      Change c;
      c.kind = Change::Number;
      c.index = value;
      c.number = factor;
      c.text = rule.values[value] + " times " + number_text(factor);
      all.push_back(std::move(c));
    }
  for (const uint32_t value : optional) {
    if (const Json* absent = base ? base->find("absent") : nullptr;
        absent && std::any_of(absent->items.begin(), absent->items.end(),
                              [&](const Json& j) { return j.text == rule.values[value]; }))
      continue;
    Change c;
    c.kind = Change::Absent;
    c.index = value;
    c.text = "without " + rule.values[value];
    all.push_back(std::move(c));
  }
  // Lists of another length.
  for (const auto& n : v.nodes)
    for (size_t i = 0; i < n.in.size(); ++i) {
      if (n.rest != i || n.in[i] == none) continue;
      for (const size_t count : {0, 1, 2, 3, 5}) {
        Change c;
        c.kind = Change::Count;
        c.index = n.in[i];
        c.number = static_cast<double>(count);
        c.text = std::to_string(count) + " of " + rule.values[n.in[i]];
        all.push_back(std::move(c));
      }
    }
  return all;
}

}  // namespace tenon::rules
