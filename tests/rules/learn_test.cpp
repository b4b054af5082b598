// `tenon rules learn` and `tenon rules new`: what is proposed is frequent, memory-bound and closed, and the
// files are accepted and proved.
#include <catch2/catch.hpp>

#include "core/runtime/eval.hpp"
#include "rule_harness.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Drafted {
  std::string name, text, summary;
  uint64_t occurrences, bytes_saved;
  uint32_t nodes;
};

void take(void* context, const tn_rule_draft* d) {
  const auto text = [](tn_str s) { return std::string(s.data, s.size); };
  static_cast<std::vector<Drafted>*>(context)->push_back(
      {text(d->name), text(d->text), text(d->summary), d->occurrences, d->bytes_saved, d->nodes});
}

std::vector<std::string> said;
const tn_diag diag{sizeof(tn_diag), nullptr, [](void*, tn_severity, tn_str, tn_str, tn_str what) {
                     said.emplace_back(what.data, what.size);
                   }};

std::vector<Drafted> learn(const std::string& text, uint32_t min_occurrences = 2) {
  static Evaluator evaluator(rules().host(), rules().registries());
  const auto graph = rules().parse(text);
  const auto* engine = rules().registries().rule_engine();
  const tn_learn_options options{sizeof(tn_learn_options), 10, 12, min_occurrences};
  std::vector<Drafted> all;
  said.clear();
  REQUIRE(engine->record->learn(engine->instance, graph.get(), &options, take, &all, &diag) == TN_OK);
  return all;
}

// Three times Sigmoid, Mul, Add behind a product; in the last one the Sigmoid is a graph output.
std::string model() {
  std::string body, outputs;
  for (const char* n : {"1", "2", "3"}) {
    const std::string i(n);
    body += "  %p" + i + " = MatMul(%x, %w)\n  %s" + i + " = Sigmoid(%p" + i + ")\n  %m" + i + " = Mul(%p" +
            i + ", %s" + i + ")\n  %a" + i + " = Add(%m" + i + ", %half)\n  %q" + i + " = MatMul(%a" + i +
            ", %w)\n";
    outputs += "  output %q" + i + " as \"q" + i + "\"\n";
  }
  return "graph \"g\" {\n  opset \"\" 28\n  const %w: float32[64,64] = uniform [0.5]\n  const %half: "
         "float32[] = [0.5]\n"
         "  input %x: float32[32,64]\n" +
         body + outputs + "  output %s3 as \"s3\"\n}\n";
}

}  // namespace

TEST_CASE("What repeats, is memory-bound and closed is proposed, the file is accepted and proved") {
  const auto all = learn(model());
  REQUIRE_FALSE(all.empty());
  const Drafted& best = all[0];
  INFO(best.text);
  // Sigmoid, Mul and Add twice; the third Sigmoid is read outside, so it cannot go.
  CHECK(best.summary == "Sigmoid, Mul, Add");
  CHECK(best.nodes == 3);
  CHECK(best.occurrences == 2);
  CHECK(best.bytes_saved == 2 * 2 * 2 * 32 * 64 * 4);
  CHECK(best.name == "LearnedSigmoidMulAdd");
  for (const auto& d : all) {
    CHECK(d.text.find("MatMul") == std::string::npos);
    INFO(d.text);
    CHECK(rules().check(d.text, true).front() == "ok");
    const auto* engine = rules().registries().rule_engine();
    const tn_rule_source source{{"learned.json", 12}, {d.text.data(), d.text.size()}, 0, 0};
    size_t passed = 0;
    CHECK(
        engine->record->test(
            engine->instance, &source, 1, {nullptr, 0}, 1,
            [](void* context, tn_str, tn_str, int ok, tn_str) { *static_cast<size_t*>(context) += ok != 0; },
            &passed, &diag) == TN_OK);
    CHECK(passed >= 2);
  }
  // And it does what it promises where it was found.
  const auto run = rules().run(model(), best.text);
  CHECK(run.applied(best.name) == 2);
  CHECK(run.count("Sigmoid") == 1);
}

TEST_CASE("Nothing is proposed where nothing repeats") {
  CHECK(learn("graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  %a = Neg(%x)\n  %b = Abs(%a)\n  "
              "output %b as \"b\"\n}\n")
            .empty());
}

TEST_CASE("Reshapes and shape constants are part of a proposal") {
  std::string body;
  for (const char* n : {"1", "2"}) {
    const std::string i(n);
    body += "  %r" + i + " = Reshape(%x" + i + ", %shape)\n  %t" + i + " = Transpose(%r" + i +
            ") {perm = [0, 2, 1, 3]}\n  %e" + i + " = Exp(%t" + i + ")\n  output %e" + i + " as \"e" + i +
            "\"\n";
  }
  const auto all = learn(
      "graph \"g\" {\n  opset \"\" 28\n  const %shape: int64[4] = [0, 0, 2, 3]\n  input %x1: "
      "float32[2,5,6]\n  input %x2: float32[2,5,6]\n" +
      body + "}\n");
  REQUIRE(all.size() == 1);
  INFO(all[0].text);
  CHECK(all[0].summary == "Reshape, Transpose, Exp");
  CHECK(all[0].text.find("{\"const\": [0, 0, 2, 3]}") != std::string::npos);
  CHECK(all[0].text.find("\"perm\": [0, 2, 1, 3]") != std::string::npos);
}

TEST_CASE(
    "A rule written from nodes: they need not be memory-bound; what it cannot say is an error with the "
    "reason") {
  static Evaluator evaluator(rules().host(), rules().registries());
  const auto* engine = rules().registries().rule_engine();
  const auto graph = rules().parse(model());
  const auto node = [&](const std::string& value) { return graph->value(graph->find_value(value)).producer; };
  std::vector<Drafted> all;
  const std::vector<tn_node> nodes{node("s1"), node("p1"), node("m1")};
  said.clear();
  REQUIRE(engine->record->from_nodes(engine->instance, graph.get(), nodes.data(), 3, {"Mine", 4}, take, &all,
                                     &diag) == TN_OK);
  REQUIRE(all.size() == 1);
  INFO(all[0].text);
  CHECK(all[0].name == "Mine");
  CHECK(all[0].summary == "MatMul, Sigmoid, Mul");
  CHECK(rules().run(model(), all[0].text).applied("Mine") == 2);

  const tn_node one = node("s1");
  said.clear();
  CHECK(engine->record->from_nodes(engine->instance, graph.get(), &one, 1, {"Mine", 4}, take, &all, &diag) !=
        TN_OK);
  REQUIRE(said.size() == 1);
  CHECK(said[0] == "a rule needs at least two nodes");
  const std::vector<tn_node> apart{node("s1"), node("s2")};
  said.clear();
  CHECK(engine->record->from_nodes(engine->instance, graph.get(), apart.data(), 2, {"Mine", 4}, take, &all,
                                   &diag) != TN_OK);
  REQUIRE_FALSE(said.empty());
  CHECK(said[0].find("is not connected to output") != std::string::npos);
}
