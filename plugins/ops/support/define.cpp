#include "support/define.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::ops {

OpBuilder& define(Plugin& p, const char* name, const char* domain) {
  return define(p, schema_of(name, domain)).upgrade<upgrade_version_only>();
}

namespace {
// The index is ONNX's number; 0 is "undefined", which no attribute may say.
constexpr tn_dtype onnx_dtypes[] = {TN_DTYPE_NONE,
                                    TN_FLOAT32,
                                    TN_UINT8,
                                    TN_INT8,
                                    TN_UINT16,
                                    TN_INT16,
                                    TN_INT32,
                                    TN_INT64,
                                    TN_STRING,
                                    TN_BOOL,
                                    TN_FLOAT16,
                                    TN_FLOAT64,
                                    TN_UINT32,
                                    TN_UINT64,
                                    TN_COMPLEX64,
                                    TN_COMPLEX128,
                                    TN_BFLOAT16,
                                    TN_FLOAT8_E4M3FN,
                                    TN_FLOAT8_E4M3FNUZ,
                                    TN_FLOAT8_E5M2,
                                    TN_FLOAT8_E5M2FNUZ,
                                    TN_UINT4,
                                    TN_INT4,
                                    TN_FLOAT4_E2M1,
                                    TN_FLOAT8_E8M0,
                                    TN_UINT2,
                                    TN_INT2};
}  // namespace

tn_dtype dtype_of_onnx(int64_t number, const char* attribute) {
  if (number < 1 || number >= static_cast<int64_t>(std::size(onnx_dtypes)))
    fail(format("attribute '%s' is %lld; expected the number of an element type, 1 (float) to %d", attribute,
                static_cast<long long>(number), static_cast<int>(std::size(onnx_dtypes)) - 1));
  return onnx_dtypes[number];
}
int64_t onnx_of_dtype(tn_dtype dtype) {
  const auto* at = std::find(std::begin(onnx_dtypes) + 1, std::end(onnx_dtypes), dtype);
  if (at == std::end(onnx_dtypes))
    fail(std::string("element type ") + dtype_name(dtype) + " has no number in ONNX");
  return at - onnx_dtypes;
}

std::string text_of(int64_t v) { return std::to_string(v); }

bool ranked(Infer& c, uint32_t i, const char* name, int32_t low, int32_t high) {
  if (!c.has_rank(i)) return false;
  const int32_t r = c.rank(i);
  if (r >= low && r <= high) return true;
  const std::string wanted = high == low         ? "rank " + text_of(low)
                             : high == INT32_MAX ? "rank " + text_of(low) + " or more"
                                                 : "rank " + text_of(low) + " to " + text_of(high);
  fail(std::string("operand ") + name + " has rank " + text_of(r) + " " + c.text(c.dims(i)) + "; expected " +
       wanted);
}

void one_number(Infer& c, uint32_t i, const char* name) {
  if (!c.has_rank(i)) return;
  const auto dims = c.dims(i);
  require(dims.empty() || (dims.size() == 1 && !c.differ(dims[0], 1)),
          std::string("operand ") + name + " has shape " + c.text(dims) + "; expected a scalar");
}

Dims list_attr(Infer& c, const char* name, size_t count, int64_t otherwise, int64_t low, int64_t high) {
  const auto given = c.attrs().get_ints(name);
  if (given.empty() && (count == 0 || !c.attrs().has(name))) return Dims(count, otherwise);
  if (given.size() != count)
    fail(format("attribute '%s' has %zu numbers; expected %zu", name, given.size(), count));
  for (int64_t v : given)
    if (v < low || v > high)
      fail(format("attribute '%s' holds %lld; expected %lld to %lld", name, static_cast<long long>(v),
                  static_cast<long long>(low), static_cast<long long>(high)));
  return given.copy();
}

int64_t required_int(const Attributes& a, const char* name) {
  if (!a.has(name)) fail(std::string("attribute '") + name + "' is missing");
  return a.get_int(name, 0);
}

void same_type(Infer& c, uint32_t i, uint32_t j) {
  const tn_type t = c.type(j);
  if (t.kind != TN_KIND_NONE) c.set(i, t);
}
void same_shape(Infer& c, uint32_t i, uint32_t j, tn_dtype dtype) {
  if (c.has_rank(j))
    c.set(i, dtype, c.dims(j));
  else
    c.set_unranked(i, dtype);
}

std::optional<Dims> numbers(Infer& c, Span<const tn_dim> dims) {
  Dims r;
  r.reserve(dims.size());
  for (tn_dim d : dims) {
    const auto v = c.number(d);
    if (!v) return std::nullopt;
    r.push_back(*v);
  }
  return r;
}
std::optional<int64_t> count_up_to(const Dims& dims, int64_t limit) {
  int64_t n = 1;
  for (int64_t d : dims)
    if (d == 0) return 0;
  for (int64_t d : dims) {
    if (d < 0 || d > limit / n) return std::nullopt;
    n *= d;
  }
  return n;
}

