#include "core/runtime/eval.hpp"

#include <algorithm>
#include <chrono>

#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/infer.hpp"
#include "core/runtime/plan.hpp"

namespace tenon {

struct Evaluator::State {
  const Registries& registries;
  RuntimeOptions options;
};

namespace {

Evaluator::State* state_of(const tn_host* host) {
  return host == nullptr ? nullptr : static_cast<Evaluator::State*>(Host::from(host).context(TN_EVAL_ID));
}

RuntimeOptions options_of_run(const Evaluator::State& state) {
  RuntimeOptions options = state.options;
  options.kernels.prefer_reference = false;
  return options;
}

template <class F>
tn_status guarded(const tn_diag* diag, F&& body) {
  try {
    return body();
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics) report(diag, d.severity, d.code, d.where, d.text);
    return error.exit_code == exit_bad_input ? TN_ERR_INVALID : TN_ERR_UNSUPPORTED;
  } catch (const std::bad_alloc&) {
    report(diag, TN_SEVERITY_ERROR, "", "evaluation", "there is not enough memory");
    return TN_ERR_MEMORY;
  } catch (const std::exception& error) {
    report(diag, TN_SEVERITY_ERROR, "", "evaluation", error.what());
    return TN_ERR_INTERNAL;
  }
}

void need(tn_status status, std::string_view what) {
  if (status != TN_OK)
    throw Error(exit_job_failed, "evaluation", fmt::format("could not {} (status {})", what, status));
}

tn_value copy_constant(Graph& from, tn_value value, tn_edit* edit) {
  tn_tensor tensor{};
  tn_value made = TN_NONE;
  from.constant(value, &tensor);
  // The source graph outlives this one, so its bytes are lent, not copied.
  if (tensor.dtype == TN_STRING) {
    need(edit_api()->constant_copy(edit, {}, &tensor, &made), "copy a constant");
  } else {
    need(edit->constant_adopt(
             {}, &tensor, [](void*) {}, nullptr, &made, false),
         "lend a constant");
  }
  return made;
}

// A graph of the node alone. Its regions would need their captures too: such nodes are not evaluated.
std::unique_ptr<Graph> graph_of_node(Graph& graph, const Registries& registries, tn_node node) {
  auto alone = std::make_unique<Graph>();
  alone->set_registry(&registries);
  const Node& n = graph.node(node);
  Transaction transaction(*alone, "evaluation", TN_EDIT_BUILD);
  std::vector<tn_value> inputs;
  for (const tn_value value : n.inputs())
    inputs.push_back(value == TN_NONE ? TN_NONE : copy_constant(graph, value, transaction.get()));
  std::vector<std::string> names;
  for (uint32_t i = 0; i < n.output_count; ++i)
    names.push_back(n.output(i) == TN_NONE ? "" : fmt::format("result{}", i));
  std::vector<tn_str> output_names;
  for (const std::string& name : names)
    output_names.push_back(name.empty() ? tn_str{nullptr, 0} : to_abi(name));
  tn_node_desc desc{};
  desc.size = sizeof desc;
  desc.op = n.op;
  desc.op_version = n.op_version;
  desc.region = Graph::main_region;
  desc.before = TN_NONE;
  desc.name = to_abi(graph.node_name(node));
  desc.inputs = inputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.attrs = n.attr_data;
  desc.attr_count = n.attr_count;
  desc.output_names = output_names.data();
  desc.output_count = static_cast<uint32_t>(output_names.size());
  tn_node made = TN_NONE;
  need(edit_api()->create_node(transaction.get(), &desc, &made), "copy the node");
  std::vector<tn_value> results;
  for (const tn_value value : alone->node(made).outputs()) {
    if (value != TN_NONE) results.push_back(value);
  }
  need(edit_api()->region_outputs(transaction.get(), Graph::main_region, results.data(),
                                  static_cast<uint32_t>(results.size())),
       "set the outputs");
  Diagnostics said;
  if (!transaction.commit(said)) {
    said.throw_if_errors(exit_job_failed);
    throw Error(exit_job_failed, node_place(graph, node), "cannot stand alone");
  }
  return alone;
}

// Lower bound of what the results take; false when they surely exceed the limit.
bool fits(const Graph& graph, uint64_t max_bytes) {
  uint64_t total = 0;
  for (const tn_value value : graph.region(Graph::main_region).outputs) {
    const tn_type& type = graph.type(value);
    if (type.kind != TN_KIND_TENSOR || type.rank < 0) continue;
    std::vector<int64_t> dims(type.dims, type.dims + type.rank);
    if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) continue;
    total += checked_bytes(type.dtype, dims, "evaluation");
    if (total > max_bytes) return false;
  }
  return true;
}

