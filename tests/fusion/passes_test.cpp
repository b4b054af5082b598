// Each rewrite with a graph on which it fires and one, as near as can be, on which it must not.
#include "tests/fusion/graphs.hpp"

using namespace tenon;
using tenon::test::rewrite;

namespace {

std::string after(const std::string& pass, const std::string& body, const std::string& options = "{}") {
  return rewrite(pass, body, options).ops;
}

}  // namespace

TEST_CASE("canonicalize removes what changes nothing") {
  const auto ops = [](const std::string& line) {
    return after("canonicalize",
                 "  input %x: float32[2,3]\n" + line + "  %z = Neg(%y)\n  output %z as \"z\"\n");
  };
  CHECK(ops("  %y = Identity(%x)\n") == "Neg");
  CHECK(ops("  %y = Dropout(%x)\n") == "Neg");
  CHECK(ops("  %y = Cast(%x) {to = 1}\n") == "Neg");
  CHECK(ops("  %y = Transpose(%x) {perm = [0,1]}\n") == "Neg");
  CHECK(ops("  %y = Transpose(%x) {perm = [1,0]}\n") == "Transpose Neg");
  CHECK(ops("  const %s: int64[2] = [2,3]\n  %y = Reshape(%x, %s)\n") == "Neg");
  CHECK(ops("  const %s: int64[2] = [3,2]\n  %y = Reshape(%x, %s)\n") == "Reshape Neg");
  CHECK(ops("  %y = Concat(%x) {axis = 0}\n") == "Neg");
  CHECK(ops("  %y = Clip(%x)\n") == "Neg");
  CHECK(ops("  const %b: int64[1] = [0]\n  const %e: int64[1] = [9]\n  %y = Slice(%x, %b, %e)\n") == "Neg");
  CHECK(ops("  const %b: int64[1] = [1]\n  const %e: int64[1] = [9]\n  %y = Slice(%x, %b, %e)\n") ==
        "Slice Neg");
}

TEST_CASE("canonicalize keeps a Slice that reverses, though its shape is the operand's") {
  const std::string body =
      "  input %x: float32[3]\n  const %b: int64[1] = [-1]\n  const %e: int64[1] = [-4]\n  const %a: "
      "int64[1] = [0]\n  const %s: int64[1] = [-1]\n"
      "  %y = Slice(%x, %b, %e, %a, %s)\n  output %y as \"y\"\n";
  CHECK(after("canonicalize", body) == "Slice");
}

TEST_CASE("canonicalize keeps a Dropout that trains") {
  CHECK(after("canonicalize",
              "  input %x: float32[3]\n  const %r: float32[] = [0.5]\n  const %t: bool[] = [1]\n  %y = "
              "Dropout(%x, %r, %t)\n  output %y as \"y\"\n") == "Dropout");
}

TEST_CASE("canonicalize removes neutral operands only where every bit stays") {
  const auto ops = [](const std::string& type, const std::string& constant, const std::string& line) {
    return after("canonicalize", "  input %x: " + type + "[2]\n  const %k: " + type + "[] = [" + constant +
                                     "]\n" + line + "  output %y as \"y\"\n");
  };
  CHECK(ops("float32", "1.0", "  %y = Mul(%k, %x)\n").empty());
  CHECK(ops("float32", "1.0", "  %y = Div(%x, %k)\n").empty());
  CHECK(ops("float32", "1.0", "  %y = Div(%k, %x)\n") == "Div");
  CHECK(ops("float32", "0.0", "  %y = Sub(%x, %k)\n").empty());
  CHECK(ops("float32", "0.0", "  %y = Sub(%k, %x)\n") == "Sub");
  CHECK(ops("float32", "0.0", "  %y = Add(%x, %k)\n") == "Add");  // -0.0 + 0.0 is 0.0
  CHECK(ops("int64", "0", "  %y = Add(%x, %k)\n").empty());
  CHECK(ops("float32", "0.0", "  %y = Mul(%x, %k)\n") == "Mul");  // NaN and infinity
}

TEST_CASE("canonicalize keeps an operator whose constant widens the result") {
  CHECK(after("canonicalize",
              "  input %x: float32[3]\n  const %k: float32[1,1] = [1.0]\n  %y = Mul(%x, %k)\n  output %y as "
              "\"y\"\n") == "Mul");
}

