#include "shake.hpp"

#include <tenon/sdk/dtype.hpp>

#include <algorithm>
#include <string>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "fill.hpp"

namespace tenon::fuzz {

namespace {

constexpr uint64_t largest_noise = 100000;  // elements; one number serves all of a larger value

bool is_real_float(tn_dtype dtype) {
  return spacing(dtype) != 0 && dtype != TN_COMPLEX64 && dtype != TN_COMPLEX128;
}

// Nodes that cancel inside: an absolute error stays where their result is small.
bool cancels_inside(std::string_view op) {
  static constexpr std::string_view simple[] = {
      "Abs",     "Add",    "Cast",    "CastLike",  "Ceil",      "Clip",    "Compress", "Concat",  "Div",
      "Dropout", "Expand", "EyeLike", "Flatten",   "Floor",     "Gather",  "Identity", "If",      "LeakyRelu",
      "Loop",    "Max",    "MaxPool", "Min",       "Mul",       "Neg",     "OneHot",   "Pad",     "PRelu",
      "Relu",    "Round",  "Scan",    "Sign",      "Slice",     "Split",   "Sqrt",     "Squeeze", "Sub",
      "Tile",    "TopK",   "Trilu",   "Transpose", "Unsqueeze", "Reshape", "Where"};
  return std::find(std::begin(simple), std::end(simple), op) == std::end(simple);
}

// Results lie within -1 and 1, and roundings decide where the ends are reached.
bool ends_at_one(std::string_view op) {
  static constexpr std::string_view all[] = {"Cos", "Erf",  "HardSigmoid", "Sigmoid",
                                             "Sin", "Tanh", "Softmax",     "Softsign"};
  return std::find(std::begin(all), std::end(all), op) != std::end(all);
}

class Shaker {
 public:
  Shaker(Graph& graph, uint64_t seed, bool to_grid)
      : graph_(graph), random_(seed), edit_(graph, "shake"), to_grid_(to_grid) {}

  bool run() {
    const uint32_t bound = graph_.node_bound();
    const tn_value values = graph_.value_bound();
    for (tn_node id = 0; id < bound; ++id) {
      const Node& node = graph_.node(id);
      if (!node.alive) continue;
      const tn_node next = node.next;
      const bool absolute = cancels_inside(graph_.op_name(id)),
                 ends = to_grid_ && ends_at_one(graph_.op_name(id));
      for (const tn_value value : std::vector<tn_value>(node.outputs().begin(), node.outputs().end())) {
        if (value == TN_NONE) continue;
        const tn_value moved =
            ends ? to_the_ends(value, node.region_id, next) : combine("Mul", 1, value, node.region_id, next);
        if (absolute && moved != TN_NONE) move_by_units_of_one(moved, node.region_id, next);
      }
    }
    for (const tn_value value : std::vector<tn_value>(graph_.region(Graph::main_region).inputs))
      combine("Mul", 1, value, Graph::main_region, graph_.first_node(Graph::main_region));
    for (tn_value value = 0; value < values; ++value) move_constant(value);
    Diagnostics ignored;
    return edit_.commit(ignored);
  }

 private:
  // Numbers around `centre`, for each element of such a value, or one for all where its shape is not known.
  Tensor noise(const tn_type& type, double centre) {
    std::vector<int64_t> dims;
    uint64_t count = 1;
    for (int32_t i = 0; i < type.rank; ++i) {
      if (type.dims[i] >= 0) {
        dims.push_back(type.dims[i]);
        count *= static_cast<uint64_t>(type.dims[i]);
      }
    }
    if (static_cast<int32_t>(dims.size()) != type.rank || count > largest_noise) dims.clear();
    Tensor numbers(type.dtype, dims);
    change(numbers, [&](double) { return centre + step(type.dtype); });
    return numbers;
  }
  double step(tn_dtype dtype) { return spacing(dtype) * random_.uniform(-shake_units, shake_units); }
  template <class F>
  static void change(Tensor& tensor, F&& f) {
    sdk::visit_number(tensor.dtype(), [&](auto kind) {
      using T = decltype(kind);
      for (uint64_t i = 0; i < tensor.count(); ++i) {
        T& x = static_cast<T*>(tensor.data())[i];
        if constexpr (std::is_arithmetic_v<T>)
          x = static_cast<T>(f(static_cast<double>(x)));
        else
          x = T(static_cast<float>(f(static_cast<double>(static_cast<float>(x)))));
      }
    });
  }
  tn_value constant(const Tensor& tensor) {
    const tn_tensor bytes = tensor.view();
    const std::string name = "shake" + std::to_string(names_++);
    tn_value made = TN_NONE;
    return edit_api()->constant_copy(edit_.get(), to_abi(name), &bytes, &made) == TN_OK ? made : TN_NONE;
  }

