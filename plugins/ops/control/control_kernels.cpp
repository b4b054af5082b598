// If, Loop, Scan: bodies run through the host. If's branches are told apart by name.
#include "families.hpp"
#include "support/handle.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct ControlState {
  uint32_t outputs = 0;
  std::vector<bool> wanted;
  // Loop and Scan
  std::vector<Shape> planned;  // element types of the results, for loops that never run
  std::vector<Dims> dims;      // planned dims, -1 where unknown
  uint32_t carried = 0, scanned = 0;
  uint32_t branch[2] = {1, 0};  // If's region for false, for true
  std::vector<int64_t> in_axes, out_axes;
  std::vector<bool> in_backward, out_backward;
};

void give(const Run& run, const ControlState& s, uint32_t i, const Any& any) {
  if (s.wanted[i]) check(run.api->set_output(run.run, i, any.get()), "handing over a result");
}
void common(const PlanView& v, ControlState& s) {
  s.outputs = v.output_count();
  for (uint32_t i = 0; i < s.outputs; ++i) {
    s.wanted.push_back(v.has_output(i));
    const tn_type& t = v.raw().outputs[i].type;
    Shape shape;
    shape.dtype = t.dtype;
    s.planned.push_back(shape);
    Dims d;
    for (int32_t k = 0; k < t.rank; ++k) d.push_back(t.dims[k] < 0 ? -1 : t.dims[k]);
    s.dims.push_back(d);
  }
}

void run_if(Run& run, const tn_kernel_args* a) {
  const auto& s = state<ControlState>(a);
  const auto condition = run.input(0);
  if (condition.count() != 1)
    fail(format("If's condition has shape %s; expected one element", dims_text(condition.dims()).c_str()));
  const auto results = run_region(run, s.branch[condition.int_at(0) != 0], {}, s.outputs);
  for (uint32_t i = 0; i < s.outputs; ++i) give(run, s, i, results[i]);
}
void plan_if(const PlanView& v, Planned& p) {
  auto s = std::make_unique<ControlState>();
  common(v, *s);
  if (TN_HAS(&v.raw(), region_names) && v.raw().region_names)
    for (uint32_t r = 0; r < v.raw().node->region_count; ++r) {
      if (view(v.raw().region_names[r]) == "then_branch") s->branch[1] = r;
      if (view(v.raw().region_names[r]) == "else_branch") s->branch[0] = r;
    }
  p.set(dynamic_kernel<run_if>, std::move(s));
}

/// Tensors of one shape laid one after another on a new axis; grows by doubling.
class Stack {
 public:
  void add(const Run& run, const TensorView& t) {
    if (count_ == 0) {
      dtype_ = t.dtype();
      dims_ = t.dims().copy();
      each_ = t.count();
    } else if (t.dtype() != dtype_ || t.dims().copy() != dims_) {
      fail(format("a body's scan output has shape %s in one iteration and %s in another; expected one shape",
                  dims_text(dims_).c_str(), dims_text(t.dims()).c_str()));
    }
    if (count_ == capacity_) grow(run);
    copy_elements(run, dtype_, t.raw().data, 0, data_, count_++ * each_, each_);
  }
  int64_t count() const noexcept { return count_; }
  tn_dtype dtype() const noexcept { return dtype_; }
  const Dims& dims() const noexcept { return dims_; }
  int64_t each() const noexcept { return each_; }
  const void* data() const noexcept { return data_; }

 private:
  void grow(const Run& run) {
    capacity_ = capacity_ ? capacity_ * 2 : 4;
    Dims whole = dims_;
    whole.insert(whole.begin(), capacity_);
    void* data = nullptr;
    Any next = new_tensor(run, dtype_, whole, &data);
    if (count_ * each_ > 0) std::memcpy(data, data_, packed_bytes(dtype_, count_ * each_));
    old_.push_back(std::move(held_));  // text lives with the tensor it was kept for
    held_ = std::move(next);
    data_ = data;
    if (dtype_ != TN_STRING) old_.clear();
  }
  Any held_;
  std::vector<Any> old_;
  void* data_ = nullptr;
  tn_dtype dtype_ = TN_DTYPE_NONE;
  Dims dims_;
  int64_t each_ = 0, count_ = 0, capacity_ = 0;
};

