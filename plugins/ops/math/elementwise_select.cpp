// Where, and its kin that choose between operands element by element.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_where(Infer& c) {
  const tn_dtype dtype = c.dtype(1) != TN_DTYPE_NONE ? c.dtype(1) : c.dtype(2);
  const auto dims = broadcast_inputs(c, 0, 3);
  if (!dims) return c.set_unranked(0, dtype);
  c.set(0, dtype, *dims);
  const auto out = numbers(c, *dims);
  if (!out || !count_up_to(*out, max_known)) return;
  const auto condition = known(c, 0);
  if (!condition) return;
  const auto pick = broadcast_index(condition->dims, *out);
  const auto x = known(c, 1), y = known(c, 2);
  const auto from_x = x ? broadcast_index(x->dims, *out) : std::vector<int64_t>();
  const auto from_y = y ? broadcast_index(y->dims, *out) : std::vector<int64_t>();
  std::vector<tn_dim> e;
  for (size_t i = 0; i < pick.size(); ++i) {
    const auto yes = c.number(condition->at[static_cast<size_t>(pick[i])]);
    if (!yes || (*yes ? !x : !y)) return;
    e.push_back(*yes ? x->at[static_cast<size_t>(from_x[i])] : y->at[static_cast<size_t>(from_y[i])]);
  }
  set_known(c, 0, e);
}

}  // namespace

void add_elementwise_select(Plugin& p) {
  define(p, "Where").flags(TN_OP_ELEMENTWISE).infer<infer_where>().alias("select");
}

}  // namespace tenon::ops
