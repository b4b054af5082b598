// tenon::FusedElementwise: the body becomes a list of row calls that run over one piece after another, so
// that what lies between two of them stays in the first-level cache. The row functions are those of the
// separate kernels, and so are the bits. A reduction at the end takes up the pieces of a row as they come.
#include "families.hpp"
#include "fused_body.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

constexpr int64_t piece = 1024;     // elements at most that one row call computes
constexpr int64_t short_row = 128;  // rows below this are computed several at a time
static_assert(piece % reduction_grain == 0);

struct Loop {
  int64_t size;
  std::vector<int64_t> strides;  // by operand, in elements; 0: repeated
};

struct State {
  Body body;
  std::vector<Loop> outer;               // outermost first
  int64_t n = 1, rows = 1;               // a row is n elements
  int64_t rows_at_once = 1, pieces = 1;  // one of the two is 1
  int64_t reduced = 1;                   // elements that one result comes from
  std::vector<int> step;                 // by operand, within what one call computes
  std::vector<uint8_t> walks;            // by operand, within a row
  std::vector<uint32_t> spread;    // operands that change within rows_at_once rows, and are copied out first
  std::vector<uint32_t> slot_of;   // by operand, of `spread`
  std::vector<uint8_t> same_rows;  // by operand: it has one row for all, which need be copied out once
  uint32_t slots = 0, tiles = 1;
  int64_t slot_bytes = 0;
  bool whole_rows() const { return body.tail.has_value(); }  // all pieces of a row are one unit
  int64_t units() const {
    if (rows_at_once > 1 || !spread.empty()) return (rows + rows_at_once - 1) / rows_at_once;
    return whole_rows() ? rows : rows * pieces;
  }
};

void compute(const State& s, const Row* operands, char* workspace, void* y, int64_t count) noexcept {
  for (const Step& step : s.body.steps) {
    const auto at = [&](const Source& source) {
      if (source.kind == Source::nothing) return Row{};
      return source.kind == Source::outside ? operands[source.index]
                                            : Row{workspace + source.index * s.slot_bytes, 1};
    };
    void* const to = step.slot == result_slot ? y : workspace + step.slot * s.slot_bytes;
    const Row from[] = {at(step.from[0]), at(step.from[1]), at(step.from[2])};
    const auto floats = [&](int i) { return static_cast<const float*>(from[i].data); };
    switch (step.kind) {
      case Step::two:
        binary_row(step.binary, floats(0), from[0].step, floats(1), from[1].step, static_cast<float*>(to),
                   count);
        break;
      case Step::unary:
        apply(step.act, floats(0), static_cast<float*>(to), count);
        break;
      case Step::clip: {
        const float infinity = std::numeric_limits<float>::infinity();
        const float low = floats(1) ? *floats(1) : -infinity, high = floats(2) ? *floats(2) : infinity;
        apply({Act::Clip, low, high}, floats(0), static_cast<float*>(to), count);
        break;
      }
      case Step::typed:
        step.row(from, to, count);
        break;
    }
  }
}

/// Element offsets of row `row` in all operands.
void row_offsets(const State& s, int64_t row, int64_t* offsets) noexcept {
  const size_t operands = s.step.size();
  std::fill_n(offsets, operands, 0);
  for (size_t i = s.outer.size(); i-- > 0;) {
    const Loop& loop = s.outer[i];
    const int64_t at = row % loop.size;
    row /= loop.size;
    for (size_t k = 0; k < operands; ++k) offsets[k] += at * loop.strides[k];
  }
}

/// Copies out, row by row, an operand that changes within the rows from `row` on.
void spread_rows(const State& s, const tn_kernel_args* args, uint32_t k, int64_t row, int64_t rows,
                 int64_t* offsets, char* to) noexcept {
  const uint32_t width = s.body.operand_width[k];
  const auto row_bytes = static_cast<size_t>(s.n) * width;
  for (int64_t r = row; r < row + rows; ++r, to += row_bytes) {
    row_offsets(s, r, offsets);
    const char* from = in<char>(args, k) + offsets[k] * width;
    if (s.walks[k])
      std::memcpy(to, from, row_bytes);
    else
      for (int64_t i = 0; i < s.n; ++i) std::memcpy(to + i * width, from, width);
  }
}