TEST_CASE("canonicalize merges Transposes in the right order") {
  const auto r = rewrite("canonicalize",
                         "  input %x: float32[2,3,4]\n  %a = Transpose(%x) {perm = [1,2,0]}\n  %b = "
                         "Transpose(%a) {perm = [0,2,1]}\n  output %b as \"b\"\n");
  CHECK(r.ops == "Transpose Transpose");  // the first is dead now; clean removes it
  INFO(r.text());
  CHECK(r.text().find("perm = [1, 0, 2]") != std::string::npos);
  CHECK(after("canonicalize",
              "  input %x: float32[2,3,4]\n  %a = Transpose(%x) {perm = [1,2,0]}\n  %b = Transpose(%a) {perm "
              "= [2,0,1]}\n  output %b as \"b\"\n") == "Transpose");
}

TEST_CASE("canonicalize drops a lossless Cast on the way and keeps one that loses") {
  const auto ops = [](const std::string& from, int middle, int to) {
    return rewrite("canonicalize",
                   "  input %x: " + from + "[2]\n  %a = Cast(%x) {to = " + std::to_string(middle) +
                       "}\n  %b = Cast(%a) {to = " + std::to_string(to) + "}\n  output %b as \"b\"\n")
        .applied("canonicalize");
  };
  CHECK(ops("float32", 11, 1) == 1);   // float64 in between: x itself
  CHECK(ops("float32", 11, 10) == 1);  // one Cast to float16
  CHECK(ops("float32", 3, 1) == 0);    // int8 in between
  CHECK(ops("float64", 1, 11) == 0);   // float32 in between
  CHECK(ops("int32", 9, 6) == 0);      // bool in between
  CHECK(ops("int64", 1, 7) == 0);      // 24 bits in between
  CHECK(ops("int32", 7, 2) == 1);      // whole numbers all the way: the low bits, either way
  CHECK(ops("int16", 1, 6) == 1);      // int32 holds what float32 holds of int16
  // A number outside the last type is the low bits of an integer, but not of a float.
  CHECK(ops("int16", 1, 3) == 0);
  CHECK(ops("int8", 16, 12) == 0);
  CHECK(ops("uint8", 16, 3) == 0);
  CHECK(ops("int32", 11, 13) == 0);
  // A text shows what it was made from.
  CHECK(ops("float32", 11, 8) == 0);
  CHECK(ops("int32", 7, 8) == 0);
}

TEST_CASE("control takes the branch of an If on a constant; the other may be impossible") {
  const std::string body = R"(  input %x: float32[2]
  const %c: bool[] = [1]
  %y = If(%c) {
    region "then_branch" {
      %t = Neg(%x)
      output %t as "t"
    }
    region "else_branch" {
      %e = Exp(%x)
      output %e as "e"
    }
  }
  output %y as "y"
)";
  const auto r = rewrite("control", body);
  CHECK(r.ops == "Neg");
  CHECK(r.graph->output_name(0, 0) == "y");
  std::string open = body;
  open.replace(open.find("  const %c: bool[] = [1]\n"), std::string("  const %c: bool[] = [1]\n").size(),
               "  input %c: bool[]\n");
  CHECK(after("control", open) == "Neg Exp Where");
}

TEST_CASE("fold computes what depends on constants, whole chains in one sweep") {
  const auto r = rewrite("fold",
                         "  input %x: float32[2]\n  const %a: float32[] = [4.0]\n  %b = Sqrt(%a)\n  %c "
                         "= Add(%b, %a)\n  %y = Mul(%x, %c)\n  output %y as \"y\"\n");
  CHECK(r.ops == "Mul");
  INFO(r.text());
  CHECK(r.text().find("[6.0]") != std::string::npos);
}

TEST_CASE("fold does not draw random numbers, nor fold what an input's default would decide") {
  CHECK(after("fold", "  %r = RandomNormal() {shape = [2]}\n  output %r as \"r\"\n") == "RandomNormal");
}

TEST_CASE("fold takes shape arithmetic that is known and leaves what is not") {
  const std::string shape =
      "  %s = Shape(%x)\n  const %i: int64[] = [1]\n  %d = Gather(%s, %i)\n  output %d as \"d\"\n";
  CHECK(after("fold", "  input %x: float32[N,3]\n" + shape) ==
        "Shape");  // nobody reads Shape any more; clean removes it
  CHECK(after("fold", "  input %x: float32[3,N]\n" + shape) == "Shape Gather");
}

TEST_CASE("fold refuses growth beyond its limit and says so") {
  const std::string body =
      "  const %a: float32[1] = [1.0]\n  const %s: int64[1] = [100000]\n  %y = Expand(%a, %s)\n  output %y "
      "as \"y\"\n";
  const auto r = rewrite("fold", body);
  CHECK(r.ops == "Expand");
  bool told = false;
  for (const auto& e : r.report.records) told = told || (e.who == "fold" && e.reason == TN_REASON_LIMIT);
  CHECK(told);
  CHECK(after("fold", body, R"({"max_bytes_free": 1000000})").empty());
}

