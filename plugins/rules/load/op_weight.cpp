#include "load/op_weight.hpp"

namespace tenon::rules {

uint32_t op_weight(std::string_view op) {
  struct Row {
    uint32_t weight;
    std::string_view ops;  // each between blanks
  };
  static constexpr Row rows[] = {
      {0, " Identity "},
      {1, " Reshape Flatten Squeeze Unsqueeze Shape Size ConstantOfShape Constant "},
      {2, " Neg Abs Relu Not Cast CastLike Clip Min Max Floor Ceil Round Sign "},
      {3,
       " Add Sub Mul And Or Xor Equal Less Greater LessOrEqual GreaterOrEqual Where LeakyRelu Slice Split "
       "Expand "},
      {4, " Div Mod Reciprocal Sqrt Transpose Concat Gather Pad Tile Sum Mean "},
      {5, " Exp Log Sigmoid Tanh Erf Softplus Swish HardSwish Gelu Sin Cos "},
      {7, " Pow ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL2 ReduceSumSquare CumSum "},
      {8, " Softmax LogSoftmax LayerNormalization BatchNormalization InstanceNormalization "},
      {9, " MatMul Gemm Conv ConvTranspose Einsum "}};
  for (const auto& row : rows) {
    const auto at = op.empty() ? std::string_view::npos : row.ops.find(op);
    if (at != std::string_view::npos && row.ops[at - 1] == ' ' && row.ops[at + op.size()] == ' ')
      return row.weight;
  }
  return plain_weight;
}

}  // namespace tenon::rules
