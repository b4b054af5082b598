// Transposes: pairs that are one, operands that all are transposed alike, and reductions that need none.
#include <iterator>

#include "data/transposes.hpp"
#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

std::optional<Dims> permutation(const Context& c, const Node& t) {
  const int32_t rank = c.type(t.output(0)).rank;
  if (rank < 0) return std::nullopt;
  Dims p = t.attrs().get_ints("perm").copy();
  if (p.empty())
    for (int64_t i = rank - 1; i >= 0; --i) p.push_back(i);
  if (static_cast<int32_t>(p.size()) != rank) return std::nullopt;
  std::vector<char> seen(p.size(), 0);
  for (int64_t i : p) {
    if (i < 0 || i >= rank || seen[static_cast<size_t>(i)]) return std::nullopt;
    seen[static_cast<size_t>(i)] = 1;
  }
  return p;
}

bool is_identity(const Dims& p) {
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] != static_cast<int64_t>(i)) return false;
  return true;
}

Dims composed(const Dims& first, const Dims& second) {
  Dims r;
  for (int64_t i : second) r.push_back(first[static_cast<size_t>(i)]);
  return r;
}

Dims inverse(const Dims& p) {
  Dims r(p.size());
  for (size_t i = 0; i < p.size(); ++i) r[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
  return r;
}

namespace {

// Transpose(Transpose(x, p), q): result axis i is x's axis p[q[i]].
tn_value chain(Context& c, const Node& n, bool* done) {
  c.step = "merge Transposes";
  const auto inner = c.producer(n.input(0), c.ops.transpose);
  if (!inner) return TN_NONE;
  const auto p = permutation(c, *inner), q = permutation(c, n);
  if (!p || !q) return TN_NONE;
  const Dims joined = composed(*p, *q);
  if (is_identity(joined)) return inner->input(0);
  *done = c.replace(n, "Transpose", {inner->input(0)}, {AttrValue::of("perm", Span<const int64_t>(joined))},
                    {inner->id()});
  return TN_NONE;
}

// Concat of tensors that were all transposed alike: one Transpose of their Concat.
tn_value concat_of_transposed(Context& c, const Node& n, bool* done) {
  c.step = "move Transposes behind a Concat";
  std::optional<Dims> perm;
  std::vector<tn_value> inputs;
  std::vector<tn_node> with;
  if (n.inputs().size() < 2) return TN_NONE;
  for (tn_value v : n.inputs()) {
    const auto t = v == TN_NONE ? std::nullopt : c.producer(v, c.ops.transpose);
    if (!t || !c.single_use(v)) return TN_NONE;
    const auto p = permutation(c, *t);
    if (!p || (perm && *perm != *p)) return TN_NONE;
    perm = p;
    inputs.push_back(t->input(0));
    with.push_back(t->id());
  }
  int64_t axis = n.attrs().get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(perm->size());
  if (axis < 0 || axis >= static_cast<int64_t>(perm->size())) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node joined = edit.create({"Concat",
                                   inputs,
                                   1,
                                   {AttrValue::of("axis", (*perm)[static_cast<size_t>(axis)])},
                                   n.region(),
                                   n.id(),
                                   n.name(),
                                   {n.id()}});
  const Node moved = edit.create({"Transpose",
                                  {joined.output(0)},
                                  1,
                                  {AttrValue::of("perm", Span<const int64_t>(*perm))},
                                  n.region(),
                                  n.id(),
                                  {},
                                  with});
  edit.replace_uses(n.output(0), moved.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Transpose", chain}, {"Concat", concat_of_transposed}};

}  // namespace

Table transpose_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
