// canonicalize: data movement. A graph on which each rewrite fires, one on which it must not, and the
// numbers.
#include "tests/fusion/graphs.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

void check(const std::string& type, const std::string& lines, const std::string& ops) {
  check_rewrite("canonicalize", around(type, lines), ops, Equal::bits, "strict");
}

}  // namespace

TEST_CASE("a Reshape whose target the types tell gets a constant one; the arithmetic goes") {
  const std::string target =
      "  %s = Shape(%x)\n  const %i: int64[1] = [0]\n  %b = Gather(%s, %i)\n  const %r: int64[1] = [12]\n"
      "  %t = Concat(%b, %r) {axis = 0}\n  %y = Reshape(%x, %t)\n";
  check("float32[N,3,4]", target, "Reshape");
  check("float32[N,12,1]", target, "Reshape");
  // Two axes unknown, neither in its place.
  check("float32[N,M]",
        "  %s = Shape(%x)\n  const %i: int64[1] = [0]\n  const %j: int64[1] = [1]\n  %n = Gather(%s, %i)\n"
        "  %m = Gather(%s, %j)\n  %t = Concat(%m, %n) {axis = 0}\n  %y = Reshape(%x, %t)\n",
        "Shape Gather Gather Concat Reshape");
  // Both unknown, one in its place.
  check("float32[N,M,4]",
        "  %s = Shape(%x)\n  const %i: int64[1] = [0]\n  const %j: int64[1] = [1]\n  %n = Gather(%s, %i)\n"
        "  %m = Gather(%s, %j)\n  const %two: int64[1] = [2]\n  %t = Concat(%n, %m, %two, %two) {axis = 0}\n "
        " %y = "
        "Reshape(%x, %t)\n",
        "Reshape");
}

TEST_CASE("chains that keep the order of elements are one Reshape, or nothing") {
  check("float32[N,3,4]",
        "  const %s: int64[2] = [-1,4]\n  %a = Reshape(%x, %s)\n  const %t: int64[2] = [-1,12]\n  %y = "
        "Reshape(%a, "
        "%t)\n",
        "Reshape");
  check("float32[2,3]", "  const %s: int64[1] = [0]\n  %a = Unsqueeze(%x, %s)\n  %y = Squeeze(%a, %s)\n", "");
  check("float32[2,1,3]",
        "  const %s: int64[1] = [1]\n  %a = Squeeze(%x, %s)\n  const %t: int64[1] = [0]\n  %y = "
        "Unsqueeze(%a, %t)\n",
        "Reshape");
  check("float32[2,3,4]", "  %a = Flatten(%x) {axis = 2}\n  %y = Flatten(%a) {axis = 1}\n", "Flatten");
  // A target of 0 copies an axis of what is in between.
  check("float32[N,M]",
        "  const %s: int64[2] = [-1,2]\n  %a = Reshape(%x, %s)\n  const %t: int64[3] = [0,1,2]\n  %y = "
        "Reshape(%a, "
        "%t)\n",
        "Reshape");
}

TEST_CASE("a Transpose that moves axes of one element only goes into the Reshape behind it") {
  const std::string flat = "  const %s: int64[2] = [-1,12]\n  %y = Reshape(%a, %s)\n";
  check("float32[N,1,3,4]", "  %a = Transpose(%x) {perm = [0,2,1,3]}\n" + flat, "Reshape");
  check("float32[N,1,3,4]", "  %a = Transpose(%x) {perm = [0,1,3,2]}\n" + flat, "Transpose Reshape");
  check("float32[N,M,3,4]", "  %a = Transpose(%x) {perm = [0,2,1,3]}\n" + flat, "Transpose Reshape");
}

TEST_CASE("recurrent operators start from zero by themselves") {
  const auto body = [](const std::string& value) {
    return "  input %x: float32[2,N,3]\n  input %w: float32[1,4,3]\n  input %r: float32[1,4,4]\n  %s = "
           "Shape(%x)\n  "
           "const %o: int64[1] = [1]\n  %b = Gather(%s, %o)\n  const %four: int64[1] = [4]\n  %d = "
           "Concat(%o, %b, "
           "%four) {axis = 0}\n  %h = ConstantOfShape(%d) {value = tensor float32[1] [" +
           value + "]}\n  %y, %z = RNN(%x, %w, %r, _, _, %h) {hidden_size = 4}\n  output %y as \"y\"\n";
  };
  check_rewrite("canonicalize", body("0.0"), "RNN", Equal::bits, "strict", true);
  check_rewrite("canonicalize", body("0.5"), "Shape Gather Concat ConstantOfShape RNN", Equal::bits, "strict",
                true);
}

