#include "support/moving.hpp"

#include "support/small_floats.hpp"

namespace tenon::reference {
namespace {

bool is_packed(const tn_operand& o) noexcept {
  return o.present && o.type.dtype != TN_DTYPE_NONE && dtype_bytes(o.type.dtype) == 0;
}

/// A packed operand or result, and where its bytes lie in the workspace.
struct Part {
  size_t index;
  int bits;
  int64_t count;
  uint64_t at;
};
struct UnpackedState {
  tn_planned inner{};
  std::vector<Part> inputs, outputs;
  size_t input_count = 0, output_count = 0;
  uint64_t pointers_at = 0;  // of both lists, then the inner workspace
  uint64_t inner_at = 0;
  UnpackedState() { inner.size = sizeof inner; }
  UnpackedState(const UnpackedState&) = delete;
  UnpackedState& operator=(const UnpackedState&) = delete;
  ~UnpackedState() {
    if (inner.free_state) inner.free_state(inner.state);
  }
};

void unpack_bytes(const void* from, int bits, int64_t count, uint8_t* to) noexcept {
  const auto* source = static_cast<const uint8_t*>(from);
  if (bits == 4)
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(unpack<4>(source, i));
  else
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(unpack<2>(source, i));
}
void pack_bytes(const uint8_t* from, int bits, int64_t count, void* to) noexcept {
  auto* target = static_cast<uint8_t*>(to);
  if (bits == 4)
    for (int64_t i = 0; i < count; ++i) pack<4>(target, i, from[i]);
  else
    for (int64_t i = 0; i < count; ++i) pack<2>(target, i, from[i]);
}

int unpacked_fn(const tn_kernel_args* a, uint32_t, uint32_t worker) {
  const auto& s = state<UnpackedState>(a);
  auto* base = workspace<char>(a, worker);
  auto** inputs = reinterpret_cast<void**>(base + s.pointers_at);
  auto** outputs = inputs + s.input_count;
  for (size_t i = 0; i < s.input_count; ++i) inputs[i] = a->inputs[i];
  for (size_t i = 0; i < s.output_count; ++i) outputs[i] = a->outputs[i];
  for (const Part& p : s.inputs) {
    unpack_bytes(a->inputs[p.index], p.bits, p.count, reinterpret_cast<uint8_t*>(base + p.at));
    inputs[p.index] = base + p.at;
  }
  for (const Part& p : s.outputs) outputs[p.index] = base + p.at;
  tn_kernel_args inner = *a;
  inner.state = s.inner.state;
  inner.inputs = inputs;
  inner.outputs = outputs;
  inner.workspace = base + s.inner_at;
  inner.workspace_stride = 0;
  for (uint32_t tile = 0; tile < s.inner.tiles; ++tile)
    if (const int code = s.inner.fn(&inner, tile, 0)) return code;
  for (const Part& p : s.outputs)
    if (a->outputs[p.index])
      pack_bytes(reinterpret_cast<const uint8_t*>(base + p.at), p.bits, p.count, a->outputs[p.index]);
  return run_ok;
}

}  // namespace

void copy_packed(tn_dtype dtype, const void* from, int64_t from_at, void* to, int64_t to_at,
                 int64_t count) noexcept {
  const int bits = static_cast<int>(TN_DTYPE_BITS(dtype)), in_byte = 8 / bits, mask = (1 << bits) - 1;
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t s = from_at + i, t = to_at + i;
    const int value = source[s / in_byte] >> (s % in_byte * bits) & mask;
    const int shift = static_cast<int>(t % in_byte) * bits;
    uint8_t& byte = target[t / in_byte];
    byte = static_cast<uint8_t>((byte & ~(mask << shift)) | (value << shift));
  }
}

bool has_packed_operands(const PlanView& v) noexcept {
  for (uint32_t i = 0; i < v.input_count(); ++i)
    if (is_packed(v.raw().inputs[i])) return true;
  for (uint32_t i = 0; i < v.output_count(); ++i)
    if (is_packed(v.raw().outputs[i])) return true;
  return false;
}

void plan_unpacked(const PlanView& v, Planned& p, void (*plan)(const PlanView&, Planned&)) {
  auto s = std::make_unique<UnpackedState>();
  s->input_count = v.input_count();
  s->output_count = v.output_count();
  uint64_t at = 0;
  const auto take = [&](uint64_t bytes) {
    const uint64_t here = at;
    if (bytes > (uint64_t{1} << 62) || at > (uint64_t{1} << 62)) fail("the operands do not fit memory");
    at += (bytes + 63) / 64 * 64;
    return here;
  };
  const auto as_bytes = [&](const tn_operand* operands, uint32_t count, std::vector<Part>& parts) {
    std::vector<tn_operand> list(operands, operands + count);
    for (size_t i = 0; i < list.size(); ++i) {
      if (!is_packed(list[i])) continue;
      const int64_t n = OperandView(list[i]).count();
      parts.push_back(
          {i, static_cast<int>(TN_DTYPE_BITS(list[i].type.dtype)), n, take(static_cast<uint64_t>(n))});
      list[i].type.dtype = TN_UINT8;
      list[i].data = nullptr;  // those bytes are packed
      list[i].constant = 0;
    }
    return list;
  };
  const auto inputs = as_bytes(v.raw().inputs, v.input_count(), s->inputs);
  const auto outputs = as_bytes(v.raw().outputs, v.output_count(), s->outputs);
  tn_plan_view inner = v.raw();
  inner.inputs = inputs.data();
  inner.outputs = outputs.data();
  inner.thread_count = 1;
  Planned planned(&s->inner);
  plan(PlanView(&inner), planned);
  s->pointers_at = take((s->input_count + s->output_count) * sizeof(void*));
  s->inner_at = take(s->inner.workspace_bytes);
  p.set(unpacked_fn, std::move(s), 1, at);
}

}  // namespace tenon::reference
