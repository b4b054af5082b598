// tenon::FusedElementwise: the body becomes a list of row calls that run over one piece after another, so
// that what lies between two of them stays in the first-level cache. The row functions are those of the
// separate kernels, and so are the bits.
#include <unordered_map>

#include "activation.hpp"
#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

constexpr int64_t piece = 1024;     // elements at most that one row call computes
constexpr int64_t short_row = 128;  // rows below this are computed several at a time
constexpr uint32_t result_slot = UINT32_MAX;

/// Where an operand of a step is: an operand of the node, or a slot of the workspace.
struct Source {
  bool outside = false;
  uint32_t index = 0;
};

struct Step {
  enum Kind : uint8_t { Unary, Two, Clip } kind = Unary;
  Activation act;
  Binary binary = Binary::Add;
  Source a, b;
  uint32_t low = UINT32_MAX, high = UINT32_MAX;  // operands of the node that hold Clip's bounds
  uint32_t slot = result_slot;
};

struct Body {
  std::vector<Step> steps;
  uint32_t slots = 0;
};

/// Reads the body; declines what the row functions do not have.
class Compiler {
 public:
  explicit Compiler(const PlanView& v) : graph_(v.graph()), region_(the_body(v)) {}

  Body compile() {
    const tn_region_info info = graph_.region(region_);
    if (info.output_count != 1)
      decline(format("its body has %u results, this kernel gives 1", info.output_count));
    for (uint32_t i = 0; i < info.input_count; ++i) known_[info.inputs[i]] = {true, i};
    const std::vector<tn_node> nodes = graph_.nodes(region_).copy();
    if (nodes.empty() || graph_.node(nodes.back()).output(0) != info.outputs[0])
      decline("the last node of its body does not give its result");
    shape_ = dims_of(graph_.value(info.outputs[0]).type).copy();
    for (uint32_t i = 0; i < nodes.size(); ++i)
      for (const tn_value v : graph_.node(nodes[i]).inputs())
        if (v != TN_NONE) last_read_[v] = i;
    for (uint32_t i = 0; i < nodes.size(); ++i) add(graph_.node(nodes[i]), i, i + 1 == nodes.size());
    return std::move(body_);
  }

 private:
  static tn_region the_body(const PlanView& v) {
    if (v.regions().size() != 1) decline("it keeps no body");
    return v.regions()[0];
  }

  void add(const Node& node, uint32_t position, bool is_last) {
    const tn_type type = graph_.value(node.output(0)).type;
    if (type.dtype != TN_FLOAT32 || type.rank < 0 || dims_of(type).copy() != shape_)
      decline("node " + node.label() + " of its body is not float32, or not of the result's shape");
    const std::string_view op = node.op_name();
    Step step;
    if (op == "Clip") {
      step.kind = Step::Clip;
      step.a = source(node, 0);
      step.low = bound(node, 1);
      step.high = bound(node, 2);
    } else if (const auto act = node.inputs().size() == 1 ? activation_of(op, node.attrs()) : std::nullopt) {
      step.act = *act;
      step.a = source(node, 0);
    } else if (const auto binary = node.inputs().size() == 2 ? binary_of(op) : std::nullopt) {
      step.kind = Step::Two;
      step.binary = *binary;
      step.a = source(node, 0);
      step.b = source(node, 1);
    } else {
      decline("no row function computes " + std::string(op) + " (node " + node.label() + " of its body)");
    }
    // A row may be written over one that it reads, so what is read here for the last time gives its slot.
    for (const tn_value v : node.inputs()) {
      if (v == TN_NONE || last_read_.at(v) != position) continue;
      const auto at = known_.find(v);
      if (at == known_.end() || at->second.outside) continue;
      free_.push_back(at->second.index);
      known_.erase(at);
    }
    if (!is_last) {
      if (free_.empty()) free_.push_back(body_.slots++);
      step.slot = free_.back();
      free_.pop_back();
      known_[node.output(0)] = {false, step.slot};
    }
    body_.steps.push_back(step);
  }

