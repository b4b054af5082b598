#include "core/check/draw.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "core/base/text.hpp"
#include "core/check/values.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/graph/text_form.hpp"

namespace tenon::check {

namespace {

using Dims = std::vector<int64_t>;

constexpr tn_dtype usual_dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_BFLOAT16, TN_INT8,
                                     TN_INT16,   TN_INT32,   TN_INT64,   TN_UINT8,    TN_UINT16,
                                     TN_UINT32,  TN_UINT64,  TN_BOOL};

struct Drawn {
  tn_value id = TN_NONE;
  tn_dtype dtype = TN_DTYPE_NONE;
  Dims dims;
};

struct Attributes {
  std::vector<tn_attr> list;
  std::vector<std::unique_ptr<Dims>> ints;
};

Attributes draw_attributes(const tn_op_def& def, Random& random) {
  Attributes attributes;
  for (uint32_t i = 0; i < def.attr_count; ++i) {
    const tn_attr_def& wanted = def.attrs[i];
    if (wanted.required == 0 && !random.chance(0.15)) continue;
    tn_attr attr{};
    attr.name = intern(view(wanted.name));
    attr.kind = wanted.kind;
    attr.count = 1;
    if (wanted.kind == TN_ATTR_INT) {
      attr.u.i = random.between(-1, 3);
    } else if (wanted.kind == TN_ATTR_FLOAT) {
      attr.u.f = random.of({0.5, 1.0, 2.0});
    } else if (wanted.kind == TN_ATTR_INTS) {
      attributes.ints.push_back(std::make_unique<Dims>(1 + random.below(3), random.between(0, 2)));
      attr.count = attributes.ints.back()->size();
      attr.u.ints = attributes.ints.back()->data();
    } else {
      continue;
    }
    attributes.list.push_back(attr);
  }
  return attributes;
}

class Drawer {
 public:
  Drawer(const Registries& registries, Random& random) : registries_(registries), random_(random) {
    graph_ = std::make_unique<Graph>();
    graph_->set_registry(&registries);
    Transaction edit(*graph_, "draw", TN_EDIT_BUILD);
    edit_api()->set_opset(edit.get(), {}, registries.domain_version(""));
    Diagnostics ignored;
    edit.commit(ignored);
  }

  bool add(const tn_op_def& def, bool may_reuse, const std::vector<tn_dtype>& first_dtypes) {
    const size_t before = values_.size();
    Transaction edit(*graph_, "draw");
    const bool good = add_within(edit, def, may_reuse, first_dtypes);
    if (!good) values_.resize(before);
    return good;
  }

  std::unique_ptr<Graph> finish() {
    std::vector<tn_value> outputs;
    for (const Drawn& drawn : values_)
      if (graph_->value(drawn.id).kind == TN_VALUE_RESULT && graph_->users(drawn.id).empty())
        outputs.push_back(drawn.id);
    Transaction edit(*graph_, "draw");
    edit_api()->region_outputs(edit.get(), Graph::main_region, outputs.data(),
                               static_cast<uint32_t>(outputs.size()));
    Diagnostics ignored;
    if (outputs.empty() || !edit.commit(ignored)) return nullptr;
    return std::move(graph_);
  }

 private:
  Dims random_dims(int64_t low, int64_t high) {
    Dims dims(static_cast<size_t>(random_.between(low, high)));
    for (int64_t& dim : dims) dim = random_.chance(0.2) ? 1 : random_.between(2, 5);
    return dims;
  }

  // Shapes that operators tend to want of an operand, next to the first one's.
  Dims dims_beside(const Dims& first) {
    switch (random_.below(7)) {
      case 0:
        return {};
      case 1:
        return first.empty() ? Dims{} : Dims{random_.of(first)};
      case 2:
        return random_dims(0, 3);
      case 3: {  // a matrix that the last axis can be multiplied with
        Dims dims = first;
        if (dims.size() < 2) return dims;
        dims[dims.size() - 2] = first.back();
        dims.back() = random_.between(1, 6);
        return dims;
      }
      case 4: {  // weights over the channels
        if (first.size() < 3) return first;
        Dims dims = first;
        dims[0] = random_.between(1, 6);
        dims[1] = first[1];
        for (size_t i = 2; i < dims.size(); ++i) dims[i] = random_.between(1, std::max<int64_t>(1, first[i]));
        return dims;
      }
      default:
        return first;
    }
  }

