#include "core/runtime/segment_planner.hpp"

#include <chrono>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/interner.hpp"
#include "core/runtime/plan_evaluate.hpp"

namespace tenon {
namespace {

constexpr uint64_t largest_folded_bytes = 32768;

std::vector<tn_value> first_cell_values(const RegionProgram& program) {
  std::vector<tn_value> values = program.inputs;
  values.insert(values.end(), program.captures.begin(), program.captures.end());
  return values;
}

template <class T>
void store_numbers(const std::vector<int64_t>& numbers, void* data) {
  auto* elements = static_cast<T*>(data);
  for (size_t i = 0; i < numbers.size(); ++i) elements[i] = static_cast<T>(numbers[i]);
}

bool write_numbers(tn_dtype dtype, const std::vector<int64_t>& numbers, void* data) {
  switch (dtype) {
    case TN_INT8:
      store_numbers<int8_t>(numbers, data);
      return true;
    case TN_INT16:
      store_numbers<int16_t>(numbers, data);
      return true;
    case TN_INT32:
      store_numbers<int32_t>(numbers, data);
      return true;
    case TN_INT64:
      store_numbers<int64_t>(numbers, data);
      return true;
    case TN_UINT8:
      store_numbers<uint8_t>(numbers, data);
      return true;
    case TN_UINT16:
      store_numbers<uint16_t>(numbers, data);
      return true;
    case TN_UINT32:
      store_numbers<uint32_t>(numbers, data);
      return true;
    case TN_BOOL:
      store_numbers<bool>(numbers, data);
      return true;
    default:
      return false;
  }
}

// Why the kernels that one would rather have did not take the node; empty when they did.
std::string fallback_reason(const KernelPolicy& policy, const Selection& selection, const KernelEntry& chosen,
                            std::string_view op) {
  if ((chosen.record->flags & TN_KERNEL_REFERENCE) == 0) return {};
  if (!policy.prefer.empty() && preference_of(policy, chosen) == 0) return {};
  std::string reason;
  for (const Candidate& candidate : selection.candidates) {
    if (candidate.kernel == &chosen || (candidate.kernel->record->flags & TN_KERNEL_REFERENCE) != 0) continue;
    if (view(candidate.kernel->record->device) != view(chosen.record->device)) continue;
    if (!reason.empty()) reason += "; ";
    reason += string(candidate.kernel->record->id) + ": " + candidate.refusal;
  }
  return reason.empty() ? fmt::format("no other kernel for {}", op) : reason;
}

}  // namespace

SegmentPlanner::SegmentPlanner(RunEnvironment& environment, RunGraph& graph, RegionProgram& program,
                               const Segment* previous, std::span<const Cell> cells)
    : environment_(environment),
      run_graph_(graph),
      graph_(*graph.graph),
      program_(program),
      registries_(*environment.registries),
      previous_(previous),
      cells_(cells),
      nodes_(previous == nullptr ? program.nodes : previous->next.remaining),
      cell_values_(previous == nullptr ? first_cell_values(program) : previous->next.cell_values),
      store_(graph, cells, cell_values_),
      segment_(std::make_shared<Segment>()),
      devices_(environment.devices.current()) {
  for (uint32_t i = 0; i < cell_values_.size(); ++i) cell_by_value_[cell_values_[i]] = i;
  if (previous != nullptr) {
    for (const KnownValue& known : previous->next.known) store_.restore(known);
  }
}

std::shared_ptr<Segment> SegmentPlanner::plan() {
  const auto begin = std::chrono::steady_clock::now();
  segment_->thread_count = environment_.pool->size();
  segment_->first_cell = static_cast<uint32_t>(cells_.size());
  infer();
  find_needed();
  select_kernels();
  assign_classes();
  give_cells();
  if (segment_->devices != nullptr) order_ops();
  place_arena();
  lay_out_pointers();
  if (segment_->devices != nullptr) finish_ops();
  conditions();
  continuation();
  segment_->plan_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return segment_;
}

std::span<const tn_value> SegmentPlanner::captures_of(tn_node node) {
  captures_.clear();
  for (const tn_region region : graph_.node(node).regions()) {
    const std::vector<tn_value>& more = run_graph_.programs[region]->captures;
    captures_.insert(captures_.end(), more.begin(), more.end());
  }
  return captures_;
}

bool SegmentPlanner::must_wait(tn_node node) {
  for (const tn_value value : graph_.node(node).inputs()) {
    if (value == TN_NONE || store_.is_absent(value)) continue;
    if (waiting_values_.count(value) != 0 || !store_.is_known(value)) return true;
  }
  for (const tn_value value : captures_of(node)) {
    if (waiting_values_.count(value) != 0) return true;
  }
  return false;
}

bool SegmentPlanner::results_known(tn_node node) {
  for (const tn_value value : graph_.node(node).outputs()) {
    if (value != TN_NONE && !store_.is_known(value)) return false;
  }
  return true;
}

// True when the shapes of all results are known. A node with regions that cannot be inferred is not known
// yet, for a branch that is not taken may be wrong for these shapes; the reason is kept in `failure`.
bool SegmentPlanner::infer_one(tn_node node, std::optional<Error>& failure) {
  failure.reset();
  Diagnostics said;
  const tn_status status = infer_node(graph_, registries_, node, store_, said);
  if (status == TN_OK) return results_known(node);
  Error error = said.has_errors() ? Error(exit_job_failed, said.all())
                                  : Error(exit_job_failed, node_place(graph_, node),
                                          fmt::format("its types cannot be inferred (status {})", status));
  if (graph_.node(node).region_count == 0) throw error;
  failure = std::move(error);
  return false;
}

void SegmentPlanner::infer() {
  fates_.assign(nodes_.size(), Fate::planned);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const tn_node node = nodes_[i];
    bool wait = must_wait(node);
    if (!wait) {
      std::optional<Error> failure;
      store_.begin(false);
      bool known = infer_one(node, failure);
      if (!known && store_.withheld()) {
        store_.begin(true);
        known = infer_one(node, failure);
      }
      // What a step of this segment computes would tell the shapes: the chain is cut here.
      wait = !known && store_.late();
      if (failure && !wait) throw *failure;
    }
    if (wait) {
      fates_[i] = Fate::waiting;
      for (const tn_value value : graph_.node(node).outputs()) {
        if (value != TN_NONE) waiting_values_.insert(value);
      }
      continue;
    }
    if (fold(node)) {
      fates_[i] = Fate::folded;
      ++segment_->folded_count;
      segment_->stepless.emplace_back(node, "constant");
      continue;
    }
    for (const tn_value value : graph_.node(node).outputs()) {
      if (value != TN_NONE) store_.mark_late(value);
    }
  }
}

