// If, Loop, Scan: results follow from the bodies.
//
// A state of Loop or Scan has one type in all iterations: dims that the body changes are known only when the
// node has run. Bodies are inferred at most three times: with the first types, with changed dims unknown,
// with unknown ranks.
#include "schema/schema_table.hpp"
#include "support/owned_type.hpp"

namespace tenon::ops {
namespace {

/// Numbers that data_dependent takes as axes for dims inside bodies, beside the real axes of the results.
constexpr uint32_t inside = 1024;

uint32_t region_named(Infer& c, std::string_view name) {
  const GraphView g(c.api()->graph_api, c.graph());
  for (uint32_t r = 0; r < c.node().region_count; ++r)
    if (view(g.region(c.node().regions[r]).name) == name) return r;
  fail("the body '" + std::string(name) + "' is missing");
}

std::vector<OwnedType> infer_body(Infer& c, uint32_t region, const std::vector<OwnedType>& inputs) {
  std::vector<tn_type> types;
  for (const auto& t : inputs) types.push_back(t.view());
  std::vector<OwnedType> out;
  for (const tn_type& t : c.region(region, types)) out.emplace_back(t);
  return out;
}

size_t region_inputs(Infer& c, uint32_t region) {
  return GraphView(c.api()->graph_api, c.graph()).region(c.node().regions[region]).input_count;
}

void set_if_known(Infer& c, uint32_t i, const OwnedType& t) {
  if (t.known()) c.set(i, t.view());
}

// ---- If
// -------------------------------------------------------------------------------------------------------------

struct Branch {
  std::vector<OwnedType> types;
  std::vector<std::optional<std::vector<tn_dim>>> elements;
};
Branch infer_branch(Infer& c, const char* name) {
  const uint32_t r = region_named(c, name);
  Branch b;
  b.types = infer_body(c, r, {});
  require(b.types.size() == c.output_count(),
          std::string(name) +
              format(" yields %zu values; the node has %u results", b.types.size(), c.output_count()));
  for (uint32_t i = 0; i < c.output_count(); ++i) b.elements.push_back(c.region_elements(r, i));
  return b;
}

void infer_if(Infer& c) {
  one_number(c, 0, "cond");
  const auto condition = c.integers(0);
  if (condition && condition->size() == 1) {
    const bool yes = condition->front() != 0;
    // The other branch is not looked at: exporters leave there what is wrong for these shapes (a Squeeze of a
    // 3).
    const Branch taken = infer_branch(c, yes ? "then_branch" : "else_branch");
    for (uint32_t i = 0; i < c.output_count(); ++i) {
      set_if_known(c, i, taken.types[i]);
      if (taken.elements[i]) set_known(c, i, *taken.elements[i]);
    }
    return;
  }
  const Branch a = infer_branch(c, "then_branch"), b = infer_branch(c, "else_branch");
  for (uint32_t i = 0; i < c.output_count(); ++i) {
    set_if_known(c, i,
                 join_types(c, a.types[i], b.types[i], "the branches disagree on result " + text_of(i),
                            [&](uint32_t axis) { return c.data_dependent(i, axis); }));
    if (a.elements[i] && b.elements[i] && *a.elements[i] == *b.elements[i]) set_known(c, i, *a.elements[i]);
  }
}

// ---- states of Loop and Scan
// ----------------------------------------------------------------------------------------

struct Stable {
  std::vector<OwnedType> results;  // of states: true for any number of iterations, none included
  std::vector<OwnedType> body;     // all the body yields
};

/// Each attempt infers the bodies inside again, so loops within loops would take exponential time. From this
/// depth on states begin without a rank, which one attempt makes stable.
constexpr int exact_depth = 4;

bool is_deep(Infer& c) {
  const GraphView g(c.api()->graph_api, c.graph());
  tn_region region = c.node().region;
  for (int depth = 0; depth < exact_depth; ++depth) {
    const tn_node owner = g.region(region).parent;
    if (owner == TN_NONE) return false;
    region = g.node(owner).region();
  }
  return true;
}

/// `fixed` are the types of the body's inputs that are no states; they stand before (`first`) or after the
/// states.
Stable stabilise(Infer& c, uint32_t region, const std::vector<OwnedType>& initial,
                 const std::vector<OwnedType>& fixed, bool fixed_first, size_t skip_outputs) {
  std::vector<OwnedType> states = initial;
  if (is_deep(c))
    for (auto& s : states) s.forget_rank();
  for (int attempt = 0;; ++attempt) {
    std::vector<OwnedType> inputs = fixed_first ? fixed : states;
    const auto& rest = fixed_first ? states : fixed;
    inputs.insert(inputs.end(), rest.begin(), rest.end());
    const auto body = infer_body(c, region, inputs);
    require(body.size() >= skip_outputs + states.size(),
            format("the body yields %zu values; expected at least %zu, for the states", body.size(),
                   skip_outputs + states.size()));
    bool stable = true;
    std::vector<OwnedType> next, results;
    for (uint32_t i = 0; i < states.size(); ++i) {
      const OwnedType& out = body[skip_outputs + i];
      const std::string what = "state " + text_of(i) + " changes its type in the body";
      next.push_back(join_types(c, states[i], out, what,
                                [&](uint32_t axis) { return c.data_dependent(i, inside + axis); }));
      // A dim that is unknown inside is unknown outside, but not the same: the last iteration decides it.
      results.push_back(
          join_types(c, initial[i], next[i], what, [&](uint32_t axis) { return c.data_dependent(i, axis); }));
      // Unknown dims in the body's input accept any dim of its output.
      bool same = next[i].ranked() == states[i].ranked() && next[i].dims().size() == states[i].dims().size();
      for (size_t k = 0; same && k < next[i].dims().size(); ++k)
        same = next[i].dims()[k] == states[i].dims()[k];
      if (states[i].known()) stable = stable && same;
    }
    if (stable) return {std::move(results), body};
    states = std::move(next);
    if (attempt >= 1)
      for (auto& s : states) s.forget_rank();
    if (attempt >= 2) return {std::move(states), body};
  }
}

// ---- Loop
// -----------------------------------------------------------------------------------------------------------

/// The body hands its condition on, so it stays what it was.
bool passes_condition(Infer& c, uint32_t region) {
  const GraphView g(c.api()->graph_api, c.graph());
  const tn_region_info r = g.region(c.node().regions[region]);
  if (r.input_count < 2 || r.output_count < 1) return false;
  const tn_value wanted = r.inputs[1];
  tn_value v = r.outputs[0];
  for (int hops = 0; hops < 8 && v != TN_NONE; ++hops) {
    if (v == wanted) return true;
    const tn_node producer = g.producer(v);
    if (producer == TN_NONE) return false;
    const Node n = g.node(producer);
    if (n.op_name() != "Identity") return false;
    v = n.input(0);
  }
  return false;
}

/// How often the body runs, if that is known before.
std::optional<tn_dim> trip_count(Infer& c, uint32_t body) {
  std::optional<bool> start = true;
  if (c.has_input(1)) {
    const auto e = c.integers(1);
    start = e && e->size() == 1 ? std::optional<bool>(e->front() != 0) : std::nullopt;
  }
  if (start == false) return 0;
  if (!start || !c.has_input(0)) return std::nullopt;
  const auto limit = c.elements(0);
  if (!limit || limit->size() != 1) return std::nullopt;
  const auto goes_on = c.region_elements(body, 0);
  const bool always = (goes_on && goes_on->size() == 1 && c.number(goes_on->front()).value_or(0) != 0) ||
                      passes_condition(c, body);
  return always ? std::optional<tn_dim>(most(c, limit->front(), 0)) : std::nullopt;
}

void infer_loop(Infer& c) {
  one_number(c, 0, "M");
  one_number(c, 1, "cond");
  const uint32_t body = region_named(c, "body");
  const uint32_t states = c.input_count() > 2 ? c.input_count() - 2 : 0;
  require(region_inputs(c, body) == states + 2u,
          format("the body has %zu inputs; expected %u: the iteration, the condition and %u states",
                 region_inputs(c, body), states + 2, states));
  std::vector<OwnedType> initial;
  for (uint32_t i = 0; i < states; ++i) initial.emplace_back(c.type(i + 2));
  const std::vector<OwnedType> fixed{OwnedType(TN_KIND_TENSOR, TN_INT64, {}),
                                     OwnedType(TN_KIND_TENSOR, TN_BOOL, {})};
  const Stable s = stabilise(c, body, initial, fixed, true, 1);
  require(s.body.size() == c.output_count() + 1u,
          format("the body yields %zu values; expected %u: the condition and one for each result",
                 s.body.size(), c.output_count() + 1));
  const auto trips = trip_count(c, body);
  for (uint32_t i = 0; i < states; ++i) set_if_known(c, i, trips == 0 ? initial[i] : s.results[i]);
  for (uint32_t i = states; i < c.output_count(); ++i) {
    OwnedType t = s.body[i + 1];
    if (!t.known()) continue;
    if (t.ranked()) {
      for (size_t k = 0; k < t.dims().size(); ++k)  // a symbol may stand for something that iterations change
        if (t.dims()[k] < 0) t.dims()[k] = c.data_dependent(i, static_cast<uint32_t>(k) + 1);
      t.dims().insert(t.dims().begin(), trips ? *trips : c.data_dependent(i, 0));
      t.fit_rank();
    }
    c.set(i, t.view());
  }
}

// ---- Scan
// -----------------------------------------------------------------------------------------------------------

void infer_scan(Infer& c) {
  const uint32_t body = region_named(c, "body");
  const int64_t scans = required_int(c.attrs(), "num_scan_inputs");
  require(scans >= 1 && scans <= c.input_count(),
          format("attribute 'num_scan_inputs' is %lld; the node has %u operands",
                 static_cast<long long>(scans), c.input_count()));
  const auto sequences = static_cast<uint32_t>(scans), states = c.input_count() - sequences;
  require(region_inputs(c, body) == c.input_count(),
          format("the body has %zu inputs; expected %u", region_inputs(c, body), c.input_count()));
  const Dims in_axes = list_attr(c, "scan_input_axes", sequences, 0, INT32_MIN);
  std::vector<OwnedType> initial, slices;
  for (uint32_t i = 0; i < states; ++i) initial.emplace_back(c.type(i));
  std::optional<tn_dim> length;
  for (uint32_t i = 0; i < sequences; ++i) {
    OwnedType t(c.type(states + i));
    if (t.ranked()) {
      const auto axis = static_cast<ptrdiff_t>(
          Infer::axis(in_axes[i], c.rank(states + i), "attribute 'scan_input_axes': value"));
      const tn_dim here = t.dims()[static_cast<size_t>(axis)];
      require(
          !length || !c.differ(*length, here),
          "scanned operands differ in length: " + (length ? c.text(*length) : "") + " and " + c.text(here));
      if (!length || here >= 0) length = here;
      t.dims().erase(t.dims().begin() + axis);
      t.fit_rank();
    }
    slices.push_back(std::move(t));
  }
  const Stable s = stabilise(c, body, initial, slices, false, 0);
  require(s.body.size() == c.output_count(),
          format("the body yields %zu values; the node has %u results", s.body.size(), c.output_count()));
  for (uint32_t i = 0; i < states; ++i) set_if_known(c, i, s.results[i]);
  const Dims out_axes = list_attr(c, "scan_output_axes", c.output_count() - states, 0, INT32_MIN);
  for (uint32_t i = states; i < c.output_count(); ++i) {
    OwnedType t = s.body[i];
    if (!t.known()) continue;
    if (t.ranked()) {
      for (size_t k = 0; k < t.dims().size(); ++k)
        if (t.dims()[k] < 0 && states > 0)
          t.dims()[k] = c.data_dependent(i, inside + static_cast<uint32_t>(k));
      const int64_t axis = Infer::axis(out_axes[i - states], static_cast<int64_t>(t.dims().size()) + 1,
                                       "attribute 'scan_output_axes': value");
      t.dims().insert(t.dims().begin() + static_cast<ptrdiff_t>(axis),
                      length ? *length : c.data_dependent(i, static_cast<uint32_t>(axis)));
      t.fit_rank();
    }
    c.set(i, t.view());
  }
}
// Scan of opset 8 had a batch axis before everything, an optional operand of sequence lengths, and outputs
// filled with zeros behind a sequence's end: a Scan over the batch whose body is the Scan of one sequence.
class BatchedScan {
 public:
  BatchedScan(Editor& e, const Node& n) : w_(e, n), e_(e), node_(n.id()) {
    scans_ = n.attrs().get_int("num_scan_inputs", 0);
    const auto count = static_cast<int64_t>(n.inputs().size());
    if (scans_ < 1 || scans_ >= count || n.regions().size() != 1)
      cannot_upgrade(n, "attribute 'num_scan_inputs' or its body does not fit its operands");
    states_ = count - 1 - scans_;
    directions_ = n.attrs().get_ints("directions").copy();
    name_ = std::string(n.op_name());
  }

