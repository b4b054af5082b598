#include "pass_harness.hpp"

#include "core/runtime/eval.hpp"

namespace tenon::test {

Outcome optimize(const std::string& text, const std::string& rule_text, const Wish& wish) {
  static Evaluator evaluator(rules().host(), rules().registries());
  Outcome out;
  out.graph = rules().parse(text);
  const std::string path = "mine.json";
  const std::vector<tn_rule_source> sources{
      {{path.data(), path.size()}, {rule_text.data(), rule_text.size()}, wish.builtin ? 1u : 0u, 0}};
  const Switches switches;
  const PassManager manager(rules().host(), rules().registries(), switches, sources);
  Diagnostics diagnostics;
  std::vector<PassRequest> requests;
  for (const std::string& pass : wish.passes) requests.emplace_back().pass = pass;
  const auto passes = manager.prepare(requests, false, diagnostics);
  PassOptions options;
  options.rules_verify = wish.verify;
  options.explain = true;
  options.edit_limit = wish.limit;
  options.samples = wish.samples;
  manager.run(*out.graph, passes, options, out.report, diagnostics);
  for (const Diagnostic& d : diagnostics.all()) out.said.push_back(d.code + " " + d.where + ": " + d.text);
  return out;
}

std::string graph_of(const std::string& inputs, const std::string& body) {
  return "graph \"g\" {\n  opset \"\" 28\n" + inputs + body + "}\n";
}

bool says(const Outcome& o, const std::string& text) {
  for (const auto& s : o.said)
    if (s.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace tenon::test