TEST_CASE("axes of Squeeze and of Unsqueeze are joined where the shape is unknown") {
  check("float32[N,1,M,1,K]",
        "  const %s: int64[1] = [1]\n  %a = Squeeze(%x, %s)\n  const %t: int64[1] = [2]\n  %y = Squeeze(%a, "
        "%t)\n",
        "Squeeze");
  check("float32[N,M,K]",
        "  const %s: int64[1] = [1]\n  %a = Unsqueeze(%x, %s)\n  const %t: int64[2] = [0,4]\n  %y = "
        "Unsqueeze(%a, "
        "%t)\n",
        "Unsqueeze");
}

TEST_CASE("Transposes that all operands of a Concat went through go behind it") {
  const auto body = [](const std::string& second) {
    return "  input %x: float32[2,3,4]\n  input %w: float32[2,5,4]\n  %a = Transpose(%x) {perm = [0,2,1]}\n  "
           "%b = "
           "Transpose(%w) {perm = " +
           second + "}\n  %y = Concat(%a, %b) {axis = -1}\n  output %y as \"y\"\n";
  };
  check_rewrite("canonicalize", body("[0,2,1]"), "Concat Transpose");
  check_rewrite(
      "canonicalize",
      "  input %x: float32[2,4,4]\n  input %w: float32[4,2,4]\n  %a = Transpose(%x) {perm = [0,2,1]}\n  %b "
      "= Transpose(%w) {perm = [1,0,2]}\n  %y = Concat(%a, %b) {axis = 2}\n  output %y as \"y\"\n",
      "Transpose Transpose Concat");
}

TEST_CASE("Casts are where they cost least") {
  // Of a part only; before what repeats; two that meet are one.
  check("float16[8,4]",
        "  %a = Cast(%x) {to = 1}\n  const %b: int64[1] = [0]\n  const %e: int64[1] = [2]\n  %y = Slice(%a, "
        "%b, %e)\n",
        "Slice Cast");
  check("float16[1,4]", "  const %s: int64[2] = [8,4]\n  %a = Expand(%x, %s)\n  %y = Cast(%a) {to = 1}\n",
        "Cast Expand");
  check("float16[2,4]", "  %a = Cast(%x) {to = 1}\n  %b = Transpose(%a)\n  %y = Cast(%b) {to = 10}\n",
        "Transpose");
  check("float16[2,4]", "  %a = Cast(%x) {to = 1}\n  %b = Transpose(%a)\n  %y = Cast(%b) {to = 11}\n",
        "Cast Transpose");
  // Narrower on the way: what was lost stays lost.
  check("float32[2,4]", "  %a = Cast(%x) {to = 10}\n  %b = Transpose(%a)\n  %y = Cast(%b) {to = 1}\n",
        "Cast Transpose Cast");
  // A Gather that repeats: the Cast of less comes first.
  check("float16[2,4]",
        "  %a = Cast(%x) {to = 1}\n  const %i: int64[5] = [0,1,1,0,1]\n  %y = Gather(%a, %i)\n",
        "Cast Gather");
}

TEST_CASE("a Slice of a Slice is one, of one axis or of several") {
  const auto two = [](const std::string& b1, const std::string& e1, const std::string& a1,
                      const std::string& b2, const std::string& e2, const std::string& a2) {
    return "  const %b1: int64[1] = [" + b1 + "]\n  const %e1: int64[1] = [" + e1 +
           "]\n  const %a1: int64[1] = [" + a1 + "]\n  const %b2: int64[1] = [" + b2 +
           "]\n  const %e2: int64[1] = [" + e2 + "]\n  const %a2: int64[1] = [" + a2 +
           "]\n  %s = Slice(%x, %b1, %e1, %a1)\n  %y = Slice(%s, %b2, %e2, %a2)\n";
  };
  check("float32[9,7]", two("2", "8", "0", "1", "3", "0"), "Slice");
  check("float32[9,7]", two("2", "8", "0", "1", "100", "0"), "Slice");
  check("float32[9,7]", two("2", "-1", "0", "1", "-2", "0"), "Slice");
  check("float32[9,7]", two("2", "8", "0", "-3", "6", "1"), "Slice");
  check("float32[N,7]", two("1", "9223372036854775807", "0", "1", "2", "0"), "Slice");
  check("float32[N,7]", two("-2", "9223372036854775807", "0", "1", "2", "0"),
        "Slice Slice");  // from which end?
}