  Drawn operand(Transaction& edit, tn_dtype dtype, const Dims& dims, bool may_reuse) {
    if (may_reuse && random_.chance(0.8)) {
      for (size_t tries = 0; tries < 8 && !values_.empty(); ++tries) {
        const Drawn& known = values_[random_.below(values_.size())];
        if (known.dtype == dtype && known.dims == dims) return known;
      }
    }
    Drawn drawn{TN_NONE, dtype, dims};
    const std::string name = "v" + std::to_string(names_++);
    // Integers are often sizes, axes and indices, which operators want to know.
    if (random_.chance(dtype_is_integer(dtype) ? 0.7 : 0.3)) {
      Tensor tensor(dtype, dims);
      fill(tensor, random_, Fill::tame);
      const tn_tensor bytes = tensor.view();
      edit_api()->constant_copy(edit.get(), to_abi(name), &bytes, &drawn.id);
    } else {
      const tn_type type{TN_KIND_TENSOR, dtype, static_cast<int32_t>(dims.size()), 0, dims.data()};
      edit_api()->region_input(edit.get(), Graph::main_region, to_abi(name), &type, &drawn.id);
      if (drawn.id != TN_NONE) values_.push_back(drawn);
    }
    return drawn;
  }

  bool add_within(Transaction& edit, const tn_op_def& def, bool may_reuse,
                  const std::vector<tn_dtype>& first_dtypes) {
    std::map<std::string_view, tn_dtype> bound;  // type variables
    std::vector<tn_value> inputs;
    Dims first;
    const uint32_t optional = def.input_count - std::min(def.input_count, def.min_inputs);
    const uint32_t wanted = def.min_inputs + static_cast<uint32_t>(random_.below(optional + 1));
    for (uint32_t i = 0; i < std::min(wanted, 8u); ++i) {
      const tn_param_def& parameter = def.inputs[std::min(i, def.input_count - 1)];
      tn_dtype dtype = bound[view(parameter.type)];
      if (dtype == TN_DTYPE_NONE) {
        std::vector<tn_dtype> allowed = allowed_dtypes(def, i);
        if (i == 0 && !first_dtypes.empty())
          std::erase_if(allowed, [&](tn_dtype d) {
            return std::find(first_dtypes.begin(), first_dtypes.end(), d) == first_dtypes.end();
          });
        if (allowed.empty()) return false;
        const bool has_float = std::find(allowed.begin(), allowed.end(), TN_FLOAT32) != allowed.end();
        dtype = has_float && random_.chance(0.6) ? TN_FLOAT32 : random_.of(allowed);
        if ((parameter.flags & TN_PARAM_HETEROGENEOUS) == 0) bound[view(parameter.type)] = dtype;
      }
      Dims dims;
      if (i != 0) {
        dims = dims_beside(first);
      } else if (may_reuse && !values_.empty() && random_.chance(0.85)) {
        const Drawn& known = random_.of(values_);
        if (known.dtype == dtype)
          dims = known.dims;
        else
          dims = random_dims(1, 4);
      } else {
        dims = random_dims(1, 4);
      }
      if (i == 0) first = dims;
      const Drawn drawn = operand(edit, dtype, dims, may_reuse);
      if (drawn.id == TN_NONE) return false;
      inputs.push_back(drawn.id);
    }
    const Attributes attributes = draw_attributes(def, random_);
    tn_node_desc desc{};
    desc.size = sizeof desc;
    desc.op = intern(def.domain.size == 0 ? string(def.name) : string(def.domain) + "::" + string(def.name));
    desc.before = TN_NONE;
    const std::string name = "n" + std::to_string(names_++);
    desc.name = to_abi(name);
    desc.inputs = inputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.attrs = attributes.list.data();
    desc.attr_count = static_cast<uint32_t>(attributes.list.size());
    desc.output_count = std::max(def.min_outputs, 1u);
    tn_node node = TN_NONE;
    Diagnostics ignored;
    if (edit_api()->create_node(edit.get(), &desc, &node) != TN_OK || !edit.commit(ignored)) return false;
    for (const tn_value value : graph_->node(node).outputs()) {
      if (value == TN_NONE) continue;
      const tn_type& type = graph_->type(value);
      Drawn drawn{value, type.dtype, {}};
      int64_t count = 1;
      bool usable = type.kind == TN_KIND_TENSOR && type.rank >= 0;
      for (int32_t i = 0; i < type.rank && usable; ++i) {
        usable = type.dims[i] >= 0;
        drawn.dims.push_back(type.dims[i]);
        count *= std::max<int64_t>(type.dims[i], 1);
      }
      // Others stay what nothing reads: an output.
      if (!usable || count > 4096) drawn.dtype = TN_DTYPE_NONE;
      values_.push_back(drawn);
    }
    return true;
  }

