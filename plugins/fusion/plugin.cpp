#include "tenon/sdk/plugin.hpp"

#include "passes.hpp"

static void provide(tenon::sdk::Plugin& p) {
  using namespace tenon::fusion;
  p.id("tenon.fusion")
      .name("fusion")
      .version("1.0.0")
      .vendor("Tenon")
      .summary("canonicalise, fold constants, merge and remove nodes");
  p.pass("canonicalize")
      .summary("remove operators that change nothing and merge chains of data movement, exactly")
      .doc(
          "Needs inferred types. Leaves no Identity, inference Dropout, same-type Cast, same-shape Reshape, "
          "Expand, Slice, Pad or Transpose that "
          "inference can see through; pairs of Transpose, Reshape and lossless Cast are merged; an If on a "
          "constant is its taken branch. "
          "All rewrites give bit-equal results.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .alias("oo_dead_code_elimination.canonicalize")
      .run<run_canonicalize>();
  p.pass("fold")
      .summary("compute what depends on constants only")
      .doc(
          "Needs inferred types. Folds known shape arithmetic and nodes whose operands are constants, within "
          "the growth limit.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .alias("ConstantFolding")
      .alias("oo_constant_folding")
      .option_float("max_growth", 1.1, 0, 1e6,
                    "largest result in multiples of the constants that die with the node")
      .option_int("max_bytes_free", 65536, 0, 1e15, "results up to this many bytes are always folded")
      .run<run_fold>();
  p.pass("cse")
      .summary("merge equal nodes and equal constants")
      .doc(
          "Two nodes are equal when operator, attributes with defaults, and operands are; random operators "
          "never are.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .alias("CommonSubexpressionElimination")
      .run<run_cse>();
  p.pass("clean")
      .summary("remove nodes whose results nobody reads")
      .doc("Leaves only nodes that a graph output, or an operator with side effects, needs.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .alias("dce")
      .alias("oo_dead_code_elimination")
      .run<run_clean>();
}
TENON_PLUGIN(provide)