TEST_CASE("a Slice takes from the operand of a Concat in which it lies") {
  const auto body = [](const std::string& from, const std::string& to) {
    return "  input %x: float32[2,3]\n  input %w: float32[2,4]\n  %c = Concat(%x, %w) {axis = 1}\n  const "
           "%b: int64[1] "
           "= [" +
           from + "]\n  const %e: int64[1] = [" + to +
           "]\n  const %a: int64[1] = [1]\n  %s = Slice(%c, %b, %e, %a)\n  %y = Neg(%s)\n  output %y as "
           "\"y\"\n";
  };
  check_rewrite("canonicalize", body("3", "7"), "Neg");
  check_rewrite("canonicalize", body("-4", "9"), "Neg");
  check_rewrite("canonicalize", body("4", "6"), "Slice Neg");
  check_rewrite("canonicalize", body("2", "4"), "Concat Slice Neg");
}

TEST_CASE("Split and Concat undo one another") {
  check_rewrite(
      "canonicalize",
      "  input %x: float32[2,3]\n  input %w: float32[2,4]\n  %c = Concat(%x, %w) {axis = 1}\n  const %n: "
      "int64[2] = [3,4]\n  %a, %b = Split(%c, %n) {axis = 1}\n  %p = Neg(%a)\n  %q = Exp(%b)\n  output %p as "
      "\"p\"\n  output %q as \"q\"\n",
      "Neg Exp");
  check_rewrite(
      "canonicalize",
      "  input %x: float32[2,3]\n  input %w: float32[2,4]\n  %c = Concat(%x, %w) {axis = 1}\n  const %n: "
      "int64[2] = [2,5]\n  %a, %b = Split(%c, %n) {axis = 1}\n  %p = Neg(%a)\n  %q = Exp(%b)\n  output %p as "
      "\"p\"\n  output %q as \"q\"\n",
      "Concat Split Neg Exp");
  const auto joined = [](const std::string& order) {
    return "  const %n: int64[2] = [1,3]\n  %a, %b = Split(%x, %n) {axis = 1}\n  %c = Concat(" + order +
           ") {axis = 1}\n  %y = Neg(%c)\n";
  };
  check("float32[2,4]", joined("%a, %b"), "Neg");
  check("float32[2,4]", joined("%b, %a"), "Split Concat Neg");
}

TEST_CASE("Concats in a Concat are one; operands without elements go") {
  check("float32[2,3]", "  %a = Concat(%x, %x) {axis = 1}\n  %y = Concat(%x, %a, %x) {axis = -1}\n",
        "Concat");
  check("float32[2,3]", "  %a = Concat(%x, %x) {axis = 0}\n  %y = Concat(%a, %a) {axis = 1}\n",
        "Concat Concat");
  check("float32[2,3]", "  const %e: float32[2,0] = []\n  %y = Concat(%x, %e, %x) {axis = 1}\n", "Concat");
}

TEST_CASE("Slices that make up the whole are one Split") {
  const auto parts = [](const std::string& middle) {
    return "  input %x: float32[2,9]\n  const %o: int64[1] = [0]\n  const %p: int64[1] = [4]\n  const %q: "
           "int64[1] = [" +
           middle +
           "]\n  const %r: int64[1] = [9]\n  const %a: int64[1] = [1]\n  %s = Slice(%x, %o, %p, %a)\n  %t = "
           "Slice(%x, "
           "%q, %r, %a)\n  %u = Neg(%s)\n  %v = Exp(%t)\n  output %u as \"u\"\n  output %v as \"v\"\n";
  };
  check_rewrite("canonicalize", parts("4"), "Split Neg Exp");
  check_rewrite("canonicalize", parts("5"), "Slice Slice Neg Exp");  // a gap
  check_rewrite("canonicalize", parts("3"), "Slice Slice Neg Exp");  // one element in both
}

