// Sequences and optionals: handles are shared, tensors are not copied.
#include "families.hpp"
#include "support/handle.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct SequenceState {
  tn_dtype dtype = TN_DTYPE_NONE;
  int64_t axis = 0;
  bool flag = false;  // new_axis, keepdims
};

std::vector<tn_any*> items_of(const Run& run, tn_any* sequence) {
  if (!sequence) fail("a sequence operand is missing");
  const uint32_t kind = run.api->kind(sequence);
  if (kind != TN_KIND_SEQUENCE) fail("an operand is not a sequence");
  std::vector<tn_any*> items;
  for (uint32_t i = 0, n = run.api->sequence_size(sequence); i < n; ++i)
    items.push_back(run.api->sequence_item(sequence, i));
  return items;
}
void give_sequence(const Run& run, uint32_t output, const std::vector<tn_any*>& items, tn_dtype dtype) {
  tn_any* any = nullptr;
  check(run.api->new_sequence(run.run, items.data(), static_cast<uint32_t>(items.size()), dtype, &any),
        "making a sequence");
  const Any owned(run.api, any);
  check(run.api->set_output(run.run, output, any), "handing over a sequence");
}
/// A place in a sequence of n; `extra` 1 where one past the last is meant too.
int64_t position(const Run& run, uint32_t operand, int64_t n, int64_t extra, int64_t otherwise) {
  if (!run.has_input(operand)) return otherwise;
  const int64_t raw = run.input(operand).int_at(0), at = raw < 0 ? raw + n : raw;
  if (at < 0 || at >= n + extra)
    fail(format("position %lld is outside [%lld, %lld] of a sequence of %lld; correct the position",
                static_cast<long long>(raw), static_cast<long long>(-n),
                static_cast<long long>(n + extra - 1), static_cast<long long>(n)));
  return at;
}

void sequence_empty(Run& run, const tn_kernel_args* a) {
  give_sequence(run, 0, {}, state<SequenceState>(a).dtype);
}
void sequence_construct(Run& run, const tn_kernel_args* a) {
  std::vector<tn_any*> items;
  for (uint32_t i = 0; i < a->input_count; ++i) items.push_back(run.api->input(run.run, i));
  give_sequence(run, 0, items, state<SequenceState>(a).dtype);
}
void sequence_insert(Run& run, const tn_kernel_args* a) {
  auto items = items_of(run, run.api->input(run.run, 0));
  const auto n = static_cast<int64_t>(items.size());
  items.insert(items.begin() + position(run, 2, n, 1, n), run.api->input(run.run, 1));
  give_sequence(run, 0, items, state<SequenceState>(a).dtype);
}
void sequence_erase(Run& run, const tn_kernel_args* a) {
  auto items = items_of(run, run.api->input(run.run, 0));
  const auto n = static_cast<int64_t>(items.size());
  if (n == 0) fail("SequenceErase on an empty sequence; there is nothing to erase");
  items.erase(items.begin() + position(run, 1, n, 0, n - 1));
  give_sequence(run, 0, items, state<SequenceState>(a).dtype);
}
void sequence_at(Run& run, const tn_kernel_args*) {
  const auto items = items_of(run, run.api->input(run.run, 0));
  const auto at = position(run, 1, static_cast<int64_t>(items.size()), 0, 0);
  check(run.api->set_output(run.run, 0, items[static_cast<size_t>(at)]), "handing over an item");
}
void sequence_length(Run& run, const tn_kernel_args*) {
  const auto n = static_cast<int64_t>(items_of(run, run.api->input(run.run, 0)).size());
  *static_cast<int64_t*>(run.output(0, TN_INT64, {})) = n;
}

void split_to_sequence(Run& run, const tn_kernel_args* a) {
  const auto& s = state<SequenceState>(a);
  const auto x = run.input(0);
  const Dims dims = x.dims().copy();
  const auto axis = static_cast<size_t>(axis_of(s.axis, x.rank()));
  const int64_t size = dims[axis];
  Dims sizes;
  bool drop = false;  // without `split` each slice has one element, and may lose its axis
  if (!run.has_input(1)) {
    sizes.assign(static_cast<size_t>(size), 1);
    drop = !s.flag;
  } else if (const auto split = run.input(1); split.rank() == 0) {
    const int64_t each = split.int_at(0);
    if (each < 1)
      fail(format("SplitToSequence's split is %lld; expected a positive number",
                  static_cast<long long>(each)));
    for (int64_t at = 0; at < size; at += each) sizes.push_back(std::min(each, size - at));
  } else {
    int64_t sum = 0;
    for (int64_t i = 0; i < split.count(); ++i) {
      sizes.push_back(split.int_at(i));
      if (sizes.back() < 0) fail("SplitToSequence's split holds a negative size");
      sum += sizes.back();
    }
    if (sum != size)
      fail(format("SplitToSequence's sizes add up to %lld; the axis has %lld", static_cast<long long>(sum),
                  static_cast<long long>(size)));
  }
  const int64_t inner = product(dims, axis + 1, dims.size()), outer = product(dims, 0, axis);
  std::vector<Any> parts;
  std::vector<tn_any*> raw;
  int64_t at = 0;
  for (int64_t n : sizes) {
    Dims d = dims;
    d[axis] = n;
    if (drop) d.erase(d.begin() + static_cast<std::ptrdiff_t>(axis));
    void* to = nullptr;
    parts.push_back(new_tensor(run, x.dtype(), d, &to));
    raw.push_back(parts.back().get());
    for (int64_t o = 0; o < outer; ++o)
      copy_elements(run, x.dtype(), x.raw().data, (o * size + at) * inner, to, o * n * inner, n * inner);
    at += n;
  }
  give_sequence(run, 0, raw, x.dtype());
}

