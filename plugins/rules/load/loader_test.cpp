// Desugaring of the articles' forms and expansion into variants, without a host.
#include <catch2/catch.hpp>
#include <deque>

#include "load/loader.hpp"
#include "load/variants.hpp"

using namespace tenon::rules;
namespace sdk = tenon::sdk;

namespace {

/// A few operators: Conv and Relu, LeakyRelu(alpha), Add and Mul, which commute.
class FakeOps : public OpCatalog {
 public:
  FakeOps() {
    add("Conv", 2, 3, 0, {"group"});
    add("Relu", 1, 1, 0, {});
    add("LeakyRelu", 1, 1, 0, {"alpha"});
    add("Add", 2, 2, TN_OP_COMMUTATIVE, {});
    add("Mul", 2, 2, TN_OP_COMMUTATIVE, {});
  }
  tn_sym symbol(std::string_view text) const override {
    for (size_t i = 0; i < texts_.size(); ++i)
      if (texts_[i] == text) return static_cast<tn_sym>(i);
    texts_.emplace_back(text);
    return static_cast<tn_sym>(texts_.size() - 1);
  }
  std::string_view text(tn_sym s) const override { return texts_[s]; }
  int resolve(std::string_view name, tn_sym* op) const override {
    if (name == "conv2d") name = "Conv";
    *op = symbol(name);
    return find(*op) ? 1 : 0;
  }
  const tn_op_def* find(tn_sym op) const override {
    for (const auto& d : defs_)
      if (d.name == op) return &d.def;
    return nullptr;
  }
  std::vector<std::string_view> names() const override {
    std::vector<std::string_view> r;
    for (const auto& d : defs_) r.push_back(sdk::view(d.def.name));
    return r;
  }

 private:
  struct Def {
    tn_sym name;
    tn_op_def def{};
    std::vector<tn_param_def> inputs, outputs;
    std::vector<tn_attr_def> attrs;
  };
  void add(const char* name, uint32_t least, uint32_t most, uint32_t flags, std::vector<const char*> attrs) {
    auto& d = defs_.emplace_back();
    d.name = symbol(name);
    d.inputs.resize(most);
    d.outputs.resize(1);
    for (const char* a : attrs) {
      d.attrs.push_back({});
      d.attrs.back().name = sdk::str(a);
      d.attrs.back().kind = TN_ATTR_FLOAT;
    }
    d.def.size = sizeof d.def;
    d.def.name = sdk::str(name);
    d.def.flags = flags;
    d.def.min_inputs = least;
    d.def.inputs = d.inputs.data();
    d.def.input_count = most;
    d.def.outputs = d.outputs.data();
    d.def.output_count = 1;
    d.def.attrs = d.attrs.data();
    d.def.attr_count = static_cast<uint32_t>(d.attrs.size());
  }
  mutable std::deque<std::string> texts_;
  std::deque<Def> defs_;
};

struct Loaded {
  FakeOps ops;
  Source source;
  std::vector<std::unique_ptr<Rule>> rules;
  std::string codes;
  explicit Loaded(std::string text) {
    source.path = "f.json";
    source.text = std::move(text);
    Finding bad;
    Findings findings(source);
    if (!parse_json(source, &bad)) {
      codes = bad.code;
      return;
    }
    load_rules(source, ops, findings, &rules);
    for (const auto& f : findings.all()) codes += (codes.empty() ? "" : " ") + f.code;
  }
};

const std::string replace = R"("replace": {"nodes": {"f": {"op": "Relu", "in": ["X"], "out": ["z"]}}})";
const std::string two =
    R"("pattern": {"nodes": {"p": {"op": "Relu", "in": ["X"], "out": ["a"]}, "q": {"op": "Relu", "in": ["a"], "out": ["z"]}}, "outputs": ["z"]})";

}  // namespace

TEST_CASE("A chain desugars to nodes fed by one another") {
  Loaded l(R"({"fusion_type": "F", "pattern": ["conv2d", "Add", "Relu|LeakyRelu?"], "fused_op": "MyFused"})");
  REQUIRE(l.codes.empty());
  REQUIRE(l.rules.size() == 1);
  const Rule& r = *l.rules[0];
  CHECK(r.name == "F");
  CHECK(r.switch_name == "GraphFusion.F");
  CHECK(r.replace.chain);
  REQUIRE(r.patterns[0].nodes.size() == 3);
  CHECK(r.patterns[0].nodes[0].chain == none);
  CHECK(r.patterns[0].nodes[1].chain == r.patterns[0].nodes[0].out[0]);
  CHECK(r.patterns[0].nodes[2].alternatives[0].ops.size() == 2);
  const auto v = expand(r);
  REQUIRE(v.size() == 2);
  CHECK(v[0].nodes.size() == 3);
  CHECK(v[1].nodes.size() == 2);
}

TEST_CASE("Repeats expand, a lone node that a chain may shrink to is left out") {
  Loaded l(R"({"fusion_type": "F", "pattern": ["Relu?", "Mul{0,2}", "Add"], "fused_op": "G"})");
  REQUIRE(l.codes.empty());
  const auto v = expand(*l.rules[0]);
  CHECK(v.size() == 5);  // 2 * 3 less the single Add
  CHECK(v.back().nodes.size() == 2);
}

TEST_CASE("Bare lists, in both spellings") {
  Loaded a(R"({"fusion_patterns": [["conv2d", "add"], ["mul", "add"]]})");
  CHECK(a.rules.size() == 2);
  CHECK(a.rules[0]->names_chain == "conv2d+add");
  Loaded b(R"([["Conv", "Relu"]])");
  REQUIRE(b.rules.size() == 1);
  CHECK(b.rules[0]->name == "group_conv_relu");
}