bool SegmentPlanner::fold(tn_node node) {
  const Node& n = graph_.node(node);
  if (op_has_flag(registries_, n.op, TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_CONTROL_FLOW))
    return false;
  return fold_by_elements(node) || fold_view(node) || fold_by_kernel(node);
}

bool SegmentPlanner::fold_by_elements(tn_node node) {
  std::vector<std::pair<tn_value, AnyRef>> made;
  for (const tn_value value : graph_.node(node).outputs()) {
    if (value == TN_NONE) continue;
    const tn_type type = store_.type(value);
    std::vector<int64_t> numbers;
    if (type.kind != TN_KIND_TENSOR || !store_.is_known(value) || !store_.number_elements(value, &numbers))
      return false;
    uint64_t count = 0;
    const std::span<const int64_t> dims(type.dims, static_cast<size_t>(type.rank));
    if (!element_count(dims, &count) || count != numbers.size()) return false;
    AnyRef data = new_tensor(type.dtype, dims, node_place(graph_, node));
    if (!write_numbers(type.dtype, numbers, data->data)) return false;
    made.emplace_back(value, std::move(data));
  }
  for (auto& [value, data] : made) {
    segment_->kept.push_back(data);
    store_.set_data(value, std::move(data));
  }
  return !made.empty();
}

