// Spellings of attention's core, RoPE, gated units and rearrangements.
#include "spellings.hpp"

namespace tenon::test {
namespace {

enum class Mask { none, after, before };
enum class Scale { none, multiply, divide, query, both };

std::string attention(Mask mask, Scale scale, bool turn_key, const std::string& axis = "-1",
                      bool read = false) {
  Draft d;
  d.number("k", 0.353553391).number("d", 2.82842708).number("r", 0.594603558);
  d.input("q", "2,3,5,8")
      .input("kk", turn_key ? "2,3,7,8" : "2,3,8,7")
      .input("v", "2,3,7,4")
      .input("m", "2,1,1,7");
  std::string key = "kk", query = "q", score = "s";
  if (turn_key) d.node("kt = Transpose(%kk) {perm = [0,1,3,2]}"), key = "kt";
  if (scale == Scale::query) d.node("qs = Mul(%q, %k)"), query = "qs";
  if (scale == Scale::both)
    d.node("qs = Mul(%q, %r)").node("ks = Mul(%" + key + ", %r)"), query = "qs", key = "ks";
  d.node("s = MatMul(%" + query + ", %" + key + ")");
  if (scale == Scale::multiply) d.node("sc = " + call("Mul", "s", "k", mask == Mask::before)), score = "sc";
  if (scale == Scale::divide) d.node("sc = Div(%s, %d)"), score = "sc";
  if (mask != Mask::none) d.node("sm = " + call("Add", score, "m", mask == Mask::before)), score = "sm";
  d.node("p = Softmax(%" + score + ") {axis = " + axis + "}").node("z = MatMul(%p, %v)");
  if (mask == Mask::none) d.node("unused = Neg(%m)");
  return read ? d.finish({"z", "p"}) : d.finish();
}

std::string reshaped(const char* input, std::initializer_list<long long> first, const char* perm,
                     std::initializer_list<long long> last) {
  return Draft()
      .ints("s1", first)
      .ints("s2", last)
      .input("x", input)
      .node("a = Reshape(%x, %s1)")
      .node(std::string("t = Transpose(%a) {perm = [") + perm + "]}")
      .node("z = Reshape(%t, %s2)")
      .finish();
}

}  // namespace

Family attention_family() {
  Family f{"attention core", "tenon::SDPA", 1, 30, {}, {}};
  const char* const masks[] = {"no mask", "scores + mask", "mask + scores"};
  const char* const scales[] = {"no scale", "Mul", "Div", "scaled query", "root on query and key"};
  for (int m = 0; m < 3; ++m)
    for (int s = 0; s < 5; ++s)
      for (const bool turn : {true, false})
        f.spellings.push_back(
            {std::string(masks[m]) + ", " + scales[s] + (turn ? ", Transpose" : ", K turned already"),
             attention(static_cast<Mask>(m), static_cast<Scale>(s), turn)});
  f.look_alikes = {{"softmax over the queries", attention(Mask::none, Scale::divide, true, "-2")},
                   {"the probabilities are read", attention(Mask::after, Scale::divide, true, "-1", true)}};
  return f;
}

Family rotary_family() {
  Family f{"RoPE", "RotaryEmbedding", 3, 16, {}, {}};  // and the cosine and sine of the angles
  const auto make = [](unsigned form, bool swapped, bool double_angles, bool wrong_half) {
    Draft d;
    d.ints("one", {1})
        .ints("zero", {0})
        .ints("half", {4})
        .ints("end", {9223372036854775807})
        .ints("last", {3});
    d.ints("two", {2}).ints("behind", {-1}).ints("sizes", {4, 4}).ints("shape", {2, 3, 5, 8});
    d.input("x", "2,3,5,8").input("f", "2,5,4");
    const std::string low = wrong_half ? "b" : "a", high = wrong_half ? "a" : "b";
    if (form < 2) {  // rotate half, tables as wide as a head
      if (double_angles)
        d.node("f2 = Concat(%f, %f) {axis = -1}").node("c = Cos(%f2)").node("s = Sin(%f2)");
      else
        d.node("c1 = Cos(%f)")
            .node("s1 = Sin(%f)")
            .node("c = Concat(%c1, %c1) {axis = -1}")
            .node("s = Concat(%s1, %s1) {axis = -1}");
      d.node("cu = Unsqueeze(%c, %one)").node("su = Unsqueeze(%s, %one)");
      if (form == 0)
        d.node("a = Slice(%x, %zero, %half, %last, %one)").node("b = Slice(%x, %half, %end, %last, %one)");
      else
        d.node("a, %b = Split(%x, %sizes) {axis = -1}");
      d.node("n = Neg(%" + high + ")").node("r = Concat(%n, %" + low + ") {axis = -1}");
      d.node("p = " + call("Mul", "x", "cu", swapped)).node("q = " + call("Mul", "r", "su", swapped));
      d.node("z = " + call("Add", "p", "q", swapped));
      return d.finish();
    }
    d.node("c = Cos(%f)")
        .node("s = Sin(%f)")
        .node("cu = Unsqueeze(%c, %one)")
        .node("su = Unsqueeze(%s, %one)");
    if (form == 2)
      d.node("a, %b = Split(%x, %sizes) {axis = -1}");
    else
      d.node("a = Slice(%x, %zero, %end, %last, %two)").node("b = Slice(%x, %one, %end, %last, %two)");
    d.node("p = " + call("Mul", low, "cu", swapped))
        .node("q = " + call("Mul", high, "su", swapped))
        .node("re = Sub(%p, %q)");
    d.node("u = " + call("Mul", high, "cu", swapped))
        .node("v = " + call("Mul", low, "su", swapped))
        .node("im = " + call("Add", "u", "v", double_angles));
    if (form == 2)
      d.node("z = Concat(%re, %im) {axis = -1}");
    else
      d.node("ru = Unsqueeze(%re, %behind)")
          .node("iu = Unsqueeze(%im, %behind)")
          .node("k = Concat(%ru, %iu) {axis = -1}")
          .node("z = Reshape(%k, %shape)");
    return d.finish();
  };
  const char* const names[] = {"rotate half, Slice", "rotate half, Split", "halves", "interleaved"};
  for (unsigned form = 0; form < 4; ++form)
    for (const bool swapped : {false, true})
      for (const bool second : {false, true})
        f.spellings.push_back(
            {std::string(names[form]) + (swapped ? ", swapped" : "") + (second ? ", second way" : ""),
             make(form, swapped, second, false)});
  f.look_alikes = {{"the first half is negated", make(0, false, true, true)},
                   {"the halves change places", make(2, false, false, true)}};
  return f;
}

namespace {

/// x * c + rotate_half(x) * s with tables as wide as a head: rows picked by positions, or a row a position.
std::string rotary_table(bool picked, bool split, bool swapped, bool beside_heads, bool equal_halves) {
  Draft d;
  const std::string shape = picked ? "9,8" : beside_heads ? "1,1,5,8" : "5,8";
  d.weights("ct", shape, 1, 0, 4).weights("st", shape, 1, 0, equal_halves ? 4 : 0);
  d.ints("one", {1})
      .ints("zero", {0})
      .ints("half", {4})
      .ints("end", {9223372036854775807})
      .ints("last", {-1});
  d.ints("sizes", {4, 4});
  d.input("x", "2,3,5,8");
  if (picked) d.input("f", "2,5").node("p = Cast(%f) {to = 7}");
  if (picked)
    d.node("cg = Gather(%ct, %p)")
        .node("sg = Gather(%st, %p) {axis = 0}")
        .node("c = Unsqueeze(%cg, %one)")
        .node("s = Unsqueeze(%sg, %one)");
  const std::string c = picked ? "c" : "ct", s = picked ? "s" : "st";
  if (split)
    d.node("a, %b = Split(%x, %sizes) {axis = 3}");
  else
    d.node("a = Slice(%x, %zero, %half, %last, %one)").node("b = Slice(%x, %half, %end, %last, %one)");
  d.node("n = Neg(%b)").node("r = Concat(%n, %a) {axis = -1}");
  d.node("u = " + call("Mul", "x", c, swapped)).node("v = " + call("Mul", "r", s, swapped));
  return d.node("z = " + call("Add", "u", "v", swapped)).finish();
}

Family rotary_table_family(const char* name, int nodes, bool picked) {
  Family f{name, "RotaryEmbedding", nodes, picked ? 4u : 8u, {}, {}};
  for (const bool split : {false, true})
    for (const bool swapped : {false, true})
      for (const bool beside : {false, true}) {
        if (picked && beside) continue;  // Unsqueeze is the only way there
        f.spellings.push_back({std::string(split ? "Split" : "Slice") + (swapped ? ", swapped" : "") +
                                   (beside ? ", table of four dimensions" : ""),
                               rotary_table(picked, split, swapped, beside, true)});
      }
  f.look_alikes = {{"the halves of a table differ", rotary_table(picked, false, false, true, false)}};
  return f;
}

}  // namespace

/// The positions are made whole numbers first; some count from the end.
Family rotary_gathered_family() { return rotary_table_family("RoPE with rows picked by positions", 4, true); }
Family rotary_constant_family() { return rotary_table_family("RoPE with constant tables", 1, false); }

Family gated_family() {
  Family f{"SwiGLU, GeGLU, GLU", "tenon::GatedActivation", 3, 12, {}, {}};
  const auto make = [](unsigned act, bool bias, bool swapped, const char* width) {
    Draft d;
    d.weights("wg", "8,6", 0.5)
        .weights("wu", std::string("8,") + width, 0.5)
        .weights("bg", "6")
        .weights("bu", width)
        .input("x", "2,5,8");
    d.node("g = MatMul(%x, %wg)").node("u = MatMul(%x, %wu)");
    if (bias)
      d.node("gb = " + call("Add", "g", "bg", swapped)).node("ub = " + call("Add", "u", "bu", swapped));
    const std::string g = bias ? "gb" : "g", u = bias ? "ub" : "u";
    if (act == 0)
      d.node("t = Sigmoid(%" + g + ")").node("a = " + call("Mul", g, "t", swapped));
    else
      d.node(std::string("a = ") + (act == 1 ? "Gelu" : "Sigmoid") + "(%" + g + ")");
    d.node("z = " + call("Mul", "a", u, swapped));
    return d.finish();
  };
  const char* const names[] = {"SwiGLU", "GeGLU", "GLU"};
  for (unsigned act = 0; act < 3; ++act)
    for (const bool bias : {false, true})
      for (const bool swapped : {false, true})
        f.spellings.push_back(
            {std::string(names[act]) + (bias ? ", biases" : "") + (swapped ? ", swapped" : ""),
             make(act, bias, swapped, "6")});
  f.look_alikes = {{"the factor is one number a row", make(0, false, false, "1")}};
  return f;
}

Family depth_to_space_family() {
  Family f{"DepthToSpace", "DepthToSpace", 1, 4, {}, {}};
  f.spellings = {{"DCR", reshaped("2,12,3,5", {2, 2, 2, 3, 3, 5}, "0,3,4,1,5,2", {2, 3, 6, 10})},
                 {"CRD", reshaped("2,12,3,5", {2, 3, 2, 2, 3, 5}, "0,1,4,2,5,3", {2, 3, 6, 10})},
                 {"DCR, open", reshaped("2,12,3,5", {0, 2, 2, 3, 3, 5}, "0,3,4,1,5,2", {2, -1, 6, 10})},
                 {"CRD, open", reshaped("2,12,3,5", {0, -1, 2, 2, 3, 5}, "0,1,4,2,5,3", {2, 3, 6, -1})}};
  f.look_alikes = {
      {"another permutation", reshaped("2,12,3,5", {2, 2, 2, 3, 3, 5}, "0,3,4,2,5,1", {2, 3, 6, 10})},
      {"the block is 3 by 2", reshaped("2,12,3,5", {2, 3, 2, 2, 3, 5}, "0,3,4,1,5,2", {2, 2, 6, 15})}};
  f.rtol = f.atol = 0;
  return f;
}

Family space_to_depth_family() {
  Family f{"SpaceToDepth", "SpaceToDepth", 1, 2, {}, {}};
  f.spellings = {{"plain", reshaped("2,3,6,10", {2, 3, 3, 2, 5, 2}, "0,3,5,1,2,4", {2, 12, 3, 5})},
                 {"open", reshaped("2,3,6,10", {0, 0, 3, 2, -1, 2}, "0,3,5,1,2,4", {2, -1, 3, 5})}};
  f.look_alikes = {
      {"another permutation", reshaped("2,3,6,10", {2, 3, 3, 2, 5, 2}, "0,3,5,1,4,2", {2, 12, 3, 5})}};
  f.rtol = f.atol = 0;
  return f;
}

Family channel_shuffle_family() {
  Family f{"ChannelShuffle", "tenon::ChannelShuffle", 1, 4, {}, {}};
  f.spellings = {{"2 groups", reshaped("2,6,3,5", {2, 2, 3, 3, 5}, "0,2,1,3,4", {2, 6, 3, 5})},
                 {"3 groups", reshaped("2,6,3,5", {2, 3, 2, 3, 5}, "0,2,1,3,4", {2, 6, 3, 5})},
                 {"pixels in one axis", reshaped("2,6,3,5", {2, 3, 2, 15}, "0,2,1,3", {2, 6, 3, 5})},
                 {"open", reshaped("2,6,3,5", {2, 2, -1, 3, 5}, "0,2,1,3,4", {2, -1, 3, 5})}};
  f.look_alikes = {{"the pixels move too", reshaped("2,6,3,5", {2, 2, 3, 3, 5}, "0,2,1,4,3", {2, 6, 3, 5})}};
  f.rtol = f.atol = 0;
  return f;
}

}  // namespace tenon::test
