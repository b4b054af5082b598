// Operators about shapes, and those that only rename bytes: Reshape and its kin, Shape, Size, Constant,
// ConstantOfShape, Range, EyeLike.
#include "families.hpp"
#include "support/moving.hpp"

namespace tenon::reference {
namespace {

struct CopyState : Base {
  uint64_t bytes;
};
int copy_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<CopyState>(a);
  if (s.bytes && a->outputs[0] != a->inputs[0]) std::memcpy(a->outputs[0], a->inputs[0], s.bytes);
  return run_ok;
}
void plan_copy(const PlanView& v, Planned& p) {
  auto s = make_state<CopyState>(v);
  if (s->in[0].count != s->out[0].count)
    fail(format("%s cannot turn shape %s into %s: the element counts differ",
                std::string(v.op_name()).c_str(), dims_text(s->in[0].dims).c_str(),
                dims_text(s->out[0].dims).c_str()));
  s->bytes = packed_bytes(s->out[0].dtype, s->out[0].count);
  finish(v, p, copy_fn, std::move(s), 1, 1);
}

// Shape, Size: known from the plan alone.
struct NumbersState : Base {
  std::vector<int64_t> numbers;
};
int numbers_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<NumbersState>(a);
  if (!s.numbers.empty()) std::memcpy(a->outputs[0], s.numbers.data(), s.numbers.size() * sizeof(int64_t));
  return run_ok;
}
void plan_shape(const PlanView& v, Planned& p) {
  auto s = make_state<NumbersState>(v);
  const int64_t rank = s->in[0].rank();
  const auto clamp = [&](int64_t x) { return std::min(std::max<int64_t>(x < 0 ? x + rank : x, 0), rank); };
  const int64_t start = clamp(v.attrs().get_int("start", 0)), end = clamp(v.attrs().get_int("end", rank));
  for (int64_t i = start; i < end; ++i) s->numbers.push_back(s->in[0].dims[static_cast<size_t>(i)]);
  finish(v, p, numbers_fn, std::move(s), 1, 1);
}
void plan_size(const PlanView& v, Planned& p) {
  auto s = make_state<NumbersState>(v);
  s->numbers.push_back(s->in[0].count);
  finish(v, p, numbers_fn, std::move(s), 1, 1);
}

// Constant: the attribute's bytes, kept in the state.
struct ConstantState : Base {
  std::vector<uint8_t> bytes;
  std::vector<std::string> texts;
  std::vector<tn_str> strings;
};
int constant_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<ConstantState>(a);
  if (!s.strings.empty())
    std::memcpy(a->outputs[0], s.strings.data(), s.strings.size() * sizeof(tn_str));
  else if (!s.bytes.empty())
    std::memcpy(a->outputs[0], s.bytes.data(), s.bytes.size());
  return run_ok;
}
template <class T>
void append(std::vector<uint8_t>& to, T x) {
  const auto* b = reinterpret_cast<const uint8_t*>(&x);
  to.insert(to.end(), b, b + sizeof x);
}
void plan_constant(const PlanView& v, Planned& p) {
  auto s = make_state<ConstantState>(v);
  const auto attrs = v.attrs();
  const auto keep = [&](tn_str t) { s->texts.push_back(text(t)); };
  if (const auto* t = attrs.get_tensor("value")) {
    if (t->dtype == TN_STRING)
      for (int64_t i = 0, n = TensorView(*t).count(); i < n; ++i)
        keep(static_cast<const tn_str*>(t->data)[i]);
    else
      s->bytes.assign(static_cast<const uint8_t*>(t->data), static_cast<const uint8_t*>(t->data) + t->bytes);
  } else if (attrs.has("value_int"))
    append(s->bytes, attrs.get_int("value_int", 0));
  else if (attrs.has("value_float"))
    append(s->bytes, static_cast<float>(attrs.get_float("value_float", 0)));
  else if (attrs.has("value_string"))
    s->texts.emplace_back(attrs.get_string("value_string", ""));
  else if (attrs.has("value_ints"))
    for (int64_t i : attrs.get_ints("value_ints")) append(s->bytes, i);
  else if (attrs.has("value_floats"))
    for (double f : attrs.get_floats("value_floats")) append(s->bytes, static_cast<float>(f));
  else if (attrs.has("value_strings"))
    for (const tn_str& piece : attrs.get_strings("value_strings")) keep(piece);
  else
    fail(
        "Constant has no value; expected one of value, value_int, value_float, value_string, value_ints, "
        "value_floats, value_strings");
  for (const auto& t : s->texts) s->strings.push_back(str(t));
  const uint64_t bytes = s->texts.empty() ? s->bytes.size() : s->strings.size() * sizeof(tn_str);
  if (bytes != packed_bytes(s->out[0].dtype, s->out[0].count))
    fail("Constant's value does not fill its result's type; correct one of the two");
  finish(v, p, constant_fn, std::move(s), 1, 1);
}

