// control: If and Loop that need not be.
#include "tests/fusion/graphs.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string branches(const std::string& before, const std::string& yes, const std::string& no) {
  return "  input %x: float32[3]\n  input %c: bool[]\n" + before +
         "  %y = If(%c) {\n    region \"then_branch\" {\n" + yes + "    }\n    region \"else_branch\" {\n" +
         no + "    }\n  }\n  output %y as \"y\"\n";
}

/// A Loop over x and z with a running sum: `count` turns; `lines` make %s2 from %s and %i.
std::string loop(const std::string& count, const std::string& lines,
                 const std::string& condition = "  const %go: bool[] = [1]\n",
                 const std::string& next = "%d") {
  return "  input %x: float32[3]\n  const %n: int64[] = [" + count + "]\n" + condition +
         "  %y, %all = Loop(%n, %go, %x) {\n    region \"body\" {\n      input %i: int64[]\n      input %d: "
         "bool[]\n    "
         "  input %s: float32[3]\n" +
         lines + "      output " + next +
         " as \"d2\"\n      output %s2 as \"s2\"\n      output %s2 as \"all2\"\n    }\n  }\n  output %y as "
         "\"y\"\n";
}

const std::string all = "  output %all as \"all\"\n";

}  // namespace

TEST_CASE("an If whose branches are little and safe selects") {
  check_rewrite("control",
                branches("", "      %a = Neg(%x)\n      output %a as \"a\"\n", "      output %x as \"b\"\n"),
                "Neg Where");
  // A division by zero must not happen where it would not have.
  check_rewrite("control",
                "  input %x: int32[3]\n  input %w: int32[3]\n  input %c: bool[]\n  %y = If(%c) {\n    region "
                "\"then_branch\" {\n      %a = Div(%x, %w)\n      output %a as \"a\"\n    }\n    region "
                "\"else_branch\" "
                "{\n      output %x as \"b\"\n    }\n  }\n  output %y as \"y\"\n",
                "If", Equal::bits, "strict", true);
  // Not every runtime has a Where of these.
  check_rewrite("control",
                "  input %x: bool[3]\n  input %c: bool[]\n  %y = If(%c) {\n    region \"then_branch\" {\n    "
                "  %a = Not(%x)\n  "
                "    output %a as \"a\"\n    }\n    region \"else_branch\" {\n      output %x as \"b\"\n    "
                "}\n  }\n  output %y as "
                "\"y\"\n",
                "If");
  // Shapes differ.
  check_rewrite("control",
                branches("  const %k: float32[2] = [1.0,2.0]\n",
                         "      %a = Neg(%x)\n      output %a as \"a\"\n", "      output %k as \"b\"\n"),
                "If");
  // Work that only one branch does.
  check_rewrite(
      "control",
      branches("",
               "      %p = Exp(%x)\n      %q = Exp(%p)\n      %r = Exp(%q)\n      %t = Exp(%r)\n      %a = "
               "Exp(%t)\n      output %a as \"a\"\n",
               "      output %x as \"b\"\n"),
      "If");
}

TEST_CASE("a Loop that runs once, or not at all, is its body or nothing") {
  const std::string body = "      %s2 = Exp(%s)\n";
  check_rewrite("control", loop("1", body), "Exp");
  check_rewrite("control", loop("1", body) + all, "Exp Unsqueeze");
  check_rewrite("control", loop("0", "      %s2 = Exp(%s)\n"), "");
  check_rewrite("control", loop("0", body) + all, "Loop");  // an empty stack has dims, too
  check_rewrite("control", loop("-3", "      %s2 = Exp(%s)\n"), "");
  check_rewrite("control", loop("5", "      %s2 = Exp(%s)\n", "  const %go: bool[] = [0]\n"), "");
  check_rewrite("control",
                "  input %x: float32[3]\n  input %n: int64[]\n" +
                    loop("1", body).substr(loop("1", body).find("  const %go")),
                "Loop", Equal::bits, "strict", true);
}

TEST_CASE("a short Loop is unrolled, and its turn number known") {
  const std::string body = "      %f = Cast(%i) {to = 1}\n      %s2 = Add(%s, %f)\n";
  check_rewrite("control", loop("3", body), "Cast Add Cast Add Cast Add");
  check_rewrite("control fold", loop("3", body), "Add Add Add");
  check_rewrite("control fold", loop("3", body) + all, "Add Unsqueeze Add Unsqueeze Add Unsqueeze Concat");
  check_rewrite("control", loop("50", body), "Loop");  // it would grow
  // What the body computes may end it.
  check_rewrite("control",
                loop("3", "      const %two: int64[] = [1]\n      %e = Less(%i, %two)\n      %s2 = Exp(%s)\n",
                     "  const %go: bool[] = [1]\n", "%e"),
                "Loop");
  CHECK(rewrite("control", loop("3", body), R"({"unroll_nodes": 3})").ops == "Loop");
}