void concat_from_sequence(Run& run, const tn_kernel_args* a) {
  const auto& s = state<SequenceState>(a);
  std::vector<TensorView> parts;
  for (auto* any : items_of(run, run.api->input(run.run, 0))) {
    tn_tensor t;
    check(run.api->tensor(any, &t), "reading an item");
    parts.emplace_back(t);
  }
  if (parts.empty()) fail("ConcatFromSequence on an empty sequence; its result would have no shape");
  Dims dims = parts[0].dims().copy();
  const auto axis =
      static_cast<size_t>(axis_of(s.axis, static_cast<int64_t>(dims.size()) + (s.flag ? 1 : 0)));
  const tn_dtype dtype = parts[0].dtype();
  int64_t total = 0;
  for (const auto& t : parts) {
    Dims d = t.dims().copy();
    if (t.dtype() != dtype || d.size() != dims.size())
      fail("ConcatFromSequence's items differ in rank or element type");
    for (size_t i = 0; i < d.size(); ++i)
      if (d[i] != dims[i] && (s.flag || i != axis))
        fail(format("ConcatFromSequence's items %s and %s do not fit", dims_text(dims).c_str(),
                    dims_text(d).c_str()));
    total += s.flag ? 1 : d[axis];
  }
  const int64_t outer = product(dims, 0, axis), inner = product(dims, s.flag ? axis : axis + 1, dims.size());
  if (s.flag)
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), total);
  else
    dims[axis] = total;
  void* to = run.output(0, dtype, dims);
  int64_t at = 0;
  for (const auto& t : parts) {
    const int64_t n = s.flag ? 1 : t.dims()[axis];
    for (int64_t o = 0; o < outer; ++o)
      copy_elements(run, dtype, t.raw().data, o * n * inner, to, (o * total + at) * inner, n * inner);
    at += n;
  }
}

void share(Run& run, const tn_kernel_args*) {
  tn_any* any = run.api->input(run.run, 0);
  if (!any) fail("an operand is missing");
  check(run.api->set_output(run.run, 0, any), "handing over a value");
}
void optional(Run& run, const tn_kernel_args* a) {
  tn_any *item = a->input_count > 0 ? run.api->input(run.run, 0) : nullptr, *any = nullptr;
  check(run.api->new_optional(run.run, item, &any), "making an optional");
  const Any owned(run.api, any);
  check(run.api->set_output(run.run, 0, any), "handing over an optional");
}
bool is_optional(const Run& run, tn_any* any) {
  const uint32_t kind = run.api->kind(any);
  return kind == TN_KIND_OPTIONAL || kind == TN_KIND_OPTIONAL_SEQUENCE;
}
void optional_has_element(Run& run, const tn_kernel_args* a) {
  tn_any* any = a->input_count > 0 ? run.api->input(run.run, 0) : nullptr;
  const bool there = any && (!is_optional(run, any) || run.api->sequence_item(any, 0));
  *static_cast<bool*>(run.output(0, TN_BOOL, {})) = there;
}
void optional_get_element(Run& run, const tn_kernel_args*) {
  tn_any* any = run.api->input(run.run, 0);
  if (any && is_optional(run, any)) any = run.api->sequence_item(any, 0);
  if (!any) fail("OptionalGetElement on an empty optional; test it with OptionalHasElement before");
  check(run.api->set_output(run.run, 0, any), "handing over an element");
}

template <void (*F)(Run&, const tn_kernel_args*)>
void plan_sequence(const PlanView& v, Planned& p) {
  auto s = std::make_unique<SequenceState>();
  s->dtype = v.output_count() ? v.output(0).dtype() : TN_DTYPE_NONE;
  for (uint32_t i = 0; i < v.input_count() && s->dtype == TN_DTYPE_NONE; ++i) s->dtype = v.input(i).dtype();
  s->axis = v.attrs().get_int("axis", 0);
  s->flag = v.op_name() == "SplitToSequence" ? v.attrs().get_int("keepdims", 1) != 0
                                             : v.attrs().get_int("new_axis", 0) != 0;
  p.set(dynamic_kernel<F>, std::move(s));
}
template <void (*F)(Run&, const tn_kernel_args*)>
void provide_one(Plugin& p, const char* op, const char* variant = "") {
  constexpr uint32_t any = 1u << TN_KIND_TENSOR | 1u << TN_KIND_SEQUENCE | 1u << TN_KIND_OPTIONAL |
                           1u << TN_KIND_OPTIONAL_SEQUENCE;
  constexpr uint32_t not_tensor = any & ~(1u << TN_KIND_TENSOR);
  reference_kernel(p, op, variant)
      .flags(TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT)
      .input({}, 0, 0, -1, 0, *variant ? not_tensor : any)
      .input({}, 0, 0, -1, 0, any)
      .plan<plan_sequence<F>>();
}

}  // namespace

void provide_sequence(Plugin& p) {
  provide_one<sequence_empty>(p, "SequenceEmpty");
  provide_one<sequence_construct>(p, "SequenceConstruct");
  provide_one<sequence_insert>(p, "SequenceInsert");
  provide_one<sequence_erase>(p, "SequenceErase");
  provide_one<sequence_at>(p, "SequenceAt");
  provide_one<sequence_length>(p, "SequenceLength");
  provide_one<split_to_sequence>(p, "SplitToSequence");
  provide_one<concat_from_sequence>(p, "ConcatFromSequence");
  provide_one<share>(p, "Identity", "_of_handles");  // sequences and optionals; tensors are renamed
  provide_one<optional>(p, "Optional");
  provide_one<optional_has_element>(p, "OptionalHasElement");
  provide_one<optional_get_element>(p, "OptionalGetElement");
}

}  // namespace tenon::reference
