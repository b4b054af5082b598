// Spellings of attention and of rearrangements.
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
