// Graphs of text for the tests of the cpu plugin's kernels.
#pragma once
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/pipeline.hpp"
#include "tests/support/test_paths.hpp"

namespace tenon::test {

inline Engine& engine() {
  static Engine* e = [] {
    set_install_root(build_dir());
    Diagnostics findings;
    auto manifest = parse_manifest(
        "test.json",
        R"({"schema": "tenon.pipeline/1", "plugins": ["ops", "memory", "cpu"], "rules": [], "pipeline": []})",
        ".", {}, findings);
    findings.throw_if_errors(2);
    return new Engine(*manifest);
  }();
  return *e;
}

inline std::unique_ptr<Graph> graph_of(const std::string& body) {
  Diagnostics findings;
  auto g = parse("graph \"g\" {\n  opset \"\" 28\n" + body + "}\n", &engine().registries(), findings);
  findings.throw_if_errors(2);
  infer_graph(*g, findings);
  findings.throw_if_errors(2);
  return g;
}

/// A repeatable number in (-2, 2) with a few zeros among them.
inline float number(uint64_t& state) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  const auto r = static_cast<uint32_t>(state >> 33);
  return r % 17 == 0 ? 0.0f : static_cast<float>(static_cast<int32_t>(r % 8001) - 4000) / 2000.0f;
}

}  // namespace tenon::test
