// Types, shapes and contents of results: a table of (operands, node, what is inferred).
#include "inference_table.hpp"

using namespace tenon::test;

TEST_CASE("elements broadcast, dims stay symbols") {
  check({
      {"a: float32[N,1,4]; b: float32[3,1]", "Add(a, b)", "float32[N,3,4]"},
      {"a: float32[N]; b: float32[N]", "Mul(a, b)", "float32[N]"},
      {"a: int64[2] = [7,-7]; b: int64[] = [2]", "Div(a, b)", "int64[2] = 3,-3"},
      {"a: int64[2] = [7,-7]; b: int64[] = [3]", "Mod(a, b)", "int64[2] = 1,2"},
      {"a: int64[2] = [7,-7]; b: int64[] = [3]", "Mod(a, b) {fmod = 1}", "int64[2] = 1,-1"},
      {"a: int64[1] = [9223372036854775807]; b: int64[] = [1]", "Add(a, b)", "int64[1]"},
      {"a: int64[2] = [1,2]; b: int64[2] = [1,3]", "Equal(a, b)", "bool[2] = 1,0"},
      {"c: bool[2] = [1,0]; a: int64[2] = [1,2]; b: int64[] = [9]", "Where(c, a, b)", "int64[2] = 1,9"},
      {"a: int64[1] = [300]", "Cast(a) {to = 2}", "uint8[1]"},
      {"a: float32[2] = [3.0,4.0]", "Cast(a) {to = 7}", "int64[2] = 3,4"},
      {"a: float32[1] = [3.5]", "Cast(a) {to = 7}", "int64[1]"},
  });
  check_refused({{"a: float32[2]; b: float32[3]", "Add(a, b)", "dimensions 2 and 3 differ"},
                 {"a: float32[2]", "Cast(a) {to = 99}", "attribute 'to' is 99"}});
}

TEST_CASE("shapes are read and made") {
  check({
      {"x: float32[N,3,8]", "Shape(x)", "int64[3] = N,3,8"},
      {"x: float32[N,3,8]", "Shape(x) {start = -2}", "int64[2] = 3,8"},
      {"x: float32[N,3]", "Size(x)", "int64[] = 3*N"},
      {"x: float32[N,3,4]; s: int64[2] = [0,-1]", "Reshape(x, s)", "float32[N,12]"},
      {"x: float32[N,S,64]; s: int64[4] = [0,0,4,-1]", "Reshape(x, s)", "float32[N,S,4,16]"},
      {"x: float32[0,3]; s: int64[2] = [0,5]", "Reshape(x, s) {allowzero = 1}", "float32[0,5]"},
      {"x: float32[2,1,3,1]", "Squeeze(x)", "float32[2,3]"},
      {"x: float32[N,1]; a: int64[1] = [-1]", "Squeeze(x, a)", "float32[N]"},
      {"x: float32[3,4]; a: int64[2] = [0,-1]", "Unsqueeze(x, a)", "float32[1,3,4,1]"},
      {"x: float32[N,3,4]", "Flatten(x) {axis = -1}", "float32[3*N,4]"},
      {"x: float32[N,3,4]", "Transpose(x)", "float32[4,3,N]"},
      {"x: float32[3,1]; s: int64[3] = [2,1,6]", "Expand(x, s)", "float32[2,3,6]"},
      {"x: float32[2,N]; r: int64[2] = [1,3]", "Tile(x, r)", "float32[2,3*N]"},
      {"s: int64[2] = [2,3]", "ConstantOfShape(s)", "float32[2,3]"},
      {"a: int64[] = [2]; b: int64[] = [9]; c: int64[] = [3]", "Range(a, b, c)", "int64[3] = 2,5,8"},
  });
  check_refused({{"x: float32[2,3]; s: int64[2] = [4,-1]", "Reshape(x, s)", "6 is not divisible by 4"},
                 {"x: float32[2,3]; s: int64[1] = [5]", "Reshape(x, s)", "6 elements against 5"},
                 {"x: float32[2,3]; s: int64[2] = [-1,-1]", "Reshape(x, s)", "-1 twice"},
                 {"x: float32[2,3]; a: int64[1] = [0]", "Squeeze(x, a)", "only a dimension of 1"},
                 {"x: float32[2,3]; a: int64[1] = [4]", "Unsqueeze(x, a)", "is outside"},
                 {"x: float32[2,3]", "Transpose(x) {perm = [0,0]}", "every axis"},
                 {"s: int64[3] = [4611686018427387904,4,4]", "ConstantOfShape(s)",
                  "more elements than memory can hold"}});
}