tn_status evaluate_node(const tn_host* host, tn_graph* graph_handle, tn_node node, uint64_t max_bytes,
                        tn_tensor_sink sink, void* context, const tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    Evaluator::State* state = state_of(host);
    if (state == nullptr || graph_handle == nullptr) return TN_ERR_UNSUPPORTED;
    Graph& graph = Graph::from(graph_handle);
    if (node >= graph.node_bound() || !graph.node(node).alive) return TN_ERR_NOT_FOUND;
    const Node& n = graph.node(node);
    if (n.region_count != 0 || state->registries.kernels(n.op).empty()) return TN_ERR_UNSUPPORTED;
    for (const tn_value value : n.inputs()) {
      if (value == TN_NONE || graph.is_constant(value)) continue;
      report(diag, TN_SEVERITY_ERROR, "", node_place(graph, node),
             "cannot be computed now: input " + value_place(graph, value) + " is no constant");
      return TN_ERR_INVALID;
    }
    std::unique_ptr<Graph> alone = graph_of_node(graph, state->registries, node);
    if (!fits(*alone, max_bytes)) return TN_ERR_LIMIT;
    std::vector<uint32_t> numbers;
    for (uint32_t i = 0; i < n.output_count; ++i) {
      if (n.output(i) != TN_NONE) numbers.push_back(i);
    }
    std::vector<NamedOutput> outputs;
    try {
      const Session session(std::move(alone), state->registries, state->options);
      outputs = session.run({});
    } catch (const Error& error) {
      // The node stays as it is and the run will say so if it matters: to the caller this is no fault.
      for (const Diagnostic& d : error.diagnostics) report(diag, TN_SEVERITY_INFO, d.code, d.where, d.text);
      return TN_ERR_UNSUPPORTED;
    }
    uint64_t total = 0;
    for (const NamedOutput& output : outputs) {
      if (!output.value || output.value->kind != TN_KIND_TENSOR) return TN_ERR_UNSUPPORTED;
      total += output.value->bytes;
    }
    if (total > max_bytes) return TN_ERR_LIMIT;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const tn_tensor tensor = outputs[i].tensor();
      sink(context, numbers[i], &tensor);
    }
    return TN_OK;
  });
}

tn_graph* new_graph(const tn_host* host) {
  Evaluator::State* state = state_of(host);
  if (state == nullptr) return nullptr;
  try {
    auto graph = std::make_unique<Graph>();
    graph->set_registry(&state->registries);
    return graph.release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void delete_graph(const tn_host*, tn_graph* graph) {
  if (graph != nullptr) delete &Graph::from(graph);
}

tn_status run_graph(const tn_host* host, tn_graph* graph_handle, const tn_tensor* inputs, uint32_t count,
                    tn_tensor_sink sink, void* context, const tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    Evaluator::State* state = state_of(host);
    if (state == nullptr || graph_handle == nullptr) return TN_ERR_UNSUPPORTED;
    const Session session(Graph::from(graph_handle).clone(), state->registries, state->options);
    if (count != session.inputs().size()) {
      report(diag, TN_SEVERITY_ERROR, "", "evaluation",
             fmt::format("{} inputs are given, the graph has {}", count, session.inputs().size()));
      return TN_ERR_INVALID;
    }
    std::vector<NamedTensor> named;
    for (uint32_t i = 0; i < count; ++i) named.push_back({session.inputs()[i].name, inputs[i], nullptr});
    const std::vector<NamedOutput> outputs = session.run(named);
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].value || outputs[i].value->kind != TN_KIND_TENSOR) continue;
      const tn_tensor tensor = outputs[i].tensor();
      sink(context, i, &tensor);
    }
    return TN_OK;
  });
}

// Nodes that nothing reads any more, from the end of the graph; what a region captures counts as read.
void erase_unread(Graph& graph, Transaction& edit) {
  const std::span<const tn_node> order = graph.nodes(Graph::main_region);
  const std::vector<tn_node> nodes(order.begin(), order.end());
  for (size_t i = nodes.size(); i-- > 0;) {
    const std::span<const tn_value> results = graph.node(nodes[i]).outputs();
    const bool is_read = std::any_of(results.begin(), results.end(), [&](tn_value value) {
      return value != TN_NONE && !graph.users(value).empty();
    });
    if (!is_read) need(edit_api()->erase(edit.get(), nodes[i]), "leave out a node");
  }
}

