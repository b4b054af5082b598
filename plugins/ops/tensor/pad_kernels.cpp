// Pad: constant, reflect, edge, wrap; pads may be negative and are read in the run.
#include "families.hpp"
#include "support/moving.hpp"

namespace tenon::reference {
namespace {

enum class PadMode { constant, reflect, edge, wrap };
struct PadState : Base {
  PadMode mode = PadMode::constant;
  int64_t bytes = 0;
};

/// Where result coordinate i comes from, in [0, size), or -1 for the constant.
int64_t source_of(PadMode mode, int64_t i, int64_t begin, int64_t size) noexcept {
  const int64_t x = i - begin;
  if (x >= 0 && x < size) return x;
  if (mode == PadMode::constant || size == 0) return -1;
  if (mode == PadMode::edge) return x < 0 ? 0 : size - 1;
  if (mode == PadMode::wrap) return (x % size + size) % size;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1), y = (x % period + period) % period;
  return y < size ? y : period - y;
}

int pad_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<PadState>(a);
  const int rank = s.in[0].rank();
  int64_t begin[max_rank] = {}, end[max_rank] = {};
  const bool has_axes = s.has_in(3);
  const int64_t listed = s.in[1].count / 2;
  for (int64_t i = 0; i < listed; ++i) {
    const int64_t raw = has_axes ? integer_at(a->inputs[3], s.in[3].dtype, i) : i;
    if (raw < -rank || raw >= rank) return index_fail(a, "Pad: axis", raw, rank);
    const int64_t axis = raw < 0 ? raw + rank : raw;
    begin[axis] = integer_at(a->inputs[1], s.in[1].dtype, i);
    end[axis] = integer_at(a->inputs[1], s.in[1].dtype, i + listed);
  }
  int64_t strides[max_rank], stride = 1;
  for (int i = rank; i-- > 0; stride *= s.in[0].dim(i)) {
    strides[i] = stride;
    if (s.in[0].dim(i) + begin[i] + end[i] != s.out[0].dim(i))
      return run_fail(a, run_bad_operand, "Pad: pads do not yield the shape that was planned");
    if (s.mode != PadMode::constant && s.in[0].dim(i) == 0 && s.out[0].dim(i) > 0)
      return run_fail(a, run_bad_operand, "Pad: an empty axis can only be padded with a constant");
  }
  char zero[16] = {};
  const char* value = s.has_in(2) ? in<char>(a, 2) : zero;
  const auto bytes = static_cast<size_t>(s.bytes);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  if (r.begin >= r.end) return run_ok;
  int64_t index[max_rank] = {}, rest = r.begin;
  for (int i = rank; i-- > 0; rest /= s.out[0].dim(i)) index[i] = rest % s.out[0].dim(i);
  const char* x = in<char>(a, 0);
  char* y = out<char>(a);
  for (int64_t at = r.begin; at < r.end;) {
    int64_t base = 0;
    bool outside = false;
    for (int i = 0; i + 1 < rank; ++i) {
      const int64_t from = source_of(s.mode, index[i], begin[i], s.in[0].dim(i));
      outside = outside || from < 0;
      base += from * strides[i];
    }
    const int last = rank - 1;
    const int64_t n = rank ? std::min(r.end - at, s.out[0].dim(last) - index[last]) : 1;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t from = outside ? -1
                           : rank  ? source_of(s.mode, index[last] + k, begin[last], s.in[0].dim(last))
                                   : 0;
      std::memcpy(y + (at + k) * s.bytes, from < 0 ? value : x + (base + from) * s.bytes, bytes);
    }
    at += n;
    if (!rank) break;
    index[last] += n;
    for (int i = last; i > 0 && index[i] == s.out[0].dim(i); --i) {
      index[i] = 0;
      ++index[i - 1];
    }
  }
  return run_ok;
}
void plan_pad(const PlanView& v, Planned& p) {
  auto s = make_state<PadState>(v);
  const auto mode = v.attrs().get_string("mode", "constant");
  if (mode == "constant")
    s->mode = PadMode::constant;
  else if (mode == "reflect")
    s->mode = PadMode::reflect;
  else if (mode == "edge")
    s->mode = PadMode::edge;
  else if (mode == "wrap")
    s->mode = PadMode::wrap;
  else
    fail("Pad's mode is '" + std::string(mode) + "'; expected constant, reflect, edge or wrap");
  s->bytes = element_bytes(s->in[0].dtype);
  const int64_t axes = s->has_in(3) ? s->in[3].count : s->in[0].rank();
  if (!s->has_in(1) || s->in[1].count != 2 * axes)
    fail(format("Pad's pads must have %lld numbers, two for each axis", static_cast<long long>(2 * axes)));
  if (s->has_in(2) && s->in[2].count != 1) fail("Pad's value must be one element");
  if (s->out[0].rank() != s->in[0].rank())
    fail("Pad keeps the rank; its result was planned with another one");
  const int64_t n = s->out[0].count;
  finish(v, p, pad_fn, std::move(s), n, n * 4);
}

}  // namespace

void provide_pad(Plugin& p) { reference_kernel(p, "Pad").plan<plan_moving<plan_pad>>(); }

}  // namespace tenon::reference
