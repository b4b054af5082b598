#include "draw.hpp"

#include <tenon/sdk/dtype.hpp>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"

namespace tenon::fuzz {

namespace {
constexpr int64_t largest_value = 4096;  // elements of a value that nodes still read
}

int64_t Drawn::count() const {
  int64_t n = 1;
  for (const int64_t dim : dims) n *= dim;
  return n;
}

std::optional<int64_t> symbol_size(std::string_view name) {
  int64_t size = 0;
  if (name.size() < 2 || name[0] < 'A' || name[0] > 'Z') return std::nullopt;
  for (const char c : name.substr(1)) {
    if (c < '0' || c > '9' || size > 100000) return std::nullopt;
    size = size * 10 + (c - '0');
  }
  return size;
}

Drawer::Drawer(const Registries& registries, uint64_t seed) : random(seed), registries_(registries) {
  wishes_.nodes = random.chance(0.5) ? random.between(1, 8) : random.between(4, 30);
  wishes_.symbolic = random.chance(0.3) ? 0.4 : 0;
  wishes_.wild = random.chance(0.1);
  wishes_.constants = random.uniform(0.2, 0.9);
  graph_ = std::make_unique<Graph>();
  graph_->set_registry(&registries);
  Transaction edit(*graph_, "draw", TN_EDIT_BUILD);
  edit_api()->set_opset(edit.get(), {}, registries.domain_version(""));
  Diagnostics ignored;
  edit.commit(ignored);
}

const tn_op_def* Drawer::definition(std::string_view op) const {
  const OpEntry* entry = registries_.find(intern(op));
  return entry == nullptr ? nullptr : entry->def;
}

const tn_op_def* Drawer::any_definition() {
  const std::vector<tn_sym>& all = registries_.op_symbols();
  const tn_op_def* const def = registries_.find(random.of(all))->def;
  const uint32_t unfit = TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_CONTROL_FLOW;
  return (def->flags & unfit) != 0 || def->input_count == 0 ? nullptr : def;
}

std::string Drawer::symbol_of(const tn_op_def& def) {
  return def.domain.size == 0 ? string(def.name) : string(def.domain) + "::" + string(def.name);
}

Dtypes Drawer::allowed(const tn_op_def& def, uint32_t i) const {
  if (def.input_count == 0) return {};
  const tn_param_def& parameter = def.inputs[std::min(i, def.input_count - 1)];
  Dtypes all;
  for (uint32_t v = 0; v < def.type_var_count; ++v) {
    const tn_type_var& variable = def.type_vars[v];
    if (view(variable.name) != view(parameter.type)) continue;
    if (variable.kinds != 0 && (variable.kinds & (1u << TN_KIND_TENSOR)) == 0) return {};
    if (variable.dtypes == nullptr)
      for (const auto& known : sdk::dtype_names) all.push_back(known.dtype);
    for (uint32_t k = 0; k < variable.dtype_count && variable.dtypes != nullptr; ++k)
      all.push_back(variable.dtypes[k]);
    return all;
  }
  if (const tn_dtype one = sdk::dtype_from_name(view(parameter.type))) all.push_back(one);
  return all;
}

tn_dtype Drawer::pick_dtype(const Dtypes& among) {
  if (among.empty()) return TN_DTYPE_NONE;
  const auto has = [&](tn_dtype d) { return std::find(among.begin(), among.end(), d) != among.end(); };
  if (random.chance(0.65) && has(TN_FLOAT32)) return TN_FLOAT32;
  if (random.chance(0.4)) {
    const tn_dtype usual = random.of({TN_INT64, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT64, TN_INT32, TN_BOOL});
    if (has(usual)) return usual;
  }
  return random.of(among);
}

Dims Drawer::random_dims(int64_t low_rank, int64_t high_rank) {
  Dims dims(static_cast<size_t>(
      random.chance(0.7) ? random.between(std::min<int64_t>(std::max<int64_t>(low_rank, 1), high_rank),
                                          std::min<int64_t>(high_rank, 4))
                         : random.between(low_rank, high_rank)));
  for (int64_t& dim : dims) dim = random.chance(0.18) ? 1 : random.chance(0.015) ? 0 : random.between(2, 5);
  return dims;
}

Drawn Drawer::any(const Dtypes& dtypes, int64_t low_rank, int64_t high_rank) {
  const auto fits = [&](const Drawn& v) {
    return v.kind == TN_KIND_TENSOR && v.rank() >= low_rank && v.rank() <= high_rank &&
           v.count() <= largest_value && std::find(dtypes.begin(), dtypes.end(), v.dtype) != dtypes.end();
  };
  if (random.chance(0.85))
    if (const auto found = existing(fits)) return *found;
  return input(pick_dtype(dtypes), random_dims(low_rank, high_rank));
}

Drawn Drawer::any_float(int64_t low_rank, int64_t high_rank) {
  return any({TN_FLOAT32, TN_FLOAT32, TN_FLOAT32, TN_FLOAT16, TN_FLOAT64, TN_BFLOAT16}, low_rank, high_rank);
}

Drawn Drawer::operand(tn_dtype dtype, const Dims& dims, std::optional<Fill> style) {
  if (!style && random.chance(0.5))
    if (const auto found = existing(
            [&](const Drawn& v) { return v.kind == TN_KIND_TENSOR && v.dtype == dtype && v.dims == dims; }))
      return *found;
  return weight(dtype, dims, style);
}

Drawn Drawer::weight(tn_dtype dtype, const Dims& dims, std::optional<Fill> style) {
  if (!style && !random.chance(wishes_.constants)) return input(dtype, dims);
  if (!style && random.chance(0.15)) {
    // All elements equal, where rewrites look for 0, 1, a scale.
    const double value = random.of({0.0, 1.0, 0.5, 2.0, -1.0, 3.0});
    if (sdk::is_float(dtype) || sdk::is_integer(dtype)) return constant(float_tensor(dtype, dims, value));
  }
  Random values(random.next());
  return constant(random_tensor(dtype, dims, values, style.value_or(wishes_.wild ? Fill::wild : Fill::tame)));
}

Dims Drawer::broadcastable(const Dims& dims) {
  Dims out = dims;
  if (random.chance(0.45)) return out;
  if (random.chance(0.3)) return {};
  const size_t drop = random.below(out.size() + 1);
  if (random.chance(0.5)) out.erase(out.begin(), out.begin() + static_cast<ptrdiff_t>(drop));
  for (int64_t& dim : out) {
    if (random.chance(0.25)) dim = 1;
    if (dim == 1 && random.chance(0.1)) dim = random.between(1, 4);  // the other side is stretched then
  }
  return out;
}

tn_edit* Drawer::open() {
  if (!edit_) {
    values_before_ = values_.size();
    edit_ = std::make_unique<Transaction>(*graph_, "draw");
  }
  return edit_->get();
}

Drawn Drawer::input(tn_dtype dtype, const Dims& dims) {
  tn_edit* const edit = open();
  Dims typed = dims;
  for (int64_t& dim : typed)
    if (random.chance(wishes_.symbolic))
      dim = graph_->symbols().named(random.of({"N", "M"}) + std::to_string(dim));
  const tn_type type{TN_KIND_TENSOR, dtype, static_cast<int32_t>(typed.size()), 0, typed.data()};
  const std::string name = "in" + std::to_string(names_++);
  tn_value value = TN_NONE;
  if (edit_api()->region_input(edit, Graph::main_region, to_abi(name), &type, &value) != TN_OK) return {};
  Drawn drawn{value, TN_KIND_TENSOR, dtype, true, dims};
  values_.push_back(drawn);
  return drawn;
}

Drawn Drawer::constant(const Tensor& tensor) {
  const std::string name = "c" + std::to_string(names_++);
  const tn_tensor bytes = tensor.view();
  tn_value value = TN_NONE;
  if (edit_api()->constant_copy(open(), to_abi(name), &bytes, &value) != TN_OK) return {};
  Drawn drawn{value, TN_KIND_TENSOR, tensor.dtype(), true, Dims(tensor.dims().begin(), tensor.dims().end())};
  // Others may share it, as exporters make them do.
  if (random.chance(0.2)) values_.push_back(drawn);
  return drawn;
}

tn_node Drawer::create(tn_region region, std::string_view op, const std::vector<tn_value>& inputs,
                       const Attributes& attributes, uint32_t outputs) {
  std::vector<tn_attr> attrs;
  for (const Attribute& a : attributes) {
    tn_attr attr{};
    attr.name = intern(a.name);
    attr.kind = a.kind;
    attr.count = 1;
    if (a.kind == TN_ATTR_INT) attr.u.i = a.i;
    if (a.kind == TN_ATTR_FLOAT) attr.u.f = a.f;
    if (a.kind == TN_ATTR_STRING) attr.u.s = to_abi(a.s);
    if (a.kind == TN_ATTR_INTS) {
      attr.count = a.ints.size();
      attr.u.ints = a.ints.data();
    }
    attrs.push_back(attr);
  }
  tn_node_desc desc{};
  desc.size = sizeof desc;
  desc.op = intern(op);
  desc.region = region;
  desc.before = TN_NONE;
  const std::string name = "n" + std::to_string(names_++);
  desc.name = to_abi(name);
  desc.inputs = inputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.attrs = attrs.data();
  desc.attr_count = static_cast<uint32_t>(attrs.size());
  desc.output_count = outputs;
  tn_node made = TN_NONE;
  edit_api()->create_node(open(), &desc, &made);
  return made;
}

std::vector<Drawn> Drawer::close(tn_node node) {
  Diagnostics findings;
  open();
  const bool good = node != TN_NONE && edit_->commit(findings);
  edit_.reset();
  if (!good) {
    values_.resize(values_before_);
    return {};
  }
  if (operators_ != nullptr) ++(*operators_)[std::string(graph_->op_name(node))];
  std::vector<Drawn> results;
  for (const tn_value value : graph_->node(node).outputs()) {
    Drawn drawn;
    if (value != TN_NONE) drawn = describe(value);
    results.push_back(drawn);
    if (value != TN_NONE) values_.push_back(drawn);
  }
  return results;
}

std::vector<Drawn> Drawer::node(std::string_view op, const std::vector<Drawn>& inputs,
                                const Attributes& attributes, uint32_t outputs) {
  std::vector<tn_value> ids;
  for (const Drawn& v : inputs) ids.push_back(v.id);
  while (!ids.empty() && ids.back() == TN_NONE) ids.pop_back();
  return close(create(Graph::main_region, op, ids, attributes, outputs));
}

Drawn Drawer::describe(tn_value value) const {
  const tn_type& type = graph_->type(value);
  Drawn drawn{value, type.kind, type.dtype, type.rank >= 0 && type.kind == TN_KIND_TENSOR, {}};
  for (int32_t i = 0; i < type.rank; ++i) {
    const auto size = graph_->symbols().evaluate(type.dims[i], symbol_size);
    drawn.known = drawn.known && size && *size >= 0;
    drawn.dims.push_back(size.value_or(-1));
  }
  return drawn;
}

void Drawer::choose_outputs() {
  std::vector<tn_value> outputs;
  for (const Drawn& v : values_) {
    if (graph_->value(v.id).kind != TN_VALUE_RESULT ||
        std::find(outputs.begin(), outputs.end(), v.id) != outputs.end())
      continue;
    if (graph_->users(v.id).empty() || random.chance(0.15)) outputs.push_back(v.id);
  }
  Diagnostics findings;
  edit_api()->region_outputs(open(), Graph::main_region, outputs.data(),
                             static_cast<uint32_t>(outputs.size()));
  edit_->commit(findings);
  edit_.reset();
}

std::unique_ptr<Graph> Drawer::draw(std::map<std::string, uint64_t, std::less<>>& operators) {
  operators_ = &operators;
  static const std::vector<Recipe> recipes = [] {
    std::vector<Recipe> all;
    for (const auto list :
         {elementwise_recipes(), shape_recipes(), network_recipes(), structure_recipes(), pattern_recipes()})
      all.insert(all.end(), list.begin(), list.end());
    all.push_back({"any operator", 12, any_operator});
    return all;
  }();
  static const int total = [] {
    int sum = 0;
    for (const Recipe& recipe : recipes) sum += recipe.weight;
    return sum;
  }();
  for (int64_t tries = 0; tries < 4 * wishes_.nodes && graph_->live_node_count() < wishes_.nodes; ++tries) {
    int64_t at = random.between(0, total - 1);
    for (const Recipe& recipe : recipes) {
      at -= recipe.weight;
      if (at < 0) {
        recipe.add(*this);
        break;
      }
    }
    // What a recipe made before it gave up goes.
    if (edit_) {
      edit_.reset();
      values_.resize(values_before_);
    }
  }
  choose_outputs();
  operators_ = nullptr;
  return std::move(graph_);
}

}  // namespace tenon::fuzz
