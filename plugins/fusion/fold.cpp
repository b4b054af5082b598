// Constant folding, in topological order so that one sweep folds whole chains.
//
// A result becomes a constant when its elements are known from shape arithmetic, or when all operands are
// constants and the result is small: at most `max_bytes_free`, or at most `max_growth` times the constant
// operands that nobody else reads (they die with the node). Random and stateful operators are never folded.
#include <algorithm>

#include "passes.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

struct Folder {
  Pass& pass;
  GraphView graph;
  const tn_eval_api* eval;
  double max_growth, max_widening;
  uint64_t max_bytes_free;
  tn_sym dequantize, constant_of_shape, quantize, conv, gemm, matmul;
  uint64_t matched = 0, applied = 0;

  // Every wanted result known from shape arithmetic, as numbers of a type that can hold them.
  bool known_result(tn_value v, OwnedTensor* out) const {
    const tn_value_info info = graph.value(v);
    if (info.type.kind != TN_KIND_TENSOR || info.type.rank < 0) return false;
    if (info.type.dtype != TN_INT64 && info.type.dtype != TN_INT32 && info.type.dtype != TN_BOOL)
      return false;
    bool known = false;
    const auto elements = graph.known_elements(v, &known);
    if (!known) return false;
    Dims dims;
    int64_t count = 1;
    for (tn_dim d : dims_of(info.type)) {
      if (d < 0) return false;
      dims.push_back(d);
      count = checked_mul(count, d);
    }
    if (count != static_cast<int64_t>(elements.size())) return false;
    const auto* symbols = pass.service<tn_symbols_api>(TN_SYMBOLS_ID);
    OwnedTensor t(info.type.dtype, dims);
    for (size_t i = 0; i < elements.size(); ++i) {
      int64_t number = elements[i];
      if (number < 0 && !symbols->as_number(graph.raw(), elements[i], &number)) return false;
      if (info.type.dtype == TN_INT64)
        t.data<int64_t>()[i] = number;
      else if (info.type.dtype == TN_INT32)
        t.data<int32_t>()[i] = static_cast<int32_t>(number);
      else
        t.data<uint8_t>()[i] = number != 0;
    }
    *out = std::move(t);
    return true;
  }

  bool fold_known(const Node& node) {
    std::vector<std::pair<tn_value, OwnedTensor>> results;
    for (tn_value v : node.outputs()) {
      if (v == TN_NONE || graph.value(v).use_count == 0) continue;
      OwnedTensor t;
      if (!known_result(v, &t)) return false;
      results.emplace_back(v, std::move(t));
    }
    return !results.empty() && replace(node, results);
  }

  struct Dying {  // the constant operands that go with the node
    uint64_t bytes = 0, largest = 0;
    uint32_t bits = 0;  // of an element of the largest
  };
  bool operands_are_constants(const Node& node, Dying* dying) const {
    bool any = false;
    for (tn_value v : node.inputs()) {
      if (v == TN_NONE) continue;
      const auto info = graph.value(v);
      if (info.kind != TN_VALUE_CONSTANT) return false;
      any = true;
      if (info.use_count != 1) continue;
      int64_t count = 1;
      for (tn_dim d : dims_of(info.type)) count = checked_mul(count, d);
      const uint64_t bytes = packed_bytes(info.type.dtype, count);
      dying->bytes += bytes;
      if (bytes < dying->largest) continue;
      dying->largest = bytes;
      dying->bits = TN_DTYPE_BITS(info.type.dtype);
    }
    return any;
  }

  // How many bytes the result may take. The same elements in a wider type are no growth of the graph's:
  // computing them in each run would cost more. But what a DequantizeLinear reads is small on purpose.
  uint64_t limit_for(const Node& node, const Dying& dying) const {
    double widening = 1;
    const uint32_t bits = TN_DTYPE_BITS(graph.value(node.output(0)).type.dtype);
    if (dying.bits && bits > dying.bits && node.op() != dequantize)
      widening = std::min(max_widening, static_cast<double>(bits) / dying.bits);
    return std::max(max_bytes_free,
                    static_cast<uint64_t>(max_growth * widening * static_cast<double>(dying.bytes)));
  }

  // A ConstantOfShape of known shape is one element that stands for all; a file still holds them, so only to
  // a size.
  bool fold_filled(const Node& node) {
    if (node.op() != constant_of_shape || node.output(0) == TN_NONE) return false;
    const tn_type type = graph.value(node.output(0)).type;
    const auto* symbols = pass.service<tn_symbols_api>(TN_SYMBOLS_ID);
    if (type.rank < 0 || type.dtype == TN_STRING || dtype_bytes(type.dtype) == 0) return false;
    Dims dims;
    for (tn_dim d : dims_of(type)) {
      int64_t n = d;
      if (d < 0 && !symbols->as_number(graph.raw(), d, &n)) return false;
      dims.push_back(n);
    }
    int64_t count = 1;
    for (int64_t d : dims)
      if (d != 0 && count > INT64_MAX / 16 / d)
        return false;
      else
        count *= d;
    if (packed_bytes(type.dtype, count) > filled_factor * max_bytes_free) return false;
    const float zero = 0;
    const tn_tensor* value = node.attrs().get_tensor("value");
    const tn_tensor filled{type.dtype, static_cast<int32_t>(dims.size()), dims.data(),
                           value ? value->data : const_cast<float*>(&zero), dtype_bytes(type.dtype)};
    ++matched;
    Transaction edit = pass.edit("fold");
    if (!edit.active()) return false;
    tn_value made = TN_NONE;
    check(edit.api()->constant_uniform(edit.raw(), graph.value(node.output(0)).name, &filled, &made),
          "creating a constant");
    const tn_node id = node.id();
    edit.replace_uses(node.output(0), made);
    edit.erase(id);
    return committed(edit, id);
  }
  static constexpr uint64_t filled_factor = 64;

