// algebra: products of matrices, and pooling over whole planes.
#include "tests/fusion/graphs.hpp"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("a chain of products is computed in the order that costs less") {
  const auto check = [](const std::string& type, const std::string& lines, const std::string& ops,
                        const std::string& precision = "faithful") {
    check_rewrite("algebra", "  input %x: " + type + "\n" + lines + "  output %y as \"y\"\n", ops,
                  Equal::nearly, precision, true);
  };
  const std::string vector = "  input %b: float32[8,6]\n  input %v: float32[6,1]\n  %p = MatMul(%x, %b)\n";
  // (x b) v: the matrix of both is 9 times 6, and v makes it a column.
  check("float32[9,8]", vector + "  %y = MatMul(%p, %v)\n", "MatMul MatMul");
  const Rewritten turned = rewrite(
      "algebra", "  input %x: float32[9,8]\n" + vector + "  %y = MatMul(%p, %v)\n  output %y as \"y\"\n");
  CHECK(turned.applied("algebra") == 1);
  CHECK(turned.count("float32[8,1] = MatMul(%b, %v)") == 1);
  const auto applied = [](const std::string& body, const std::string& precision = "faithful") {
    return rewrite("algebra", body + "  output %y as \"y\"\n", "{}", {}, precision).applied("algebra");
  };
  CHECK(applied("  input %x: float32[9,8]\n" + vector + "  %y = MatMul(%p, %v)\n", "strict") == 0);
  CHECK(applied("  input %x: float32[1,8]\n" + vector + "  %y = MatMul(%p, %v)\n") == 0);  // a row first
  CHECK(applied("  input %x: float32[N,8]\n" + vector + "  %y = MatMul(%p, %v)\n") == 0);
  CHECK(applied("  input %x: float32[9,8]\n" + vector + "  %y = MatMul(%p, %v)\n  output %p as \"p\"\n") ==
        0);
  // x (b v) with a row in front: from the left.
  CHECK(applied("  input %x: float32[1,8]\n  input %b: float32[8,6]\n  input %v: float32[6,7]\n"
                "  %p = MatMul(%b, %v)\n  %y = MatMul(%x, %p)\n") == 1);
  check(
      "float32[1,8]",
      "  input %b: float32[8,6]\n  input %v: float32[2,6,7]\n  %p = MatMul(%b, %v)\n  %y = MatMul(%x, %p)\n",
      "MatMul MatMul");
  // Two constants become one only where that is not larger.
  const std::string narrow =
      "  input %x: float32[9,4]\n  const %b: float32[4,1] = [1.0,2.0,3.0,4.0]\n  const %v: float32[1,4] = "
      "[1.0,2.0,3.0,4.0]\n  %p = MatMul(%x, %b)\n  %y = MatMul(%p, %v)\n";
  CHECK(applied(narrow) == 0);
  const std::string square =
      "  input %x: float32[9,2]\n  const %b: float32[2,2] = [1.0,2.0,3.0,4.0]\n  const %v: float32[2,2] = "
      "[1.0,2.0,3.0,4.0]\n  %p = MatMul(%x, %b)\n  %y = MatMul(%p, %v)\n";
  check_rewrite("algebra fold", square + "  output %y as \"y\"\n", "MatMul", Equal::nearly, "faithful", true);
}

TEST_CASE("a constant right side has no axes of one element") {
  const auto check = [](const std::string& type, const std::string& ops) {
    check_rewrite("algebra fold",
                  around(type, "  const %w: float32[1,2,2] = [1.0,2.0,3.0,4.0]\n  %y = MatMul(%x, %w)\n"),
                  ops, Equal::nearly, "faithful", true);
  };
  check("float32[3,4,2]", "MatMul");
  const auto rank_two = [](const std::string& type) {
    return rewrite("algebra fold", around(type,
                                          "  const %w: float32[1,2,2] = [1.0,2.0,3.0,4.0]\n  %y = MatMul(%x, "
                                          "%w)\n"))
        .count("float32[2,2] =");
  };
  CHECK(rank_two("float32[3,4,2]") == 1);
  CHECK(rank_two("float32[4,2]") == 0);  // the result would have an axis less
}

TEST_CASE("pooling over whole planes has one spelling") {
  const auto check = [](const std::string& lines, const std::string& ops,
                        const std::string& precision = "faithful") {
    check_rewrite("algebra move",
                  around("float32[2,3,4,5]",
                         "  const %p: int64[2] = [3,2]\n  const %c: int64[2] = [1,3]\n"
                         "  const %s: int64[2] = [2,3]\n" +
                             lines),
                  ops, Equal::nearly, precision, true);
  };
  check("  %a = GlobalAveragePool(%x)\n  %y = Flatten(%a)\n", "ReduceMean");
  check("  %a = GlobalAveragePool(%x)\n  %y = Squeeze(%a, %s)\n", "ReduceMean");
  check("  %a = GlobalMaxPool(%x)\n  %y = Reshape(%a, %s)\n", "ReduceMax");
  check("  %a = GlobalAveragePool(%x)\n  %y = Flatten(%a)\n", "GlobalAveragePool Flatten", "strict");
  check("  %a = GlobalAveragePool(%x)\n  %y = Flatten(%a) {axis = 0}\n", "GlobalAveragePool Flatten");
  check("  %a = GlobalAveragePool(%x)\n  %f = Flatten(%a)\n  %y = Add(%a, %f)\n",
        "GlobalAveragePool Flatten Add");
  // The Reshape meets another.
  check(
      "  const %t: int64[4] = [2,3,1,1]\n  %a = GlobalAveragePool(%x)\n  %f = Reshape(%a, %s)\n  %r = "
      "Relu(%f)\n"
      "  %y = Reshape(%r, %t)\n",
      "GlobalAveragePool Relu");
  check("  %y = ReduceMean(%x, %p)\n", "GlobalAveragePool");
  check("  %y = ReduceMax(%x, %p)\n", "GlobalMaxPool", "strict");
  check("  %y = ReduceMean(%x, %c)\n", "ReduceMean");
  check("  %y = ReduceMean(%x, %p) {keepdims = 0}\n", "ReduceMean");
  check("  %y = AveragePool(%x) {kernel_shape = [4,5]}\n", "GlobalAveragePool");
  check("  %y = MaxPool(%x) {kernel_shape = [4,5], strides = [2,2]}\n", "GlobalMaxPool");
  check("  %y = AveragePool(%x) {kernel_shape = [4,4]}\n", "AveragePool");
  check("  %y = AveragePool(%x) {kernel_shape = [4,5], pads = [1,0,1,0]}\n", "AveragePool");
  check("  %y = AveragePool(%x) {kernel_shape = [4,5], auto_pad = \"SAME_UPPER\"}\n", "AveragePool");
}
