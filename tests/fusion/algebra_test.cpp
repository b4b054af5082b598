// algebra: what arithmetic allows, and what it only seems to. Every row runs on zeros of both signs,
// infinities, NaN and the ends of integer types.
#include "tests/fusion/graphs.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Row {
  const char* type;           // of x
  const char* lines;          // ... to y
  const char* strict;         // operators left under precision strict
  const char* loose;          // and otherwise
  Equal equal = Equal::bits;  // of the loose one
  bool tame = false;
};

}  // namespace

TEST_CASE("algebra: a table of what holds and of what does not") {
  const Row rows[] = {
      // -0.0 + 0.0 is 0.0.
      {"float32[16]", "  const %k: float32[] = [0.0]\n  %y = Add(%x, %k)\n", "Add", "", Equal::values},
      {"float16[16]", "  const %kf: float32[] = [0.0]\n  %k = Cast(%kf) {to = 10}\n  %y = Add(%k, %x)\n",
       "Add", "", Equal::values},
      {"float32[16]", "  const %k: float32[] = [-0.0]\n  %y = Sub(%x, %k)\n", "Sub", "", Equal::values},
      {"float32[3]", "  const %k: float32[2,1] = [0.0,0.0]\n  %y = Add(%x, %k)\n", "Add", "Add"},
      // 0 * infinity and infinity - infinity are NaN; of whole numbers there is neither.
      {"float32[16]", "  const %k: float32[] = [0.0]\n  %y = Mul(%x, %k)\n", "Mul", "Mul"},
      {"int32[16]", "  const %k: int32[] = [0]\n  %y = Mul(%x, %k)\n", "", ""},
      {"uint8[16]", "  const %k: uint8[] = [0]\n  %y = Mul(%k, %x)\n", "", ""},
      {"float32[16]", "  %y = Sub(%x, %x)\n", "Sub", "Sub"},
      {"int8[16]", "  %y = Sub(%x, %x)\n", "", ""},
      {"float32[16]", "  %y = Div(%x, %x)\n", "Div", "Div"},
      // Signs.
      {"float32[16]", "  %a = Neg(%x)\n  %y = Add(%x, %a)\n", "Sub", "Sub"},
      {"float32[16]", "  %a = Neg(%x)\n  %y = Sub(%x, %a)\n", "Add", "Add"},
      {"int32[16]", "  %a = Neg(%x)\n  %y = Sub(%x, %a)\n", "Add", "Add"},
      {"float32[16]", "  const %k: float32[] = [0.0]\n  %y = Sub(%k, %x)\n", "Sub", "Neg", Equal::values},
      {"int64[16]", "  const %k: int64[] = [0]\n  %y = Sub(%k, %x)\n", "Neg", "Neg"},
      {"uint8[16]", "  const %k: uint8[] = [0]\n  %y = Sub(%k, %x)\n", "Sub", "Sub"},  // no Neg of these
      {"int16[16]", "  const %kf: int32[] = [0]\n  %k = Cast(%kf) {to = 5}\n  %y = Sub(%k, %x)\n", "Sub",
       "Sub"},
      {"float32[16]", "  const %k: float32[] = [1.5]\n  %a = Sub(%x, %k)\n  %y = Neg(%a)\n", "Sub Neg", "Sub",
       Equal::values},
      {"int8[16]", "  const %k: int8[] = [5]\n  %a = Sub(%x, %k)\n  %y = Neg(%a)\n", "Sub", "Sub"},
      {"float32[16]", "  const %k: float32[] = [1.5]\n  %a = Neg(%x)\n  %y = Mul(%a, %k)\n", "Mul", "Mul"},
      {"float32[16]", "  const %k: float32[] = [1.5]\n  %a = Neg(%x)\n  %y = Div(%k, %a)\n", "Div", "Div"},
      {"int8[16]", "  const %k: int8[] = [-1]\n  %a = Neg(%x)\n  %y = Div(%a, %k)\n", "Neg Div", "Neg Div",
       Equal::bits, true},
      // Powers: Pow(-infinity, 0.5) is infinity, Pow(-0.0, 0.5) is 0.0, Pow(NaN, 0) is 1.
      {"float32[16]", "  const %k: float32[] = [2.0]\n  %y = Pow(%x, %k)\n", "Pow", "Mul", Equal::nearly},
      {"float32[16]", "  const %k: float32[] = [0.5]\n  %y = Pow(%x, %k)\n", "Pow", "Pow"},
      {"float32[16]", "  const %k: float32[] = [0.5]\n  %a = Abs(%x)\n  %y = Pow(%a, %k)\n", "Abs Pow",
       "Abs Sqrt", Equal::nearly},
      {"float32[16]", "  const %k: float32[] = [-1.0]\n  %y = Pow(%x, %k)\n", "Pow", "Reciprocal",
       Equal::nearly},
      {"float32[16]", "  const %k: float32[] = [0.0]\n  %y = Pow(%x, %k)\n", "", ""},
      {"float32[16]", "  const %k: float32[] = [3.0]\n  %y = Pow(%x, %k)\n", "Pow", "Pow"},
      {"int32[16]", "  const %k: int32[] = [2]\n  %y = Pow(%x, %k)\n", "Pow", "Pow", Equal::bits, true},
      // Division by a constant: exact by powers of two; never by zero, nor when the reciprocal leaves the
      // range.
      {"float32[16]", "  const %k: float32[] = [8.0]\n  %y = Div(%x, %k)\n", "Mul", "Mul"},
      {"float16[16]", "  const %kf: float32[] = [0.25]\n  %k = Cast(%kf) {to = 10}\n  %y = Div(%x, %k)\n",
       "Mul", "Mul"},
      {"float32[16]", "  const %k: float32[] = [3.0]\n  %y = Div(%x, %k)\n", "Div", "Mul", Equal::nearly},
      {"float16[16]", "  const %kf: float32[] = [3.0]\n  %k = Cast(%kf) {to = 10}\n  %y = Div(%x, %k)\n",
       "Div", "Div"},
      {"float32[16]", "  const %k: float32[] = [0.0]\n  %y = Div(%x, %k)\n", "Div", "Div"},
      {"float32[16]", "  const %k: float32[] = [1e-42]\n  %y = Div(%x, %k)\n", "Div", "Div"},
      {"float32[16]", "  const %k: float32[] = [3e38]\n  %y = Div(%x, %k)\n", "Div", "Div"},
      {"float32[2]", "  const %k: float32[2] = [2.0,0.0]\n  %y = Div(%x, %k)\n", "Div", "Div"},
      {"int32[16]", "  const %k: int32[] = [2]\n  %y = Div(%x, %k)\n", "Div", "Div"},
      // Constants in a row: floats are rounded once less, whole numbers wrap around alike.
      {"float32[16]",
       "  const %k: float32[] = [1.5]\n  const %l: float32[] = [2.25]\n  %a = Add(%x, %k)\n  %y = "
       "Add(%l, %a)\n",
       "Add Add", "Add", Equal::nearly},
      {"int8[16]",
       "  const %k: int8[] = [100]\n  const %l: int8[] = [100]\n  %a = Add(%x, %k)\n  %y = Add(%a, %l)\n",
       "Add", "Add"},
      {"uint8[16]",
       "  const %k: uint8[] = [100]\n  const %l: uint8[] = [200]\n  %a = Sub(%x, %k)\n  %y = Sub(%l, %a)\n",
       "Sub", "Sub"},
      {"uint8[16]",
       "  const %k: uint8[] = [100]\n  const %l: uint8[] = [200]\n  %a = Sub(%k, %x)\n  %y = Sub(%l, %a)\n",
       "Add", "Add"},
      {"int32[16]",
       "  const %k: int32[] = [100]\n  const %l: int32[] = [7]\n  %a = Sub(%x, %k)\n  %y = Add(%a, %l)\n",
       "Add", "Add"},
      {"int32[16]",
       "  const %k: int32[] = [100]\n  const %l: int32[] = [7]\n  %a = Sub(%x, %k)\n  %y = Sub(%a, %l)\n",
       "Sub", "Sub"},
      {"int32[16]",
       "  const %k: int32[] = [65537]\n  const %l: int32[] = [65537]\n  %a = Mul(%x, %k)\n  %y = Mul(%a, "
       "%l)\n",
       "Mul", "Mul"},
      {"int32[16]",
       "  const %k: int32[] = [6]\n  const %l: int32[] = [3]\n  %a = Mul(%x, %k)\n  %y = Div(%a, %l)\n",
       "Mul Div", "Mul Div"},  // 6 x may wrap around first
      {"int32[16]",
       "  const %k: int32[] = [2]\n  const %l: int32[] = [2]\n  %a = Div(%x, %k)\n  %y = Mul(%a, %l)\n",
       "Div Mul", "Div Mul"},
      {"float32[16]",
       "  const %k: float32[] = [3.0]\n  const %l: float32[] = [5.0]\n  %a = Mul(%x, %k)\n  %y = "
       "Mul(%a, %l)\n",
       "Mul Mul", "Mul", Equal::nearly},
      {"float32[16]",
       "  const %k: float32[] = [3.0]\n  const %l: float32[] = [5.0]\n  %a = Div(%k, %x)\n  %y = "
       "Div(%l, %a)\n",
       "Div Div", "Mul", Equal::nearly, true},
      // x * 1e30 may overflow where x * 1e30 * 1e-30 must not be x.
      {"float32[16]",
       "  const %k: float32[] = [1e30]\n  const %l: float32[] = [1e-30]\n  %a = Mul(%x, %k)\n  %y = "
       "Mul(%a, %l)\n",
       "Mul Mul", "Mul Mul"},
      {"float16[16]",
       "  const %kf: float32[] = [500.0]\n  %k = Cast(%kf) {to = 10}\n  const %lf: float32[] = [500.0]\n  %l "
       "= Cast(%lf) {to = 10}\n  %a = Mul(%x, %k)\n  %y = "
       "Mul(%a, %l)\n",
       "Mul Mul", "Mul Mul"},
      {"float32[2,3]",
       "  const %k: float32[3] = [1.0,2.0,3.0]\n  const %l: float32[2,1] = [2.0,4.0]\n  %a = Mul(%x, "
       "%k)\n  %y = Mul(%a, %l)\n",
       "Mul Mul", "Mul Mul"},  // together they are as large as x
      {"float32[4]",
       "  const %k: float32[] = [2.0]\n  const %l: float32[] = [3.0]\n  const %m: float32[] = [5.0]\n  %a "
       "= Mul(%x, %k)\n  %b = Add(%a, %l)\n  %y = Mul(%b, %m)\n",
       "Mul Add Mul", "Mul Add", Equal::nearly},
      // Bounds.
      {"float32[16]",
       "  const %l: float32[] = [1.0]\n  const %h: float32[] = [3.0]\n  %a = Max(%x, %l)\n  %y = Min(%a, "
       "%h)\n",
       "Clip", "Clip"},
      {"float32[16]",
       "  const %l: float32[] = [0.0]\n  const %h: float32[] = [3.0]\n  %a = Min(%x, %h)\n  %y = Max(%a, "
       "%l)\n",
       "Min Max", "Clip", Equal::values},
      {"int32[16]",
       "  const %l: int32[] = [-3]\n  const %h: int32[] = [3]\n  %a = Min(%h, %x)\n  %y = Max(%a, %l)\n",
       "Clip", "Clip"},
      {"float32[16]",
       "  const %l: float32[] = [5.0]\n  const %h: float32[] = [3.0]\n  %a = Min(%x, %h)\n  %y = Max(%a, "
       "%l)\n",
       "Min Max", "Min Max"},  // all 5
      {"float32[16]", "  const %h: float32[] = [6.0]\n  %a = Relu(%x)\n  %y = Clip(%a, _, %h)\n", "Relu Clip",
       "Clip", Equal::values},
      {"float32[16]",
       "  const %l: float32[] = [2.0]\n  const %h: float32[] = [1.0]\n  %a = Clip(%x, %l, %h)\n  %y = "
       "Relu(%a)\n",
       "Clip Relu", "Clip Relu"},  // bounds the wrong way round
      {"float32[16]", "  const %k: float32[] = [0.0]\n  %y = Max(%x, %k)\n", "Max", "Relu", Equal::values},
      {"float32[16]", "  const %k: float32[] = [nan]\n  %a = Max(%x, %k)\n  %y = Relu(%a)\n", "Max Relu",
       "Max Relu"},
      {"uint8[16]", "  const %k: uint8[] = [0]\n  %a = Max(%x, %k)\n  %y = Cast(%a) {to = 1}\n", "Cast",
       "Cast"},
      {"int8[16]", "  const %k: int8[] = [0]\n  %a = Max(%x, %k)\n  %y = Cast(%a) {to = 1}\n", "Max Cast",
       "Max Cast"},
      {"float32[16]", "  const %l: float32[] = [-inf]\n  %a = Clip(%x, %l)\n  %y = Neg(%a)\n", "Neg", "Neg"},
      // The rest.
      {"float32[2,3]", "  %a = Softmax(%x)\n  %y = Log(%a)\n", "Softmax Log", "LogSoftmax", Equal::nearly,
       true},
      {"float32[16]", "  %a = Exp(%x)\n  %y = Abs(%a)\n", "Exp", "Exp"},
      {"int8[16]", "  %a = Mul(%x, %x)\n  %y = Abs(%a)\n", "Mul Abs", "Mul Abs"},  // it wraps around
      {"int32[16]", "  const %k: int32[] = [1]\n  %y = Mod(%x, %k)\n", "", ""},
      {"float32[16]", "  const %k: float32[] = [1.0]\n  %y = Mod(%x, %k) {fmod = 1}\n", "Mod", "Mod",
       Equal::bits, true},
      {"uint32[16]",
       "  const %kf: int32[] = [0]\n  %k = Cast(%kf) {to = 12}\n  %y = BitShift(%x, %k) {direction = "
       "\"LEFT\"}\n",
       "", ""},
      {"int32[16]", "  const %k: int32[] = [0]\n  %y = BitwiseXor(%x, %k)\n", "", ""},
      {"int32[16]", "  const %k: int32[] = [0]\n  %y = BitwiseAnd(%x, %k)\n", "BitwiseAnd", "BitwiseAnd"},
  };
  for (const Row& row : rows) {
    check_rewrite("fold algebra", around(row.type, row.lines), row.strict, Equal::bits, "strict", row.tame);
    check_rewrite("fold algebra", around(row.type, row.lines), row.loose, row.equal, "faithful", row.tame);
  }
}