// A view of a constant is a constant with other dims.
bool SegmentPlanner::fold_view(tn_node node) {
  const Node& n = graph_.node(node);
  if (!op_has_flag(registries_, n.op, TN_OP_VIEW) || n.input(0) == TN_NONE || n.output(0) == TN_NONE ||
      n.output_count != 1)
    return false;
  tn_tensor source{};
  bool constant = false;
  if (!store_.known_data(n.input(0), &source, &constant) || !constant || !store_.is_known(n.output(0)))
    return false;
  const tn_type type = store_.type(n.output(0));
  if (type.kind != TN_KIND_TENSOR || type.dtype != source.dtype || bytes_of(n.output(0)) != source.bytes)
    return false;
  const tn_tensor renamed{type.dtype, type.rank, type.dims, source.data, source.bytes};
  AnyRef data = borrow_tensor(renamed, nullptr);
  if (const AnyRef* base = store_.plan_constant(n.input(0)))
    data->items.push_back(AnyRef(*base).take());  // kept with it
  segment_->kept.push_back(data);
  store_.set_data(n.output(0), std::move(data));
  return true;
}

// Small things computed from constants of the plan, such as the scales of a Resize from its input's size.
bool SegmentPlanner::fold_by_kernel(tn_node node) {
  const Node& n = graph_.node(node);
  bool from_plan = false;
  for (const tn_value value : n.inputs()) {
    if (value == TN_NONE) continue;
    tn_tensor tensor{};
    bool constant = false;
    if (!store_.known_data(value, &tensor, &constant) || !constant) return false;
    from_plan = from_plan || store_.plan_constant(value) != nullptr;
  }
  if (!from_plan || n.region_count != 0) return false;
  uint64_t total = 0;
  for (const tn_value value : n.outputs()) {
    if (value == TN_NONE) continue;
    const tn_type type = store_.type(value);
    uint64_t bytes = 0;
    if (type.kind != TN_KIND_TENSOR || type.dtype == TN_STRING || !store_.is_known(value) ||
        !tensor_bytes(type.dtype, {type.dims, static_cast<size_t>(type.rank)}, &bytes)) {
      return false;
    }
    total += bytes;
    if (total > largest_folded_bytes) return false;
  }
  std::vector<AnyRef> results;
  if (!evaluate_with_store(environment_, run_graph_, store_, node, &results)) return false;
  for (uint32_t i = 0; i < n.output_count; ++i) {
    if (n.output(i) == TN_NONE) continue;
    segment_->kept.push_back(results[i]);
    store_.set_data(n.output(i), std::move(results[i]));
  }
  return true;
}

// Backwards from the region's outputs: what nobody reads does not run, and shape arithmetic that was folded
// needs no operands.
void SegmentPlanner::find_needed() {
  needed_.assign(nodes_.size(), false);
  std::unordered_set<tn_value> wanted(program_.outputs.begin(), program_.outputs.end());
  for (const tn_value value : program_.outputs) leaving_.insert(value);
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (fates_[i] == Fate::folded) continue;
    const tn_node node = nodes_[i];
    const Node& n = graph_.node(node);
    bool needed = op_has_flag(registries_, n.op, TN_OP_SIDE_EFFECT);
    for (const tn_value value : n.outputs())
      needed = needed || (value != TN_NONE && wanted.count(value) != 0);
    needed_[i] = needed;
    if (!needed) continue;
    const auto use = [&](tn_value value) {
      if (value == TN_NONE) return;
      wanted.insert(value);
      if (fates_[i] == Fate::waiting) {
        leaving_.insert(value);
      } else {
        last_use_.try_emplace(value, static_cast<uint32_t>(i));  // the first seen from behind is the last
      }
    };
    for (const tn_value value : n.inputs()) use(value);
    for (const tn_value value : captures_of(node)) use(value);
  }
  for (const tn_value value : leaving_) last_use_[value] = after_all;
}

bool SegmentPlanner::can_expand(tn_node node) const {
  const OpEntry* entry = registries_.find(graph_.node(node).op);
  if (entry != nullptr && entry->def != nullptr && entry->def->decompose != nullptr) return true;
  return body_of(graph_, registries_, node) != TN_NONE;
}

