// move: Transposes, Reshapes and selections past arithmetic.
#include "tests/fusion/graphs.hpp"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("Transposes meet behind arithmetic; constants go along") {
  const auto check = [](const std::string& between, const std::string& second, const std::string& ops) {
    check_rewrite("move",
                  around("float32[2,3,4]",
                         "  const %k: float32[3] = [1.0,2.0,3.0]\n  const %one: float32[] = [0.5]\n  const "
                         "%ax: int64[] = [1]\n  %a "
                         "= Transpose(%x) {perm = [0,2,1]}\n" +
                             between + "  %y = Transpose(%b) {perm = " + second + "}\n"),
                  ops, Equal::bits, "strict");
  };
  check("  %b = Relu(%a)\n", "[0,2,1]", "Relu");
  check("  %b = Relu(%a)\n", "[1,0,2]", "Relu Transpose");
  check("  %p = Mul(%a, %k)\n  %b = Add(%one, %p)\n", "[0,2,1]", "Mul Add");
  check("  %b = Softmax(%a) {axis = 1}\n", "[0,2,1]", "Softmax");
  check("  %b = CumSum(%a, %ax)\n", "[0,2,1]", "Transpose CumSum Transpose");
}

TEST_CASE("a Transpose that something else reads stays where it is") {
  check_rewrite(
      "move",
      "  input %x: float32[2,3]\n  %a = Transpose(%x)\n  %b = Relu(%a)\n  %y = Transpose(%b)\n  output %y as "
      "\"y\"\n  output %a as \"a\"\n",
      "Transpose Relu Transpose");
}

TEST_CASE("operands transposed alike are transposed once, behind") {
  const auto body = [](const std::string& second) {
    return "  input %x: float32[3,3]\n  input %w: float32[3,3]\n  %a = Transpose(%x) {perm = [1,0]}\n  %b "
           "= " +
           second + "\n  %y = Sub(%a, %b)\n  output %y as \"y\"\n";
  };
  check_rewrite("move", body("Transpose(%w)"), "Sub Transpose", Equal::bits, "strict");
  check_rewrite("move", body("Neg(%w)"), "Transpose Neg Sub", Equal::bits, "strict");
}

TEST_CASE("Reshapes meet behind arithmetic") {
  const auto check = [](const std::string& between, const std::string& target, const std::string& ops) {
    check_rewrite("move",
                  around("float32[N,3,4]",
                         "  const %k: float32[12] = [1.0,2.0,3.0,1.0,2.0,3.0,1.0,2.0,3.0,1.0,2.0,3.0]\n"
                         "  const %one: float32[] = [0.5]\n  const %s: int64[2] = [-1,12]\n  %a = "
                         "Reshape(%x, %s)\n" +
                             between + "  const %t: int64[3] = " + target + "\n  %y = Reshape(%b, %t)\n"),
                  ops, Equal::bits, "strict");
  };
  check("  %b = Relu(%a)\n", "[-1,3,4]", "Relu");
  check("  %b = Mul(%a, %one)\n", "[-1,4,3]", "Mul Reshape");
  check("  %b = Mul(%a, %k)\n", "[-1,4,3]", "Reshape Mul Reshape");
}

TEST_CASE("a Softmax behind a Reshape is one of the axis that it was") {
  const auto check = [](const std::string& type, const std::string& lines, const std::string& ops) {
    check_rewrite("move", around(type, lines), ops, Equal::bits, "strict", true);
  };
  const std::string back = "  const %t: int64[4] = [2,5,1,1]\n  %y = Reshape(%b, %t)\n";
  check("float32[2,5,1,1]", "  %a = Flatten(%x)\n  %b = Softmax(%a) {axis = -1}\n" + back, "Softmax");
  check("float32[2,1,5,1]", "  %a = Flatten(%x)\n  %b = Softmax(%a) {axis = -1}\n" + back, "Softmax Reshape");
  check("float32[2,5,1,1]", "  %a = Flatten(%x)\n  %b = Softmax(%a) {axis = 0}\n" + back, "Softmax");
  // Two axes together: no one axis of the tensor is that.
  check("float32[2,5,3]",
        "  %a = Flatten(%x)\n  %b = Softmax(%a) {axis = -1}\n  const %t: int64[3] = [2,5,3]\n  %y = "
        "Reshape(%b, %t)\n",
        "Flatten Softmax Reshape");
}

TEST_CASE("data moves as whole numbers between DequantizeLinear and QuantizeLinear of one scale") {
  const auto check = [](const std::string& scale, const std::string& zero, const std::string& ops) {
    check_rewrite(
        "move",
        around("uint8[2,3]",
               "  const %s: float32[] = [0.37]\n  const %z: uint8[] = [7]\n  const %s2: float32[] = "
               "[" +
                   scale + "]\n  const %z2: uint8[] = [" + zero +
                   "]\n  %a = DequantizeLinear(%x, %s, %z)\n  %b = Transpose(%a)\n  %y = "
                   "QuantizeLinear(%b, %s2, %z2)\n"),
        ops, Equal::bits, "strict");
  };
  check("0.37", "7", "Transpose");
  check("0.37", "8", "DequantizeLinear Transpose QuantizeLinear");
  check("0.38", "7", "DequantizeLinear Transpose QuantizeLinear");
}