TEST_CASE("algebra: what is read elsewhere stays, so nothing is computed twice") {
  check_rewrite(
      "algebra",
      "  input %x: float32[8]\n  const %k: float32[] = [1.5]\n  %a = Add(%x, %k)\n  %y = Add(%a, %k)\n  "
      "output %a as \"a\"\n  output %y as \"y\"\n",
      "Add Add");
}

TEST_CASE("reductions take in the Squeeze, Reshape, Unsqueeze or Transpose beside them") {
  const auto check = [](const std::string& lines, const std::string& strict, const std::string& loose,
                        const std::string& type = "float32[2,3,4]") {
    check_rewrite("algebra", around(type, lines), strict, Equal::bits, "strict");
    check_rewrite("algebra", around(type, lines), loose, Equal::nearly, "faithful", true);
  };
  const std::string last = "  const %l: int64[1] = [-1]\n", middle = "  const %m: int64[1] = [1]\n";
  check(last + "  %a = ReduceMean(%x, %l)\n  %y = Squeeze(%a, %l)\n", "ReduceMean", "ReduceMean");
  check(last + middle + "  %a = ReduceMean(%x, %l)\n  %y = Neg(%a)\n", "ReduceMean Neg", "ReduceMean Neg");
  check(last + "  const %s: int64[2] = [2,3]\n  %a = ReduceMax(%x, %l)\n  %y = Reshape(%a, %s)\n",
        "ReduceMax", "ReduceMax");
  check(last + "  const %s: int64[2] = [3,2]\n  %a = ReduceMax(%x, %l)\n  %y = Reshape(%a, %s)\n",
        "ReduceMax Reshape", "ReduceMax Reshape");
  check(last + middle + "  %a = ReduceSum(%x, %l)\n  %y = Squeeze(%a, %m)\n", "ReduceSum Squeeze",
        "ReduceSum Squeeze", "float32[2,1,4]");
  check(last + "  %a = ReduceSum(%x, %l) {keepdims = 0}\n  %y = Unsqueeze(%a, %l)\n", "ReduceSum",
        "ReduceSum");
  check("  const %z: int64[1] = [0]\n  %a = ArgMax(%x) {axis = 0}\n  %y = Squeeze(%a, %z)\n", "ArgMax",
        "ArgMax");
  // The order of what is added up counts, that of what is compared does not.
  check(middle + last + "  %t = Transpose(%x) {perm = [0,2,1]}\n  %y = ReduceMax(%t, %m) {keepdims = 0}\n",
        "ReduceMax", "ReduceMax");
  check(middle + "  %t = Transpose(%x) {perm = [0,2,1]}\n  %y = ReduceSum(%t, %m) {keepdims = 0}\n",
        "Transpose ReduceSum", "ReduceSum");
  check(middle + "  %t = Transpose(%x) {perm = [2,1,0]}\n  %y = ReduceMax(%t, %m) {keepdims = 0}\n",
        "ReduceMax Transpose", "ReduceMax Transpose");
  check(middle + "  %t = Transpose(%x) {perm = [2,1,0]}\n  %y = ReduceMax(%t, %m)\n", "ReduceMax Transpose",
        "ReduceMax Transpose");
  check(middle + "  %t = Transpose(%x) {perm = [2,1,0]}\n  %r = ReduceMax(%t, %m)\n  %y = Add(%t, %r)\n",
        "Transpose ReduceMax Add", "Transpose ReduceMax Add");
  // Runs of axes before a Reshape; an axis of which only a part is reduced.
  check("  const %s: int64[2] = [2,12]\n" + middle +
            "  %r = Reshape(%x, %s)\n  %y = ReduceMax(%r, %m) {keepdims = 0}\n",
        "ReduceMax", "ReduceMax");
  check(
      "  const %s: int64[4] = [2,3,2,2]\n  const %b: int64[2] = [2,3]\n  %r = Reshape(%x, %s)\n"
      "  %y = ReduceSum(%r, %b) {keepdims = 0}\n",
      "Reshape ReduceSum", "ReduceSum");
  check("  const %s: int64[4] = [2,3,2,2]\n" + last +
            "  %r = Reshape(%x, %s)\n  %y = ReduceMax(%r, %l) {keepdims = 0}\n",
        "Reshape ReduceMax", "Reshape ReduceMax");
  check("  const %s: int64[2] = [6,4]\n" + last +
            "  %r = Reshape(%x, %s)\n  %y = ReduceMax(%r, %l) {keepdims = 0}\n",
        "Reshape ReduceMax", "Reshape ReduceMax");
  check("  const %s: int64[2] = [2,12]\n" + middle + "  %r = Reshape(%x, %s)\n  %y = ReduceMax(%r, %m)\n",
        "Reshape ReduceMax", "Reshape ReduceMax");
  check(middle + last + "  %a = ReduceMax(%x, %m) {keepdims = 0}\n  %y = ReduceMax(%a, %l) {keepdims = 0}\n",
        "ReduceMax", "ReduceMax");
  check(middle + last + "  %a = ReduceMean(%x, %m)\n  %y = ReduceMean(%a, %l)\n", "ReduceMean ReduceMean",
        "ReduceMean");
}