bool SegmentPlanner::plan_as_view(tn_node node, const Selection* selection, uint32_t* input) {
  const Node& n = graph_.node(node);
  *input = 0;
  bool view = op_has_flag(registries_, n.op, TN_OP_VIEW);
  if (selection != nullptr) {
    const tn_kernel_record& record = *selection->kernel()->record;
    for (uint32_t a = 0; a < record.alias_count; ++a) {
      if (record.aliases[a].kind != TN_ALIAS_VIEW || record.aliases[a].output != 0) continue;
      *input = record.aliases[a].input;
      view = true;
    }
  }
  if (!view || n.output(0) == TN_NONE || n.input(*input) == TN_NONE || store_.is_absent(n.input(*input)))
    return false;
  for (uint32_t i = 1; i < n.output_count; ++i) {
    if (n.output(i) != TN_NONE) return false;
  }
  const tn_type from = store_.type(n.input(*input)), to = store_.type(n.output(0));
  return from.kind == TN_KIND_TENSOR && to.kind == TN_KIND_TENSOR && store_.is_known(n.output(0)) &&
         from.dtype == to.dtype && bytes_of(n.input(*input)) == bytes_of(n.output(0));
}

void SegmentPlanner::select_kernels() {
  std::vector<tn_node> to_expand;
  Diagnostics refused;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (fates_[i] != Fate::planned || !needed_[i]) continue;
    const tn_node node = nodes_[i];
    for (const tn_value value : graph_.node(node).outputs()) {
      if (value == TN_NONE || !store_.is_known(value) || store_.type(value).kind != TN_KIND_TENSOR) continue;
      const tn_type type = store_.type(value);
      const uint64_t bytes = bytes_of(value);  // overflow is an error here, before any kernel sees it
      require_memory(bytes, node_place(graph_, node),
                     fmt::format("{} {}", dtype_name(type.dtype),
                                 dims_text({type.dims, static_cast<size_t>(type.rank)})));
    }
    uint32_t view_input = 0;
    const auto take_as_view = [&] {
      planned_.push_back({node, true, view_input, UINT32_MAX, 0});
      view_roots_[graph_.node(node).output(0)] = root_of(graph_.node(node).input(view_input));
    };
    if (plan_as_view(node, nullptr, &view_input)) {
      take_as_view();
      continue;
    }
    PlanContext context(environment_, run_graph_, store_, node);
    Selection selection = select_kernel(registries_, environment_.options.kernels, context.view(), true);
    if (selection.found() && plan_as_view(node, &selection, &view_input)) {
      take_as_view();
      continue;
    }
    if (!devices_.empty()) {
      add_choice(node, std::move(selection));
      continue;
    }
    tn_planned planned{};
    const KernelEntry* kernel = context.plan(selection, &planned);
    if (kernel != nullptr) {
      planned_.push_back({node, false, 0, add_step(node, context, selection, *kernel, planned), 0});
    } else {
      no_kernel_for(node, {&selection, 1}, to_expand, refused);
    }
  }
  if (!devices_.empty()) place_and_plan(to_expand, refused);
  refused.throw_if_errors(exit_job_failed);
  if (!to_expand.empty()) throw NeedsExpansion{std::move(to_expand)};
}

void SegmentPlanner::no_kernel_for(tn_node node, std::span<const Selection> selections,
                                   std::vector<tn_node>& to_expand, Diagnostics& refused) const {
  if (can_expand(node)) {
    to_expand.push_back(node);
    return;
  }
  std::string text = "no kernel takes this node at the shapes of this run";
  bool any = false;
  for (const Selection& selection : selections) {
    for (const Candidate& candidate : selection.candidates) {
      text += fmt::format("; {}: {}", string(candidate.kernel->record->id), candidate.refusal);
      any = true;
    }
  }
  if (!any) text += "; no plugin that is loaded has one for this operator";
  refused.error("", node_place(graph_, node), text);
}