tn_status run_values(const tn_host* host, tn_graph* graph_handle, const tn_tensor* inputs, uint32_t count,
                     const tn_value* wanted, uint32_t wanted_count, tn_tensor_sink sink, void* context,
                     const tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    Evaluator::State* state = state_of(host);
    if (state == nullptr || graph_handle == nullptr) return TN_ERR_UNSUPPORTED;
    Graph& graph = Graph::from(graph_handle);
    const std::vector<tn_value> given = graph.region(Graph::main_region).inputs;
    if (count != given.size()) {
      report(diag, TN_SEVERITY_ERROR, "", "evaluation",
             fmt::format("{} inputs are given, the graph has {}", count, given.size()));
      return TN_ERR_INVALID;
    }
    std::vector<tn_value> computed;
    std::vector<uint32_t> places;
    for (uint32_t i = 0; i < wanted_count; ++i) {
      const Value& value = graph.value(wanted[i]);
      tn_tensor tensor{};
      if (value.kind == TN_VALUE_CONSTANT && graph.constant(wanted[i], &tensor)) {
        sink(context, i, &tensor);
      } else if (value.kind == TN_VALUE_REGION_INPUT && value.region == Graph::main_region) {
        sink(context, i, &inputs[value.index]);
      } else if (value.kind == TN_VALUE_RESULT && value.region == Graph::main_region) {
        computed.push_back(wanted[i]);
        places.push_back(i);
      }
    }
    if (computed.empty()) return TN_OK;
    std::unique_ptr<Graph> copy = graph.clone();
    copy->set_edit_limit(UINT64_MAX);
    Transaction edit(*copy, "evaluation", TN_EDIT_NO_INFER);
    need(edit_api()->region_outputs(edit.get(), Graph::main_region, computed.data(),
                                    static_cast<uint32_t>(computed.size())),
         "set the outputs");
    erase_unread(*copy, edit);
    Diagnostics said;
    if (!edit.commit(said)) {
      for (const Diagnostic& d : said.all()) report(diag, d.severity, d.code, d.where, d.text);
      return TN_ERR_UNSUPPORTED;
    }
    const Session session(std::move(copy), state->registries, options_of_run(*state));
    std::vector<NamedTensor> named;
    for (uint32_t i = 0; i < count; ++i) named.push_back({session.inputs()[i].name, inputs[i], nullptr});
    const std::vector<NamedOutput> outputs = session.run(named);
    for (uint32_t i = 0; i < outputs.size() && i < places.size(); ++i) {
      if (!outputs[i].value || outputs[i].value->kind != TN_KIND_TENSOR) continue;
      const tn_tensor tensor = outputs[i].tensor();
      sink(context, places[i], &tensor);
    }
    return TN_OK;
  });
}

// The graph's outputs are computed and dropped; the first run plans, packs and warms.
struct TimedGraph {
  TimedGraph(tn_graph* graph, const Evaluator::State& state, const tn_tensor* inputs, uint32_t count)
      : session(Graph::from(graph).clone(), state.registries, options_of_run(state)) {
    if (count != session.inputs().size())
      throw Error(exit_bad_input, "evaluation",
                  fmt::format("{} inputs are given, the graph has {}", count, session.inputs().size()));
    for (uint32_t i = 0; i < count; ++i) named.push_back({session.inputs()[i].name, inputs[i], nullptr});
    session.run(named);
  }
  uint64_t run() {
    const auto begin = std::chrono::steady_clock::now();
    session.run(named);
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  Session session;
  std::vector<NamedTensor> named;
  uint64_t least = UINT64_MAX, spent = 0;
};

tn_status time_graphs(const tn_host* host, tn_graph* const* graphs, uint32_t graph_count,
                      const tn_tensor* inputs, uint32_t count, uint64_t budget, uint64_t* nanoseconds,
                      const tn_diag* diag) {
  return guarded(diag, [&]() -> tn_status {
    constexpr uint32_t least_runs = 3, most_runs = 1000;
    const Evaluator::State* state = state_of(host);
    if (state == nullptr || graph_count == 0) return TN_ERR_UNSUPPORTED;
    std::vector<std::unique_ptr<TimedGraph>> all;
    for (uint32_t i = 0; i < graph_count; ++i)
      all.push_back(std::make_unique<TimedGraph>(graphs[i], *state, inputs, count));
    // In turns, so that what else the machine does hits all alike.
    for (uint32_t run = 0; run < most_runs; ++run) {
      uint64_t spent = 0;
      for (const auto& graph : all) {
        const uint64_t took = graph->run();
        graph->least = std::min(graph->least, took);
        graph->spent += took;
        spent = std::max(spent, graph->spent);
      }
      if (run + 1 >= least_runs && spent >= budget) break;
    }
    for (uint32_t i = 0; i < graph_count; ++i) nanoseconds[i] = all[i]->least;
    return TN_OK;
  });
}

}  // namespace

const tn_eval_api* Evaluator::api() {
  static const tn_eval_api api{sizeof(tn_eval_api), 0,         evaluate_node, new_graph,
                               delete_graph,        run_graph, run_values,    time_graphs};
  return &api;
}

Evaluator::Evaluator(Host& host, const Registries& registries, RuntimeOptions options)
    : host_(host), state_(new State{registries, std::move(options)}) {
  state_->options.kernels.prefer_reference = true;
  state_->options.devices = {};  // single nodes: not worth a copy, and oracles are the host's
  // What is computed while optimising must not differ from run to run, and asking the machine for a seed
  // costs more than most nodes.
  if (state_->options.random_seed == 0) state_->options.random_seed = 1;
  // Kept, so that threads are not started for each node that is computed.
  if (state_->options.pool == nullptr) state_->options.pool = ThreadPool::shared(state_->options.threads);
  host_.provide(TN_EVAL_ID, api(), state_.get());
}

Evaluator::~Evaluator() { host_.provide(TN_EVAL_ID, nullptr, nullptr); }

}  // namespace tenon