TEST_CASE("fold widens elements, but not those that a DequantizeLinear reads") {
  const std::string weights =
      "  input %x: float32[2]\n  const %one: int8[1] = [3]\n  const %n: int64[1] = [40000]\n  %q = "
      "Expand(%one, %n)\n  "
      "const %s: float32[] = [0.5]\n";
  const std::string options = R"({"max_bytes_free": 50000})";
  const std::string sum = "  %t = ReduceSum(%w) {keepdims = 0}\n  %y = Add(%x, %t)\n  output %y as \"y\"\n";
  CHECK(rewrite("fold clean", weights + "  %w = Cast(%q) {to = 1}\n" + sum, options).ops == "Add");
  CHECK(rewrite("fold clean", weights + "  %w = Cast(%q) {to = 1}\n" + sum,
                R"({"max_bytes_free": 50000, "max_widening": 2})")
            .ops == "Cast ReduceSum Add");
  CHECK(rewrite("fold clean", weights + "  %w = DequantizeLinear(%q, %s)\n" + sum, options).ops ==
        "DequantizeLinear ReduceSum Add");
}

TEST_CASE(
    "fold leaves quantised the weights and the bias of a product between DequantizeLinear and "
    "QuantizeLinear") {
  const std::string head =
      "  input %x: uint8[1,2,4,4]\n  const %s: float32[] = [0.5]\n  const %w: int8[3,2,1,1] = [1,2,3,4,5,6]\n"
      "  const %b: int32[3] = [7,8,9]\n  %wf = DequantizeLinear(%w, %s)\n  %bf = DequantizeLinear(%b, %s)\n";
  const std::string quantised = head + "  %xf = DequantizeLinear(%x, %s)\n  %c = Conv(%xf, %wf, %bf)\n";
  const std::string y = "  output %y as \"y\"\n";
  CHECK(rewrite("fold clean", quantised + "  %y = QuantizeLinear(%c, %s)\n" + y).ops ==
        "DequantizeLinear DequantizeLinear DequantizeLinear Conv QuantizeLinear");
  CHECK(rewrite("fold clean", quantised + "  %y = Relu(%c)\n" + y).ops == "DequantizeLinear Conv Relu");
  CHECK(rewrite("fold clean", head + "  %xf = Cast(%x) {to = 1}\n  %c = Conv(%xf, %wf, %bf)\n" +
                                  "  %y = QuantizeLinear(%c, %s)\n" + y)
            .ops == "Cast Conv QuantizeLinear");
}

TEST_CASE("fold makes one element of a ConstantOfShape, up to a size") {
  const auto body = [](const std::string& n) {
    return "  const %n: int64[1] = [" + n + "]\n  %y = ConstantOfShape(%n)\n  output %y as \"y\"\n";
  };
  CHECK(rewrite("fold", body("100000")).ops.empty());
  CHECK(rewrite("fold", body("100000000")).ops == "ConstantOfShape");
}

TEST_CASE(
    "cse merges equal nodes, operands of commutative operators in either order, defaults spelt or not") {
  const auto ops = [](const std::string& lines) {
    return after("cse", "  input %x: float32[4]\n  input %w: float32[4]\n" + lines);
  };
  CHECK(ops("  %a = Neg(%x)\n  %b = Neg(%x)\n  %y = Add(%a, %b)\n  output %y as \"y\"\n") == "Neg Add");
  CHECK(ops("  %a = Add(%x, %w)\n  %b = Add(%w, %x)\n  %y = Mul(%a, %b)\n  output %y as \"y\"\n") ==
        "Add Mul");
  CHECK(ops("  %a = Sub(%x, %w)\n  %b = Sub(%w, %x)\n  %y = Mul(%a, %b)\n  output %y as \"y\"\n") ==
        "Sub Sub Mul");
  CHECK(ops("  %a = LeakyRelu(%x)\n  %b = LeakyRelu(%x) {alpha = 0.01}\n  %y = Mul(%a, %b)\n  output %y as "
            "\"y\"\n") == "LeakyRelu Mul");
  CHECK(ops("  %a = LeakyRelu(%x) {alpha = 0.2}\n  %b = LeakyRelu(%x) {alpha = 0.01}\n  %y = Mul(%a, %b)\n  "
            "output %y as \"y\"\n") == "LeakyRelu LeakyRelu Mul");
  CHECK(ops("  %a = RandomNormalLike(%x)\n  %b = RandomNormalLike(%x)\n  %y = Mul(%a, %b)\n  output %y as "
            "\"y\"\n") == "RandomNormalLike RandomNormalLike Mul");
}

