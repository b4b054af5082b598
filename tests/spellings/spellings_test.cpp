// All spellings of all families are raised, and compute the same as before: reference kernels without
// rewrites, all kernels without, all kernels with. Look-alikes stay what they are.
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/graph/graph.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/session.hpp"
#include "spellings.hpp"
#include "tests/support/test_paths.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

Engine& engine() {
  static Engine* e = [] {
    set_install_root(build_dir());
    Diagnostics findings;
    auto manifest = parse_manifest("default.json", std::string(default_manifest_text()), ".", {}, findings);
    findings.throw_if_errors(2);
    return new Engine(*manifest);
  }();
  return *e;
}

std::unique_ptr<Graph> graph_of(const std::string& text) {
  Diagnostics findings;
  auto g = parse(text, &engine().registries(), findings);
  findings.throw_if_errors(2);
  upgrade_and_infer(*g, engine().registries(), findings);
  findings.throw_if_errors(2);
  return g;
}

std::unique_ptr<Graph> optimised(const std::string& text) {
  auto g = graph_of(text);
  OptimizeReport report;
  engine().optimize(*g, report);
  return g;
}

using Results = std::vector<std::vector<float>>;

Results compute(std::unique_ptr<Graph> graph, bool reference) {
  RuntimeOptions options;
  options.threads = 1;
  if (reference) options.kernels.deny = {"tenon.cpu.*"};
  Session session(std::move(graph), engine().registries(), options);
  std::vector<std::vector<int64_t>> dims;
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> inputs;
  dims.reserve(8), values.reserve(8);
  uint64_t state = 7;
  for (const auto& i : session.inputs()) {
    auto& d = dims.emplace_back();
    int64_t n = 1;
    for (const auto& text : i.dims) d.push_back(std::stoll(text)), n *= d.back();
    auto& v = values.emplace_back(static_cast<size_t>(n));
    for (float& x : v) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      x = static_cast<float>(static_cast<double>(state >> 33) / 1073741824.0 - 1) * 3;
    }
    inputs.push_back(
        {i.name, {TN_FLOAT32, static_cast<int32_t>(d.size()), d.data(), v.data(), v.size() * 4}});
  }
  Results out;
  for (const auto& o : session.run(inputs)) {
    const tn_tensor t = o.tensor();
    REQUIRE(t.dtype == TN_FLOAT32);
    auto& v = out.emplace_back(t.bytes / 4);
    std::memcpy(v.data(), t.data, t.bytes);
  }
  return out;
}

/// Empty when equal.
std::string difference(const Results& want, const Results& got, double rtol, double atol) {
  if (want.size() != got.size()) return "another number of results";
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k].size() != got[k].size()) return "another number of elements";
    for (size_t i = 0; i < want[k].size(); ++i) {
      const double w = static_cast<double>(want[k][i]), g = static_cast<double>(got[k][i]);
      if (!(std::fabs(w - g) <= atol + rtol * std::fabs(w)) && !(std::isnan(w) && std::isnan(g)))
        return fmt::format("result {} element {}: {} instead of {}", k, i, g, w);
    }
  }
  return {};
}

int count(const Graph& g, const std::string& op) {
  int n = 0;
  for (const tn_node id : g.nodes(0)) n += g.op_name(id) == op;
  return n;
}

void prove(const Family& f) {
  CHECK(f.spellings.size() == f.count);
  size_t raised = 0;
  for (const auto& s : f.spellings) {
    INFO(f.name << ": " << s.name << "\n" << s.graph);
    auto g = optimised(s.graph);
    INFO(print(*g));
    const bool one = count(*g, f.op) == 1 && static_cast<int>(g->nodes(0).size()) == f.nodes;
    CHECK(one);
    raised += one;
    const Results want = compute(graph_of(s.graph), true);
    CHECK(difference(want, compute(graph_of(s.graph), false), f.rtol, f.atol) == "");
    CHECK(difference(want, compute(optimised(s.graph), true), f.rtol, f.atol) == "");
    CHECK(difference(want, compute(std::move(g), false), f.rtol, f.atol) == "");
  }
  CHECK(raised == f.count);
  for (const auto& s : f.look_alikes) {
    INFO(f.name << ", only nearly: " << s.name << "\n" << s.graph);
    auto g = optimised(s.graph);
    INFO(print(*g));
    CHECK(count(*g, f.op) == 0);
    CHECK(difference(compute(graph_of(s.graph), true), compute(std::move(g), false), f.rtol, f.atol) == "");
  }
}

}  // namespace

TEST_CASE("Gelu by erf") { prove(gelu_family()); }
TEST_CASE("Gelu by tanh") { prove(gelu_tanh_family()); }
TEST_CASE("SiLU and QuickGELU") { prove(silu_family()); }
TEST_CASE("LayerNorm") { prove(layer_norm_family()); }
TEST_CASE("LayerNorm without scale") { prove(layer_norm_plain_family()); }
TEST_CASE("RMSNorm") { prove(rms_norm_family()); }
TEST_CASE("GroupNorm") { prove(group_norm_family()); }
TEST_CASE("skip + LayerNorm") { prove(skip_layer_norm_family()); }
TEST_CASE("skip + RMSNorm") { prove(skip_rms_norm_family()); }
TEST_CASE("attention core") { prove(attention_family()); }
TEST_CASE("attention with heads") { prove(attention_heads_family()); }
TEST_CASE("attention with heads and any mask") { prove(attention_heads_masked_family()); }
TEST_CASE("attention with heads and a finite mask") { prove(attention_heads_chosen_family()); }
TEST_CASE("attention with a cache") { prove(attention_cache_family()); }
TEST_CASE("attention with a cache and RoPE") { prove(attention_cache_rotary_family()); }
TEST_CASE("RoPE") { prove(rotary_family()); }
TEST_CASE("RoPE with rows picked by positions") { prove(rotary_gathered_family()); }
TEST_CASE("RoPE with constant tables") { prove(rotary_constant_family()); }
TEST_CASE("SwiGLU, GeGLU, GLU") { prove(gated_family()); }
TEST_CASE("HardSwish") { prove(hard_swish_family()); }
TEST_CASE("HardSigmoid") { prove(hard_sigmoid_family()); }
TEST_CASE("Softplus") { prove(softplus_family()); }
TEST_CASE("Mish") { prove(mish_family()); }
TEST_CASE("Sigmoid") { prove(sigmoid_family()); }
TEST_CASE("Clip") { prove(clip_family()); }
TEST_CASE("LeakyRelu") { prove(leaky_relu_family()); }
TEST_CASE("PRelu") { prove(p_relu_family()); }
TEST_CASE("Softmax") { prove(softmax_family()); }
TEST_CASE("LogSoftmax") { prove(log_softmax_family()); }
TEST_CASE("ReduceL2") { prove(reduce_l2_family()); }
TEST_CASE("NormalizeL2") { prove(normalize_l2_family()); }
TEST_CASE("DepthToSpace") { prove(depth_to_space_family()); }
TEST_CASE("SpaceToDepth") { prove(space_to_depth_family()); }
TEST_CASE("ChannelShuffle") { prove(channel_shuffle_family()); }
