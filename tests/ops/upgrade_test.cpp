// Older forms of nodes become today's; and bodies of operators that have one.
#include <catch2/catch.hpp>

#include "one_node.hpp"

using namespace tenon::test;

TEST_CASE("attributes that became operands") {
  CHECK(operators_of("x: float32[4]", "Clip(x) {min = 0.0, max = 6.0} version 6") == "Clip");
  CHECK(types_of("x: float32[9,9]", "Slice(x) {starts = [1], ends = [3], axes = [1]} version 9") ==
        "float32[9,2]");
  CHECK(types_of("x: float32[9,1]", "Squeeze(x) {axes = [1]} version 11") == "float32[9]");
  CHECK(types_of("x: float32[9,4]", "ReduceSum(x) {axes = [1], keepdims = 0} version 11") == "float32[9]");
  CHECK(types_of("x: float32[9,4]", "ReduceMean(x) {axes = [1]} version 13") == "float32[9,1]");
  CHECK(types_of("x: float32[9]", "Pad(x) {pads = [1,2], value = 3.0} version 2") == "float32[12]");
  CHECK(types_of("x: float32[9]", "Split(x) {split = [2,7]} version 11", 2) == "float32[2]; float32[7]");
  CHECK(types_of("x: float32[8]", "Split(x) version 11", 2) == "float32[4]; float32[4]");
  CHECK(types_of("x: float32[9]", "TopK(x) {k = 3} version 9", 2) == "float32[3]; int64[3]");
  CHECK(types_of("x: float32[2,3]", "Reshape(x) {shape = [3,2]} version 1") == "float32[3,2]");
  CHECK(types_of("x: float32[9]", "Pad(x) {paddings = [1,2]} version 1") == "float32[12]");
}

TEST_CASE("operands and results that had other types, attributes that had other forms and defaults") {
  CHECK(types_of("x: float32[2,4]; s: float32[2] = [1.0,3.0]", "Split(x, s) {axis = 1} version 1", 2) ==
        "float32[2,1]; float32[2,3]");
  CHECK(types_of("x: float32[2,3]; n: float32[] = [2.0]; a: float32[] = [1.0]", "Tile(x, n, a) version 1") ==
        "float32[2,6]");
  CHECK(types_of("x: float32[4]", "Dropout(x) {ratio = 0.3} version 7", 2) == "float32[4]; float32[4]");
  CHECK(operators_of("x: float32[4]", "Dropout(x) version 7", 2) == "Dropout CastLike");
  CHECK(types_of("x: float32[4]", "Dropout(x) {ratio = 0.3} version 10", 2) == "float32[4]; bool[4]");
  CHECK(types_of("x: float32[4]", "Cast(x) {to = \"INT32\"} version 1") == "int32[4]");
  CHECK_THAT(types_of("x: float32[4]", "Cast(x) {to = \"INT\"} version 1"),
             Catch::Contains("names no element type"));
  CHECK(types_of("x: float32[2,3]", "Concat(x, x) version 1") == "float32[2,6]");
  CHECK(types_of("x: float32[1,1,4,4]", "LpPool(x) {kernel_shape = [2,2], p = 2.0} version 1") ==
        "float32[1,1,3,3]");
  CHECK(operators_of("x: float32[2,3,4]; s: float32[3]", "PRelu(x, s) version 6") == "Unsqueeze PRelu");
  CHECK(operators_of("x: float32[2,3,4]; s: float32[1]", "PRelu(x, s) version 6") == "PRelu");
  CHECK(operators_of("x: float32[2,3,4]; s: float32[3,4]",
                     "BatchNormalization(x, s, s, s, s) {spatial = 0} version 7") ==
        "Add Sqrt Sub Div Mul Add");
  CHECK(operators_of("a: float32[2,3]; c: float32[2]",
                     "Gemm(a, a, c) {transB = 1, broadcast = 1} version 6") == "Gemm");
}

TEST_CASE("operators that became others") {
  CHECK(operators_of("x: float32[1,1,2,2]; s: float32[4] = [1.0,1.0,2.0,2.0]", "Upsample(x, s) version 9") ==
        "Resize");
  CHECK(types_of("x: float32[1,1,2,2]", "Upsample(x) {scales = [1.0,1.0,2.0,3.0]} version 7") ==
        "float32[1,1,4,6]");
  CHECK(operators_of("x: float32[4]; i: int64[2]; u: float32[2]", "Scatter(x, i, u) version 9") ==
        "ScatterElements");
  CHECK_THAT(types_of("x: float32[1,1,2,2]; s: float32[4]", "Upsample(x, s)"),
             Catch::Contains("Upsample was removed in opset 10"));
}

