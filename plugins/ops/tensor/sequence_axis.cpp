// Steps of a sequence moved along its axis: ReverseSequence, TensorScatter.
#include "families.hpp"
#include "support/define.hpp"
#include "support/moving.hpp"
#include "support/run_errors.hpp"

namespace tenon::reference {
namespace {

// ReverseSequence(x, lengths): the first lengths[b] steps of each batch item backwards.
struct ReverseState : Base {
  bool time_first = true;
  int64_t steps = 0, batch = 0, inner_bytes = 0;
};
int reverse_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ReverseState>(a);
  const auto r = tile_range(s.batch, s.tiles, tile);
  for (int64_t b = r.begin; b < r.end; ++b) {
    const int64_t length = integer_at(a->inputs[1], s.in[1].dtype, b);
    if (length < 0 || length > s.steps)
      return value_fail(a, "ReverseSequence: operand sequence_lens", length, 0, s.steps);
    for (int64_t t = 0; t < s.steps; ++t) {
      const int64_t from = t < length ? length - 1 - t : t;
      const auto place = [&](int64_t step) {
        return (s.time_first ? step * s.batch + b : b * s.steps + step) * s.inner_bytes;
      };
      std::memcpy(out<char>(a) + place(t), in<char>(a, 0) + place(from), static_cast<size_t>(s.inner_bytes));
    }
  }
  return run_ok;
}
void plan_reverse(const PlanView& v, Planned& p) {
  auto s = make_state<ReverseState>(v);
  const auto& x = s->in[0].dims;
  const int64_t time = v.attrs().get_int("time_axis", 0), batch = v.attrs().get_int("batch_axis", 1);
  if (x.size() < 2 || time + batch != 1 || time < 0 || batch < 0)
    fail("ReverseSequence needs rank 2 or more, and time_axis and batch_axis 0 and 1 or 1 and 0");
  s->time_first = time == 0;
  s->steps = x[static_cast<size_t>(time)];
  s->batch = x[static_cast<size_t>(batch)];
  if (s->in.at(1).count != s->batch) fail("ReverseSequence needs one length for each batch item");
  s->inner_bytes = product(x, 2, x.size()) * element_bytes(s->in[0].dtype);
  const int64_t n = s->batch, work = s->in[0].count / 4;
  finish(v, p, reverse_fn, std::move(s), n, work);
}

// TensorScatter: rows of the sequence axis are replaced from each batch item's index on; circular goes on at
// the start.
struct CacheState : Base {
  bool circular = false;
  int64_t prefixes = 1, per_batch = 1, cache_steps = 0, steps = 0,
          inner_bytes = 1;  // prefixes: all before the axis
};
int cache_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<CacheState>(a);
  if (a->outputs[0] != a->inputs[0] && s.in[0].count > 0)
    std::memcpy(a->outputs[0], a->inputs[0], static_cast<size_t>(s.prefixes * s.cache_steps * s.inner_bytes));
  for (int64_t prefix = 0; prefix < s.prefixes; ++prefix) {
    const int64_t start = s.has_in(2) ? integer_at(a->inputs[2], s.in[2].dtype, prefix / s.per_batch) : 0;
    if (!s.circular && (start < 0 || start > s.cache_steps - s.steps))
      return value_fail(a, "TensorScatter: operand write_indices", start, 0, s.cache_steps - s.steps);
    if (s.cache_steps == 0) continue;
    const int64_t first = (start % s.cache_steps + s.cache_steps) % s.cache_steps;
    for (int64_t step = 0; step < s.steps; ++step)
      std::memcpy(out<char>(a) + (prefix * s.cache_steps + (first + step) % s.cache_steps) * s.inner_bytes,
                  in<char>(a, 1) + (prefix * s.steps + step) * s.inner_bytes,
                  static_cast<size_t>(s.inner_bytes));
  }
  return run_ok;
}
void plan_cache(const PlanView& v, Planned& p) {
  auto s = make_state<CacheState>(v);
  const auto &cache = s->in[0].dims, &update = s->in[1].dims;
  const int64_t axis = axis_of(v.attrs().get_int("axis", -2), s->in[0].rank(), "TensorScatter's axis");
  const auto at = static_cast<size_t>(axis);
  Dims expected = cache;
  if (update.size() == cache.size()) expected[at] = update[at];
  if (axis == 0 || update != expected || update[at] > cache[at])
    fail("TensorScatter: operand update has shape " + dims_text(update) + ", which does not fit past_cache " +
         dims_text(cache));
  if (s->has_in(2) && s->in[2].dims != Dims{cache[0]})
    fail("TensorScatter: operand write_indices has shape " + dims_text(s->in[2].dims) +
         "; expected one number for each batch item");
  s->circular = v.attrs().get_string("mode", "linear") == "circular";
  s->prefixes = product(cache, 0, at);
  s->per_batch = product(cache, 1, at);
  s->cache_steps = cache[at];
  s->steps = update[at];
  s->inner_bytes = product(cache, at + 1, cache.size()) * element_bytes(s->in[0].dtype);
  if (s->prefixes == 0) s->per_batch = 1;
  finish(v, p, cache_fn, std::move(s), 1, 1);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_reverse(Infer& c) {
  const int64_t time = c.attrs().get_int("time_axis", 0), batch = c.attrs().get_int("batch_axis", 1);
  require((time == 0 && batch == 1) || (time == 1 && batch == 0),
          "attributes 'time_axis' and 'batch_axis' are " + text_of(time) + " and " + text_of(batch) +
              "; expected 0 and 1, or 1 and 0");
  const bool has_lengths = ranked(c, 1, "sequence_lens", 1, 1);
  if (ranked(c, 0, "input", 2) && has_lengths) {
    const tn_dim items = c.dims(0)[static_cast<size_t>(batch)];
    require(!c.differ(c.dims(1)[0], items), "operand sequence_lens has shape " + c.text(c.dims(1)) +
                                                "; expected one number for each of the " + c.text(items) +
                                                " batch items");
  }
  same_type(c, 0, 0);
}

void infer_tensor_scatter(Infer& c) {
  const auto mode = c.attrs().get_string("mode", "linear");
  require(mode == "linear" || mode == "circular",
          "attribute 'mode' is '" + std::string(mode) + "'; expected linear or circular");
  same_type(c, 0, 0);
  if (!ranked(c, 0, "past_cache", 2)) return;
  const auto cache = c.dims(0);
  const int64_t axis = Infer::axis(c.attrs().get_int("axis", -2), c.rank(0), "attribute 'axis'");
  require(axis != 0, "attribute 'axis' names the batch; expected another axis");
  if (ranked(c, 1, "update", c.rank(0), c.rank(0))) {
    const auto update = c.dims(1);
    for (size_t i = 0; i < cache.size(); ++i) {
      const bool sequence = static_cast<int64_t>(i) == axis;
      const bool fits =
          sequence ? c.compare(TN_DIM_LE, update[i], cache[i]) != TN_NO : !c.differ(update[i], cache[i]);
      require(fits, "operand update has shape " + c.text(update) + ", which does not fit past_cache " +
                        c.text(cache));
    }
  }
  if (c.has_input(2) && ranked(c, 2, "write_indices", 1, 1))
    require(!c.differ(c.dims(2)[0], cache[0]), "operand write_indices has shape " + c.text(c.dims(2)) +
                                                   "; expected one number for each of the " +
                                                   c.text(cache[0]) + " batch items");
}

}  // namespace

void add_sequence_axis(Plugin& p) {
  using namespace reference;
  define(p, "ReverseSequence").infer<infer_reverse>();
  reference_kernel(p, "ReverseSequence").plan<plan_reverse>();
  define(p, "TensorScatter").infer<infer_tensor_scatter>();
  reference_kernel(p, "TensorScatter").in_place(0, 0).plan<plan_moving<plan_cache>>();
}

}  // namespace tenon::ops