TEST_CASE("a Gather of neighbours is a Slice") {
  check("float32[5,2]", "  const %i: int64[3] = [1,2,3]\n  %y = Gather(%x, %i)\n", "Slice");
  check("float32[5,2]", "  const %i: int64[3] = [1,3,2]\n  %y = Gather(%x, %i)\n", "Gather");
  check("float32[N,2]", "  const %i: int64[2] = [1,2]\n  %y = Gather(%x, %i)\n",
        "Gather");                                                                        // 2 may be too far
  check("float32[5,2]", "  const %i: int64[] = [1]\n  %y = Gather(%x, %i)\n", "Gather");  // the axis goes
}

TEST_CASE("Pads are one, and go into the operator behind them") {
  const std::string pad = "  const %p: int64[8] = [0,0,1,1,0,0,1,2]\n";
  check("float32[1,2,5,5]", pad + "  %a = Pad(%x, %p)\n  %y = Pad(%a, %p)\n", "Pad");
  check("float32[1,2,5,5]",
        pad + "  const %v: float32[] = [2.0]\n  %a = Pad(%x, %p, %v)\n  %y = Pad(%a, %p)\n", "Pad Pad");
  check("float32[1,2,5,5]",
        pad + "  %a = Pad(%x, %p) {mode = \"reflect\"}\n  %y = Pad(%a, %p) {mode = \"reflect\"}\n",
        "Pad Pad");
  const auto conv = [&](const std::string& value, const std::string& attrs) {
    check_rewrite(
        "canonicalize",
        "  input %x: float32[1,2,5,5]\n  input %w: float32[3,2,3,3]\n" + pad + "  const %v: float32[] = [" +
            value + "]\n  %a = Pad(%x, %p, %v)\n  %y = Conv(%a, %w) {" + attrs + "}\n  output %y as \"y\"\n",
        value == "0.0" && attrs.find("SAME") == std::string::npos ? "Conv" : "Pad Conv", Equal::bits,
        "strict", true);
  };
  conv("0.0", "kernel_shape = [3,3]");
  conv("0.0", "pads = [1,0,0,1]");
  conv("0.5", "kernel_shape = [3,3]");
  conv("0.0", "auto_pad = \"SAME_UPPER\"");
  // Channels cannot be padded by a convolution.
  check_rewrite("canonicalize",
                "  input %x: float32[1,2,5,5]\n  input %w: float32[3,3,3,3]\n  const %p: int64[8] = "
                "[0,1,0,0,0,0,0,0]\n "
                " %a = Pad(%x, %p)\n  %y = Conv(%a, %w)\n  output %y as \"y\"\n",
                "Pad Conv", Equal::bits, "strict", true);
  const auto pool = [&](const std::string& op, const std::string& value, const std::string& ops) {
    check_rewrite(
        "canonicalize",
        around("float32[1,2,5,5]", pad + "  const %v: float32[] = [" + value + "]\n  %a = Pad(%x, %p, %v)\n" +
                                       "  %y = " + op + "(%a) {kernel_shape = [3,3]}\n"),
        ops, Equal::bits, "strict", true);
  };
  pool("AveragePool", "0.0", "AveragePool");
  pool("AveragePool", "1.0", "Pad AveragePool");
  pool("MaxPool", "-inf", "MaxPool");
  pool("MaxPool", "0.0", "Pad MaxPool");  // the zeros may win
  // A window on padding alone; pads of its own that do not count.
  check_rewrite(
      "canonicalize",
      around("float32[1,2,5,5]", pad + "  %a = Pad(%x, %p)\n  %y = AveragePool(%a) {kernel_shape = [2,2]}\n"),
      "Pad AveragePool", Equal::bits, "strict", true);
  check_rewrite(
      "canonicalize",
      around("float32[1,2,5,5]",
             pad + "  %a = Pad(%x, %p)\n  %y = AveragePool(%a) {kernel_shape = [4,4], pads = [1,0,0,0]}\n"),
      "Pad AveragePool", Equal::bits, "strict", true);
}

TEST_CASE("an Expand that broadcasting does anyway goes") {
  const auto body = [](const std::string& other, const std::string& target) {
    return "  input %x: float32[3]\n  input %w: float32" + other + "\n  const %s: int64[2] = " + target +
           "\n  %e = Expand(%x, %s)\n  %y = Add(%e, %w)\n  output %y as \"y\"\n";
  };
  check_rewrite("canonicalize", body("[2,3]", "[2,3]"), "Add");
  check_rewrite("canonicalize", body("[3]", "[2,3]"), "Expand Add");  // the two rows come from the Expand
  check_rewrite("canonicalize", body("[2,1]", "[2,3]"), "Add");
  check("float32[1,3]",
        "  const %s: int64[2] = [2,3]\n  %a = Expand(%x, %s)\n  const %t: int64[3] = [4,2,3]\n  %y = "
        "Expand(%a, %t)\n",
        "Expand");
  check("float32[1,3]",
        "  const %s: int64[2] = [2,3]\n  %a = Expand(%x, %s)\n  const %t: int64[3] = [4,1,3]\n  %y = "
        "Expand(%a, %t)\n",
        "Expand Expand");
}

