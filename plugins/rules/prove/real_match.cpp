#include "prove/real_match.hpp"

#include <algorithm>
#include <cmath>

#include "prove/choices.hpp"
#include "prove/compare.hpp"
#include "tenon/sdk/edit.hpp"

namespace tenon::rules {
namespace {

constexpr uint64_t most_bytes = uint64_t{256} << 20;  // of the tensors that one check reads and writes

}  // namespace

/// The matched nodes as a graph of their own.
struct RealMatchCheck::Copy {
  explicit Copy(const TestServices& s) : services(&s), graph(s.eval->new_graph(s.host)) {}
  ~Copy() {
    if (graph) services->eval->delete_graph(services->host, graph);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  const TestServices* services;
  tn_graph* graph;
  std::vector<std::pair<tn_value, tn_value>> values;  // of the real graph, and here
  std::vector<tn_value> inputs;                       // of the real graph: what is fed in, in order
  std::vector<sdk::OwnedTensor> fed;

  tn_value find(tn_value real) const {
    for (const auto& v : values)
      if (v.first == real) return v.second;
    return TN_NONE;
  }
};

bool RealMatchCheck::wants(uint32_t entry, uint32_t variant) {
  if (mode_ == CheckMode::Off || !services_.eval || !TN_HAS(services_.eval, values)) return false;
  if (mode_ == CheckMode::Auto && rules_.entries()[entry].rule->source->builtin) return false;
  Met& met = met_[entry];
  const uint64_t n = ++met.matches;
  if (std::find(met.variants.begin(), met.variants.end(), variant) == met.variants.end()) {
    met.variants.push_back(variant);
    return true;
  }
  return (n & (n - 1)) == 0;
}

/// Numbers for the dims: a plain symbol gets a small number, the same everywhere in the match.
bool RealMatchCheck::concrete(const GraphAccess& graph, const tn_type& type, std::vector<int64_t>* dims) {
  static constexpr int64_t small[] = {2, 3, 5, 7, 11, 13};
  dims->clear();
  for (int32_t i = 0; i < type.rank; ++i) {
    int64_t d = type.dims[i];
    if (d < 0) {
      const std::string text = sdk::text(graph.symbols()->text(graph.raw(), d));
      if (text.find_first_of(" +-*/%(),") != std::string::npos) return false;
      int64_t lo = 0, hi = TN_DIM_MAX;
      graph.symbols()->range(graph.raw(), d, &lo, &hi);
      auto at =
          std::find_if(extents_.begin(), extents_.end(), [&](const auto& e) { return e.first == text; });
      if (at == extents_.end()) {
        const int64_t wanted = small[extents_.size() % std::size(small)];
        extents_.emplace_back(text, std::min(std::max(wanted, lo), hi));
        at = extents_.end() - 1;
      }
      d = at->second;
    }
    dims->push_back(d);
  }
  return true;
}

/// Random contents, as the rule's verify section draws them for that value.
sdk::OwnedTensor RealMatchCheck::drawn(const GraphAccess& graph, const Match& match, tn_value value,
                                       const tn_type& type, const std::vector<int64_t>& dims) {
  const Rule& rule = *match.variant->rule;
  std::string distribution = "normal(0,1)";
  for (const auto& d : rule.verify.inputs)
    if (d.first == "*") distribution = d.second;
  for (uint32_t v = 0; v < rule.values.size() && v < match.values.size(); ++v)
    for (const auto& d : rule.verify.inputs)
      if (match.values[v] == value && d.first == rule.values[v]) distribution = d.second;
  gx::Tensor t;
  t.dims = dims;
  t.dtype = type.dtype;
  const int64_t n = sdk::element_count(dims);
  const tn_dim* known = nullptr;
  uint32_t count = 0;
  const bool is_known = graph.api()->known_elements(graph.raw(), value, &known, &count) == TN_OK &&
                        static_cast<int64_t>(count) == n;
  Random random(static_cast<uint64_t>(rule.verify.seed) * 7919u + value);
  for (int64_t i = 0; i < n; ++i) {
    int64_t element = 0;
    if (is_known && (known[i] >= 0 || graph.symbols()->as_number(graph.raw(), known[i], &element)))
      t.data->push_back(static_cast<double>(known[i] >= 0 ? known[i] : element));
    else if (type.dtype == TN_BOOL)
      t.data->push_back(random.uniform() < 0.5);
    else
      t.data->push_back(sdk::is_float(type.dtype) ? random.draw(distribution)
                                                  : static_cast<double>(random.next() % 2));
  }
  return gx::store(t);
}

/// What the match reads from outside: constants as they are, other tensors as samples or drawn.
std::string RealMatchCheck::boundary(const GraphAccess& graph, const Match& match, Copy* copy) {
  std::vector<tn_node> nodes = match.nodes;
  nodes.insert(nodes.end(), match.inner.begin(), match.inner.end());
  sdk::Transaction tx(services_.graph, services_.edit, copy->graph, "rules check");
  std::vector<tn_value> fed;
  uint64_t bytes = 0;
  for (const tn_node n : nodes) {
    const tn_node_info info = graph.node(n);
    for (uint32_t i = 0; i < info.input_count; ++i) {
      const tn_value v = info.inputs[i];
      if (v == TN_NONE || copy->find(v) != TN_NONE || std::find(fed.begin(), fed.end(), v) != fed.end())
        continue;
      const tn_value_info value = graph.value(v);
      if (value.kind == TN_VALUE_RESULT && match.has(value.producer)) continue;
      if (value.type.kind != TN_KIND_TENSOR || value.type.rank < 0 || value.type.dtype == TN_DTYPE_NONE)
        return "'" + graph.value_name(v) + "' has no known type";
      tn_tensor constant{};
      if (graph.constant(v, &constant)) {
        tn_value made = TN_NONE;  // the real graph outlives the copy, so its bytes are lent
        if (services_.edit->constant_adopt(
                tx.raw(), {nullptr, 0}, &constant, [](void*) {}, nullptr, &made) != TN_OK)
          return "constant '" + graph.value_name(v) + "' cannot be lent";
        copy->values.emplace_back(v, made);
      } else {
        fed.push_back(v);
      }
    }
  }
  std::vector<sdk::OwnedTensor> samples(fed.size());
  const bool sampled =
      sample_count_ > 0 &&
      std::none_of(samples_, samples_ + sample_count_,
                   [](const tn_tensor& t) { return t.dtype == TN_DTYPE_NONE; }) &&
      std::all_of(fed.begin(), fed.end(), [&](tn_value v) { return graph.value(v).region == 0; });
  if (sampled && !fed.empty()) {
    sdk::DiagBuffer said;
    services_.eval->values(
        services_.host, graph.raw(), samples_, static_cast<uint32_t>(sample_count_), fed.data(),
        static_cast<uint32_t>(fed.size()),
        [](void* context, uint32_t index, const tn_tensor* t) {
          (*static_cast<std::vector<sdk::OwnedTensor>*>(context))[index] = sdk::OwnedTensor(*t);
        },
        &samples, said.raw());
  }
  for (size_t i = 0; i < fed.size(); ++i) {
    const tn_value_info value = graph.value(fed[i]);
    std::vector<int64_t> dims;
    if (samples[i].dtype() == TN_DTYPE_NONE) {
      if (!concrete(graph, value.type, &dims))
        return "the shape of '" + graph.value_name(fed[i]) + "' is not known; give --inputs";
      if (sdk::packed_bytes(value.type.dtype, sdk::element_count(dims)) > most_bytes)
        return "'" + graph.value_name(fed[i]) + "' is too large to be made up; give --inputs";
      samples[i] = drawn(graph, match, fed[i], value.type, dims);
    }
    bytes += samples[i].bytes();
    if (bytes > most_bytes) return "its tensors are too large";
    copy->values.emplace_back(
        fed[i],
        tx.region_input(0, "x" + std::to_string(i), sdk::tensor_type(samples[i].dtype(), samples[i].dims())));
    copy->fed.push_back(std::move(samples[i]));
  }
  return tx.commit() ? std::string() : tx.said();
}

std::string RealMatchCheck::build(const GraphAccess& graph, const Match& match, Copy* copy) {
  if (!copy->graph) return "the host gave no graph";
  if (copy->values.empty())
    if (auto why = boundary(graph, match, copy); !why.empty()) return why;
  std::vector<tn_node> left = match.nodes;
  left.insert(left.end(), match.inner.begin(), match.inner.end());
  sdk::Transaction tx(services_.graph, services_.edit, copy->graph, "rules check");
  std::vector<tn_value> outputs;
  while (!left.empty()) {
    const size_t before = left.size();
    for (size_t k = 0; k < left.size();) {
      const tn_node_info info = graph.node(left[k]);
      sdk::NodeSpec spec;
      bool ready = true;
      for (uint32_t i = 0; i < info.input_count && ready; ++i) {
        spec.inputs.push_back(info.inputs[i] == TN_NONE ? TN_NONE : copy->find(info.inputs[i]));
        ready = info.inputs[i] == TN_NONE || spec.inputs.back() != TN_NONE;
      }
      if (!ready) {
        ++k;
        continue;
      }
      const tn_op_def* def = ops_.find(info.op);
      if (info.region_count != 0 && (!def || (def->flags & TN_OP_CONTROL_FLOW)))
        return "node '" + graph.node_name(left[k]) + "' has regions";
      spec.op = graph.op_name(info.op);
      spec.version = info.op_version;
      spec.output_count = std::max(info.output_count, 1u);
      for (uint32_t a = 0; a < info.attr_count; ++a)
        spec.raw_attrs.push_back(*reinterpret_cast<const tn_attr*>(
            reinterpret_cast<const uint8_t*>(info.attrs) + static_cast<size_t>(a) * info.attr_stride));
      const auto made = tx.create(spec);
      for (uint32_t r = 0; r < info.output_count; ++r) {
        const tn_value real = info.outputs[r];
        if (real == TN_NONE) continue;
        copy->values.emplace_back(real, made.output(r));
        const auto users = graph.users(real);
        if (std::any_of(users.begin(), users.end(),
                        [&](const tn_use& u) { return u.node == TN_NONE || !match.has(u.node); }))
          outputs.push_back(made.output(r));
      }
      left.erase(left.begin() + static_cast<ptrdiff_t>(k));
    }
    if (left.size() == before) return "its nodes cannot be put in order";
  }
  tx.region_outputs(0, outputs);
  return tx.commit() ? std::string() : tx.said();
}

RealMatchCheck::Answer RealMatchCheck::check(const GraphAccess& graph, const Match& match) {
  try {
    extents_.clear();
    Copy plain(services_);
    if (auto why = build(graph, match, &plain); !why.empty()) return {{}, why};
    Copy rewritten(services_);
    if (auto why = build(graph, match, &rewritten); !why.empty()) return {{}, why};
    const GraphAccess access(services_.graph, services_.symbols, rewritten.graph);
    EngineListener silent;
    EngineOptions options;
    options.only_rule = match.variant->rule->name;
    Engine engine(access, ops_, rules_, {services_.host, services_.edit, services_.registry}, silent,
                  options);
    engine.run();
    if (engine.applied() == 0) return {{}, "it does not fire on these nodes alone"};
    const auto compute = [&](tn_graph* of) {
      Outputs out;
      tn_region_info region{};
      region.size = sizeof region;
      services_.graph->region(of, 0, &region);
      const std::vector<tn_value> wanted(region.outputs, region.outputs + region.output_count);
      out.tensors.resize(wanted.size());
      std::vector<tn_tensor> in;
      for (const auto& t : plain.fed) in.push_back(t.raw());
      sdk::DiagBuffer said;
      const tn_status s = services_.eval->values(
          services_.host, of, in.data(), static_cast<uint32_t>(in.size()), wanted.data(),
          static_cast<uint32_t>(wanted.size()),
          [](void* context, uint32_t index, const tn_tensor* t) {
            (*static_cast<std::vector<sdk::OwnedTensor>*>(context))[index] = sdk::OwnedTensor(*t);
          },
          &out.tensors, said.raw());
      if (s != TN_OK) out.failure = said.text().empty() ? "the host could not run it" : said.text();
      return out;
    };
    const Outputs before = compute(plain.graph);
    if (!before.failure.empty()) return {{}, before.failure};
    return {compare(*match.variant->rule, before, compute(rewritten.graph), TN_FLOAT32, true), {}};
  } catch (const sdk::Failure& e) {
    return {{}, e.what()};
  }
}

}  // namespace tenon::rules
