#include "prove/match_copy.hpp"

#include <algorithm>

#include "prove/choices.hpp"
#include "tenon/sdk/edit.hpp"

namespace tenon::rules {
namespace {

constexpr uint64_t most_bytes = uint64_t{256} << 20;  // of the tensors that one check reads and writes
constexpr int64_t number_sets[DimNumbers::attempts][6] = {
    {2, 3, 5, 7, 11, 13}, {7, 11, 13, 17, 19, 23}, {12, 24, 36, 48, 60, 72}, {64, 32, 128, 16, 256, 8}};

std::vector<tn_node> matched(const Match& match) {
  std::vector<tn_node> nodes = match.nodes;
  nodes.insert(nodes.end(), match.inner.begin(), match.inner.end());
  return nodes;
}

/// Random contents, as the rule's verify section draws them for that value.
std::string drawn(const GraphAccess& graph, const Match& match, tn_value value, tn_dtype dtype,
                  const std::vector<int64_t>& dims, DimNumbers& numbers, sdk::OwnedTensor* out) {
  const Rule& rule = *match.variant->rule;
  std::string distribution = "normal(0,1)";
  for (const auto& d : rule.verify.inputs)
    if (d.first == "*") distribution = d.second;
  for (uint32_t v = 0; v < rule.values.size() && v < match.values.size(); ++v)
    for (const auto& d : rule.verify.inputs)
      if (match.values[v] == value && d.first == rule.values[v]) distribution = d.second;
  gx::Tensor t;
  t.dims = dims;
  t.dtype = dtype;
  const int64_t n = sdk::element_count(dims);
  const tn_dim* known = nullptr;
  uint32_t count = 0;
  const bool is_known = graph.api()->known_elements(graph.raw(), value, &known, &count) == TN_OK &&
                        static_cast<int64_t>(count) == n;
  const std::vector<tn_dim> elements(known, known + (is_known ? count : 0));
  Random random(static_cast<uint64_t>(rule.verify.seed) * 7919u + value);
  for (int64_t i = 0; i < n; ++i) {
    int64_t element = 0;
    if (is_known) {
      if (!numbers.evaluate(graph, elements[static_cast<size_t>(i)], &element))
        return "the contents of '" + graph.value_name(value) + "' are not known; give --inputs";
      t.data->push_back(static_cast<double>(element));
    } else if (dtype == TN_BOOL) {
      t.data->push_back(random.uniform() < 0.5);
    } else {
      t.data->push_back(sdk::is_float(dtype) ? random.draw(distribution)
                                             : static_cast<double>(random.next() % 2));
    }
  }
  *out = gx::store(t);
  return {};
}

}  // namespace

int64_t DimNumbers::number(const GraphAccess& graph, tn_str symbol) {
  const std::string name = sdk::text(symbol);
  for (const auto& n : numbers_)
    if (n.first == name) return n.second;
  int64_t lo = 0, hi = TN_DIM_MAX;
  graph.symbols()->range(graph.raw(), graph.symbols()->named(graph.raw(), sdk::str(name)), &lo, &hi);
  const auto& set = number_sets[attempt_ % attempts];
  const int64_t wanted = set[numbers_.size() % std::size(set)];
  numbers_.emplace_back(name, std::min(std::max(wanted, lo), hi));
  return numbers_.back().second;
}

bool DimNumbers::evaluate(const GraphAccess& graph, tn_dim dim, int64_t* value) {
  if (dim >= 0) return *value = dim, true;
  if (graph.symbols()->as_number(graph.raw(), dim, value)) return true;
  if (!TN_HAS(graph.symbols(), evaluate)) return false;
  // Their names first: asking for a range may move what the evaluation reads.
  struct Asked {
    DimNumbers* self;
    const GraphAccess* graph;
    std::vector<std::string> missing;
  };
  for (;;) {
    Asked asked{this, &graph, {}};
    const int known = graph.symbols()->evaluate(
        graph.raw(), dim,
        [](void* context, tn_str symbol, int64_t* out) {
          auto& a = *static_cast<Asked*>(context);
          for (const auto& n : a.self->numbers_)
            if (n.first == sdk::view(symbol)) return *out = n.second, 1;
          a.missing.push_back(sdk::text(symbol));
          return 0;
        },
        &asked, value);
    if (known) return true;
    if (asked.missing.empty()) return false;
    for (const auto& name : asked.missing) number(graph, sdk::str(name));
  }
}

MatchCopy::MatchCopy(const TestServices& services)
    : services_(services), graph_(services.eval->new_graph(services.host)) {}

MatchCopy::~MatchCopy() {
  if (graph_) services_.eval->delete_graph(services_.host, graph_);
}

tn_value MatchCopy::find(tn_value real) const {
  for (const auto& v : values_)
    if (v.first == real) return v.second;
  return TN_NONE;
}

std::vector<tn_tensor> MatchCopy::inputs() const {
  std::vector<tn_tensor> all;
  for (const auto& t : fed_) all.push_back(t->raw());
  return all;
}

/// What the match reads from outside: constants as they are, other tensors as samples or drawn.
std::string MatchCopy::boundary(const GraphAccess& graph, const Match& match, const Samples& samples,
                                DimNumbers* numbers, const MatchCopy* other) {
  sdk::Transaction tx(services_.graph, services_.edit, graph_, "rules check");
  std::vector<tn_value> fed;
  for (const tn_node n : matched(match)) {
    const tn_node_info info = graph.node(n);
    for (uint32_t i = 0; i < info.input_count; ++i) {
      const tn_value v = info.inputs[i];
      if (v == TN_NONE || find(v) != TN_NONE || std::find(fed.begin(), fed.end(), v) != fed.end()) continue;
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
        values_.emplace_back(v, made);
      } else {
        fed.push_back(v);
      }
    }
  }
  if (other) {
    fed_ = other->fed_;
  } else {
    std::vector<sdk::OwnedTensor> tensors(fed.size());
    if (auto why = fill(graph, match, fed, samples, *numbers, &tensors); !why.empty()) return why;
    for (auto& t : tensors) fed_.push_back(std::make_shared<sdk::OwnedTensor>(std::move(t)));
  }
  for (size_t i = 0; i < fed.size(); ++i)
    values_.emplace_back(fed[i], tx.region_input(0, "x" + std::to_string(i),
                                                 sdk::tensor_type(fed_[i]->dtype(), fed_[i]->dims())));
  return tx.commit() ? std::string() : tx.said();
}