/// The stack as result i, its axis at `axis`; reversed where wanted.
void give_stack(const Run& run, const ControlState& s, uint32_t i, const Stack& stack, int64_t axis,
                bool backward) {
  if (!s.wanted[i]) return;
  Dims dims = stack.dims();
  tn_dtype dtype = stack.dtype();
  if (stack.count() == 0) {  // never ran: the plan knows the rest of the shape, or it is empty in every axis
    dtype = s.planned[i].dtype;
    dims = s.dims[i];
    if (dims.empty()) dims.push_back(0);
    for (auto& d : dims) d = d < 0 ? 0 : d;
    dims[static_cast<size_t>(axis_of(axis, static_cast<int64_t>(dims.size())))] = 0;
    run.output(i, dtype, dims);
    return;
  }
  const auto at =
      static_cast<size_t>(axis_of(axis, static_cast<int64_t>(dims.size()) + 1, "Scan's output axis"));
  const int64_t inner = product(dims, at, dims.size()), outer = product(dims, 0, at), n = stack.count();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), n);
  void* to = run.output(i, dtype, dims);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n; ++k) {
      const int64_t source = backward ? n - 1 - k : k;
      copy_elements(run, dtype, stack.data(), source * stack.each() + o * inner, to, (o * n + k) * inner,
                    inner);
    }
}

// Loop(M?, cond?, carried...) with body(iteration, cond, carried...) -> cond, carried..., scan outputs...
void run_loop(Run& run, const tn_kernel_args* a) {
  const auto& s = state<ControlState>(a);
  const bool bounded = a->input_count > 0 && run.has_input(0);
  const int64_t trips = bounded ? run.input(0).int_at(0) : INT64_MAX;
  bool going = !(a->input_count > 1 && run.has_input(1)) || run.input(1).int_at(0) != 0;
  std::vector<Any> carried;
  for (uint32_t i = 0; i < s.carried; ++i)
    carried.push_back(Any::share(run.api, run.api->input(run.run, 2 + i)));
  std::vector<Stack> stacks(s.outputs - s.carried);
  for (int64_t trip = 0; trip < trips && going; ++trip) {
    void *number = nullptr, *flag = nullptr;
    const Any iteration = new_tensor(run, TN_INT64, {}, &number),
              condition = new_tensor(run, TN_BOOL, {}, &flag);
    *static_cast<int64_t*>(number) = trip;
    *static_cast<bool*>(flag) = going;
    std::vector<tn_any*> inputs = {iteration.get(), condition.get()};
    for (const auto& c : carried) inputs.push_back(c.get());
    auto results = run_region(run, 0, inputs, 1 + s.outputs);
    going = results[0].tensor().int_at(0) != 0;
    for (uint32_t i = 0; i < s.carried; ++i) carried[i] = std::move(results[1 + i]);
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].add(run, results[1 + s.carried + i].tensor());
  }
  for (uint32_t i = 0; i < s.carried; ++i) give(run, s, i, carried[i]);
  for (uint32_t i = s.carried; i < s.outputs; ++i) give_stack(run, s, i, stacks[i - s.carried], 0, false);
}
void plan_loop(const PlanView& v, Planned& p) {
  auto s = std::make_unique<ControlState>();
  common(v, *s);
  s->carried = v.input_count() > 2 ? v.input_count() - 2 : 0;
  if (s->carried > s->outputs)
    fail(format("Loop carries %u values but has %u results", s->carried, s->outputs));
  p.set(dynamic_kernel<run_loop>, std::move(s));
}