  const Registries& registries_;
  Random& random_;
  std::unique_ptr<Graph> graph_;
  std::vector<Drawn> values_;
  uint32_t names_ = 0;
};

bool is_drawable(const tn_op_def& def) {
  constexpr uint32_t unfit = TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_CONTROL_FLOW;
  return (def.flags & unfit) == 0 && def.input_count != 0;
}

}  // namespace

std::vector<tn_dtype> allowed_dtypes(const tn_op_def& def, uint32_t i) {
  if (def.input_count == 0) return {};
  const tn_param_def& parameter = def.inputs[std::min(i, def.input_count - 1)];
  for (uint32_t v = 0; v < def.type_var_count; ++v) {
    const tn_type_var& variable = def.type_vars[v];
    if (view(variable.name) != view(parameter.type)) continue;
    if (variable.kinds != 0 && (variable.kinds & (1u << TN_KIND_TENSOR)) == 0) return {};
    std::vector<tn_dtype> all;
    for (const tn_dtype dtype : usual_dtypes)
      if (variable.dtypes == nullptr || std::find(variable.dtypes, variable.dtypes + variable.dtype_count,
                                                  dtype) != variable.dtypes + variable.dtype_count)
        all.push_back(dtype);
    return all;
  }
  const std::optional<tn_dtype> one = dtype_from_name(view(parameter.type));
  return one ? std::vector<tn_dtype>{*one} : std::vector<tn_dtype>();
}

std::unique_ptr<Graph> draw_graph(const Registries& registries, Random& random, uint32_t nodes) {
  Drawer drawer(registries, random);
  const std::vector<tn_sym>& ops = registries.op_symbols();
  if (ops.empty()) return nullptr;
  uint32_t made = 0;
  for (uint32_t tries = 0; tries < 12 * nodes && made < nodes; ++tries) {
    const tn_op_def& def = *registries.find(random.of(ops))->def;
    if (is_drawable(def) && drawer.add(def, true, {})) ++made;
  }
  return made == 0 ? nullptr : drawer.finish();
}

std::unique_ptr<Graph> draw_node(const Registries& registries, const tn_op_def& def, Random& random,
                                 const std::vector<tn_dtype>& dtypes) {
  if (!is_drawable(def)) return nullptr;
  Drawer drawer(registries, random);
  return drawer.add(def, false, dtypes) ? drawer.finish() : nullptr;
}