  Source source(const Node& node, uint32_t i) {
    const auto at = known_.find(node.input(i));
    if (at == known_.end()) decline("node " + node.label() + " of its body reads what is no operand");
    return at->second;
  }

  uint32_t bound(const Node& node, uint32_t i) {
    if (node.input(i) == TN_NONE) return UINT32_MAX;
    const Source s = source(node, i);
    const tn_type type = graph_.value(node.input(i)).type;
    for (const tn_dim d : dims_of(type))
      if (d != 1) decline("the bounds of " + node.label() + " are not one number each");
    if (!s.outside || type.rank < 0) decline("the bounds of " + node.label() + " are computed in its body");
    return s.index;
  }

  GraphView graph_;
  tn_region region_;
  std::vector<tn_dim> shape_;
  std::unordered_map<tn_value, Source> known_;
  std::unordered_map<tn_value, uint32_t> last_read_;
  std::vector<uint32_t> free_;
  Body body_;
};

struct Loop {
  int64_t size;
  std::vector<int64_t> strides;  // by operand, in elements; 0: repeated
};

struct State {
  Body body;
  std::vector<Loop> outer;               // outermost first
  int64_t n = 1, rows = 1;               // a row is n elements
  int64_t rows_at_once = 1, pieces = 1;  // one of the two is 1
  std::vector<int> step;                 // by operand, within a row
  std::vector<uint32_t> spread;    // operands that change within rows_at_once rows, and are copied out first
  std::vector<uint32_t> slot_of;   // by operand, of `spread`
  std::vector<uint8_t> same_rows;  // by operand: it has one row for all, which need be copied out once
  uint32_t slots = 0, tiles = 1;
  int64_t units() const {
    return rows_at_once > 1 ? (rows + rows_at_once - 1) / rows_at_once : rows * pieces;
  }
};

struct Place {
  const float* data;
  int step;
};

