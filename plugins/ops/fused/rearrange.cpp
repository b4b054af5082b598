// Rearrangements that ONNX has no operator for, domain "tenon".
#include <algorithm>

#include "support/define.hpp"

namespace tenon::ops {
namespace {

constexpr Schema shuffle{"tenon", "ChannelShuffle", 1, 1, 1, "X:T", "Y:T", "T:", "groups!:int"};

void infer_shuffle(Infer& c) {
  same_type(c, 0, 0);
  const int64_t groups = required_int(c.attrs(), "groups");
  require(groups >= 1, "attribute 'groups' is " + text_of(groups) + "; expected 1 or more");
  if (!ranked(c, 0, "X", 2)) return;
  if (const auto channels = c.number(c.dims(0)[1]))
    require(*channels % groups == 0, "operand X has shape " + c.text(c.dims(0)) + ", whose channels " +
                                         text_of(groups) + " groups cannot share");
}

void decompose_shuffle(Editor& e, const Node& n) {
  const int64_t groups = n.attrs().get_int("groups", 1);
  Rewrite w(e, n);
  const tn_type t = e.graph().value(w.input(0)).type;
  if (t.kind != TN_KIND_TENSOR || t.rank < 2 || t.dims[1] < 0) decline("the number of channels is not known");
  const tn_value apart = w.make("Reshape", {w.input(0), w.ints({0, groups, t.dims[1] / groups, -1})});
  const Dims swap{0, 2, 1, 3};
  const tn_value turned = w.make("Transpose", {apart}, {AttrValue::of("perm", Span<const int64_t>(swap))});
  // The batch is axis 0 all the way; what else is known needs no node to tell it.
  std::vector<int64_t> whole{0};
  for (int32_t i = 1; i < t.rank; ++i) whole.push_back(t.dims[i]);
  const bool known = std::all_of(whole.begin() + 1, whole.end(), [](int64_t d) { return d > 0; });
  w.become(0, w.make("Reshape", {turned, known ? w.ints(whole) : w.make("Shape", {w.input(0)})}));
}

}  // namespace

void add_fused_rearrange(Plugin& p) {
  define(p, shuffle)
      .doc("Channels [groups, c] become [c, groups]: those of all groups take turns.")
      .infer<infer_shuffle>()
      .decompose<decompose_shuffle>();
}

}  // namespace tenon::ops