uint32_t SegmentPlanner::add_step(tn_node node, PlanContext& context, Selection& selection,
                                  const KernelEntry& kernel, const tn_planned& planned) {
  Segment& segment = *segment_;
  segment.infos.emplace_back();
  StepInfo& info = segment.infos.back();
  info.node = node;
  info.kernel = &kernel;
  info.state = planned.state;
  info.free_state = planned.free_state;
  info.workspace_bytes = (planned.workspace_bytes + 63) / 64 * 64;
  info.fallback = fallback_reason(environment_.options.kernels, selection, kernel, graph_.op_name(node));
  if (environment_.explain) {
    info.selection = selection_text(selection);
    for (const Candidate& candidate : selection.candidates)
      if (candidate.refusal.empty()) info.able.emplace_back(tenon::view(candidate.kernel->record->id));
  }
  const bool calls_back = (kernel.record->flags & (TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT |
                                                   TN_KERNEL_CONTROL_FLOW)) != 0;
  const bool isolated = environment_.options.isolates(kernel.plugin);
  segment.steps.push_back({planned.fn, planned.tiles,
                           (calls_back ? step_calls_back : 0u) | (isolated ? uint32_t{step_isolated} : 0u)});
  if (planned.workspace_bytes > (uint64_t{1} << 46)) {
    throw Error(exit_job_failed, node_place(graph_, node),
                fmt::format("kernel {} asks for {} of workspace, which is too large",
                            string(kernel.record->id), format_bytes(planned.workspace_bytes)));
  }
  for (auto& blob : context.blobs()) {
    segment.packed_bytes += blob->bytes;
    segment.blobs.push_back(std::move(blob));
  }
  return static_cast<uint32_t>(segment.steps.size() - 1);
}

void SegmentPlanner::conditions() {
  // Older cells are as the path to this segment says.
  const uint32_t first = previous_ == nullptr ? 0 : previous_->first_cell;
  for (uint32_t i = first; i < cells_.size(); ++i) {
    ShapeCondition condition{i, cells_[i].kind, TN_DTYPE_NONE, {}};
    if (cells_[i].kind == TN_KIND_TENSOR) {
      condition.dtype = cells_[i].tensor.dtype;
      condition.dims.assign(cells_[i].tensor.dims, cells_[i].tensor.dims + cells_[i].tensor.rank);
    }
    segment_->shapes.push_back(std::move(condition));
  }
  for (const uint32_t cell : store_.looked_at()) {
    const auto* bytes = static_cast<const uint8_t*>(cells_[cell].tensor.data);
    segment_->contents.push_back({cell, std::vector<uint8_t>(bytes, bytes + cells_[cell].tensor.bytes)});
  }
}

void SegmentPlanner::continuation() {
  Segment& segment = *segment_;
  segment.cell_count = static_cast<uint32_t>(cell_values_.size());
  std::unordered_set<tn_value> saved;
  const auto keep = [&](tn_value value) {
    KnownValue known;
    if (value != TN_NONE && store_.plan_constant(value) != nullptr && saved.insert(value).second &&
        store_.save(value, &known)) {
      segment.next.known.push_back(std::move(known));
    }
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (fates_[i] != Fate::waiting || !needed_[i]) continue;
    segment.next.remaining.push_back(nodes_[i]);
    for (const tn_value value : graph_.node(nodes_[i]).inputs()) keep(value);
    for (const tn_value value : captures_of(nodes_[i])) keep(value);
  }
  segment.last = segment.next.remaining.empty();
  if (!segment.last) {
    if (segment.steps.empty() && segment.views.empty() && segment.folded_count == 0) {
      throw Error(
          exit_job_failed, node_place(graph_, segment.next.remaining.front()),
          "its operands' shapes never become known; the definition of an operator before it is at fault");
    }
    for (const tn_value value : program_.outputs) keep(value);
    segment.next.cell_values = cell_values_;
    return;
  }
  for (const tn_value value : program_.outputs) {
    OutputSource source;
    if (value == TN_NONE) {
      segment.outputs.push_back(std::move(source));
      continue;
    }
    if (const AnyRef* constant = store_.plan_constant(value)) {
      source.kept = *constant;
      source.constant = source.kept->tensor();
    } else if (!graph_.constant(value, &source.constant)) {
      const auto found = cell_by_value_.find(value);
      if (found == cell_by_value_.end()) {
        throw Error(exit_job_failed, "output " + value_place(graph_, value), "nothing computes it");
      }
      source.cell = found->second;
    }
    segment.outputs.push_back(std::move(source));
  }
}

}  // namespace tenon