TEST_CASE("rows are selected before they are computed") {
  const std::string weights =
      "  const %w: float32[4,2] = [1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0]\n  const %b: float32[2] = [0.5,1.5]\n";
  const auto check = [&](const std::string& select, const std::string& ops,
                         const std::string& precision = "faithful") {
    check_rewrite(
        "move",
        around("float32[2,N,4]", weights +
                                     "  const %i: int64[] = [-1]\n  const %o: int64[1] = [0]\n  const %e: "
                                     "int64[1] = [1]\n  const %a: int64[1] = [1]\n  %m = MatMul(%x, "
                                     "%w)\n  %s = Add(%m, %b)\n" +
                                     select),
        ops, Equal::nearly, precision, true);
  };
  check("  %y = Gather(%s, %i) {axis = 1}\n", "Gather MatMul Add");
  check("  %y = Slice(%s, %o, %e, %a)\n", "Slice MatMul Add");
  check("  %y = Gather(%s, %i) {axis = 1}\n", "MatMul Add Gather", "strict");
  check("  %y = Gather(%s, %i) {axis = 2}\n", "MatMul Add Gather");  // columns: the matrix has them
}

TEST_CASE("rows of a tensor need no matrix to be multiplied") {
  const std::string weights =
      "  const %w: float32[4,2] = [1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0]\n  const %v: float32[2,4] = "
      "[1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0]\n  const %c: float32[2] = [0.5,1.5]\n  const %c2: float32[1,2] = "
      "[0.5,1.5]\n  "
      "const %s: int64[2] = [-1,4]\n  %a = Reshape(%x, %s)\n";
  const auto check = [&](const std::string& lines, const std::string& ops,
                         const std::string& precision = "faithful") {
    check_rewrite("move fold", around("float32[N,3,4]", weights + lines), ops, Equal::nearly, precision,
                  true);
  };
  const std::string back = "  const %t: int64[3] = [-1,3,2]\n  %y = Reshape(%b, %t)\n";
  check("  %b = MatMul(%a, %w)\n" + back, "MatMul");
  check("  %b = MatMul(%a, %w)\n" + back, "Reshape MatMul Reshape", "strict");
  check("  %b = Gemm(%a, %w, %c)\n" + back, "MatMul Add");
  check("  %b = Gemm(%a, %v, %c2) {transB = 1}\n" + back, "MatMul Add");
  check("  %g = Gemm(%a, %w, %c)\n  %b = Relu(%g)\n" + back, "MatMul Add Relu");
  check("  %b = Gemm(%a, %w, %c) {alpha = 2.0}\n" + back, "Reshape Gemm Reshape");
  // The rows are others afterwards.
  check("  %b = MatMul(%a, %w)\n  const %t: int64[3] = [3,-1,2]\n  %y = Reshape(%b, %t)\n",
        "Reshape MatMul Reshape");
  // Heads that are joined on the way are joined without the rows.
  const auto heads = [&](const std::string& lines, const std::string& ops, const char* x) {
    check_rewrite("move fold", around(x, weights + lines), ops, Equal::nearly, "faithful", true);
  };
  heads("  %b = Gemm(%a, %w, %c)\n" + back, "Reshape MatMul Add", "float32[N,3,2,2]");
  heads("  %b = Gemm(%a, %w, %c)\n" + back, "Reshape Gemm Reshape", "float32[N,2,3,2]");
}

TEST_CASE("an activation goes before the data movement behind a product") {
  const std::string head =
      "  const %w: float32[4,2,1,1] = [1.0,2.0,3.0,4.0,-5.0,6.0,7.0,8.0]\n  const %m: float32[5,5] = "
      "[1.0,2.0,3.0,"
      "4.0,5.0,1.0,2.0,3.0,4.0,5.0,1.0,2.0,3.0,4.0,5.0,1.0,2.0,3.0,4.0,5.0,-1.0,2.0,-3.0,4.0,5.0]\n"
      "  const %s: int64[4] = [1,2,2,15]\n  const %lo: float32[] = [-1.0]\n  %c = Conv(%x, %w)\n";
  const auto check = [&](const std::string& lines, const std::string& ops) {
    check_rewrite("move", around("float32[1,2,3,5]", head + lines), ops, Equal::bits, "strict", true);
  };
  check("  %r = Reshape(%c, %s)\n  %t = Transpose(%r) {perm = [0,1,3,2]}\n  %y = Sigmoid(%t)\n",
        "Conv Sigmoid Reshape Transpose");
  check("  %t = Transpose(%c)\n  %y = LeakyRelu(%t) {alpha = 0.2}\n", "Conv LeakyRelu Transpose");
  check("  %t = Transpose(%c)\n  %y = Clip(%t, %lo)\n", "Conv Clip Transpose");
  check("  %p = MatMul(%c, %m)\n  %t = Transpose(%p)\n  %y = Relu(%t)\n", "Conv MatMul Relu Transpose");
  // No product before it, two readers on the way, or something that no product takes in.
  check("  %n = Neg(%c)\n  %t = Transpose(%n)\n  %y = Relu(%t)\n", "Conv Neg Transpose Relu");
  check("  %t = Transpose(%c)\n  %r = Relu(%t)\n  %y = Add(%t, %r)\n", "Conv Transpose Relu Add");
  check("  %t = Transpose(%c)\n  %y = Sin(%t)\n", "Conv Transpose Sin");
}