  void run() {
    const tn_value lengths = w_.input(0);
    const std::vector<tn_value> batched(w_.inputs().begin() + 1, w_.inputs().end());
    NodeSpec spec;
    spec.op = name_;
    spec.inputs = batched;
    if (lengths != TN_NONE) spec.inputs.push_back(lengths);
    spec.attrs = {AttrValue::of("num_scan_inputs", static_cast<int64_t>(spec.inputs.size()))};
    spec.output_count = static_cast<uint32_t>(w_.output_count());
    spec.region = e_.graph().node(node_).region();
    spec.before = node_;
    spec.origins = {node_};
    const Node outer = e_.create(spec);
    fill_body(e_.create_region(outer.id(), "body"), batched.size(), lengths != TN_NONE);
    const auto results = e_.graph().node(outer.id()).outputs().copy();
    for (size_t i = 0; i < results.size(); ++i) w_.become(i, results[i]);
    w_.erase();
  }

 private:
  tn_value make(tn_region region, std::string_view op, std::vector<tn_value> inputs,
                std::vector<AttrValue> attrs = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.region = region;
    spec.origins = {node_};
    return e_.create(spec).output(0);
  }

  void fill_body(tn_region body, size_t operands, bool has_lengths) {
    const tn_type unknown{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
    std::vector<tn_value> inputs;
    for (size_t i = 0; i < operands; ++i)
      inputs.push_back(
          e_.region_input(body, "scan_" + std::to_string(node_) + "_" + std::to_string(i), unknown));
    const tn_value zero = w_.ints({0});
    const tn_value whole = inputs.back();
    tn_value length = TN_NONE;
    if (has_lengths) {
      length = e_.region_input(body, "scan_" + std::to_string(node_) + "_length", unknown);
      length = make(body, "Reshape", {length, w_.ints({1})});
      for (size_t i = static_cast<size_t>(states_); i < operands; ++i)
        inputs[i] = make(body, "Slice", {inputs[i], zero, length, zero});
    }
    const tn_node inner = e_.clone(node_, body, TN_NONE, inputs);
    drop_attr(e_, e_.graph().node(inner), "directions");
    if (!directions_.empty())
      e_.set_attr(inner, AttrValue::of("scan_input_directions", Span<const int64_t>(directions_)));
    e_.set_version(inner, schema_of("Scan").since_version);
    std::vector<tn_value> outputs = e_.graph().node(inner).outputs().copy();
    if (has_lengths) {
      const tn_value all = make(body, "Shape", {whole}, {AttrValue::of("end", int64_t{1})});
      const tn_value pads =
          make(body, "Concat", {zero, make(body, "Sub", {all, length})}, {AttrValue::of("axis", int64_t{0})});
      for (size_t i = static_cast<size_t>(states_); i < outputs.size(); ++i)
        if (outputs[i] != TN_NONE) outputs[i] = make(body, "Pad", {outputs[i], pads, TN_NONE, zero});
    }
    e_.region_outputs(body, outputs);
  }

  Rewrite w_;
  Editor& e_;
  tn_node node_;
  int64_t scans_ = 0, states_ = 0;
  Dims directions_;
  std::string name_;
};

void upgrade_scan(Editor& e, const Node& n) {
  if (n.version() >= 9) return upgrade_version_only(e, n);
  BatchedScan(e, n).run();
}

}  // namespace

void add_control_flow(Plugin& p) {
  define(p, "If").flags(TN_OP_CONTROL_FLOW).infer<infer_if>();
  define(p, "Loop").flags(TN_OP_CONTROL_FLOW).infer<infer_loop>();
  define(p, "Scan").flags(TN_OP_CONTROL_FLOW).infer<infer_scan>().upgrade<upgrade_scan>();
}

}  // namespace tenon::ops