std::optional<Known> known(Infer& c, uint32_t i) {
  if (!c.has_rank(i)) return std::nullopt;
  const tn_dim* e = nullptr;
  uint32_t n = 0;
  if (!c.api()->input_elements(c.raw(), i, &e, &n)) return std::nullopt;
  const auto dims = numbers(c, dims_of(c.type(i)));
  if (!dims) return std::nullopt;
  const auto count = count_up_to(*dims, max_known);
  if (!count || *count != static_cast<int64_t>(n)) return std::nullopt;
  return Known{*dims, std::vector<tn_dim>(e, e + n)};
}

std::optional<std::vector<tn_dim>> whole_elements(Infer& c, uint32_t i) {
  if (auto e = c.elements(i)) return e;
  const auto t = c.data(i);
  if (!t || !(is_float(t->dtype()) && dtype_bytes(t->dtype()) >= 2)) return std::nullopt;
  const auto n = count_up_to(t->dims().copy(), max_known);
  if (!n) return std::nullopt;
  std::vector<tn_dim> r;
  for (int64_t k = 0; k < *n; ++k) {
    const double v = t->float_at(k);
    if (!(std::fabs(v) < 9007199254740992.0) || v != std::floor(v) || (v == 0 && std::signbit(v)))
      return std::nullopt;
    r.push_back(c.make(static_cast<int64_t>(v)));
  }
  return r;
}

std::optional<Dims> integer_list(Infer& c, uint32_t i, const char* name) {
  ranked(c, i, name, 0, 1);
  return c.integers(i);
}

std::optional<double> scalar_value(Infer& c, uint32_t i) {
  if (const auto t = c.data(i)) {
    if (t->count() != 1) return std::nullopt;
    double r = 0;
    if (!visit_number(t->dtype(), [&](auto x) { r = static_cast<double>(*t->data<decltype(x)>()); }))
      return std::nullopt;
    return r;
  }
  const auto e = c.integers(i);
  if (!e || e->size() != 1) return std::nullopt;
  return static_cast<double>(e->front());
}

std::optional<std::vector<double>> float_list(Infer& c, uint32_t i) {
  const auto t = c.data(i);
  if (!t) return std::nullopt;
  const auto n = count_up_to(t->dims().copy(), max_known);
  if (!n) return std::nullopt;
  std::vector<double> r;
  for (int64_t k = 0; k < *n; ++k) r.push_back(t->float_at(k));
  return r;
}

void set_known(Infer& c, uint32_t i, const std::vector<tn_dim>& elements) {
  if (static_cast<int64_t>(elements.size()) <= max_known) c.set_elements(i, elements);
}

std::optional<tn_dim> fit(Infer& c, tn_dtype dtype, tn_dim v) {
  const auto number = c.number(v);
  const uint32_t bits = TN_DTYPE_BITS(dtype);
  if (dtype == TN_BOOL) return number ? std::optional<tn_dim>(*number != 0) : std::nullopt;
  if (!is_integer(dtype)) return std::nullopt;
  const bool with_sign = is_signed_integer(dtype);
  if (number) {
    if (*number == TN_DIM_MAX && !(bits == 64)) return std::nullopt;
    if (!with_sign && *number < 0) return std::nullopt;
    if (bits < 64) {
      const int64_t high = (int64_t{1} << (with_sign ? bits - 1 : bits)) - 1, low = with_sign ? -high - 1 : 0;
      if (*number < low || *number > high) return std::nullopt;
    }
    return v;
  }
  // An expression of dims: shapes that run fit 32 bits' range at least as an index type; smaller types may
  // wrap.
  return bits >= 32 ? std::optional<tn_dim>(v) : std::nullopt;
}

std::vector<int64_t> broadcast_index(const Dims& from, const Dims& to) {
  const int64_t n = element_count(to);
  std::vector<int64_t> step(to.size(), 0), at(to.size(), 0), index(static_cast<size_t>(n));
  int64_t stride = 1;
  for (size_t k = 0; k < from.size() && k < to.size(); ++k) {
    const size_t f = from.size() - 1 - k, t = to.size() - 1 - k;
    step[t] = from[f] == 1 ? 0 : stride;
    stride *= from[f];
  }
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    index[static_cast<size_t>(i)] = offset;
    for (size_t k = to.size(); k-- > 0;) {
      offset += step[k];
      if (++at[k] < to[k]) break;
      offset -= step[k] * to[k];
      at[k] = 0;
    }
  }
  return index;
}

tn_dim least(Infer& c, tn_dim a, tn_dim b) {
  return at_most(c, a, b) ? a : at_most(c, b, a) ? b : c.min(a, b);
}
tn_dim most(Infer& c, tn_dim a, tn_dim b) {
  return at_most(c, a, b) ? b : at_most(c, b, a) ? a : c.max(a, b);
}

std::optional<std::vector<tn_dim>> broadcast_inputs(Infer& c, uint32_t first, uint32_t last) {
  std::vector<tn_dim> dims;
  for (uint32_t i = first; i < last; ++i) {
    if (!c.has_input(i)) continue;
    if (!c.has_rank(i)) return std::nullopt;
    const auto next = c.dims(i);
    try {
      dims = i == first ? next : c.broadcast(dims, next);
    } catch (const Failure& f) {
      fail(std::string(f.what()) + " (operand " + text_of(i) + " has shape " + c.text(next) +
           ", those before give " + c.text(dims) + ")");
    }
  }
  return dims;
}

