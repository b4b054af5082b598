#include "tenon/sdk/pass_services.hpp"

#include "passes.hpp"

static void provide(tenon::sdk::Plugin& p) {
  using namespace tenon::fusion;
  p.instance<tenon::sdk::PassServices>();
  p.id("tenon.fusion")
      .name("fusion")
      .version("1.0.0")
      .vendor("Tenon")
      .summary("canonicalise, fold constants, simplify, merge, move and remove nodes");
  p.pass("canonicalize")
      .summary("remove operators that change nothing and merge chains of data movement, exactly")
      .doc(
          "Needs inferred types. Leaves no Identity, inference Dropout, same-type Cast, same-shape Reshape, "
          "Expand, Slice, Pad, Tile or Transpose that inference can see through; pairs of Transpose, "
          "Reshape, "
          "Squeeze, Unsqueeze, Slice, Concat, Expand, Pad and lossless Cast are merged, Pads go into the "
          "convolution or pooling behind them, the shape arithmetic of a Reshape whose target the types know "
          "is "
          "cut off, Nots go into what they negate. All rewrites give bit-equal results.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .alias("oo_dead_code_elimination.canonicalize")
      .run<run_canonicalize>();
  p.pass("control")
      .summary("take constant branches, unroll short loops, compute before a loop what it does not change")
      .doc(
          "Run it after fold. An If on a constant is its taken branch, one of little and safe work a Where; "
          "a "
          "Loop that runs once (or not at all, or over little) is its body; state that never changes is what "
          "it "
          "was given; what reads nothing of a body, and cannot fail, moves out; results that nobody reads "
          "go. "
          "Exact.")
      .level(1)
      .option_int("unroll_nodes", 16, 0, 100000, "nodes that unrolling one Loop may add")
      .run<run_control>();
  p.pass("algebra")
      .summary("simplify arithmetic: neutral operands, constants in a row, bounds, reductions, Einsum")
      .doc(
          "Run it after raise, whose patterns are spelt as exporters write them, and before fold. What may "
          "change "
          "a float's last bit or the sign of its zero does not run under precision strict; what only holds "
          "of "
          "whole numbers is asked of them only.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .run<run_algebra>();
  p.pass("move")
      .summary("carry Transposes, Reshapes and selections past arithmetic, where they cancel or save work")
      .doc(
          "Run it after raise and before fuse. Transposes and Reshapes move behind arithmetic when another "
          "one "
          "waits there, data movement between DequantizeLinear and QuantizeLinear of one scale works on "
          "whole "
          "numbers, Slices and Gathers of rows move before what is computed row by row.")
      .level(2)
      .flags(TN_PASS_IDEMPOTENT)
      .run<run_move>();
  p.pass("fold")
      .summary("compute what depends on constants only")
      .doc(
          "Needs inferred types. Folds known shape arithmetic and nodes whose operands are constants, within "
          "the growth limit.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .alias("ConstantFolding")
      .alias("oo_constant_folding")
      .option_float(
          "max_growth", 1.1, 0, 1e6,
          "largest result in multiples of the constants that die with the node, were its elements as wide")
      .option_float(
          "max_widening", 8, 1, 64,
          "how much wider than the constant's its elements may become (never behind DequantizeLinear)")
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
  p.pass("fold_profiled")
      .summary("make values that samples showed to be always the same constants, guarded")
      .doc(
          "Not in the default pipeline: `tenon optimize --samples DIR --fold-profiled` puts it first. An If "
          "on the "
          "inputs being the sample's yields the constants, and computes the values as before otherwise.")
      .level(1)
      .option_string("values", "", "Names of the values, one a line.")
      .run<run_fold_profiled>();
}
TENON_PLUGIN(provide)