  // Weights or a bias on their way into a product that stands between DequantizeLinear and QuantizeLinear:
  // rules make one of the integers of it.
  bool stays_quantised(const Node& node) const {
    if (node.op() != dequantize || node.outputs().empty() || node.output(0) == TN_NONE) return false;
    const auto made_by = [&](tn_value v, tn_sym op) {
      if (v == TN_NONE) return false;
      const auto info = graph.value(v);
      return info.kind == TN_VALUE_RESULT && graph.node(info.producer).op() == op;
    };
    for (const tn_use& use : graph.users(node.output(0))) {
      if (use.node == TN_NONE || use.index == 0) continue;  // operand 2: the bias
      const Node reader = graph.node(use.node);
      const bool product =
          reader.op() == conv || (use.index == 1 && (reader.op() == gemm || reader.op() == matmul));
      if (!product || !made_by(reader.input(0), dequantize) || !made_by(reader.input(1), dequantize))
        continue;
      for (const tn_use& next : graph.users(reader.output(0)))
        if (next.node != TN_NONE && next.index == 0 && graph.node(next.node).op() == quantize) return true;
    }
    return false;
  }

  void fold_by_kernel(const Node& node) {
    if (stays_quantised(node)) return;
    Dying dying;
    if (!node.regions().empty() || node.outputs().empty() || node.output(0) == TN_NONE ||
        !operands_are_constants(node, &dying))
      return;
    for (tn_value v :
         node.outputs())  // a string or a sequence is nothing a kernel of ours should be asked for here
      if (v != TN_NONE &&
          (graph.value(v).type.kind > TN_KIND_TENSOR || graph.value(v).type.dtype == TN_STRING))
        return;
    ++matched;
    const uint64_t limit = limit_for(node, dying);
    struct Sink {
      std::vector<OwnedTensor> tensors;
      std::string failure;
    } sink;
    sink.tensors.resize(node.outputs().size());
    DiagBuffer said;
    const tn_status status = eval->node(
        pass.host(), graph.raw(), node.id(), limit,
        [](void* context, uint32_t index, const tn_tensor* tensor) {
          auto* s = static_cast<Sink*>(context);
          guarded(nullptr, [&] {
            if (index < s->tensors.size()) s->tensors[index] = OwnedTensor(*tensor);
          });
        },
        &sink, said.raw());
    if (status == TN_ERR_LIMIT) {
      pass.explain(TN_REASON_LIMIT, "fold", node.id(),
                   format("the result is larger than %llu bytes", static_cast<unsigned long long>(limit)),
                   "growth limit", "raise max_growth, max_widening or max_bytes_free");
      return;
    }
    if (status != TN_OK) {
      pass.explain(TN_REASON_KERNEL, "fold", node.id(), said.text());
      return;
    }
    std::vector<std::pair<tn_value, OwnedTensor>> results;
    for (uint32_t i = 0; i < node.outputs().size(); ++i) {
      const tn_value v = node.output(i);
      if (v == TN_NONE || graph.value(v).use_count == 0) continue;
      if (sink.tensors[i].dtype() == TN_DTYPE_NONE)
        return;  // the kernel gave no such result: leave the node alone
      results.emplace_back(v, std::move(sink.tensors[i]));
    }
    replace(node, results);
  }

  bool replace(const Node& node, std::vector<std::pair<tn_value, OwnedTensor>>& results) {
    Transaction edit = pass.edit("fold");
    if (!edit.active()) return false;
    const tn_node id = node.id();
    for (auto& [value, tensor] : results) {
      const std::string name(sdk::view(graph.value(value).name));
      edit.replace_uses(value, edit.constant(std::move(tensor), name));
    }
    edit.erase(id);
    return committed(edit, id);
  }

  bool committed(Transaction& edit, tn_node id) {
    if (!edit.commit()) {
      pass.explain(TN_REASON_ROLLBACK, "fold", id, edit.said());
      return false;
    }
    pass.explain(TN_REASON_APPLIED, "fold", id);
    ++applied;
    return true;
  }
};

}  // namespace

void run_fold(Pass& pass) {
  const GraphView view = pass.graph();
  Folder f{pass,
           view,
           pass.eval(),
           pass.option_float("max_growth"),
           pass.option_float("max_widening"),
           static_cast<uint64_t>(pass.option_int("max_bytes_free")),
           view.symbol("DequantizeLinear"),
           view.symbol("ConstantOfShape"),
           view.symbol("QuantizeLinear"),
           view.symbol("Conv"),
           view.symbol("Gemm"),
           view.symbol("MatMul")};
  for (tn_region region : regions_outer_first(f.graph)) {
    for (tn_node id : node_list(f.graph, region)) {
      const Node node = f.graph.node(id);
      if (!node.alive()) continue;
      const tn_op_def* op = pass.op(node.op());
      if (!is_pure(op)) continue;
      if (!f.fold_known(node) && !f.fold_filled(node) && f.eval) f.fold_by_kernel(node);
      if (pass.cancelled()) break;
    }
  }
  if (f.matched || f.applied) pass.count("fold", std::max(f.matched, f.applied), f.applied);
}

}  // namespace tenon::fusion
