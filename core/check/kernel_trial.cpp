#include "core/check/kernel_trial.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/base/text.hpp"
#include "core/runtime/cpu_features.hpp"
#include "core/runtime/kernel_selection.hpp"
#include "core/runtime/plan.hpp"

namespace tenon::check {

namespace {

constexpr uint8_t guard_byte = 0xb7;
constexpr uint64_t largest_request = uint64_t{256} << 20;

uint64_t element_alignment(tn_dtype dtype) {
  if (dtype == TN_STRING) return alignof(tn_str);
  const uint64_t bytes = std::max<uint64_t>(1, TN_DTYPE_BITS(dtype) / 8);
  const bool is_complex = dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128;
  return is_complex ? bytes / 2 : bytes;
}

std::span<const int64_t> dims_of(const tn_type& type) {
  return {type.dims, static_cast<size_t>(std::max(type.rank, 0))};
}

bool all_numbers(const tn_type& type) {
  if (type.kind != TN_KIND_TENSOR || type.rank < 0 || type.dtype == TN_DTYPE_NONE) return false;
  const auto dims = dims_of(type);
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 0; });
}

void in_order(tn_plan_ctx*, uint32_t n, void (*f)(void*, uint32_t, uint32_t), void* c) {
  for (uint32_t i = 0; i < n; ++i) f(c, i, 0);
}

}  // namespace

GuardedBuffer::GuardedBuffer(uint64_t bytes, uint64_t alignment) : bytes_(bytes) {
  memory_.assign(bytes + 2 * guard + 4 * alignment, guard_byte);
  auto address = reinterpret_cast<uintptr_t>(memory_.data()) + guard;
  address = (address + alignment - 1) / alignment * alignment;
  if (address % (2 * alignment) == 0) address += alignment;
  data_ = reinterpret_cast<uint8_t*>(address);
}

std::optional<std::string> GuardedBuffer::damage() const {
  const uint8_t* const end = data_ + bytes_;
  for (const uint8_t* p = end; p < end + guard; ++p)
    if (*p != guard_byte) return fmt::format("{} bytes after its end", p - end + 1);
  for (const uint8_t* p = data_ - 1; p >= data_ - guard; --p)
    if (*p != guard_byte) return fmt::format("{} bytes before its beginning", data_ - p);
  return std::nullopt;
}

// What a kernel that calls the host in a run talks to.
struct KernelTrial::Call {
  const KernelTrial* trial;
  const RunSetup* setup;
  std::vector<AnyRef> inputs;
  std::vector<AnyRef> results;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;  // results it asked memory for
  std::vector<AnyRef> texts;                            // what keep_text copied lives in
  std::string failure;
  uint64_t seed = 1;
  bool memory_was_refused = false;

  static Call& of(tn_run* run) { return *reinterpret_cast<Call*>(run); }