TEST_CASE("Softmax saw its operand as a matrix before 13") {
  CHECK(operators_of("x: float32[2,3]", "Softmax(x) version 9") == "Softmax");
  CHECK(operators_of("x: float32[2,3,4]", "Softmax(x) {axis = 2} version 9") == "Softmax");
  CHECK(operators_of("x: float32[2,3,4]", "Softmax(x) version 9") == "Flatten Softmax Shape Reshape");
  CHECK(types_of("x: float32[N,3,4]", "Softmax(x) version 9") == "float32[N,3,4]");
  CHECK(operators_of("x: float32[2,3,4]", "Softmax(x) {axis = 1} version 13") == "Softmax");
}

TEST_CASE("B was aligned at axis before 7") {
  CHECK(operators_of("a: float32[2,3,4,5]; b: float32[3,4]",
                     "Add(a, b) {broadcast = 1, axis = 1} version 6") == "Unsqueeze Add");
  CHECK(types_of("a: float32[2,3,4,5]; b: float32[3,4]", "Add(a, b) {broadcast = 1, axis = 1} version 6") ==
        "float32[2,3,4,5]");
  CHECK(operators_of("a: float32[2,3,4,5]; b: float32[4,5]", "Add(a, b) {broadcast = 1} version 6") == "Add");
}

TEST_CASE("what cannot be said today is refused with its reason") {
  CHECK_THAT(
      types_of("x: float32[2,3]; s: float32[3]", "BatchNormalization(x, s, s, s, s) {is_test = 0} version 6"),
      Catch::Contains("asks for training"));
  CHECK(types_of("x: float32[2,3]; s: float32[3]", "BatchNormalization(x, s, s, s, s) version 9") ==
        "float32[2,3]");
  CHECK(operators_of("x: float32[2,4,5]; s: float32[2]",
                     "GroupNormalization(x, s, s) {num_groups = 2} version 18")
            .find("Expand") != std::string::npos);
}

TEST_CASE("bodies compute the same types from simpler operators") {
  CHECK(body_of("x: float32[N,4]", "Gelu(x)") == "float32[N,4] | Mul Erf Mul Add Mul");
  CHECK(body_of("x: float32[N,4]", "Swish(x)") == "float32[N,4] | Sigmoid Mul");
  CHECK(
      body_of("x: float32[N,4]; g: float32[4]; b: float32[4]", "LayerNormalization(x, g, b)").substr(0, 14) ==
      "float32[N,4] |");
  CHECK(body_of("x: float16[N,4]; g: float16[4]", "RMSNormalization(x, g)").substr(0, 14) ==
        "float16[N,4] |");
  CHECK(body_of("x: float32[1,3,8,8]; w: float32[4,3,3,3]; r: float32[1,4,6,6]",
                "tenon::FusedConv(x, w, _, r) {activation = \"LeakyRelu\", alpha = 0.25}") ==
        "float32[1,4,6,6] | Conv Add LeakyRelu");
  CHECK(body_of("q: float32[B,4,S,8]; k: float32[B,4,T,8]; v: float32[B,4,T,8]; m: float32[T]",
                "tenon::SDPA(q, k, v, m) {scale = 0.5}") ==
        "float32[B,4,S,8] | Transpose MatMul Mul Add Softmax MatMul");
  CHECK(body_of("q: float32[B,S,32]; k: float32[B,T,16]; v: float32[B,T,16]",
                "Attention(q, k, v) {q_num_heads = 4, kv_num_heads = 2, is_causal = 1}")
            .substr(0, 16) == "float32[B,S,32] ");
  CHECK(body_of("x: float32[B,S,32]; c: float32[64,4]; i: int64[B,S]",
                "RotaryEmbedding(x, c, c, i) {num_heads = 4}")
            .substr(0, 16) == "float32[B,S,32] ");
  CHECK_THAT(body_of("x: float32[*]; g: float32[4]; b: float32[4]", "LayerNormalization(x, g, b)"),
             Catch::StartsWith("declined: "));
}