TEST_CASE("slices clamp their bounds") {
  check({
      {"x: float32[10]; a: int64[1] = [2]; b: int64[1] = [9223372036854775807]", "Slice(x, a, b)",
       "float32[8]"},
      {"x: float32[10]; a: int64[1] = [-3]; b: int64[1] = [100]", "Slice(x, a, b)", "float32[3]"},
      {"x: float32[10]; a: int64[1] = [-1]; b: int64[1] = [-9223372036854775808]; i: int64[1] = [0]; s: "
       "int64[1] = [-1]",
       "Slice(x, a, b, i, s)", "float32[10]"},
      {"x: float32[10]; a: int64[1] = [8]; b: int64[1] = [1]; i: int64[1] = [0]; s: int64[1] = [-3]",
       "Slice(x, a, b, i, s)", "float32[3]"},
      {"x: float32[N,4]; a: int64[1] = [0]; b: int64[1] = [9223372036854775807]", "Slice(x, a, b)",
       "float32[N,4]"},
      {"x: int64[3] = [5,6,7]; a: int64[1] = [1]; b: int64[1] = [3]", "Slice(x, a, b)", "int64[2] = 6,7"},
      {"x: int64[3] = [5,6,7]; i: int64[] = [-1]", "Gather(x, i)", "int64[] = 7"},
      {"x: float32[5,N]; i: int64[2,3]", "Gather(x, i) {axis = 1}", "float32[5,2,3]"},
      {"x: float32[7]", "Split(x) {num_outputs = 3}", "float32[3]; float32[3]; float32[1]", 3},
      {"a: int64[1] = [4]; b: int64[2] = [5,6]", "Concat(a, b) {axis = 0}", "int64[3] = 4,5,6"},
      {"x: float32[2,3]; p: int64[4] = [0,1,0,2]", "Pad(x, p)", "float32[2,6]"},
      {"x: float32[2,3,4]; i: int64[2,1]", "GatherND(x, i) {batch_dims = 1}", "float32[2,4]"},
      {"x: float32[2,9]; k: int64[1] = [4]", "TopK(x, k)", "float32[2,4]; int64[2,4]", 2},
      {"i: int64[2,3]; d: int64[] = [5]; v: float32[2]", "OneHot(i, d, v) {axis = 1}", "float32[2,5,3]"},
  });
  check_refused({{"x: float32[3]; a: int64[1] = [0]; b: int64[1] = [2]; i: int64[1] = [0]; s: int64[1] = [0]",
                  "Slice(x, a, b, i, s)", "a step must not be 0"},
                 {"x: float32[2,3]; p: int64[4] = [0,-4,0,0]", "Pad(x, p)", "is cut to -1"},
                 {"x: float32[2,9]; k: int64[1] = [10]", "TopK(x, k)", "operand K is 10"}});
}

TEST_CASE("windows slide over images") {
  check({
      {"x: float32[N,3,224,224]; w: float32[64,3,7,7]", "Conv(x, w) {strides = [2,2], pads = [3,3,3,3]}",
       "float32[N,64,112,112]"},
      {"x: float32[1,3,H,8]; w: float32[4,3,3,3]", "Conv(x, w) {auto_pad = \"SAME_UPPER\", strides = [2,2]}",
       "float32[1,4,floordiv(H + 1, 2),4]"},
      {"x: float32[1,4,8]; w: float32[4,2,3]",
       "ConvTranspose(x, w) {group = 2, strides = [2], output_padding = [1]}", "float32[1,4,18]"},
      {"x: float32[1,1,7,7]", "MaxPool(x) {kernel_shape = [2,2], strides = [2,2], ceil_mode = 1}",
       "float32[1,1,4,4]; int64[1,1,4,4]", 2},
      {"x: float32[1,1,4]", "AveragePool(x) {kernel_shape = [1], strides = [2], ceil_mode = 1}",
       "float32[1,1,2]"},
      {"x: float32[N,8,H,W]", "GlobalAveragePool(x)", "float32[N,8,1,1]"},
      {"x: float32[1,1,H,5]; s: float32[4] = [1.0,1.0,2.0,0.5]", "Resize(x, _, s)", "float32[1,1,2*H,2]"},
      {"x: float32[1,1,4,6]; s: int64[2] = [8,8]",
       "Resize(x, _, _, s) {axes = [2,3], keep_aspect_ratio_policy = \"not_larger\"}", "float32[1,1,5,8]"},
  });
  check_refused({{"x: float32[1,3,8,8]; w: float32[]", "Conv(x, w)", "operand W has rank 0"},
                 {"x: float32[1,3,8,8]; w: float32[4,2,3,3]", "Conv(x, w)", "3 channels"},
                 {"x: float32[1,3,2,2]; w: float32[4,3,5,5]", "Conv(x, w)", "smaller than the kernel"},
                 {"x: float32[1,3,8,8]; w: float32[4,3,3,3]", "Conv(x, w) {strides = [0,1]}",
                  "attribute 'strides' holds 0"},
                 {"x: float32[1,3,8,8]; w: float32[4,3,3,3]", "Conv(x, w) {pads = [1,1]}", "expected 4"}});
}