  static const tn_run_api& api() {
    static const tn_run_api table = [] {
      tn_run_api t = *run_api();
      t.fail = [](tn_run* run, tn_str text) {
        if (of(run).failure.empty()) of(run).failure = string(text);
      };
      t.input_tensor = [](tn_run* run, uint32_t i, tn_tensor* out) -> tn_status {
        Call& call = of(run);
        if (i >= call.inputs.size() || !call.inputs[i]) return TN_ERR_NOT_FOUND;
        *out = call.inputs[i]->tensor();
        return TN_OK;
      };
      t.input = [](tn_run* run, uint32_t i) -> tn_any* {
        Call& call = of(run);
        return i < call.inputs.size() ? call.inputs[i].get() : nullptr;
      };
      t.output_tensor = [](tn_run* run, uint32_t i, tn_dtype dtype, int32_t rank, const int64_t* dims,
                           void** data) -> tn_status {
        Call& call = of(run);
        if (call.setup->fail_allocation) {
          call.memory_was_refused = true;
          return TN_ERR_MEMORY;
        }
        if (i >= call.results.size() || rank < 0) return TN_ERR_INVALID;
        const std::span<const int64_t> shape(dims, static_cast<size_t>(rank));
        uint64_t bytes = 0;
        if (!tensor_bytes(dtype, shape, &bytes) || bytes > largest_request) return TN_ERR_LIMIT;
        if (dtype == TN_STRING) {
          call.results[i] = new_tensor(dtype, shape, "check");
        } else {
          call.buffers[i] = std::make_unique<GuardedBuffer>(bytes, 64);
          call.results[i] = borrow_tensor({dtype, rank, dims, call.buffers[i]->data(), bytes}, nullptr);
        }
        *data = call.results[i]->data;
        return TN_OK;
      };
      t.set_output = [](tn_run* run, uint32_t i, tn_any* any) -> tn_status {
        Call& call = of(run);
        if (i >= call.results.size() || any == nullptr) return TN_ERR_INVALID;
        call.results[i] = AnyRef::share(any);
        return TN_OK;
      };
      t.run_region = [](tn_run*, uint32_t, tn_any* const*, uint32_t, tn_any**, uint32_t) -> tn_status {
        return TN_ERR_UNSUPPORTED;
      };
      t.new_tensor = [](tn_run* run, tn_dtype dtype, int32_t rank, const int64_t* dims, tn_any** any,
                        void** data) -> tn_status {
        if (of(run).setup->fail_allocation) {
          of(run).memory_was_refused = true;
          return TN_ERR_MEMORY;
        }
        const std::span<const int64_t> shape(dims, static_cast<size_t>(std::max(rank, 0)));
        uint64_t bytes = 0;
        if (!tensor_bytes(dtype, shape, &bytes) || bytes > largest_request) return TN_ERR_LIMIT;
        AnyRef made = new_tensor(dtype, shape, "check");
        *data = made->data;
        *any = made.take();
        return TN_OK;
      };
      t.new_sequence = [](tn_run*, tn_any* const* items, uint32_t count, tn_dtype dtype,
                          tn_any** any) -> tn_status {
        *any = new_sequence({items, count}, dtype).take();
        return TN_OK;
      };
      t.new_optional = [](tn_run*, tn_any* item, tn_any** any) -> tn_status {
        *any = new_optional(item).take();
        return TN_OK;
      };
      t.keep_text = [](tn_run* run, tn_str text) -> tn_str {
        AnyRef holder = new_tensor(TN_STRING, {}, "check");
        holder->texts = std::make_unique<std::deque<std::string>>();
        const std::string& kept = holder->texts->emplace_back(view(text));
        of(run).texts.push_back(std::move(holder));
        return to_abi(kept);
      };
      t.random_seed = [](tn_run* run) -> uint64_t { return of(run).seed++; };
      return t;
    }();
    return table;
  }
};

KernelTrial::KernelTrial(const Registries& registries, const KernelEntry& kernel, NodeCase& node, Setup setup)
    : registries_(registries), kernel_(kernel), node_(node), setup_(std::move(setup)) {
  Graph& graph = *node.graph;
  info_.size = sizeof info_;
  graph_api()->node(&graph, node.node, &info_);
  const Node& n = graph.node(node.node);
  for (uint32_t i = 0; i < n.input_count; ++i) {
    tn_operand operand{};
    if (n.input(i) != TN_NONE) {
      operand.type = graph.type(n.input(i));
      operand.present = 1;
      if (node.constant[i]) {
        operand.data = node.inputs[i]->data();
        operand.constant = 1;
      }
    }
    inputs_.push_back(operand);
  }
  for (uint32_t i = 0; i < n.output_count; ++i) {
    tn_operand operand{};
    if (n.output(i) != TN_NONE) {
      operand.type = graph.type(n.output(i));
      operand.present = 1;
    }
    outputs_.push_back(operand);
    uint64_t bytes = 0;
    if (operand.present != 0 && all_numbers(operand.type))
      tensor_bytes(operand.type.dtype, dims_of(operand.type), &bytes);
    output_bytes_.push_back(bytes);
  }
  view_.size = setup_.view_size;
  view_.input_count = n.input_count;
  view_.output_count = n.output_count;
  view_.thread_count = setup_.threads;
  view_.node = &info_;
  view_.inputs = inputs_.data();
  view_.outputs = outputs_.data();
  view_.cpu_features = cpu_features();
  view_.precision_mode = to_abi(setup_.precision);
  view_.device = kernel.record->device;
  view_.device_handle = setup_.device;
  view_.graph_api = graph_api();
  view_.context = reinterpret_cast<tn_plan_ctx*>(this);
  view_.packed = &KernelTrial::pack;
  view_.parallel = &in_order;
  view_.graph = setup_.view_size >= sizeof view_ ? &graph : reinterpret_cast<tn_graph*>(uintptr_t{0xdead0});
}