  // What is a few units from -1 or 1 gets there.
  tn_value to_the_ends(tn_value value, tn_region region, tn_node before) {
    const tn_type type = graph_.type(value);  // a copy: the graph grows
    if (type.kind != TN_KIND_TENSOR || !is_real_float(type.dtype)) return TN_NONE;
    const auto number = [&](double x) {
      Tensor one(type.dtype, {});
      change(one, [&](double) { return x; });
      return constant(one);
    };
    combine_with("Mul", number(1 + spacing(type.dtype) * shake_units), value, region, before);
    combine_with("Min", number(1), last_, region, before);
    return combine_with("Max", number(-1), last_, region, before);
  }

  // By noise, or as v + 1 - 1 is: numbers far below 1 become exact zeros.
  void move_by_units_of_one(tn_value value, tn_region region, tn_node before) {
    if (!to_grid_) {
      combine("Add", 0, value, region, before);
      return;
    }
    const tn_value one = constant(noise(last_type_, 1));
    const tn_value sum = one == TN_NONE ? TN_NONE : combine_with("Add", one, value, region, before);
    if (sum != TN_NONE) combine_with("Sub", one, sum, region, before);
  }

  // op(value, noise) before `before`, read by all who read the value.
  tn_value combine(std::string_view op, double centre, tn_value value, tn_region region, tn_node before) {
    const tn_type& type =
        value == last_ ? last_type_ : graph_.type(value);  // what was just made has none yet
    if (type.kind != TN_KIND_TENSOR || !is_real_float(type.dtype)) return TN_NONE;
    return combine_with(op, constant(noise(type, centre)), value, region, before);
  }
  tn_value combine_with(std::string_view op, tn_value operand, tn_value value, tn_region region,
                        tn_node before) {
    const tn_type kept = value == last_ ? last_type_ : graph_.type(value);
    const tn_value operands[] = {value, operand};
    tn_node_desc desc{};
    const std::string name = "shake" + std::to_string(names_++);
    desc.size = sizeof desc;
    desc.op = intern(op);
    desc.region = region;
    desc.before = before;
    desc.inputs = operands;
    desc.input_count = 2;
    desc.output_count = 1;
    desc.name = to_abi(name);
    tn_node made = TN_NONE;
    if (operand == TN_NONE || edit_api()->create_node(edit_.get(), &desc, &made) != TN_OK) return TN_NONE;
    last_ = graph_.node(made).output(0);
    last_type_ = kept;
    edit_api()->replace_uses(edit_.get(), value, last_);
    edit_api()->set_input(edit_.get(), made, 0, value);
    return last_;
  }

  // Constants stay constants, since some decide shapes; scales of Resize and ends of Range stay as they are.
  void move_constant(tn_value value) {
    tn_tensor bytes{};
    if (!graph_.is_constant(value) || !is_real_float(graph_.type(value).dtype)) return;
    for (const tn_use& use : graph_.users(value)) {
      const std::string_view op = use.node == TN_NONE ? std::string_view() : graph_.op_name(use.node);
      if (op == "Resize" || op == "Range") return;
    }
    if (graph_.users(value).empty() || !graph_.constant(value, &bytes)) return;
    Tensor moved = Tensor::copy_of(bytes);
    change(moved, [&](double x) { return x * (1 + step(moved.dtype())); });
    const tn_value other = constant(moved);
    if (other != TN_NONE) edit_api()->replace_uses(edit_.get(), value, other);
  }

  Graph& graph_;
  Random random_;
  Transaction edit_;
  bool to_grid_;
  uint32_t names_ = 0;
  tn_value last_ = TN_NONE;
  tn_type last_type_{};
};

}  // namespace

std::unique_ptr<Graph> shaken(const Graph& graph, std::span<const Tensor* const> inputs, uint64_t seed,
                              bool to_grid) {
  std::unique_ptr<Graph> copy = graph.clone();
  const std::vector<tn_value> values = copy->region(Graph::main_region).inputs;
  for (size_t i = 0; i < inputs.size() && i < values.size(); ++i) {
    tn_type type = copy->type(values[i]);
    const std::vector<tn_dim> dims(inputs[i]->dims().begin(), inputs[i]->dims().end());
    type.rank = static_cast<int32_t>(dims.size());
    type.dims = dims.data();
    copy->redeclare(values[i], type);
  }
  Diagnostics ignored;
  infer_graph(*copy, ignored);
  if (!Shaker(*copy, seed, to_grid).run()) return nullptr;
  return copy;
}

}  // namespace tenon::fuzz