int run(const tn_kernel_args* args, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(args);
  const size_t operands = s.step.size();
  const uint32_t width = s.body.result_width;
  char* const slots = workspace<char>(args, worker);
  char* const partial = slots + s.slots * s.slot_bytes;
  auto* const places = reinterpret_cast<Row*>(partial + (s.whole_rows() ? partial_bytes : 0));
  auto* const offsets = reinterpret_cast<int64_t*>(places + operands);
  const char* const reduced = slots + s.body.tail_slot * s.slot_bytes;
  const bool several = s.rows_at_once > 1 || !s.spread.empty();
  const Range range = tile_range(s.units(), s.tiles, tile);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const bool split = !several && !s.whole_rows();
    const int64_t row = several ? unit * s.rows_at_once : split ? unit / s.pieces : unit;
    const int64_t begin = split ? unit % s.pieces * piece : 0;
    const int64_t end = split ? std::min(s.n, begin + piece) : s.n;
    row_offsets(s, row, offsets);
    for (int64_t first = begin; first < end; first += piece) {
      const int64_t count =
          several ? std::min(s.rows_at_once, s.rows - row) * s.n : std::min(piece, end - first);
      for (size_t k = 0; k < operands; ++k)
        places[k] = {in<char>(args, static_cast<uint32_t>(k)) +
                         (offsets[k] + (s.step[k] ? first : 0)) * s.body.operand_width[k],
                     s.step[k]};
      for (const uint32_t k : s.spread) {
        char* const to = slots + s.slot_of[k] * s.slot_bytes;
        places[k] = {to, 1};
        if (!s.same_rows[k] || unit == range.begin) spread_rows(s, args, k, row, count / s.n, offsets, to);
      }
      compute(s, places, slots, out<char>(args) + (row * s.n + first) * width, count);
      if (!s.whole_rows()) continue;
      const Tail& tail = *s.body.tail;
      if (several) {
        for (int64_t r = 0; r < count / s.reduced; ++r) {
          tail.rows->begin(tail.op, partial);
          tail.rows->end(tail.op, partial, reduced + r * s.reduced * width, s.reduced, s.reduced,
                         out<char>(args) + (row * s.n / s.reduced + r) * width);
        }
        continue;
      }
      if (first == 0) tail.rows->begin(tail.op, partial);
      if (first + piece < end)
        tail.rows->more(tail.op, partial, reduced, count);
      else
        tail.rows->end(tail.op, partial, reduced, count, s.n, out<char>(args) + row * width);
    }
  }
  return 0;
}

/// The dims that the steps compute: the result's, or what the operands broadcast to.
std::vector<int64_t> computed_dims(const PlanView& v, const Body& body) {
  if (!body.tail) return v.output().dims().copy();
  std::vector<int64_t> dims(body.rank, 1);
  for (uint32_t k = 0; k < v.input_count(); ++k) {
    const auto d = v.input(k).dims();
    for (size_t back = 1; back <= std::min(d.size(), dims.size()); ++back)
      if (d[d.size() - back] != 1) dims[dims.size() - back] = d[d.size() - back];
  }
  return dims;
}

/// Dims that all operands walk, or repeat, alike become one; the innermost is the row. None goes from the
/// last `apart` axes into those before; *inner: how many loops these axes are, of one element when they have
/// no more.
std::vector<Loop> loops_of(const PlanView& v, const std::vector<int64_t>& dims, uint32_t apart,
                           size_t* inner) {
  const uint32_t operands = v.input_count();
  std::vector<int64_t> stride(operands, 1);
  std::vector<Loop> loops;  // innermost first
  const auto cross = [&] {
    if (loops.empty()) loops.push_back({1, std::vector<int64_t>(operands)});
    *inner = loops.size();
  };
  *inner = 0;
  for (size_t back = 1; back <= dims.size(); ++back) {
    if (apart > 0 && back == apart + 1) cross();
    const int64_t n = dims[dims.size() - back];
    if (n == 1) continue;
    Loop loop{n, std::vector<int64_t>(operands)};
    bool goes_on = loops.size() > *inner;
    for (uint32_t k = 0; k < operands; ++k) {
      const auto own = v.input(k).dims();
      const int64_t d = back <= own.size() ? own[own.size() - back] : 1;
      loop.strides[k] = d == 1 ? 0 : stride[k];
      stride[k] *= d;
      if (!goes_on) continue;
      const int64_t before = loops.back().strides[k];
      goes_on = before == 0 ? loop.strides[k] == 0 : loop.strides[k] == before * loops.back().size;
    }
    if (goes_on)
      loops.back().size *= n;
    else
      loops.push_back(std::move(loop));
  }
  if (apart > 0 && *inner == 0) cross();
  return loops;
}