void compute(const State& s, const tn_kernel_args* args, const Place* operands, float* workspace, float* y,
             int64_t count) noexcept {
  for (const Step& step : s.body.steps) {
    const auto at = [&](const Source& source) {
      return source.outside ? operands[source.index] : Place{workspace + source.index * piece, 1};
    };
    float* const to = step.slot == result_slot ? y : workspace + step.slot * piece;
    const Place a = at(step.a);
    if (step.kind == Step::Two) {
      const Place b = at(step.b);
      binary_row(step.binary, a.data, a.step, b.data, b.step, to, count);
    } else if (step.kind == Step::Unary) {
      apply(step.act, a.data, to, count);
    } else {
      const float infinity = std::numeric_limits<float>::infinity();
      const float low = step.low == UINT32_MAX ? -infinity : *in<float>(args, step.low),
                  high = step.high == UINT32_MAX ? infinity : *in<float>(args, step.high);
      apply({Act::Clip, low, high}, a.data, to, count);
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

int run(const tn_kernel_args* args, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(args);
  const size_t operands = s.step.size();
  char* const memory = workspace<char>(args, worker);
  auto* const slots = reinterpret_cast<float*>(memory);
  auto* const places = reinterpret_cast<Place*>(memory + s.slots * piece * sizeof(float));
  auto* const offsets = reinterpret_cast<int64_t*>(places + operands);
  const Range range = tile_range(s.units(), s.tiles, tile);
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const int64_t row = s.rows_at_once > 1 ? unit * s.rows_at_once : unit / s.pieces;
    const int64_t first = s.rows_at_once > 1 ? 0 : unit % s.pieces * piece;
    const int64_t count =
        s.rows_at_once > 1 ? std::min(s.rows_at_once, s.rows - row) * s.n : std::min(piece, s.n - first);
    row_offsets(s, row, offsets);
    for (size_t k = 0; k < operands; ++k)
      places[k] = {in<float>(args, static_cast<uint32_t>(k)) + offsets[k] + (s.step[k] ? first : 0),
                   s.step[k]};
    for (const uint32_t k : s.spread) {
      float* to = slots + s.slot_of[k] * piece;
      places[k] = {to, 1};
      if (s.same_rows[k] && unit != range.begin) continue;
      for (int64_t r = row; r < row + count / s.n; ++r, to += s.n) {
        row_offsets(s, r, offsets);
        const float* from = in<float>(args, k) + offsets[k];
        if (s.step[k])
          std::copy_n(from, s.n, to);
        else
          std::fill_n(to, s.n, *from);
      }
    }
    compute(s, args, places, slots, out<float>(args) + row * s.n + first, count);
  }
  return 0;
}

/// Dims that all operands walk, or repeat, alike become one; the innermost is the row.
std::vector<Loop> loops_of(const PlanView& v) {
  const auto y = v.output().dims();
  const uint32_t operands = v.input_count();
  std::vector<int64_t> stride(operands, 1);
  std::vector<Loop> loops;  // innermost first
  for (size_t back = 1; back <= y.size(); ++back) {
    const int64_t n = y[y.size() - back];
    if (n == 1) continue;
    Loop loop{n, std::vector<int64_t>(operands)};
    bool goes_on = !loops.empty();
    for (uint32_t k = 0; k < operands; ++k) {
      const auto dims = v.input(k).dims();
      const int64_t d = back <= dims.size() ? dims[dims.size() - back] : 1;
      loop.strides[k] = d == 1 ? 0 : stride[k];
      stride[k] *= d;
      if (!goes_on) continue;
      const int64_t inner = loops.back().strides[k];
      goes_on = inner == 0 ? loop.strides[k] == 0 : loop.strides[k] == inner * loops.back().size;
    }
    if (goes_on)
      loops.back().size *= n;
    else
      loops.push_back(std::move(loop));
  }
  return loops;
}

void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  auto s = std::make_unique<State>();
  s->body = Compiler(v).compile();
  const uint32_t operands = v.input_count();
  s->step.assign(operands, 0);
  s->slot_of.assign(operands, 0);
  s->same_rows.assign(operands, 0);
  s->slots = s->body.slots;
  std::vector<Loop> loops = loops_of(v);
  if (!loops.empty()) {
    s->n = loops[0].size;
    for (uint32_t k = 0; k < operands; ++k) s->step[k] = loops[0].strides[k] != 0;
    for (size_t i = loops.size(); i-- > 1;) {
      s->rows *= loops[i].size;
      s->outer.push_back(std::move(loops[i]));
    }
  }
  if (v.output().count() == 0) s->rows = 0;
  s->pieces = (s->n + piece - 1) / piece;
  if (s->rows > 1 && s->n < short_row) {
    s->pieces = 1;
    s->rows_at_once = piece / s->n;
    for (uint32_t k = 0; k < operands; ++k) {
      const auto count = v.input(k).count();
      if (count == v.output().count() || count == 1) continue;
      s->slot_of[k] = s->slots++;
      s->same_rows[k] =
          std::all_of(s->outer.begin(), s->outer.end(), [&](const Loop& l) { return l.strides[k] == 0; });
      s->spread.push_back(k);
    }
  }
  const int64_t work = s->rows * s->n * static_cast<int64_t>(s->body.steps.size());
  s->tiles = static_cast<uint32_t>(
      std::max<int64_t>(1, std::min<int64_t>(tiles_for(work, 32768, v.threads()), s->units())));
  const uint32_t tiles = s->tiles;
  const uint64_t bytes = s->slots * piece * sizeof(float) + operands * (sizeof(Place) + sizeof(int64_t));
  p.set(run, std::move(s), tiles, bytes);
}

void match(const PlanView& v) { Compiler(v).compile(); }

}  // namespace

void provide_fused_elementwise(Plugin& p) {
  KernelBuilder& kernel = p.kernel("tenon.cpu.fused_elementwise/1", "tenon::FusedElementwise")
                              .flags(TN_KERNEL_DETERMINISTIC)
                              .input({TN_FLOAT32});
  for (uint32_t i = 0; i < 4; ++i) kernel.in_place(0, i);
  kernel.match<match>().plan<plan>();
}

}  // namespace tenon::cpu
