#include "tests/fusion/graphs.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/runtime/eval.hpp"
#include "tenon/sdk/tensor.hpp"
#include "tests/support/test_paths.hpp"

namespace tenon::test {

uint64_t Rewritten::applied(const std::string& step) const {
  const auto at = report.rules.find(step);
  return at == report.rules.end() ? 0 : at->second.applied;
}

std::string Rewritten::text() const { return print(*graph); }

size_t Rewritten::count(const std::string& part) const {
  const std::string all = text();
  size_t n = 0;
  for (size_t at = all.find(part); at != std::string::npos; at = all.find(part, at + part.size())) ++n;
  return n;
}

namespace {

Manifest manifest_of(const std::string& passes, const std::string& options, const std::string& precision) {
  Diagnostics findings;
  std::string pipeline;
  std::istringstream names(passes);
  for (std::string name; names >> name;)
    pipeline += (pipeline.empty() ? "{\"pass\": \"" + name + "\", \"options\": " + options + "}"
                                  : ", \"" + name + "\"");
  const std::string text = R"({"schema": "tenon.pipeline/1", "plugins": ["ops", "fusion"], "rules": [],
      "precision": {"mode": ")" +
                           precision + R"("}, "pipeline": [)" + pipeline + "]}";
  auto parsed = parse_manifest("test.json", text, ".", {}, findings);
  findings.throw_if_errors(2);
  return std::move(*parsed);
}

std::unique_ptr<Graph> graph_of(const std::string& body, const Registries& registries) {
  Diagnostics findings;
  auto graph = parse("graph \"g\" {\n  opset \"\" 28\n" + body + "}\n", &registries, findings);
  findings.throw_if_errors(2);
  infer_graph(*graph, findings);
  findings.throw_if_errors(2);
  return graph;
}

/// Elements of an input, the awkward ones first.
sdk::OwnedTensor fill(tn_dtype dtype, const sdk::Dims& dims, uint64_t& state, bool tame) {
  sdk::OwnedTensor t(dtype, dims);
  sdk::visit_number(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < t.count(); ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const uint64_t r = state >> 33;
      T x{};
      if constexpr (std::is_same_v<T, bool>) {
        x = r % 2 != 0;
      } else if constexpr (std::is_integral_v<T>) {
        const T awkward[] = {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(),
                             static_cast<T>(-1)};
        x = tame ? static_cast<T>(1 + r % 7) : r % 3 == 0 ? awkward[r / 3 % 5] : static_cast<T>(r);
      } else {
        const float awkward[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 1e-30f, -65000.0f};
        const float plain = static_cast<float>(static_cast<int64_t>(r % 8001) - 4000) / 1000.0f;
        x = T(tame ? std::fabs(plain) + 0.25f : r % 3 == 0 ? awkward[r / 3 % 9] : plain);
      }
      t.data<T>()[i] = x;
    }
  });
  return t;
}

std::vector<sdk::OwnedTensor> run(std::unique_ptr<Graph> graph, const Registries& registries, bool tame) {
  RuntimeOptions options;
  options.threads = 1;
  options.guard = true;
  Session session(std::move(graph), registries, options);
  std::map<std::string, int64_t> symbols;
  std::vector<sdk::OwnedTensor> feeds;
  std::vector<NamedTensor> inputs;
  uint64_t state = 7;
  for (const auto& i : session.inputs()) {
    sdk::Dims dims;
    for (const auto& text : i.dims) {
      const bool number = text.find_first_not_of("0123456789") == std::string::npos;
      dims.push_back(number ? std::stoll(text) : symbols.emplace(text, 3 + symbols.size()).first->second);
    }
    feeds.push_back(fill(i.dtype, dims, state, tame));
  }
  for (size_t k = 0; k < feeds.size(); ++k) {
    NamedTensor t;
    t.name = session.inputs()[k].name;
    t.tensor = feeds[k].raw();
    inputs.push_back(t);
  }
  std::vector<sdk::OwnedTensor> results;
  for (const auto& o : session.run(inputs)) results.emplace_back(o.tensor());
  return results;
}

void compare(const sdk::OwnedTensor& want, const sdk::OwnedTensor& got, Equal equal) {
  REQUIRE(want.dtype() == got.dtype());
  REQUIRE(want.dims() == got.dims());
  const sdk::TensorView x = want.view(), y = got.view();
  const bool narrow = want.dtype() == TN_FLOAT16 || want.dtype() == TN_BFLOAT16;
  const double rtol = narrow ? 2e-2 : 1e-5;
  for (int64_t i = 0; i < want.count(); ++i) {
    if (!sdk::is_float(want.dtype())) {
      if (x.int_at(i) != y.int_at(i))
        FAIL("element " << i << ": " << x.int_at(i) << " became " << y.int_at(i));
      continue;
    }
    const double a = x.float_at(i), b = y.float_at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    const bool same = a == b && (equal != Equal::bits || std::signbit(a) == std::signbit(b));
    const bool near = equal == Equal::nearly && std::fabs(a - b) <= 1e-6 + rtol * std::fabs(a);
    if (!same && !near) FAIL("element " << i << ": " << a << " became " << b);
  }
}

}  // namespace

Rewritten rewrite(const std::string& passes, const std::string& body, const std::string& options,
                  EngineOptions engine_options, const std::string& precision) {
  set_install_root(build_dir());
  engine_options.explain = true;
  Engine engine(manifest_of(passes, options, precision), engine_options);
  Evaluator evaluator(engine.host(), engine.registries());
  Rewritten r;
  r.graph = graph_of(body, engine.registries());
  engine.optimize(*r.graph, r.report);
  for (tn_node n : r.graph->nodes(0)) r.ops += (r.ops.empty() ? "" : " ") + std::string(r.graph->op_name(n));
  r.graph->set_registry(nullptr);  // the engine ends here, the graph goes on
  return r;
}

void check_rewrite(const std::string& passes, const std::string& body, const std::string& ops, Equal equal,
                   const std::string& precision, bool tame) {
  INFO(body);
  set_install_root(build_dir());
  EngineOptions engine_options;
  engine_options.verify_graph = true;
  Engine engine(manifest_of(passes + " clean", "{}", precision), engine_options);
  Evaluator evaluator(engine.host(), engine.registries());
  auto graph = graph_of(body, engine.registries());
  OptimizeReport report;
  engine.optimize(*graph, report);
  std::string got;
  for (tn_node n : graph->nodes(0)) got += (got.empty() ? "" : " ") + std::string(graph->op_name(n));
  INFO(print(*graph));
  CHECK(got == ops);
  const auto want = run(graph_of(body, engine.registries()), engine.registries(), tame);
  const auto have = run(std::move(graph), engine.registries(), tame);
  REQUIRE(want.size() == have.size());
  for (size_t k = 0; k < want.size(); ++k) compare(want[k], have[k], equal);
}

std::string around(const std::string& type, const std::string& lines) {
  return "  input %x: " + type + "\n" + lines + "  output %y as \"y\"\n";
}

}  // namespace tenon::test
