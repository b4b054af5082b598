// Values that were the same in every sample become constants, behind a guard: an If on "the inputs they
// depend on are the sample's" yields the constants, and otherwise computes them as before. So the graph is
// right for every input.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "passes.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

const char* const who = "fold_profiled";

class Folder {
 public:
  explicit Folder(Pass& pass) : pass_(pass), graph_(pass.graph()) {
    const tn_region_info main = graph_.region(graph_.main());
    inputs_.assign(main.inputs, main.inputs + main.input_count);
    if (TN_HAS(&pass.raw(), sample_count) && pass.raw().samples)
      samples_.assign(pass.raw().samples, pass.raw().samples + pass.raw().sample_count);
    samples_.resize(inputs_.size());
  }

  void run(const std::vector<std::string>& names) {
    // Values that depend on the same inputs share a guard.
    std::map<std::vector<uint32_t>, std::vector<tn_value>> groups;
    for (const std::string& name : names) {
      const tn_value value = find(name);
      if (value == TN_NONE) {
        refuse(TN_NONE, "no node of the main graph yields '" + name + "'");
        continue;
      }
      std::vector<tn_node> cone;
      std::vector<uint32_t> reads;
      std::string why;
      if (!trace(value, &cone, &reads, &why) || !comparable(reads, &why)) {
        refuse(value, why);
        continue;
      }
      groups[reads].push_back(value);
    }
    for (const auto& [reads, values] : groups)
      if (!fold(reads, values)) return;
  }

 private:
  void refuse(tn_value value, const std::string& why) {
    pass_.explain(TN_REASON_GUARD, who, value == TN_NONE ? TN_NONE : graph_.producer(value), why,
                  "the value can be guarded", {}, value);
    pass_.count(who, 1, 0);
  }

  tn_value find(const std::string& name) const {
    for (const tn_node n : node_list(graph_, graph_.main()))
      for (const tn_value v : graph_.node(n).outputs())
        if (v != TN_NONE && sdk::view(graph_.value(v).name) == name) return v;
    return TN_NONE;
  }

  /// The nodes that compute the value, and the graph inputs they read.
  bool trace(tn_value value, std::vector<tn_node>* cone, std::vector<uint32_t>* reads,
             std::string* why) const {
    std::set<tn_node> seen;
    std::set<uint32_t> inputs;
    std::vector<tn_value> open{value};
    while (!open.empty()) {
      const tn_value v = open.back();
      open.pop_back();
      if (v == TN_NONE) continue;
      const tn_value_info info = graph_.value(v);
      if (info.kind == TN_VALUE_REGION_INPUT) inputs.insert(info.index);
      if (info.kind != TN_VALUE_RESULT || !seen.insert(info.producer).second) continue;
      const Node node = graph_.node(info.producer);
      if (!is_pure(pass_.op(node.op())) || !node.regions().empty()) {
        *why = "'" + std::string(node.name()) + "' (" + std::string(graph_.symbol_text(node.op())) +
               ") may give another result each time, or has a body";
        return false;
      }
      for (const tn_value operand : node.inputs()) open.push_back(operand);
    }
    for (const tn_node n : node_list(graph_, graph_.main()))
      if (seen.count(n)) cone->push_back(n);
    reads->assign(inputs.begin(), inputs.end());
    if (reads->empty()) {
      *why = "it depends on no input; pass fold computes it";
      return false;
    }
    return true;
  }

  /// Equal means the same bits then: no strings, and no zeros of floats, whose sign Equal does not see.
  bool comparable(const std::vector<uint32_t>& reads, std::string* why) const {
    for (const uint32_t i : reads) {
      const tn_tensor& sample = samples_[i];
      const std::string name = "input '" + sdk::text(graph_.value(inputs_[i]).name) + "'";
      if (sample.dtype == TN_DTYPE_NONE) {
        *why = "no sample is given for " + name;
        return false;
      }
      const TensorView view(sample);
      if (!visit_number(sample.dtype, [](auto) {})) {
        *why = name + " is of type " + dtype_name(sample.dtype) + ", which no guard compares";
        return false;
      }
      if (!is_float(sample.dtype)) continue;
      for (int64_t k = 0; k < view.count(); ++k)
        if (view.float_at(k) == 0 || !std::isfinite(view.float_at(k))) {
          *why = name + " holds zeros or no finite numbers, which Equal does not tell apart bit by bit";
          return false;
        }
    }
    return true;
  }

  tn_value make(Transaction& edit, std::string_view op, std::vector<tn_value> inputs, tn_region region,
                tn_node before, std::vector<AttrValue> attrs = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.region = region;
    spec.before = before;
    return edit.create(spec).output(0);
  }

  /// A bool scalar: all elements of a are those of b; their shapes are equal.
  tn_value all_equal(Transaction& edit, tn_value a, tn_value b, tn_region region, tn_node before) {
    const tn_value same = make(edit, "Equal", {a, b}, region, before);
    const tn_value number =
        make(edit, "Cast", {same}, region, before, {AttrValue::of("to", int64_t{6})});  // ONNX's int32
    const tn_value least =
        make(edit, "ReduceMin", {number}, region, before, {AttrValue::of("keepdims", int64_t{0})});
    return make(edit, "Cast", {least}, region, before, {AttrValue::of("to", int64_t{9})});  // ONNX's bool
  }