std::string MatchCopy::fill(const GraphAccess& graph, const Match& match, const std::vector<tn_value>& fed,
                            const Samples& samples, DimNumbers& numbers,
                            std::vector<sdk::OwnedTensor>* tensors) {
  const bool sampled =
      samples.count > 0 && !fed.empty() &&
      std::none_of(samples.tensors, samples.tensors + samples.count,
                   [](const tn_tensor& t) { return t.dtype == TN_DTYPE_NONE; }) &&
      std::all_of(fed.begin(), fed.end(), [&](tn_value v) { return graph.value(v).region == 0; });
  if (sampled) {
    sdk::DiagBuffer said;
    services_.eval->values(
        services_.host, graph.raw(), samples.tensors, static_cast<uint32_t>(samples.count), fed.data(),
        static_cast<uint32_t>(fed.size()),
        [](void* context, uint32_t index, const tn_tensor* t) {
          (*static_cast<std::vector<sdk::OwnedTensor>*>(context))[index] = sdk::OwnedTensor(*t);
        },
        tensors, said.raw());
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < fed.size(); ++i) {
    sdk::OwnedTensor& tensor = (*tensors)[i];
    if (tensor.dtype() == TN_DTYPE_NONE) {
      const std::string name = "'" + graph.value_name(fed[i]) + "'";
      const tn_type type = graph.value(fed[i]).type;
      const std::vector<tn_dim> wanted(type.dims, type.dims + type.rank);
      std::vector<int64_t> dims;
      for (const tn_dim d : wanted) {
        dims.push_back(0);
        if (!numbers.evaluate(graph, d, &dims.back()))
          return "the shape of " + name + " is not known; give --inputs";
        if (dims.back() < 0 || (d < 0 && dims.back() == 0))
          return "no shape was found for " + name + "; give --inputs";
      }
      if (sdk::packed_bytes(type.dtype, sdk::element_count(dims)) > most_bytes)
        return name + " is too large to be made up; give --inputs";
      if (auto why = drawn(graph, match, fed[i], type.dtype, dims, numbers, &tensor); !why.empty())
        return why;
    }
    bytes += tensor.bytes();
    if (bytes > most_bytes) return "its tensors are too large";
  }
  return {};
}

std::string MatchCopy::nodes(const GraphAccess& graph, const Match& match, const OpCatalog& ops) {
  std::vector<tn_node> left = matched(match);
  sdk::Transaction tx(services_.graph, services_.edit, graph_, "rules check");
  std::vector<tn_value> outputs;
  while (!left.empty()) {
    const size_t before = left.size();
    for (size_t k = 0; k < left.size();) {
      const tn_node_info info = graph.node(left[k]);
      sdk::NodeSpec spec;
      bool ready = true;
      for (uint32_t i = 0; i < info.input_count && ready; ++i) {
        spec.inputs.push_back(info.inputs[i] == TN_NONE ? TN_NONE : find(info.inputs[i]));
        ready = info.inputs[i] == TN_NONE || spec.inputs.back() != TN_NONE;
      }
      if (!ready) {
        ++k;
        continue;
      }
      const tn_op_def* def = ops.find(info.op);
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
        values_.emplace_back(real, made.output(r));
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

std::string MatchCopy::build(const GraphAccess& graph, const Match& match, const OpCatalog& ops,
                             const Samples& samples, DimNumbers& numbers) {
  if (!graph_) return "the host gave no graph";
  auto why = boundary(graph, match, samples, &numbers, nullptr);
  return why.empty() ? nodes(graph, match, ops) : why;
}

std::string MatchCopy::build_like(const GraphAccess& graph, const Match& match, const OpCatalog& ops,
                                  const MatchCopy& other) {
  if (!graph_) return "the host gave no graph";
  auto why = boundary(graph, match, {}, nullptr, &other);
  return why.empty() ? nodes(graph, match, ops) : why;
}

bool MatchCopy::rewrite(const Match& match, const OpCatalog& ops, const RuleSet& rules) {
  const GraphAccess access(services_.graph, services_.symbols, graph_);
  EngineListener silent;
  EngineOptions options;
  options.only_rule = match.variant->rule->name;
  options.at_any_cost = true;
  Engine engine(access, ops, rules, {services_.host, services_.edit, services_.registry}, silent, options);
  engine.run();
  return engine.applied() != 0;
}

}  // namespace tenon::rules