TEST_CASE("conditions: what undoes itself, decides, or is the other way round") {
  check("bool[4]", "  %a = Not(%x)\n  %y = Not(%a)\n", "");
  check("float32[9]", "  %a = Neg(%x)\n  %y = Neg(%a)\n", "");
  check("int8[9]", "  %a = Neg(%x)\n  %y = Neg(%a)\n", "");
  check("float32[9]", "  %a = Abs(%x)\n  %y = Abs(%a)\n", "Abs");
  check("float32[9]", "  %a = Floor(%x)\n  %y = Ceil(%a)\n", "Floor Ceil");
  check("bool[4]", "  const %t: bool[] = [1]\n  %y = And(%x, %t)\n", "");
  check("bool[4]", "  const %t: bool[] = [1]\n  %y = Or(%x, %t)\n", "Or");  // true, but not of this shape
  check("bool[4]", "  const %t: bool[4] = [1,1,1,1]\n  %a = Or(%x, %t)\n  %y = And(%a, %x)\n", "");
  const auto where = [](const std::string& condition) {
    return "  input %x: float32[4]\n  input %w: float32[4]\n  input %b: bool[4]\n" + condition +
           "  %s = Where(%c, %x, %w)\n  %y = Neg(%s)\n  output %y as \"y\"\n";
  };
  check_rewrite("canonicalize", where("  %c = Not(%b)\n"), "Where Neg");
  check_rewrite("canonicalize", where("  const %c: bool[] = [0]\n"), "Neg");
  check_rewrite("canonicalize", where("  const %c: bool[2,1] = [0,0]\n"), "Where Neg");  // two rows of it
  const auto compare = [](const std::string& type) {
    return "  input %x: " + type + "[9]\n  input %w: " + type +
           "[9]\n  %a = Less(%x, %w)\n  %y = Not(%a)\n  output %y as \"y\"\n";
  };
  check_rewrite("canonicalize", compare("int32"), "GreaterOrEqual");
  check_rewrite("canonicalize", compare("uint8"), "GreaterOrEqual");
  check_rewrite("canonicalize", compare("float32"), "Less Not");  // NaN is neither
  check("int32[4]", "  %a = Equal(%x, %x)\n  %y = Not(%a)\n", "Not");
  check("float32[4]", "  %y = Equal(%x, %x)\n", "Equal");
}

TEST_CASE("more that changes nothing") {
  check("float32[2,3]", "  const %r: int64[2] = [1,1]\n  %a = Tile(%x, %r)\n  %y = Neg(%a)\n", "Neg");
  check("float32[1,2,3,3]",
        "  const %s: float32[4] = [1.0,1.0,1.0,1.0]\n  %a = Resize(%x, _, %s)\n  %y = Neg(%a)\n", "Neg");
  check("float32[1,2,3,3]",
        "  const %s: float32[4] = [1.0,1.0,1.1,1.0]\n  %a = Resize(%x, _, %s)\n  %y = Neg(%a)\n",
        "Resize Neg");
  check("float32[2,3]", "  %a = ReduceSum(%x) {noop_with_empty_axes = 1}\n  %y = Neg(%a)\n", "Neg");
  check("float32[2,3]", "  %a = ReduceSum(%x)\n  %y = Neg(%a)\n", "ReduceSum Neg");
  check("float32[2,3]", "  %a = Sum(%x)\n  %y = Neg(%a)\n", "Neg");
}

TEST_CASE("a Sum of two is an Add") {
  check("float32[2,3]", "  %y = Sum(%x, %x)\n", "Add");
  check("float16[2,3]", "  %a = Neg(%x)\n  %y = Sum(%x, %a)\n", "Neg Add");
  check("float32[2,3]", "  %y = Sum(%x, %x, %x)\n", "Sum");
}