TEST_CASE(
    "cse keeps both names of equal outputs and merges equal constants, not those that differ in type or "
    "sign") {
  const auto r = rewrite(
      "cse",
      "  input %x: float32[4]\n  %a = Neg(%x)\n  %b = Neg(%x)\n  output %a as \"a\"\n  output %b as \"b\"\n");
  CHECK(r.ops == "Neg");
  CHECK(r.graph->output_name(0, 0) == "a");
  CHECK(r.graph->output_name(0, 1) == "b");
  const auto constants = [](const std::string& one, const std::string& other) {
    return rewrite("cse", "  input %x: float32[2]\n  const %p: " + one + "\n  const %q: " + other +
                              "\n  %a = Mul(%x, %p)\n  %b = Mul(%a, %q)\n  output %b as \"b\"\n")
        .applied("cse.constants");
  };
  CHECK(constants("float32[2] = [1.0,2.0]", "float32[2] = [1.0,2.0]") == 1);
  CHECK(constants("float32[2] = [1.0,2.0]", "float32[2] = [1.0,3.0]") == 0);
  CHECK(constants("float32[1] = [0.0]", "float32[1] = [-0.0]") == 0);
  CHECK(constants("float32[1] = [1.0]", "float32[] = [1.0]") == 0);
}

TEST_CASE("cse lets constants of bodies give way to equal ones outside, not the other way round") {
  const auto constants = [](const std::string& outside) {
    return rewrite("cse", "  input %x: float32[2]\n  input %c: bool[]\n" + outside + R"(  %y = If(%c) {
    region "then_branch" {
      const %k: float32[2] = [1.0,2.0]
      %t = Mul(%x, %k)
      output %t as "t"
    }
    region "else_branch" {
      const %l: float32[2] = [1.0,2.0]
      %e = Add(%x, %l)
      output %e as "e"
    }
  }
  output %y as "y"
)")
        .applied("cse.constants");
  };
  CHECK(constants("  const %p: float32[2] = [1.0,2.0]\n  %q = Add(%x, %p)\n  output %q as \"q\"\n") == 2);
}

TEST_CASE("cse merges shape arithmetic that is known to be equal, whatever works it out") {
  const std::string body =
      "  input %x: float32[N,4]\n  %a = Neg(%x)\n  const %i: int64[1] = [0]\n  const %b: int64[1] = [1]\n  "
      "%s = "
      "Shape(%x)\n  %t = Shape(%a)\n  %p = Gather(%s, %i)\n  %q = Slice(%t, %i, %b)\n  %r = Concat(%p, %q) "
      "{axis = "
      "0}\n  output %r as \"r\"\n";
  CHECK(rewrite("cse clean", body).ops == "Shape Gather Concat");
  // Two symbols are two numbers.
  std::string other = body;
  other.replace(other.find("%t = Shape(%a)"), 14, "%t = Shape(%w)");
  CHECK(rewrite("cse clean", "  input %w: float32[M,4]\n" + other).ops == "Shape Shape Gather Slice Concat");
}

TEST_CASE(
    "clean removes dead nodes, also the producers of dead ones, and nothing that is read inside a region") {
  CHECK(
      after(
          "clean",
          "  input %x: float32[2]\n  %a = Neg(%x)\n  %b = Exp(%a)\n  %y = Abs(%x)\n  output %y as \"y\"\n") ==
      "Abs");
  const std::string captured = R"(  input %x: float32[2]
  input %c: bool[]
  %n = Neg(%x)
  %y = If(%c) {
    region "then_branch" {
      %t = Exp(%n)
      output %t as "t"
    }
    region "else_branch" {
      output %x as "e"
    }
  }
  output %y as "y"
)";
  CHECK(after("clean", captured) == "Neg If");
}

TEST_CASE("the limit of applied rewrites stops a pass after the n-th") {
  EngineOptions one;
  one.edit_limit = 1;
  const auto r = rewrite("canonicalize",
                         "  input %x: float32[2]\n  %a = Identity(%x)\n  %b = Identity(%a)\n  %y = "
                         "Neg(%b)\n  output %y as \"y\"\n",
                         "{}", one);
  CHECK(r.ops == "Identity Neg");
  CHECK(r.report.edit_limit_reached);
}