// ---- rewriting
// ------------------------------------------------------------------------------------------------------

void upgrade_version_only(Editor& e, const Node& n) {
  const std::string_view op = n.op_name();  // "Conv" or "ai.onnx.ml::Scaler"
  const size_t domain = op.rfind("::");
  const Schema& row = domain == std::string_view::npos
                          ? schema_of(op)
                          : schema_of(op.substr(domain + 2), op.substr(0, domain));
  const tn_node id = n.id();
  if (n.attrs().has("consumed_inputs")) e.remove_attr(id, "consumed_inputs");  // a hint of opsets below 6
  e.set_version(id, row.since_version);
}

Rewrite::Rewrite(Editor& e, const Node& n)
    : e_(e), id_(n.id()), region_(n.region()), inputs_(n.inputs().copy()), outputs_(n.outputs().copy()) {
  const std::string_view op = n.op_name();
  for (const Schema& row : all_schemas())  // operators that ONNX does not have are never older
    if (row.domain[0] == '\0' && op == row.name) since_ = row.since_version;
}
bool Rewrite::used(size_t i) const {
  return output(i) != TN_NONE && e_.graph().value(output(i)).use_count > 0;
}
tn_value Rewrite::make(std::string_view op, std::vector<tn_value> inputs, std::vector<AttrValue> attrs) {
  return make_many(op, std::move(inputs), std::move(attrs), 1)[0];
}
std::vector<tn_value> Rewrite::make_many(std::string_view op, std::vector<tn_value> inputs,
                                         std::vector<AttrValue> attrs, uint32_t outputs) {
  while (!inputs.empty() && inputs.back() == TN_NONE) inputs.pop_back();
  NodeSpec s;
  s.op = op;
  s.inputs = std::move(inputs);
  s.attrs = std::move(attrs);
  s.output_count = outputs;
  s.region = region_;
  s.before = id_;
  s.origins = {id_};
  return e_.create(s).outputs().copy();
}
tn_dtype Rewrite::dtype(tn_value v) const {
  const GraphView& g = e_.graph();
  for (int hops = 0; hops < 256 && v != TN_NONE; ++hops) {
    const tn_value_info info = g.value(v);
    if (info.type.dtype != TN_DTYPE_NONE) return info.type.dtype;
    if (info.kind != TN_VALUE_RESULT) return TN_DTYPE_NONE;
    const Node n = g.node(info.producer);
    if (n.op_name() == "Cast" && n.attrs().has("to") && n.attrs().find("to")->kind == TN_ATTR_INT)
      return dtype_of_onnx(n.attrs().get_int("to", 0), "to");
    v = TN_NONE;
    for (uint32_t i :
         operands_typed_as_result(n.op_name(), info.index)) {  // all have the type: the nearest that says it
      const tn_value operand = n.input(i);
      if (operand == TN_NONE) continue;
      const tn_dtype d = g.value(operand).type.dtype;
      if (d != TN_DTYPE_NONE) return d;
      if (v == TN_NONE) v = operand;
    }
  }
  return TN_DTYPE_NONE;
}
int32_t Rewrite::rank_or_wait(tn_value v) const {
  if (v != TN_NONE && e_.graph().value(v).type.kind == TN_KIND_NONE)
    decline("the rank of its operand is not known");
  return rank(v);
}
int32_t Rewrite::rank(tn_value v) const {
  if (v == TN_NONE) return -1;
  const tn_type t = e_.graph().value(v).type;
  return t.kind == TN_KIND_TENSOR ? t.rank : -1;
}
tn_value Rewrite::number_like(double value, tn_value like) {
  tn_value made = TN_NONE;
  const tn_dtype d = dtype(like);
  if (d == TN_FLOAT16) return e_.scalar<Float16>(Float16(static_cast<float>(value)));
  if (d == TN_BFLOAT16) return e_.scalar<BFloat16>(BFloat16(static_cast<float>(value)));
  visit_number(d, [&](auto x) {
    using T = decltype(x);
    if constexpr (!std::is_same_v<T, Float16> && !std::is_same_v<T, BFloat16>)
      made = e_.scalar<T>(static_cast<T>(value));
  });
  if (made != TN_NONE) return made;
  return make("CastLike", {e_.scalar<double>(value), like});
}
void Rewrite::become(size_t i, tn_value v) {
  if (output(i) != TN_NONE) e_.replace_uses(output(i), v);
}
void Rewrite::finish() { e_.set_version(id_, since_); }

void drop_attr(Editor& e, const Node& n, const char* name) {
  if (n.attrs().has(name)) e.remove_attr(n.id(), name);
}
std::string label_of(const Node& n) { return std::string(n.op_name()) + " of opset " + text_of(n.version()); }
void cannot_upgrade(const Node& n, const std::string& why) {
  throw Failure(TN_ERR_UNSUPPORTED, label_of(n) + ": " + why, "node " + n.label());
}

}  // namespace tenon::ops