TEST_CASE("products of matrices") {
  check({
      {"a: float32[B,2,3]; b: float32[3,4]", "MatMul(a, b)", "float32[B,2,4]"},
      {"a: float32[3]; b: float32[5,3,4]", "MatMul(a, b)", "float32[5,4]"},
      {"a: float32[N,3]; b: float32[4,3]; c: float32[4]", "Gemm(a, b, c) {transB = 1}", "float32[N,4]"},
      {"a: float32[B,I,J]; b: float32[B,J,K]", "Einsum(a, b) {equation = \"bij,bjk->bik\"}",
       "float32[B,I,K]"},
      {"q: float32[B,4,S,8]; k: float32[B,4,8,T]; v: float32[B,4,T,6]",
       "tenon::SDPA(q, k, v) {k_is_transposed = 1}", "float32[B,4,S,6]"},
      {"a: float32[2,3]; b: float32[4]", "ReduceMean(a)", "float32[1,1]"},
      {"a: float32[2,N,3]; i: int64[1] = [-1]", "ReduceSum(a, i) {keepdims = 0}", "float32[2,N]"},
      {"a: int64[3] = [2,3,4]", "ReduceProd(a) {keepdims = 0}", "int64[] = 24"},
      {"a: float32[2,N]", "NonZero(a)", "int64[2,y0.1#1]"},
  });
  check_refused(
      {{"a: float32[2,3]; b: float32[4,5]", "MatMul(a, b)", "inner dimensions differ: [2,3] times [4,5]"},
       {"a: float32[2,3]", "Softmax(a) {axis = 2}", "axis 2 is outside"}});
}

// Their contents may be unknown until the run, or never looked at: the rank alone is wrong.
TEST_CASE("an operand that is one number, or a list of them, has no more axes") {
  const std::string x =
      "x: float32[2,3]; n: int64[2]; m: int64[1,2]; f: float32[1,2]; b: bool[2]; c: bool[1,2]; g: "
      "float32[2]; ";
  const std::string scalar = "expected a scalar", list = "expected rank";
  struct Row {
    const char* node;
    const char* operand;
    const std::string& wanted;
  };
  const Row rows[] = {
      {"Range(m, n, n)", "start", scalar},
      {"Range(n, m, n)", "start", scalar},
      {"TopK(x, n)", "K", scalar},
      {"TopK(x, m)", "K", scalar},
      {"OneHot(n, m, g)", "depth", scalar},
      {"CumSum(x, n)", "axis", scalar},
      {"CumProd(x, m)", "axis", scalar},
      {"Clip(x, f)", "min", scalar},
      {"Clip(x, _, f)", "max", scalar},
      {"Trilu(x, m)", "k", scalar},
      {"Dropout(x, f)", "ratio", scalar},
      {"Dropout(x, _, b)", "training_mode", scalar},
      {"HannWindow(m)", "size", scalar},
      {"Pad(x, n, f)", "constant_value", scalar},
      {"com.microsoft::Range(m, n)", "start", scalar},
      {"ReduceSum(x, m)", "axes", list},
      {"ReduceLogSumExp(x, m)", "axes", list},
      {"ReduceMax(x, m) {keepdims = 0}", "axes", list},
      {"Squeeze(x, m)", "axes", list},
      {"Unsqueeze(x, m)", "axes", list},
      {"Slice(x, m, n)", "starts", list},
      {"Slice(x, n, m)", "ends", list},
      {"Slice(x, n, n, m)", "axes", list},
      {"Slice(x, n, n, n, m)", "steps", list},
      {"Pad(x, m)", "pads", list},
      {"Pad(x, n, _, m)", "axes", list},
      {"Tile(x, m)", "repeats", list},
      {"Expand(x, m)", "shape", list},
      {"Reshape(x, m)", "shape", list},
      {"ConstantOfShape(m)", "input", list},
      {"Resize(x, _, f)", "scales", list},
      {"Resize(x, _, _, m)", "sizes", list},
      {"CenterCropPad(x, m)", "shape", list},
      {"AffineGrid(x, m)", "size", list},
      {"SplitToSequence(x, m)", "split", list},
      {"Compress(x, c)", "condition", list},
      {"com.microsoft::Pad(x, m)", "pads", list},
  };
  for (const Row& row : rows) {
    INFO(row.node);
    CHECK_THAT(types_of(x, row.node, std::string(row.node).find("TopK") == 0 ? 2 : 1),
               Catch::StartsWith("error: ") && Catch::Contains(std::string("operand ") + row.operand) &&
                   Catch::Contains(row.wanted));
  }
  CHECK_THAT(types_of(x, "Split(x, m)", 2), Catch::Contains("operand split") && Catch::Contains(list));
}
