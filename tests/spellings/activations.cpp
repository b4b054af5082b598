// Spellings of activations.
#include "spellings.hpp"

namespace tenon::test {
namespace {

std::string bits(unsigned value, unsigned count) {
  std::string s;
  for (unsigned i = 0; i < count; ++i) s += value >> i & 1 ? '1' : '0';
  return s;
}

/// x * 0.5 * (1 + erf(x / sqrt 2)): which two of the three factors meet first, how x is scaled, and the
/// operand order of each of the four commutative operators.
std::string gelu(unsigned association, bool divide, unsigned order, double scale_error = 0, double half = 0.5,
                 bool escape = false) {
  Draft d;
  d.number("s", (divide ? 1.41421354 : 0.707106769) + scale_error).number("one", 1).number("half", half);
  d.input("x", "2,16");
  d.node("a = " + (divide ? call("Div", "x", "s") : call("Mul", "x", "s", order & 1)));
  d.node("e = Erf(%a)");
  d.node("q = " + call("Add", "e", "one", order & 2));
  const char* const pair[3][3] = {{"x", "half", "q"}, {"x", "q", "half"}, {"half", "q", "x"}};
  d.node("m = " + call("Mul", pair[association][0], pair[association][1], order & 4));
  d.node("z = " + call("Mul", "m", pair[association][2], order & 8));
  return escape ? d.finish({"z", "e"}) : d.finish();
}

}  // namespace

Family gelu_family() {
  Family f{"Gelu (erf)", "Gelu", 1, 96, {}, {}};
  for (unsigned association = 0; association < 3; ++association)
    for (const bool divide : {true, false})
      for (unsigned order = 0; order < 16; ++order)
        f.spellings.push_back({std::string(divide ? "Div" : "Mul") + ", association " +
                                   std::to_string(association) + ", operands " + bits(order, 4),
                               gelu(association, divide, order)});
  f.look_alikes = {{"another scale", gelu(0, true, 0, 0.1)},
                   {"the factor is 0.4", gelu(1, false, 5, 0, 0.4)},
                   {"erf is read outside", gelu(2, true, 3, 0, 0.5, true)}};
  return f;
}

Family gelu_tanh_family() {
  Family f{"Gelu (tanh)", "Gelu", 1, 24, {}, {}};
  const auto make = [](unsigned inner, unsigned order, double cubic) {
    Draft d;
    d.number("k", cubic).number("s", 0.797884583).number("one", 1).number("half", 0.5).number("three", 3);
    d.input("x", "2,16");
    if (inner == 0)
      d.node("c = Pow(%x, %three)").node("t = " + call("Mul", "c", "k", order & 1));
    else if (inner == 1)
      d.node("c = Mul(%x, %x)").node("c3 = Mul(%c, %x)").node("t = " + call("Mul", "c3", "k", order & 1));
    else
      d.node("c = Mul(%x, %x)").node("t = " + call("Mul", "c", "k", order & 1));
    if (inner < 2) {
      d.node("i = " + call("Add", "x", "t", order & 2)).node("a = " + call("Mul", "i", "s", order & 4));
    } else {
      d.node("i = " + call("Add", "one", "t", order & 2)).node("w = Mul(%x, %s)");
      d.node("a = " + call("Mul", "w", "i", order & 4));
    }
    d.node("e = Tanh(%a)").node("q = Add(%e, %one)").node("m = Mul(%x, %half)").node("z = Mul(%m, %q)");
    return d.finish();
  };
  for (unsigned inner = 0; inner < 3; ++inner)
    for (unsigned order = 0; order < 8; ++order)
      f.spellings.push_back({"inner " + std::to_string(inner) + ", operands " + bits(order, 3),
                             make(inner, order, 0.0447149985)});
  f.look_alikes = {{"the cubic factor is 0.05", make(0, 0, 0.05)}};
  return f;
}

Family silu_family() {
  Family f{"SiLU, QuickGELU", "Swish", 1, 4, {}, {}};
  const auto make = [](bool quick, bool swapped, bool escape) {
    Draft d;
    d.number("k", 1.702);
    d.input("x", "3,7");
    if (quick) d.node("t = Mul(%x, %k)");
    d.node(std::string("s = Sigmoid(%") + (quick ? "t" : "x") + ")");
    d.node("z = " + call("Mul", "x", "s", swapped));
    return escape ? d.finish({"z", "s"}) : d.finish();
  };
  for (const bool quick : {false, true})
    for (const bool swapped : {false, true})
      f.spellings.push_back({std::string(quick ? "QuickGELU" : "SiLU") + (swapped ? ", swapped" : ""),
                             make(quick, swapped, false)});
  f.look_alikes = {
      {"sigmoid is read outside", make(false, false, true)},
      {"another tensor is multiplied",
       Draft().input("x", "3,7").input("y", "3,7").node("s = Sigmoid(%x)").node("z = Mul(%y, %s)").finish()}};
  return f;
}

Family hard_swish_family() {
  Family f{"HardSwish", "HardSwish", 1, 14, {}, {}};
  const auto make = [](unsigned form, bool swapped, double added) {
    Draft d;
    d.number("three", added).number("zero", 0).number("six", 6).number("sixth", 0.16666667);
    d.input("x", "3,7");
    if (form < 6) {
      d.node("a = " + call("Add", "x", "three", swapped));
      if (form == 4)
        d.node("r = Relu(%a)").node("c = Min(%r, %six)");
      else if (form == 5)
        d.node("r = Max(%a, %zero)").node("c = Min(%r, %six)");
      else
        d.node("c = Clip(%a, %zero, %six)");
    }
    if (form == 0) d.node("m = " + call("Mul", "x", "c", swapped)).node("z = Div(%m, %six)");
    if (form == 1) d.node("m = " + call("Mul", "x", "c", swapped)).node("z = Mul(%m, %sixth)");
    if (form == 2 || form == 4 || form == 5)
      d.node("m = Div(%c, %six)").node("z = " + call("Mul", "x", "m", swapped));
    if (form == 3) d.node("m = Mul(%c, %sixth)").node("z = " + call("Mul", "x", "m", swapped));
    if (form == 6)
      d.node("h = HardSigmoid(%x) {alpha = 0.16666667, beta = 0.5}")
          .node("z = " + call("Mul", "x", "h", swapped));
    return d.finish();
  };
  for (unsigned form = 0; form < 7; ++form)
    for (const bool swapped : {false, true})
      f.spellings.push_back(
          {"form " + std::to_string(form) + (swapped ? ", swapped" : ""), make(form, swapped, 3)});
  f.look_alikes = {{"2 is added", make(2, false, 2)}};
  return f;
}

Family hard_sigmoid_family() {
  Family f{"HardSigmoid", "HardSigmoid", 1, 4, {}, {}};
  const auto make = [](bool divide, bool swapped, double by) {
    Draft d;
    d.number("three", 3).number("zero", 0).number("six", 6).number("d", divide ? by : 1 / by);
    d.input("x", "3,7");
    d.node("a = " + call("Add", "x", "three", swapped)).node("c = Clip(%a, %zero, %six)");
    d.node("z = " + (divide ? call("Div", "c", "d") : call("Mul", "c", "d", swapped)));
    return d.finish();
  };
  for (const bool divide : {false, true})
    for (const bool swapped : {false, true})
      f.spellings.push_back(
          {std::string(divide ? "Div" : "Mul") + (swapped ? ", swapped" : ""), make(divide, swapped, 6)});
  f.look_alikes = {{"divided by 5", make(true, false, 5)}};
  return f;
}

Family softplus_family() {
  Family f{"Softplus", "Softplus", 1, 2, {}, {}};
  const auto make = [](bool swapped, double one) {
    return Draft()
        .number("one", one)
        .input("x", "3,7")
        .node("e = Exp(%x)")
        .node("q = " + call("Add", "e", "one", swapped))
        .node("z = Log(%q)")
        .finish();
  };
  f.spellings = {{"exp first", make(false, 1)}, {"one first", make(true, 1)}};
  f.look_alikes = {{"2 is added", make(false, 2)}};
  return f;
}

Family mish_family() {
  Family f{"Mish", "Mish", 1, 6, {}, {}};
  for (unsigned form = 0; form < 3; ++form)
    for (const bool swapped : {false, true}) {
      Draft d;
      d.number("one", 1).input("x", "3,7");
      if (form == 0)
        d.node("s = Softplus(%x)");
      else
        d.node("e = Exp(%x)").node("q = " + call("Add", "e", "one", form == 2)).node("s = Log(%q)");
      d.node("t = Tanh(%s)").node("z = " + call("Mul", "x", "t", swapped));
      f.spellings.push_back({"form " + std::to_string(form) + (swapped ? ", swapped" : ""), d.finish()});
    }
  f.look_alikes = {{"tanh is read outside", Draft()
                                                .input("x", "3,7")
                                                .node("s = Softplus(%x)")
                                                .node("t = Tanh(%s)")
                                                .node("z = Mul(%x, %t)")
                                                .finish({"z", "t"})}};
  return f;
}

Family sigmoid_family() {
  Family f{"Sigmoid", "Sigmoid", 1, 4, {}, {}};
  const auto make = [](bool reciprocal, bool swapped, double one) {
    Draft d;
    d.number("one", one).number("top", 1).input("x", "3,7").node("m = Neg(%x)").node("e = Exp(%m)");
    d.node("q = " + call("Add", "e", "one", swapped))
        .node(reciprocal ? "z = Reciprocal(%q)" : "z = Div(%top, %q)");
    return d.finish();
  };
  for (const bool reciprocal : {false, true})
    for (const bool swapped : {false, true})
      f.spellings.push_back({std::string(reciprocal ? "Reciprocal" : "Div") + (swapped ? ", swapped" : ""),
                             make(reciprocal, swapped, 1)});
  f.look_alikes = {{"2 is added", make(true, false, 2)}};
  return f;
}

Family clip_family() {
  Family f{"Clip", "Clip", 1, 10, {}, {}};
  const auto make = [](unsigned form, bool first, bool second, double low, double high) {
    Draft d;
    d.number("lo", low).number("hi", high, form == 1 ? "1" : "").input("x", "3,7");
    if (form == 2)
      d.node("m = Relu(%x)").node("z = " + call("Min", "m", "hi", second));
    else if (form == 0)
      d.node("m = " + call("Max", "x", "lo", first)).node("z = " + call("Min", "m", "hi", second));
    else
      d.node("m = " + call("Min", "x", "hi", first)).node("z = " + call("Max", "m", "lo", second));
    return d.finish();
  };
  for (unsigned form = 0; form < 3; ++form)
    for (const bool first : {false, true})
      for (const bool second : {false, true})
        if (form < 2 || !first)
          f.spellings.push_back(
              {"form " + std::to_string(form) + ", operands " + bits(first + 2u * second, 2),
               make(form, first, second, -1, 2)});
  f.look_alikes = {{"the bounds are crossed", make(0, false, false, 2, -1)}};
  f.rtol = f.atol = 0;
  return f;
}

Family leaky_relu_family() {
  Family f{"LeakyRelu", "LeakyRelu", 1, 8, {}, {}};
  const auto make = [](unsigned form, bool first, bool second, double slope) {
    Draft d;
    d.number("a", slope).number("zero", 0).input("x", "3,7").node("t = " + call("Mul", "x", "a", first));
    if (form == 0)
      d.node("z = " + call("Max", "x", "t", second));
    else
      d.node(second ? "c = Greater(%x, %zero)" : "c = GreaterOrEqual(%x, %zero)")
          .node("z = Where(%c, %x, %t)");
    return d.finish();
  };
  for (unsigned form = 0; form < 2; ++form)
    for (const bool first : {false, true})
      for (const bool second : {false, true})
        f.spellings.push_back({"form " + std::to_string(form) + ", operands " + bits(first + 2u * second, 2),
                               make(form, first, second, 0.1)});
  f.look_alikes = {{"the slope is 1.5", make(0, false, false, 1.5)}};
  return f;
}

Family p_relu_family() {
  Family f{"PRelu", "PRelu", 1, 8, {}, {}};
  const auto make = [](bool subtract, bool first, bool second, const char* shape) {
    Draft d;
    d.weights("s", shape).input("x", "2,3,4").node("p = Relu(%x)").node("m = Neg(%x)").node("n = Relu(%m)");
    d.node("t = " + call("Mul", "n", "s", first))
        .node("z = " + (subtract ? call("Sub", "p", "t") : call("Add", "p", "t", second)));
    return d.finish();
  };
  for (const bool subtract : {false, true})
    for (const bool first : {false, true})
      for (const bool second : {false, true})
        f.spellings.push_back(
            {std::string(subtract ? "Sub" : "Add") + ", operands " + bits(first + 2u * second, 2),
             make(subtract, first, second, second ? "1" : "3,1")});
  f.look_alikes = {{"the slope is wider", make(false, false, false, "2,2,3,4")}};
  return f;
}

}  // namespace tenon::test