TEST_CASE("Einsum is taken apart into what has fast kernels, and left where shapes are not known") {
  const auto check = [](const std::string& a, const std::string& b, const std::string& equation,
                        const std::string& ops) {
    const std::string body = "  input %a: float32" + a + "\n" +
                             (b.empty() ? "" : "  input %b: float32" + b + "\n") + "  %y = Einsum(%a" +
                             (b.empty() ? "" : ", %b") + ") {equation = \"" + equation +
                             "\"}\n  output %y as \"y\"\n";
    check_rewrite("algebra", body, "Einsum", Equal::bits, "strict", true);
    check_rewrite("algebra", body, ops, Equal::nearly, "faithful", true);
  };
  check("[2,3]", "[3,4]", "ij,jk->ik", "MatMul");
  check("[2,3]", "[4,3]", "ij,kj->ik", "Transpose MatMul");
  check("[2,3]", "[3,4]", "ij,jk", "MatMul");
  check("[2,5,3,4]", "[2,5,6,4]", "bhid,bhjd->bhij", "Transpose MatMul");
  check("[2,3,5,4]", "[2,6,5,4]", "bihd,bjhd->bhij", "Transpose Transpose MatMul");
  check("[B,3,4]", "[4,6]", "bsd,df->bsf", "MatMul");
  check("[2,3,4]", "[4,5,6]", "bsd,dhk->bshk", "Reshape MatMul Reshape");
  check("[2,3,5,6]", "[5,6,4]", "bshk,hkd->bsd", "Reshape Reshape MatMul Reshape");
  check("[3]", "[4]", "i,j->ij", "Reshape Reshape MatMul");
  check("[3]", "[3]", "i,i->", "Reshape Reshape MatMul Reshape");
  check("[2,3]", "[2,3]", "ij,ij->ij", "Mul");
  check("[2,3]", "[3,2]", "ij,ji->ij", "Transpose Mul");
  check("[2,3]", "[3,5]", "ij,jk->k", "ReduceSum Reshape MatMul Reshape");
  check("[2,3,4]", "", "ijk->kji", "Transpose");
  check("[2,3,4]", "", "ijk->ki", "ReduceSum Transpose");
  check("[2,3]", "", "ij->ij", "");
  check("[3,3]", "", "ii->i", "Einsum");
  check("[2,3]", "[3,4]", "...j,jk->...k", "Einsum");
  check("[N,M,4]", "[4,5,6]", "bsd,dhk->bshk", "Einsum");  // two unknown axes to split
  check_rewrite("algebra",
                "  input %a: float32[2,3]\n  %c = Cast(%a) {to = 16}\n  %d = Einsum(%c, %c) {equation = "
                "\"ij,kj->ik\"}\n"
                "  %y = Cast(%d) {to = 1}\n  output %y as \"y\"\n",
                "Cast Einsum Cast", Equal::bits, "faithful", true);
}