TEST_CASE("what a loop does not change is computed before it") {
  const auto body = [](const std::string& invariant) {
    return loop("50", "      %k = " + invariant + "\n      %s2 = Add(%s, %k)\n");
  };
  check_rewrite("control", body("Exp(%x)"), "Exp Loop");
  check_rewrite("control", body("Exp(%s)"), "Loop");
}

TEST_CASE("random numbers in a loop are drawn each time") {
  const auto r = rewrite("control", loop("50", "      %k = RandomNormalLike(%x)\n      %s2 = Add(%s, %k)\n"));
  CHECK(r.ops == "Loop");
}

TEST_CASE("a division that might fail stays in a loop that might not run") {
  const std::string text =
      "  input %x: int32[3]\n  input %w: int32[3]\n  input %n: int64[]\n  %y = Loop(%n, _, %x) {\n    region "
      "\"body\" "
      "{\n      input %i: int64[]\n      input %d: bool[]\n      input %s: int32[3]\n      %k = Div(%w, "
      "%x)\n      %s2 = "
      "Add(%s, %k)\n      output %d as \"d2\"\n      output %s2 as \"s2\"\n    }\n  }\n  output %y as "
      "\"y\"\n";
  check_rewrite("control", text, "Loop", Equal::bits, "strict", true);
}

TEST_CASE("state that never changes is what it was given, and goes") {
  const std::string text =
      "  input %x: float32[3]\n  input %w: float32[3]\n  input %n: int64[]\n  %y, %k = Loop(%n, _, %x, %w) "
      "{\n    "
      "region \"body\" {\n      input %i: int64[]\n      input %d: bool[]\n      input %s: float32[3]\n      "
      "input %t: "
      "float32[3]\n      %s2 = Add(%s, %t)\n      output %d as \"d2\"\n      output %s2 as \"s2\"\n      "
      "output %t as "
      "\"t2\"\n    }\n  }\n  %z = Neg(%k)\n  output %y as \"y\"\n  output %z as \"z\"\n";
  check_rewrite("control", text, "Loop Neg", Equal::bits, "strict", true);
  const auto r = rewrite("control clean", text);
  INFO(r.text());
  CHECK(r.count("Loop(%n, _, %x) ") == 1);
}

TEST_CASE("results and state that nobody reads go from an If and a Loop") {
  const std::string two =
      "  input %x: float32[70,70]\n  input %c: bool[]\n  %y, %z = If(%c) {\n    region \"then_branch\" {\n   "
      "   %a = "
      "Exp(%x)\n      %b = Neg(%x)\n      output %a as \"a\"\n      output %b as \"b\"\n    }\n    region "
      "\"else_branch\" {\n      %p = Abs(%x)\n      output %p as \"p\"\n      output %x as \"q\"\n    }\n  "
      "}\n";
  const auto r = rewrite("control clean", two + "  output %z as \"z\"\n");
  INFO(r.text());
  CHECK(r.count("Exp(") + r.count("Abs(") == 0);
  CHECK(r.count("Neg(") == 1);
  check_rewrite("control", two + "  output %z as \"z\"\n", "If", Equal::bits, "strict");
  check_rewrite("control", two + "  output %z as \"z\"\n  output %y as \"y\"\n", "If", Equal::bits, "strict");

  const auto counted = [](const std::string& read) {
    return "  input %x: float32[3]\n  input %w: float32[3]\n  input %n: int64[]\n  %y, %k, %all = Loop(%n, "
           "_, %x, %w) "
           "{\n    region \"body\" {\n      input %i: int64[]\n      input %d: bool[]\n      input %s: "
           "float32[3]\n      "
           "input %t: float32[3]\n      %s2 = Exp(%s)\n      %t2 = Sin(%t)\n      output %d as \"d2\"\n      "
           "output %s2 "
           "as \"s2\"\n      output %t2 as \"t2\"\n      output %s2 as \"all2\"\n    }\n  }\n  output %" +
           read + " as \"r\"\n";
  };
  const auto l = rewrite("control clean", counted("y"));
  INFO(l.text());
  CHECK(l.count("Sin(") == 0);
  CHECK(l.count("all2") == 0);
  for (const char* read : {"y", "k", "all"})
    check_rewrite("control", counted(read), "Loop", Equal::bits, "strict", true);
}

TEST_CASE("bodies are canonicalised like the rest") {
  const auto r =
      rewrite("canonicalize clean",
              branches("", "      %i = Identity(%x)\n      %a = Exp(%i)\n      output %a as \"a\"\n",
                       "      %t = Neg(%x)\n      %b = Neg(%t)\n      output %b as \"b\"\n"));
  INFO(r.text());
  CHECK(r.count("Identity(") + r.count("Neg(") == 0);
}