/// Several rows at a time: what changes from one to the next is copied out before.
void take_several(State& s, const PlanView& v, int64_t rows, int64_t elements) {
  s.pieces = 1;
  s.rows_at_once = rows;
  for (uint32_t k = 0; k < v.input_count(); ++k) {
    const auto count = v.input(k).count();
    s.step[k] = count != 1;
    if (count == elements || count == 1) continue;
    s.slot_of[k] = s.slots++;
    s.slot_bytes = std::max<int64_t>(s.slot_bytes, piece * s.body.operand_width[k]);
    s.same_rows[k] =
        std::all_of(s.outer.begin(), s.outer.end(), [&](const Loop& l) { return l.strides[k] == 0; });
    s.spread.push_back(k);
  }
}

void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  auto s = std::make_unique<State>();
  s->body = fused_body(v);
  const uint32_t operands = v.input_count();
  s->walks.assign(operands, 0);
  s->slot_of.assign(operands, 0);
  s->same_rows.assign(operands, 0);
  s->slots = s->body.slots;
  s->slot_bytes = piece * s->body.slot_width;
  const std::vector<int64_t> dims = computed_dims(v, s->body);
  const uint32_t apart = s->body.tail ? s->body.tail->axes : 0;
  size_t inner = 0;
  std::vector<Loop> loops = loops_of(v, dims, apart, &inner);
  for (size_t i = 0; i < inner; ++i) s->reduced *= loops[i].size;
  if (!loops.empty()) {
    s->n = loops[0].size;
    for (uint32_t k = 0; k < operands; ++k) s->walks[k] = loops[0].strides[k] != 0;
    for (size_t i = loops.size(); i-- > 1;) {
      s->rows *= loops[i].size;
      s->outer.push_back(std::move(loops[i]));
    }
  }
  s->step.assign(s->walks.begin(), s->walks.end());
  const int64_t elements = s->rows * s->n;
  if (apart > 0 && s->reduced == 0) decline("a reduction of nothing");
  if (elements == 0) s->rows = 0;
  s->pieces = (s->n + piece - 1) / piece;
  const int64_t results = apart > 0 ? elements / s->reduced : elements;
  const int64_t work = elements * static_cast<int64_t>(s->body.steps.size() + (apart > 0));
  if (inner > 1) {
    if (s->reduced > piece) decline("the operands repeat within what is reduced, which is long");
    take_several(*s, v, piece / s->reduced * (s->reduced / s->n), elements);
  } else if (s->rows > 1 && s->n < short_row) {
    take_several(*s, v, piece / s->n, elements);
  }
  // A result is one worker's work; apart, the element-wise nodes would be that of all.
  const uint32_t wanted = tiles_for(work, 32768, v.threads());
  if (apart > 0 && wanted > 1 && results < static_cast<int64_t>(wanted))
    decline("too few results for the workers");
  s->tiles = static_cast<uint32_t>(std::max<int64_t>(1, std::min<int64_t>(wanted, s->units())));
  const uint32_t tiles = s->tiles;
  const uint64_t bytes = static_cast<uint64_t>(s->slots * s->slot_bytes) + (apart > 0 ? partial_bytes : 0) +
                         operands * (sizeof(Row) + sizeof(int64_t));
  p.set(run, std::move(s), tiles, bytes);
}

template <bool InPlace>
void match(const PlanView& v) {
  if (fused_body(v).in_place() != InPlace)
    decline(InPlace ? "its result has another size than its operands"
                    : "the kernel that works in place takes it");
}

}  // namespace

void provide_fused_elementwise(Plugin& p) {
  KernelBuilder& kernel = p.kernel("tenon.cpu.fused_elementwise/1", "tenon::FusedElementwise")
                              .flags(TN_KERNEL_DETERMINISTIC)
                              .input();
  for (uint32_t i = 0; i < 4; ++i) kernel.in_place(0, i);
  kernel.match<match<true>>().plan<plan>();
  p.kernel("tenon.cpu.fused_elementwise_apart/1", "tenon::FusedElementwise")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input()
      .match<match<false>>()
      .plan<plan>();
}

}  // namespace tenon::cpu
