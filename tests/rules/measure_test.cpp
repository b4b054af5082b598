// cost.measure: what measuring said is kept in a file, and decides alike in every run that is given the file.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/pipeline/choices.hpp"
#include "core/runtime/eval.hpp"
#include "pass_harness.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

// The clock of these tests: what tn_eval_api.time says of the graph as it is and rewritten.
uint64_t times[2] = {10000, 4000};
int timed = 0;

tn_status fake_time(const tn_host*, tn_graph* const* graphs, uint32_t count, const tn_tensor* inputs,
                    uint32_t, uint64_t, uint64_t* nanoseconds, const tn_diag*) {
  CHECK(count == 2);
  CHECK(inputs[0].dims[0] == 4);
  CHECK(Graph::from(graphs[0]).nodes(0).size() == 2);
  CHECK(Graph::from(graphs[1]).nodes(0).size() == 1);
  ++timed;
  nanoseconds[0] = times[0];
  nanoseconds[1] = times[1];
  return TN_OK;
}

struct FakeClock {
  FakeClock() : real(static_cast<const tn_eval_api*>(rules().host().find(TN_EVAL_ID))) {
    static tn_eval_api fake;
    fake = *real;
    fake.time = &fake_time;
    context = rules().host().context(TN_EVAL_ID);
    rules().host().provide(TN_EVAL_ID, &fake, context);
    timed = 0;
  }
  ~FakeClock() { rules().host().provide(TN_EVAL_ID, real, context); }
  const tn_eval_api* real;
  void* context;
};

// A gain that the static cost refuses.
std::string rule_with(const std::string& measure) {
  return R"x({"rule": "Timed", "pattern": {"nodes": {"a": {"op": "Abs", "in": ["X"], "out": ["s"]}, "n": {"op": "Neg", "in": ["s"], "out": ["z"]}}, "outputs": ["z"]},
  "replace": {"nodes": {"m": {"op": "NegAbs", "domain": "test", "in": ["X"], "out": ["z"]}}, "body": "origin"},
  "cost": {"gain": "bytes(s)", "min_gain": 1000, "measure": ")x" +
         measure + R"x("}, "verify": {"cases": [{"X": [4]}]}})x";
}

std::string abs_neg(const std::string& dims, int pairs = 1) {
  std::string body, outputs;
  for (int i = 0; i < pairs; ++i) {
    const std::string n = std::to_string(i);
    body += "  %s" + n + " = Abs(%x)\n  %z" + n + " = Neg(%s" + n + ")\n";
    outputs += "  output %z" + n + " as \"z" + n + "\"\n";
  }
  return graph_of("  input %x: float32[" + dims + "]\n", body + outputs);
}

struct Choices {
  explicit Choices(bool may_measure, const std::string& machine = "here")
      : store(rules().host(), file(), may_measure, machine) {
    Diagnostics said;
    store.read(said);
    for (const auto& d : said.all()) UNSCOPED_INFO(d.where << ": " << d.text);
    REQUIRE_FALSE(said.has_errors());
  }
  static std::string file() { return scratch_dir() + "/choices.json"; }
  static std::string text() {
    std::ifstream in(file());
    std::stringstream s;
    s << in.rdbuf();
    return s.str();
  }
  ChoiceStore store;
};

Wish unchecked() {
  Wish wish;
  wish.verify = 0;
  return wish;
}

}  // namespace

TEST_CASE("Nothing is timed unless it is asked for; then it is timed once, kept, and decides") {
  std::filesystem::remove(Choices::file());
  optimize(abs_neg("4"), rule_with("auto"));  // makes the evaluator
  const FakeClock clock;
  // No file: the static cost decides.
  Outcome o = optimize(abs_neg("4"), rule_with("auto"), unchecked());
  CHECK(o.count("test::NegAbs") == 0);
  CHECK(o.report.explained.at({"Timed", TN_REASON_COST}).example.expr == "gain bytes(s) > 1000");
  CHECK(timed == 0);

  times[0] = 10000, times[1] = 4000;
  {
    Choices choices(true);
    o = optimize(abs_neg("4", 3), rule_with("auto"), unchecked());
    CHECK(o.count("test::NegAbs") == 3);
    CHECK(timed == 1);  // three matches that are one question
    CHECK(o.report.explained.at({"Timed", TN_REASON_APPLIED}).example.expr ==
          "measured 10.0 us as it is, 4.0 us rewritten");
    choices.store.write();
  }
  const std::string written = Choices::text();
  CHECK(written.find("\"chosen\": \"rewrite\"") != std::string::npos);
  CHECK(written.find("Neg(float32[4])") != std::string::npos);
  CHECK(written.find("\"machine\": \"here\"") != std::string::npos);

  times[1] = 40000;  // the file's word holds, here and elsewhere, whatever the clock says
  for (const char* machine : {"here", "there"}) {
    Choices choices(false, machine);
    o = optimize(abs_neg("4"), rule_with("auto"), unchecked());
    CHECK(o.count("test::NegAbs") == 1);
    CHECK(timed == 1);
    choices.store.write();
    CHECK(Choices::text() == written);
  }
  {
    Choices choices(true);  // asked again on the same machine, it is known
    CHECK(optimize(abs_neg("4"), rule_with("auto"), unchecked()).count("test::NegAbs") == 1);
    CHECK(timed == 1);
  }
  {
    Choices choices(true, "there");  // elsewhere it is measured anew
    o = optimize(abs_neg("4"), rule_with("auto"), unchecked());
    CHECK(o.count("test::NegAbs") == 0);
    CHECK(timed == 2);
    const ExplainEntry& why = o.report.explained.at({"Timed", TN_REASON_COST}).example;
    CHECK(why.expr == "the replacement is faster");
    CHECK(why.got == "measured 10.0 us as it is, 40.0 us rewritten");
    choices.store.write();
  }
  {
    Choices choices(false);
    CHECK(optimize(abs_neg("4"), rule_with("auto"), unchecked()).count("test::NegAbs") == 0);
    CHECK(optimize(abs_neg("5"), rule_with("auto"), unchecked()).count("test::NegAbs") ==
          0);  // not in the file
    CHECK(timed == 2);
  }
}