// Scan(state..., scanned...) with body(state..., slices...) -> state..., slices...
void run_scan(Run& run, const tn_kernel_args* a) {
  const auto& s = state<ControlState>(a);
  std::vector<Any> carried;
  for (uint32_t i = 0; i < s.carried; ++i) carried.push_back(Any::share(run.api, run.api->input(run.run, i)));
  int64_t length = -1;
  std::vector<int64_t> axes;
  for (uint32_t k = 0; k < s.scanned; ++k) {
    const auto t = run.input(s.carried + k);
    axes.push_back(axis_of(s.in_axes[k], t.rank(), "Scan's input axis"));
    const int64_t n = t.dims()[static_cast<size_t>(axes[k])];
    if (length >= 0 && n != length)
      fail(format("Scan's operands have %lld and %lld slices; expected one number",
                  static_cast<long long>(length), static_cast<long long>(n)));
    length = n;
  }
  std::vector<Stack> stacks(s.outputs - s.carried);
  for (int64_t trip = 0; trip < length; ++trip) {
    std::vector<Any> slices;
    std::vector<tn_any*> inputs;
    for (const auto& c : carried) inputs.push_back(c.get());
    for (uint32_t k = 0; k < s.scanned; ++k) {
      const auto t = run.input(s.carried + k);
      const Dims whole = t.dims().copy();
      const auto at = static_cast<size_t>(axes[k]);
      Dims dims = whole;
      dims.erase(dims.begin() + axes[k]);
      void* data = nullptr;
      slices.push_back(new_tensor(run, t.dtype(), dims, &data));
      const int64_t inner = product(whole, at + 1, whole.size()), outer = product(whole, 0, at);
      const int64_t index = s.in_backward[k] ? length - 1 - trip : trip;
      for (int64_t o = 0; o < outer; ++o)
        copy_elements(run, t.dtype(), t.raw().data, (o * length + index) * inner, data, o * inner, inner);
      inputs.push_back(slices.back().get());
    }
    auto results = run_region(run, 0, inputs, s.outputs);
    for (uint32_t i = 0; i < s.carried; ++i) carried[i] = std::move(results[i]);
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].add(run, results[s.carried + i].tensor());
  }
  for (uint32_t i = 0; i < s.carried; ++i) give(run, s, i, carried[i]);
  for (uint32_t i = s.carried; i < s.outputs; ++i)
    give_stack(run, s, i, stacks[i - s.carried], s.out_axes[i - s.carried], s.out_backward[i - s.carried]);
}
void plan_scan(const PlanView& v, Planned& p) {
  auto s = std::make_unique<ControlState>();
  common(v, *s);
  const int64_t scanned = v.attrs().get_int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > v.input_count())
    fail(format("Scan's num_scan_inputs is %lld; expected 1 to %u", static_cast<long long>(scanned),
                v.input_count()));
  s->scanned = static_cast<uint32_t>(scanned);
  s->carried = v.input_count() - s->scanned;
  if (s->carried > s->outputs) fail("Scan has fewer results than state values");
  const auto list = [&](const char* name, size_t count) {
    Dims d = v.attrs().get_ints(name).copy();
    if (d.empty()) d.assign(count, 0);
    if (d.size() != count) fail(format("Scan's %s has %zu elements; expected %zu", name, d.size(), count));
    return d;
  };
  const size_t stacked = s->outputs - s->carried;
  s->in_axes = list("scan_input_axes", s->scanned);
  s->out_axes = list("scan_output_axes", stacked);
  for (int64_t d : list("scan_input_directions", s->scanned)) s->in_backward.push_back(d == 1);
  for (int64_t d : list("scan_output_directions", stacked)) s->out_backward.push_back(d == 1);
  p.set(dynamic_kernel<run_scan>, std::move(s));
}

}  // namespace

void provide_control(Plugin& p) {
  constexpr uint32_t flags = TN_KERNEL_CONTROL_FLOW | TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT;
  // Any operand may be a tensor, a sequence or an optional.
  constexpr uint32_t any = 1u << TN_KIND_TENSOR | 1u << TN_KIND_SEQUENCE | 1u << TN_KIND_OPTIONAL |
                           1u << TN_KIND_OPTIONAL_SEQUENCE | 1u << TN_KIND_NONE;
  reference_kernel(p, "If").flags(flags).input({}, 0, 0, -1, 0, any).plan<plan_if>();
  reference_kernel(p, "Loop").flags(flags).input({}, 0, 0, -1, 0, any).plan<plan_loop>();
  reference_kernel(p, "Scan").flags(flags).input({}, 0, 0, -1, 0, any).plan<plan_scan>();
}

}  // namespace tenon::reference