  /// A bool scalar: the input is the sample, in shape and contents.
  tn_value is_sample(Transaction& edit, uint32_t input, tn_node before) {
    const tn_tensor& sample = samples_[input];
    const tn_value value = inputs_[input];
    const tn_type type = graph_.value(value).type;
    bool fixed = type.rank == sample.rank;
    for (int32_t i = 0; fixed && i < type.rank; ++i) fixed = type.dims[i] == sample.dims[i];
    const TensorView view(sample);
    const tn_value wanted = edit.constant(sample);
    if (fixed && view.count() > 0) return all_equal(edit, value, wanted, graph_.main(), before);
    const std::vector<int64_t> dims(sample.dims, sample.dims + sample.rank);
    const tn_value shape = make(edit, "Shape", {value}, graph_.main(), before);
    const tn_value same_shape = dims.empty()
                                    ? edit.scalar<bool>(true)
                                    : all_equal(edit, shape, edit.vector(dims), graph_.main(), before);
    if (view.count() == 0) return same_shape;
    // Contents may be compared only where shapes are equal: else Equal would broadcast.
    NodeSpec spec;
    spec.op = "If";
    spec.inputs = {same_shape};
    spec.before = before;
    const Node branch = edit.create(spec);
    const tn_region then_region = edit.create_region(branch.id(), "then_branch");
    const tn_region else_region = edit.create_region(branch.id(), "else_branch");
    const std::vector<tn_value> contents{all_equal(edit, value, wanted, then_region, TN_NONE)};
    edit.region_outputs(then_region, contents);
    const std::vector<tn_value> other{
        make(edit, "Identity", {edit.scalar<bool>(false)}, else_region, TN_NONE)};
    edit.region_outputs(else_region, other);
    return branch.output(0);
  }

  /// False: the limit of edits is reached.
  bool fold(const std::vector<uint32_t>& reads, const std::vector<tn_value>& values) {
    std::vector<OwnedTensor> computed(values.size());
    std::vector<tn_tensor> inputs = samples_;
    DiagBuffer said;
    const auto* eval = pass_.eval();
    if (!eval || !TN_HAS(eval, values)) throw Failure(TN_ERR_UNSUPPORTED, "the host computes no values");
    const tn_status status = eval->values(
        pass_.host(), graph_.raw(), inputs.data(), static_cast<uint32_t>(inputs.size()), values.data(),
        static_cast<uint32_t>(values.size()),
        [](void* context, uint32_t index, const tn_tensor* t) {
          (*static_cast<std::vector<OwnedTensor>*>(context))[index] = OwnedTensor(*t);
        },
        &computed, said.raw());
    if (status != TN_OK) {
      refuse(values[0], "it cannot be computed: " + said.text());
      return true;
    }
    std::vector<tn_node> cone;
    for (const tn_value v : values) {
      std::vector<uint32_t> ignored;
      std::string why;
      trace(v, &cone, &ignored, &why);
    }
    std::vector<tn_node> order;
    for (const tn_node n : node_list(graph_, graph_.main()))
      if (std::find(cone.begin(), cone.end(), n) != cone.end()) order.push_back(n);
    Transaction edit = pass_.edit(who);
    if (!edit.active()) return false;
    // Everything goes before the first node: guards read graph inputs alone.
    const tn_node first = graph_.nodes(graph_.main())[0];
    tn_value guard = TN_NONE;
    for (const uint32_t i : reads) {
      const tn_value one = is_sample(edit, i, first);
      guard = guard == TN_NONE ? one : make(edit, "And", {guard, one}, graph_.main(), first);
    }
    NodeSpec spec;
    spec.op = "If";
    spec.inputs = {guard};
    spec.output_count = static_cast<uint32_t>(values.size());
    spec.before = first;
    spec.origins = order;
    const Node branch = edit.create(spec);
    const tn_region then_region = edit.create_region(branch.id(), "then_branch");
    const tn_region else_region = edit.create_region(branch.id(), "else_branch");
    std::vector<tn_value> constants, recomputed;
    for (const OwnedTensor& t : computed)
      constants.push_back(make(edit, "Identity", {edit.constant(t.raw())}, then_region, TN_NONE));
    edit.region_outputs(then_region, constants);
    std::map<tn_value, tn_value> cloned;
    for (const tn_node n : order) {
      const Node node = graph_.node(n);
      std::vector<tn_value> operands;
      for (const tn_value v : node.inputs()) {
        const auto at = cloned.find(v);
        operands.push_back(at == cloned.end() ? v : at->second);
      }
      const std::vector<tn_value> results(node.outputs().begin(), node.outputs().end());
      const tn_node clone = edit.clone(n, else_region, TN_NONE, operands);
      const Node made = graph_.node(clone);
      for (uint32_t r = 0; r < results.size(); ++r)
        if (results[r] != TN_NONE) cloned[results[r]] = made.output(r);
    }
    for (const tn_value v : values) recomputed.push_back(cloned.at(v));
    edit.region_outputs(else_region, recomputed);
    for (size_t i = 0; i < values.size(); ++i)
      edit.replace_uses(values[i], graph_.node(branch.id()).output(static_cast<uint32_t>(i)));
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      const Node node = graph_.node(*n);
      const auto outputs = node.outputs();
      if (std::all_of(outputs.begin(), outputs.end(),
                      [&](tn_value v) { return v == TN_NONE || graph_.value(v).use_count == 0; }))
        edit.erase(*n);
    }
    if (edit.commit())
      pass_.count(who, values.size(), values.size());
    else
      refuse(values[0], edit.said());
    return true;
  }

  Pass& pass_;
  GraphView graph_;
  std::vector<tn_value> inputs_;
  std::vector<tn_tensor> samples_;
};

}  // namespace

void run_fold_profiled(Pass& pass) {
  std::vector<std::string> names;
  std::string_view rest = pass.option_string("values");
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!names.empty()) Folder(pass).run(names);
}

}  // namespace tenon::fusion