TEST_CASE("\"always\" measures in every run that may, once a question; \"off\" never") {
  std::filesystem::remove(Choices::file());
  optimize(abs_neg("4"), rule_with("always"));
  const FakeClock clock;
  times[0] = 10000;
  for (const uint64_t rewritten : {4000, 40000}) {
    times[1] = rewritten;
    Choices choices(true);
    CHECK(optimize(abs_neg("4", 2), rule_with("always"), unchecked()).count("test::NegAbs") ==
          (rewritten == 4000 ? 2 : 0));
    choices.store.write();
  }
  CHECK(timed == 2);
  Choices choices(true);
  optimize(abs_neg("4"), rule_with("off"), unchecked());
  CHECK(timed == 2);
}

TEST_CASE("A match of open shape is not measured without inputs, and that is said") {
  std::filesystem::remove(Choices::file());
  optimize(abs_neg("4"), rule_with("auto"));
  const FakeClock clock;
  times[0] = 10000, times[1] = 4000;
  Choices choices(true);
  Outcome o = optimize(abs_neg("N"), rule_with("auto"), unchecked());
  CHECK(says(
      o, "E322 rule Timed: a match could not be measured, so its static cost decides: its shapes are open"));
  CHECK(o.count("test::NegAbs") == 0);
  CHECK(timed == 0);
  float data[4] = {1, -2, 3, 4};
  const int64_t dims[1] = {4};
  Wish wish = unchecked();
  wish.samples = {{TN_FLOAT32, 1, dims, data, sizeof data}};
  o = optimize(abs_neg("N"), rule_with("auto"), wish);
  CHECK(o.count("test::NegAbs") == 1);
  CHECK(timed == 1);
}

TEST_CASE("Both sides are really run") {
  std::filesystem::remove(Choices::file());
  optimize(abs_neg("4"), rule_with("auto"));
  Choices choices(true);
  const Outcome o = optimize(abs_neg("4096"), rule_with("auto"), unchecked());
  choices.store.write();
  const bool rewritten = Choices::text().find("\"chosen\": \"rewrite\"") != std::string::npos;
  CHECK(rewritten != (Choices::text().find("\"chosen\": \"keep\"") != std::string::npos));
  CHECK(o.count("test::NegAbs") == (rewritten ? 1 : 0));
}

TEST_CASE("A file of choices that is none, or is not there") {
  Host host;
  const auto faults = [&](const std::string& text, bool may_measure, const std::string& file) {
    if (text.empty())
      std::filesystem::remove(file);
    else
      std::ofstream(file, std::ios::trunc) << text;
    Diagnostics said;
    ChoiceStore(host, file, may_measure, "here").read(said);
    std::string all;
    for (const auto& d : said.all()) all += d.code + " " + d.text + "\n";
    return all;
  };
  const std::string file = scratch_dir() + "/broken_choices.json";
  CHECK(faults("", true, file).empty());
  CHECK_FALSE(faults("", false, file).empty());
  CHECK(faults("", true, "").find("M260 what is measured is kept in a file; name one: --choices FILE") == 0);
  CHECK(faults("[]", false, file).find("M261 is no file of choices") == 0);
  CHECK(faults(R"({"schema": "tenon.choices/2", "choices": {}})", false, file).find("M261") == 0);
  CHECK(faults(R"({"schema": "tenon.choices/1", "choices": {"a": {"chosen": 1}}})", false, file)
            .find("M261 a choice has the texts 'chosen', 'note' and 'machine'") == 0);
  CHECK(faults(R"({"schema": "tenon.choices/1", "choices": {}})", false, file).empty());
}