KernelTrial::~KernelTrial() {
  if (planned_.free_state != nullptr) planned_.free_state(planned_.state);
}

tn_status KernelTrial::pack(tn_plan_ctx* context, uint32_t input, tn_str, uint64_t bytes,
                            tn_status (*fill)(void*, const tn_tensor*, void*), void* fill_context,
                            const void** blob) {
  auto& self = *reinterpret_cast<KernelTrial*>(context);
  if (self.setup_.fail_packing) return TN_ERR_MEMORY;
  if (input >= self.inputs_.size() || self.inputs_[input].constant == 0) return TN_ERR_INVALID;
  if (bytes > largest_request) return TN_ERR_LIMIT;
  auto buffer = std::make_unique<GuardedBuffer>(bytes, 64);
  std::memset(buffer->data(), 0, bytes);
  const tn_tensor source = self.node_.inputs[input]->view();
  const tn_status status = fill(fill_context, &source, buffer->data());
  if (status != TN_OK) return status;
  *blob = buffer->data();
  self.packed_.push_back(std::move(buffer));
  return TN_OK;
}

std::string KernelTrial::refusal() {
  KernelPolicy policy;
  policy.device = string(kernel_.record->device);
  return refusal_of(kernel_, registries_, view_, policy, true);
}

bool KernelTrial::has_known_results() const {
  return std::all_of(outputs_.begin(), outputs_.end(),
                     [](const tn_operand& o) { return o.present == 0 || all_numbers(o.type); });
}

bool KernelTrial::fits(const tn_alias& alias) const {
  if (alias.input >= inputs_.size() || alias.output >= outputs_.size() || inputs_[alias.input].present == 0 ||
      outputs_[alias.output].present == 0 || !all_numbers(outputs_[alias.output].type))
    return false;
  return node_.inputs[alias.input]->bytes() == output_bytes_[alias.output] &&
         node_.inputs[alias.input]->dtype() != TN_STRING && outputs_[alias.output].type.dtype != TN_STRING;
}

tn_status KernelTrial::plan(std::string& said) {
  planned_ = tn_planned{};
  planned_.size = sizeof planned_;
  planned_.tiles = 1;
  Diagnostics diagnostics;
  const tn_status status = kernel_.record->plan(kernel_.instance, &view_, &planned_, diagnostics.abi());
  said = diagnostics.empty() ? std::string() : diagnostics.all().front().text;
  return status;
}