TEST_CASE("a Gather of one place needs no axis for it, and of the only place no Gather") {
  const auto check = [](const std::string& type, const std::string& lines, const std::string& ops) {
    check_rewrite("canonicalize",
                  around(type,
                         "  const %i: int64[] = [1]\n  const %v: int64[1] = [-1]\n  const %a: int64[1] = "
                         "[1]\n  const %o: int64[] = [0]\n  const %u: int64[2] = [0,1]\n" +
                             lines),
                  ops, Equal::bits, "strict");
  };
  check("float32[2,3,4]", "  %g = Gather(%x, %v) {axis = 1}\n  %y = Squeeze(%g, %a)\n", "Gather");
  check("float32[N,3,4]", "  %g = Gather(%x, %v) {axis = -2}\n  %y = Squeeze(%g, %a)\n", "Gather");
  check("float32[2,3,1]",
        "  %g = Gather(%x, %v) {axis = 1}\n  const %l: int64[1] = [2]\n  %y = Squeeze(%g, %l)\n",
        "Gather Squeeze");
  check("float32[2,3,4]", "  %g = Gather(%x, %u) {axis = 1}\n  %y = Neg(%g)\n", "Slice Neg");
  check("float32[2,1,4]", "  %y = Gather(%x, %o) {axis = 1}\n", "Squeeze");
  check("float32[2,1,4]", "  %n = Neg(%x)\n  %y = Gather(%n, %v) {axis = 1}\n", "Neg");
  check("float32[2,3,4]", "  %y = Gather(%x, %o) {axis = 1}\n", "Gather");
  check("float32[2,N,4]", "  %y = Gather(%x, %o) {axis = 1}\n", "Gather");
}

TEST_CASE("Casts alike around a choice are one, or none") {
  const auto check = [](const std::string& type, const std::string& lines, const std::string& ops) {
    check_rewrite("canonicalize",
                  "  input %x: " + type + "[2,6]\n  input %w: " + type + "[2,6]\n  input %q: bool[2,6]\n" +
                      lines + "  output %y as \"y\"\n",
                  ops, Equal::bits, "strict");
  };
  const std::string both = "  %a = Cast(%x) {to = 1}\n  %b = Cast(%w) {to = 1}\n";
  check("float16", both + "  %y = Max(%a, %b)\n", "Max Cast");
  check("float16", both + "  %y = Concat(%a, %b) {axis = 0}\n", "Concat Cast");
  check("float16", both + "  %y = Where(%q, %a, %b)\n", "Where Cast");
  check("bfloat16", both + "  %c = Min(%a, %b)\n  %y = Cast(%c) {to = 16}\n", "Min");
  check("float16", "  %a = Cast(%x) {to = 1}\n  %r = Relu(%a)\n  %y = Cast(%r) {to = 10}\n", "Relu");
  check("float16", "  %a = Cast(%x) {to = 1}\n  %y = Relu(%a)\n", "Cast Relu");
  check("float16", both + "  %y = Add(%a, %b)\n", "Cast Cast Add");
  // A narrower type, another type, another reader.
  check("float64", both + "  %y = Max(%a, %b)\n", "Cast Cast Max");
  check("int32", both + "  %y = Max(%a, %b)\n", "Cast Cast Max");
  check("float16", both + "  %m = Max(%a, %b)\n  %y = Sub(%m, %a)\n", "Cast Cast Max Sub");
  check("int32", "  %a = Cast(%x) {to = 7}\n  %n = Neg(%a)\n  %y = Cast(%n) {to = 6}\n", "Cast Neg Cast");
  const std::string split = "  const %p: int64[2] = [2,4]\n  %s, %t = Split(%x, %p) {axis = 1}\n";
  check("float16",
        split + "  %a = Cast(%s) {to = 1}\n  %b = Cast(%t) {to = 1}\n  %y = Concat(%b, %a) {axis = 1}\n",
        "Cast Split Concat");
  check("float16",
        split +
            "  %a = Cast(%s) {to = 1}\n  %b = Cast(%t) {to = 1}\n  %n = Exp(%a)\n  %y = Concat(%b, %n) {axis "
            "= 1}\n",
        "Cast Split Exp Concat");
  check("float16",
        split +
            "  %a = Cast(%s) {to = 1}\n  %b = Cast(%t) {to = 11}\n  %n = Cast(%a) {to = 11}\n  %y = "
            "Concat(%b, %n) {axis = 1}\n",
        "Split Concat Cast");
}