std::unique_ptr<Graph> cut_graph(const Graph& graph, Random& random) {
  std::unique_ptr<Graph> cut = graph.clone();
  std::vector<tn_value> results;
  for (const tn_node node : cut->nodes(Graph::main_region))
    for (const tn_value value : cut->node(node).outputs())
      if (value != TN_NONE) results.push_back(value);
  if (results.empty()) return cut;
  std::vector<tn_value> outputs;
  for (size_t i = 0; i < 1 + random.below(3); ++i) {
    const tn_value value = random.of(results);
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) outputs.push_back(value);
  }
  Transaction edit(*cut, "cut");
  edit_api()->region_outputs(edit.get(), Graph::main_region, nullptr, 0);  // names stay with places
  edit_api()->region_outputs(edit.get(), Graph::main_region, outputs.data(),
                             static_cast<uint32_t>(outputs.size()));
  const std::span<const tn_node> order = cut->nodes(Graph::main_region);
  const std::vector<tn_node> nodes(order.begin(), order.end());
  for (size_t i = nodes.size(); i-- > 0;) {
    const auto values = cut->node(nodes[i]).outputs();
    if (std::all_of(values.begin(), values.end(),
                    [&](tn_value value) { return value == TN_NONE || cut->users(value).empty(); }))
      edit_api()->erase(edit.get(), nodes[i]);
  }
  Diagnostics ignored;
  return edit.commit(ignored) ? std::move(cut) : graph.clone();
}

std::unique_ptr<Graph> shuffle_nodes(const Graph& graph, const Registries& registries, Random& random) {
  // In the text form a node of the main region is a line that begins with two blanks, and the deeper ones
  // after it up to its closing brace.
  const std::string text = print(graph);
  const std::span<const tn_node> order = graph.nodes(Graph::main_region);
  std::vector<std::string> head, blocks, tail;
  bool in_block = false;
  for (const std::string_view line : split(text, '\n')) {
    const bool top = line.size() > 2 && line.substr(0, 2) == "  " && line[2] != ' ';
    const std::string_view rest = top ? line.substr(2) : std::string_view();
    const bool declares = rest.starts_with("opset ") || rest.starts_with("input ") ||
                          rest.starts_with("const ") || rest.starts_with("symbol ") ||
                          rest.starts_with("metadata ") || rest.starts_with("default ");
    if (in_block) {
      blocks.back() += std::string(line) + '\n';
      if (top && rest.starts_with("}")) in_block = false;
    } else if (top && (rest.starts_with("%") || rest.starts_with("_"))) {
      blocks.push_back(std::string(line) + '\n');
      in_block = line.ends_with("{");
    } else if (blocks.empty() || declares) {
      head.push_back(std::string(line) + '\n');
    } else {
      tail.push_back(std::string(line) + '\n');
    }
  }
  if (blocks.size() != order.size()) return nullptr;  // the text has something that is not known here
  std::map<tn_node, size_t> place;
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<std::vector<size_t>> users(order.size());
  std::vector<size_t> missing(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i)
    for (const tn_value value : graph.node(order[i]).outputs()) {
      if (value == TN_NONE) continue;
      for (const tn_use& use : graph.users(value)) {
        // A reader within a region counts for the node that owns it.
        const tn_node user = use.node == TN_NONE || use.region != Graph::main_region
                                 ? graph.owner_within(Graph::main_region, use.region)
                                 : use.node;
        if (user == TN_NONE || place.count(user) == 0) continue;
        users[i].push_back(place[user]);
        ++missing[place[user]];
      }
    }
  std::vector<size_t> ready;
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] == 0) ready.push_back(i);
  std::string shuffled;
  for (const std::string& line : head) shuffled += line;
  while (!ready.empty()) {
    const size_t at = random.below(ready.size());
    const size_t next = ready[at];
    ready.erase(ready.begin() + static_cast<ptrdiff_t>(at));
    shuffled += blocks[next];
    for (const size_t user : users[next])
      if (--missing[user] == 0) ready.push_back(user);
  }
  for (const std::string& line : tail) shuffled += line;
  Diagnostics said;
  std::unique_ptr<Graph> made = parse(shuffled, &registries, said);
  if (made != nullptr) infer_graph(*made, said);
  return said.has_errors() ? nullptr : std::move(made);
}

}  // namespace tenon::check
