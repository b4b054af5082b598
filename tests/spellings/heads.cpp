// Spellings of attention with heads split off and joined again, with a cache, with RoPE, for groups of
// queries.
#include <cmath>

#include "spellings.hpp"

namespace tenon::test {
namespace {

/// A mask that is added may hide all keys of a query; one that is chosen takes its numbers from two finite
/// ones.
enum class Mask { none, added, chosen };

Family heads_family(const char* name, const char* op, int nodes, Mask mask) {
  Family f{name, op, nodes, 6, {}, {}};
  const auto make = [&](bool turned_at_once, bool divide, bool swapped, const char* join, double lowest) {
    Draft d;
    d.number("k", 0.353553391).number("d", 2.82842708).ints("split", {2, 5, 3, 8}).ints("join", {2, 5, 24});
    d.number("zero", 0)
        .number("low", lowest)
        .number("limit", 1.5);  // so high that it hides all keys of some queries
    d.input("q", "2,5,24").input("kk", "2,5,24").input("v", "2,5,24").input("m", "2,1,5,5");
    d.node("qr = Reshape(%q, %split)").node("qt = Transpose(%qr) {perm = [0,2,1,3]}");
    d.node("kr = Reshape(%kk, %split)");
    if (turned_at_once)
      d.node("kt = Transpose(%kr) {perm = [0,2,3,1]}");
    else
      d.node("kh = Transpose(%kr) {perm = [0,2,1,3]}").node("kt = Transpose(%kh) {perm = [0,1,3,2]}");
    d.node("vr = Reshape(%v, %split)").node("vt = Transpose(%vr) {perm = [0,2,1,3]}");
    d.node("s = MatMul(%qt, %kt)")
        .node("sc = " + (divide ? call("Div", "s", "d") : call("Mul", "s", "k", swapped)));
    if (mask == Mask::chosen) d.node("on = Greater(%m, %limit)").node("w = Where(%on, %zero, %low)");
    if (mask != Mask::none) d.node("sm = " + call("Add", "sc", mask == Mask::added ? "m" : "w", swapped));
    d.node(std::string("p = Softmax(%") + (mask != Mask::none ? "sm" : "sc") + ") {axis = -1}")
        .node("o = MatMul(%p, %vt)");
    d.node(std::string("ot = Transpose(%o) {perm = [") + join + "]}").node("z = Reshape(%ot, %join)");
    if (mask == Mask::none) d.node("unused = Neg(%m)");
    return d.finish();
  };
  const std::string right = "0,2,1,3";
  for (const bool turned : {false, true}) {
    const std::string key = turned ? ", K turned at once" : "";
    f.spellings.push_back({"Div" + key, make(turned, true, false, right.c_str(), -3e38)});
    for (const bool swapped : {false, true})
      f.spellings.push_back(
          {"Mul" + key + (swapped ? ", swapped" : ""), make(turned, false, swapped, right.c_str(), -3e38)});
  }
  f.look_alikes = {{"heads are joined in another order", make(true, true, false, "0,1,2,3", -3e38)}};
  if (mask == Mask::chosen)  // which every row of some query is: NaN, where Attention would yield zeros
    f.look_alikes.push_back({"the mask hides by -inf", make(false, false, false, right.c_str(), -INFINITY)});
  return f;
}

enum class Groups { none, expand, tile, reshape, tiled_reshape };

std::string cached(Groups groups, bool rotary, bool divide, bool causal_axis, bool read) {
  const bool few = groups != Groups::none;
  Draft d;
  d.number("k", 0.353553391).number("d", 2.82842708);
  d.ints("sq", {2, 5, 6, 8}).ints("so", {2, 5, 48}).ints("two", {2});
  if (few)
    d.ints("sk", {2, 5, 2, 8})
        .ints("five", {2, 2, 1, 9, 8})
        .ints("n", {2, 2, 3, 9, 8})
        .ints("t", {1, 1, 3, 1, 1});
  else
    d.ints("sk", {2, 5, 6, 8});
  d.ints("all", {2, 6, 9, 8});
  const char *hidden = few ? "2,5,16" : "2,5,48", *past = few ? "2,2,4,8" : "2,6,4,8";
  d.input("q", "2,5,48").input("kk", hidden).input("v", hidden).input("pk", past).input("pv", past);
  d.input("c", "2,5,4").input("n0", "2,5,4");
  d.node("qr = Reshape(%q, %sq)").node("q4 = Transpose(%qr) {perm = [0,2,1,3]}");
  d.node("kr = Reshape(%kk, %sk)").node("k4 = Transpose(%kr) {perm = [0,2,1,3]}");
  d.node("vr = Reshape(%v, %sk)").node("v4 = Transpose(%vr) {perm = [0,2,1,3]}");
  if (rotary) d.node("q5 = RotaryEmbedding(%q4, %c, %n0)").node("k5 = RotaryEmbedding(%k4, %c, %n0)");
  const std::string axis = causal_axis ? "2" : "-2";
  d.node(std::string("ck = Concat(%pk, %k") + (rotary ? "5" : "4") + ") {axis = " + axis + "}")
      .node("cv = Concat(%pv, %v4) {axis = " + axis + "}");
  std::string key = "ck", value = "cv";
  if (few)
    for (std::string* name : {&key, &value}) {
      const std::string x = *name;
      const bool by_reshape = groups == Groups::reshape || groups == Groups::tiled_reshape;
      d.node(x + "u = " + (by_reshape ? "Reshape(%" + x + ", %five)" : "Unsqueeze(%" + x + ", %two)"));
      d.node(x + "e = " +
             (groups == Groups::expand || groups == Groups::reshape ? "Expand(%" + x + "u, %n)"
                                                                    : "Tile(%" + x + "u, %t)"));
      d.node(x + "a = Reshape(%" + x + "e, %all)");
      *name = x + "a";
    }
  d.node("kt = Transpose(%" + key + ") {perm = [0,1,3,2]}")
      .node(std::string("s = MatMul(%q") + (rotary ? "5" : "4") + ", %kt)");
  d.node(divide ? "sc = Div(%s, %d)" : "sc = Mul(%s, %k)").node("p = Softmax(%sc)");
  d.node("o = MatMul(%p, %" + value + ")")
      .node("ot = Transpose(%o) {perm = [0,2,1,3]}")
      .node("z = Reshape(%ot, %so)");
  if (read) return d.finish({"z", "ck", "cv", "p"});
  return d.finish({"z", "ck", "cv"});
}

Family cache_family(const char* name, int nodes, bool rotary) {
  Family f{name, "Attention", nodes, 20, {}, {}};
  const std::pair<Groups, const char*> groups[] = {{Groups::none, "a head of K each"},
                                                   {Groups::expand, "Unsqueeze, Expand"},
                                                   {Groups::tile, "Unsqueeze, Tile"},
                                                   {Groups::reshape, "Reshape, Expand"},
                                                   {Groups::tiled_reshape, "Reshape, Tile"}};
  for (const auto& [g, text] : groups)
    for (const bool divide : {false, true})
      for (const bool axis : {false, true})
        f.spellings.push_back(
            {std::string(text) + (divide ? ", Div" : ", Mul") + (axis ? ", axis 2" : ", axis -2"),
             cached(g, rotary, divide, axis, false)});
  f.look_alikes = {{"the probabilities are read", cached(Groups::none, rotary, true, true, true)}};
  return f;
}

}  // namespace

Family attention_heads_family() { return heads_family("attention with heads", "Attention", 1, Mask::none); }
Family attention_heads_masked_family() {
  return heads_family("attention with heads and any mask", "tenon::MultiHeadSDPA", 1, Mask::added);
}
Family attention_heads_chosen_family() {
  return heads_family("attention with heads and a finite mask", "Attention", 2,
                      Mask::chosen);  // and the mask
}
Family attention_cache_family() { return cache_family("attention with a cache", 1, false); }
Family attention_cache_rotary_family() { return cache_family("attention with a cache and RoPE", 3, true); }

}  // namespace tenon::test