int KernelTrial::run_once(const RunSetup& setup, KernelRun& out) {
  const uint32_t flags = kernel_.record->flags;
  const bool asks_memory = (flags & TN_KERNEL_DYNAMIC_OUTPUT) != 0 && !has_known_results();
  Call call{this, &setup, {}, {}, {}, {}, {}, 1, false};
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<void*> inputs, outputs;
  std::vector<std::shared_ptr<Tensor>> texts;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs.push_back(nullptr);
    call.inputs.emplace_back();
    buffers.emplace_back();
    if (inputs_[i].present == 0) continue;
    const Tensor& tensor = *node_.inputs[i];
    if (tensor.dtype() == TN_STRING || node_.constant[i]) {
      // Constants stay where plan saw them.
      inputs[i] = const_cast<void*>(tensor.data());
      call.inputs[i] = borrow_tensor(tensor.view(), nullptr);
      continue;
    }
    const uint64_t alignment = setup.alignment != 0 ? setup.alignment : element_alignment(tensor.dtype());
    buffers[i] = std::make_unique<GuardedBuffer>(tensor.bytes(), alignment);
    if (tensor.bytes() != 0) std::memcpy(buffers[i]->data(), tensor.data(), tensor.bytes());
    inputs[i] = buffers[i]->data();
    call.inputs[i] = borrow_tensor({tensor.dtype(), static_cast<int32_t>(tensor.dims().size()),
                                    tensor.dims().data(), inputs[i], tensor.bytes()},
                                   nullptr);
  }
  const tn_alias* const alias = setup.alias < 0 ? nullptr : &kernel_.record->aliases[setup.alias];
  std::vector<std::unique_ptr<GuardedBuffer>> result_buffers(outputs_.size());
  call.results.resize(outputs_.size());
  call.buffers.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs.push_back(nullptr);
    if (outputs_[i].present == 0 || !all_numbers(outputs_[i].type)) continue;
    const tn_type& type = outputs_[i].type;
    if (type.dtype == TN_STRING) {
      call.results[i] = new_tensor(type.dtype, dims_of(type), "check");
      outputs[i] = call.results[i]->data;
      continue;
    }
    if (alias != nullptr && alias->output == i && buffers[alias->input] != nullptr) {
      outputs[i] = inputs[alias->input];
    } else {
      const uint64_t alignment = setup.alignment != 0 ? setup.alignment : element_alignment(type.dtype);
      result_buffers[i] = std::make_unique<GuardedBuffer>(output_bytes_[i], alignment);
      outputs[i] = result_buffers[i]->data();
    }
    call.results[i] =
        borrow_tensor({type.dtype, type.rank, type.dims, outputs[i], output_bytes_[i]}, nullptr);
  }
  const uint64_t stride = (planned_.workspace_bytes + 63) / 64 * 64;
  GuardedBuffer workspace(stride, 64);
  const tn_kernel_args args{planned_.state,
                            inputs.data(),
                            outputs.data(),
                            workspace.data(),
                            stride,
                            reinterpret_cast<tn_run*>(&call),
                            &Call::api(),
                            static_cast<uint32_t>(inputs.size()),
                            static_cast<uint32_t>(outputs.size())};
  int status = 0;
  for (uint32_t t = 0; t < planned_.tiles && status == 0; ++t)
    status = planned_.fn(&args, setup.tiles_backwards ? planned_.tiles - 1 - t : t, 0);
  out.status = status;
  out.failure = call.failure;
  out.memory_was_refused = call.memory_was_refused;
  const auto damaged = [&](const std::unique_ptr<GuardedBuffer>& buffer, const std::string& what) {
    if (buffer == nullptr) return;
    if (const auto where = buffer->damage())
      out.damages.push_back(fmt::format("it writes {} of {}", *where, what));
  };
  for (size_t i = 0; i < outputs_.size(); ++i) {
    damaged(result_buffers[i], fmt::format("result {}", i));
    damaged(call.buffers[i], fmt::format("result {}", i));
  }
  if (const auto where = workspace.damage())
    out.damages.push_back(
        fmt::format("it writes {} of its workspace of {} bytes", *where, planned_.workspace_bytes));
  for (size_t i = 0; i < packed_.size(); ++i) damaged(packed_[i], fmt::format("packed constant {}", i));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    damaged(buffers[i], fmt::format("input {}", i));
    const bool is_alias = alias != nullptr && alias->input == i;
    if (buffers[i] == nullptr || is_alias || buffers[i]->bytes() == 0) continue;
    if (std::memcmp(buffers[i]->data(), node_.inputs[i]->data(), buffers[i]->bytes()) != 0)
      out.damages.push_back(fmt::format("it changes input {}", i));
  }
  if (status == 0) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      out.results.emplace_back();
      if (outputs_[i].present == 0) continue;
      if (!call.results[i]) {
        if (asks_memory) out.damages.push_back(fmt::format("it gives no result {}", i));
        continue;
      }
      // Copied: the buffers go with this call.
      out.results.back() = call.results[i]->kind == TN_KIND_TENSOR
                               ? copy_tensor(call.results[i]->tensor(), "check")
                               : with_own_texts(call.results[i].get());
    }
  }
  return status;
}

KernelRun KernelTrial::run(const RunSetup& setup) {
  KernelRun first;
  const FpScope fp(setup_.precision == "faithful");  // as sessions do
  if (setup.threads_at_once <= 1) {
    run_once(setup, first);
    return first;
  }
  std::vector<KernelRun> runs(setup.threads_at_once);
  std::vector<std::thread> threads;
  for (KernelRun& run : runs)
    threads.emplace_back([&] {
      const FpScope own(setup_.precision == "faithful");
      for (int i = 0; i < 3; ++i) {
        run = {};
        run_once(setup, run);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].status != runs[0].status || runs[i].results.size() != runs[0].results.size()) {
      runs[0].threads_agree = false;
      continue;
    }
    for (size_t k = 0; k < runs[0].results.size(); ++k) {
      const AnyRef &a = runs[0].results[k], &b = runs[i].results[k];
      if (!a || !b || a->kind != TN_KIND_TENSOR || b->kind != TN_KIND_TENSOR) continue;
      if (difference(a->tensor(), b->tensor())) runs[0].threads_agree = false;
    }
  }
  return std::move(runs[0]);
}

}  // namespace tenon::check
