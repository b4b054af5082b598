// BitCast: the same bytes, read as another type of the same size. A bool is 0 or 1, so that any other byte
// becomes true.
#include "families.hpp"
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct BitsState : Base {
  uint64_t bytes = 0;
  bool to_bool = false;
};
int bits_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<BitsState>(a);
  if (!s.to_bool) {
    if (s.bytes && a->outputs[0] != a->inputs[0]) std::memcpy(a->outputs[0], a->inputs[0], s.bytes);
    return run_ok;
  }
  for (uint64_t i = 0; i < s.bytes; ++i) out<uint8_t>(a)[i] = in<uint8_t>(a, 0)[i] != 0;
  return run_ok;
}
void plan_bits(const PlanView& v, Planned& p) {
  auto s = make_state<BitsState>(v);
  const tn_dtype from = s->in[0].dtype, to = s->out[0].dtype;
  if (TN_DTYPE_BITS(from) != TN_DTYPE_BITS(to) || s->in[0].count != s->out[0].count)
    fail(format("BitCast cannot read %s as %s: their sizes differ", dtype_name(from), dtype_name(to)));
  s->bytes = packed_bytes(from, s->in[0].count);
  s->to_bool = to == TN_BOOL;
  finish(v, p, bits_fn, std::move(s), 1, 1);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_bit_cast(Infer& c) {
  const tn_dtype from = c.dtype(0), to = dtype_of_onnx(required_int(c.attrs(), "to"), "to");
  require(to != TN_STRING,
          "attribute 'to' names text, which has no bits to be read as; expected a number type");
  require(from == TN_DTYPE_NONE || TN_DTYPE_BITS(from) == TN_DTYPE_BITS(to),
          format("attribute 'to' is %s of %u bits; operand input holds %s of %u bits; expected a type of the "
                 "same size",
                 dtype_name(to), static_cast<unsigned>(TN_DTYPE_BITS(to)), dtype_name(from),
                 static_cast<unsigned>(TN_DTYPE_BITS(from))));
  same_shape(c, 0, 0, to);
}

}  // namespace

void add_bit_cast(Plugin& p) {
  define(p, "BitCast").infer<infer_bit_cast>();
  reference::reference_kernel(p, "BitCast").plan<reference::plan_bits>();
}

}  // namespace tenon::ops