TEST_CASE("Constraints that nothing can meet are errors") {
  const auto codes = [](const std::string& constraint) {
    return Loaded(
               R"({"fusion_type": "F", "pattern": ["Conv", "LeakyRelu"], "fused_op": "G", "constraints": [)" +
               constraint + "]}")
        .codes;
  };
  CHECK(codes(R"({"alpha": 0.5})").empty());
  CHECK(codes(R"({"activation_type": "leaky_relu"})").empty());
  CHECK(codes(R"({"input_dtype": ["float32", "float16"]})").empty());
  CHECK(codes(R"({"activation_type": "gelu"})") == "E205");
  CHECK(codes(R"({"bta": 0.5})") == "E205");
  CHECK(codes(R"({"input_dtype": "float23"})") == "E205");
  CHECK(codes(R"({"input_format": "NHWC"})") == "E205");
}

TEST_CASE("Unknown operators are warned of, wrong structure is an error") {
  CHECK(Loaded(R"({"fusion_type": "F", "pattern": ["MyConv", "Relu"], "fused_op": "G"})").codes == "E401");
  CHECK(Loaded("{\"rule\": \"A\", " + two + ", " + replace + "}").codes.empty());
  CHECK(Loaded("{\"rule\": \"A\", " + two + "}").codes == "E203");
  CHECK(Loaded("{\"rule\": \"A b\", " + two + ", " + replace + "}").codes == "E202");
  CHECK(Loaded("{\"rule\": \"A\", \"piority\": 1, " + two + ", " + replace + "}").codes == "E201");
  CHECK(Loaded("{\"rule\": \"A\", \"stage\": \"layout\", " + two + ", " + replace + "}").codes.empty());
  CHECK(
      Loaded(
          R"({"rule": "A", "pattern": {"nodes": {"p": {"op": "Relu", "in": ["X"], "out": ["z"]}}, "outputs": ["z"]}, )" +
          replace + "}")
          .codes == "E209");
  CHECK(
      Loaded(
          R"({"rule": "A", "once": true, "pattern": {"nodes": {"p": {"op": "Relu", "in": ["X"], "out": ["z"]}}, "outputs": ["z"]}, )" +
          replace + "}")
          .codes.empty());
  CHECK(Loaded(R"({"Rules": []})").codes == "E203");
  CHECK(
      Loaded(
          R"({"rule": "A", "pattern": {"nodes": {"p": {"op": "Conv", "in": ["X"], "out": ["a"]}, "q": {"op": "Relu", "in": ["a"], "out": ["z"]}}, "outputs": ["z"]}, )" +
          replace + "}")
          .codes == "E403");
}

TEST_CASE("A body may read only operands and matched constants") {
  const std::string pattern =
      R"("pattern": {"nodes": {"p": {"op": "Mul", "in": ["X", "Y"], "out": ["a"]}, "q": {"op": "Relu", "in": ["a"], "out": ["z"]}}, "outputs": ["z"]})";
  const auto codes = [&](const std::string& rest) {
    return Loaded("{\"rule\": \"A\", " + pattern + ", " + rest + "}").codes;
  };
  CHECK(
      codes(
          R"("replace": {"nodes": {"f": {"op": "G", "domain": "d", "in": ["X", "Y"], "out": ["z"]}}, "body": "origin"})")
          .empty());
  CHECK(
      codes(
          R"("replace": {"nodes": {"f": {"op": "G", "domain": "d", "in": ["X"], "out": ["z"]}}, "body": "origin"})") ==
      "E211");
  CHECK(
      codes(
          R"("replace": {"nodes": {"f": {"op": "G", "domain": "d", "in": ["X", "Q"], "out": ["z"]}}, "body": "origin"})") ==
      "E206 E211");
  CHECK(
      codes(
          R"("replace": {"nodes": {"f": {"op": "G", "domain": "d", "in": ["X", "Y"], "out": ["q9"]}}, "body": "origin"})") ==
      "E207");
}

TEST_CASE("A new operator that nobody defines wants a body") {
  const auto codes = [&](const std::string& body) {
    return Loaded("{\"rule\": \"A\", " + two +
                  R"(, "replace": {"nodes": {"f": {"op": "G", "domain": "d", "in": ["X"], "out": ["z"]}})" +
                  body + "}}")
        .codes;
  };
  CHECK(codes("") == "E401");
  CHECK(codes(", \"body\": \"origin\"").empty());
}

TEST_CASE("More than 64 variants are refused") {
  CHECK(
      Loaded(R"({"fusion_type": "F", "pattern": ["Relu*", "Mul*", "Add", "Relu"], "fused_op": "G"})").codes ==
      "E204");
}

TEST_CASE("An absent optional node is an alias of its first named operand") {
  Loaded l(R"({"rule": "A", "pattern": {"nodes": {
    "k": {"op": "Mul", "in": ["X", {"const": true, "as": "beta"}], "out": ["t"], "optional": true},
    "p": {"op": "Relu", "in": ["t"], "out": ["s"]}, "q": {"op": "Mul", "in": ["X", "s"], "out": ["z"]}}, "outputs": ["z"]}, )" +
           replace + "}");
  REQUIRE(l.codes.empty());
  const auto v = expand(*l.rules[0]);
  REQUIRE(v.size() == 2);
  CHECK(v[1].nodes.size() == 2);
  CHECK(v[1].nodes[0].in[0] == v[1].nodes[1].in[0]);  // the Relu reads X itself
}