// ConstantOfShape, EyeLike: one pattern over the result.
struct FillState : Base {
  alignas(16) uint8_t element[16] = {};  // ConstantOfShape's value or EyeLike's one
  int64_t bytes = 0, diagonal = 0;
};
int fill_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<FillState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  auto* y = out<uint8_t>(a);
  for (int64_t i = r.begin; i < r.end; ++i)
    std::memcpy(y + i * s.bytes, s.element, static_cast<size_t>(s.bytes));
  return run_ok;
}
void plan_fill(const PlanView& v, Planned& p) {
  auto s = make_state<FillState>(v);
  s->bytes = element_bytes(s->out[0].dtype);
  if (const auto* t = v.attrs().get_tensor("value")) {
    // A packed value arrives with a result planned in bytes (plan_moving); its element is the byte's lowest
    // bits.
    const bool packed = dtype_bytes(t->dtype) == 0;
    if ((!packed && t->dtype != s->out[0].dtype) || t->bytes < static_cast<uint64_t>(s->bytes))
      fail("ConstantOfShape's value must hold one element of the result's type");
    std::memcpy(s->element, t->data, static_cast<size_t>(s->bytes));
    if (packed) s->element[0] &= static_cast<uint8_t>((1u << TN_DTYPE_BITS(t->dtype)) - 1);
  }
  const int64_t n = s->out[0].count;
  finish(v, p, fill_fn, std::move(s), n, n);
}
int eye_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<FillState>(a);
  auto* y = out<uint8_t>(a);
  std::memset(y, 0, static_cast<size_t>(s.out[0].count * s.bytes));
  const int64_t rows = s.out[0].dims[0], columns = s.out[0].dims[1];
  for (int64_t i = 0; i < rows; ++i)
    if (i + s.diagonal >= 0 && i + s.diagonal < columns)
      std::memcpy(y + (i * columns + i + s.diagonal) * s.bytes, s.element, static_cast<size_t>(s.bytes));
  return run_ok;
}
void plan_eye(const PlanView& v, Planned& p) {
  auto s = make_state<FillState>(v);
  if (s->out[0].rank() != 2) fail("EyeLike needs a matrix");
  s->bytes = element_bytes(s->out[0].dtype);
  s->diagonal = v.attrs().get_int("k", 0);
  if (s->diagonal > s->out[0].dims[1] || s->diagonal < -s->out[0].dims[0]) s->diagonal = s->out[0].dims[1];
  const int64_t one = 1;
  storer<int64_t>(s->out[0].dtype)(&one, 1, s->element, 0);
  finish(v, p, eye_fn, std::move(s), 1, 1);
}

// Range: start + i * delta.
template <class C>
struct RangeState : Base {
  Load<C> load;
  Store<C> store;
};
template <class C>
int range_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<RangeState<C>>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  C start{}, delta{};
  s.load(a->inputs[0], 0, 1, 1, &start);
  s.load(a->inputs[2], 0, 1, 1, &delta);
  for (int64_t i = r.begin; i < r.end; ++i) {
    C x;
    if constexpr (std::is_same_v<C, double>)
      x = start + static_cast<double>(i) * delta;
    else
      x = static_cast<C>(static_cast<uint64_t>(start) +
                         static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
    s.store(&x, 1, a->outputs[0], i);
  }
  return run_ok;
}
void plan_range(const PlanView& v, Planned& p) {
  visit_domain(v.output(0).dtype(), [&](auto c) {
    using C = decltype(c);
    auto s = make_state<RangeState<C>>(v);
    s->load = loader<C>(s->in[0].dtype);
    s->store = storer<C>(s->out[0].dtype);
    const int64_t n = s->out[0].count;
    finish(v, p, range_fn<C>, std::move(s), n, n * 4);
  });
}

}  // namespace

void provide_shape_kernels(Plugin& p) {
  for (const char* op : {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"})
    reference_kernel(p, op).input().view_of(0, 0).plan<plan_copy>();
  reference_kernel(p, "Shape").plan<plan_shape>();
  reference_kernel(p, "Size").plan<plan_size>();
  reference_kernel(p, "Constant").plan<plan_constant>();
  reference_kernel(p, "ConstantOfShape").plan<plan_moving<plan_fill>>();
  reference_kernel(p, "EyeLike").plan<plan_eye>();
  reference_kernel(p, "Range").plan<plan_range>();
  // Inference without a mask only renames; dropout.cpp has the rest.
  reference_kernel(p, "Dropout")
      .input()
      .input()
      .input({}, TN_OPERAND_ABSENT)
      .output()
      .output({}, TN_OPERAND_ABSENT)
      .view_of(0, 0)
      .plan<plan_copy>();
}

}  // namespace tenon::reference
