// Reductions over axes that may be known only in the run. Real sums are float64, integer sums wrap; NaN wins
// in ReduceMax and ReduceMin. An empty reduction gives the neutral element: 0, 1, -inf or the lowest, +inf or
// the highest; its mean is NaN.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

template <class C>
constexpr bool real = std::is_same_v<C, double>;
template <class C>
C plus(C a, C b) noexcept {
  if constexpr (real<C>)
    return a + b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class C>
C times(C a, C b) noexcept {
  if constexpr (real<C>)
    return a * b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

struct SumR {
  template <class C>
  static C first() {
    return 0;
  }
  template <class C>
  static C fold(C acc, C x) noexcept {
    return plus(acc, x);
  }
};
struct AbsR {
  template <class C>
  static C first() {
    return 0;
  }
  template <class C>
  static C fold(C acc, C x) noexcept {
    return plus(acc, x < 0 ? times(x, static_cast<C>(-1)) : x);
  }
};
struct SquareR {
  template <class C>
  static C first() {
    return 0;
  }
  template <class C>
  static C fold(C acc, C x) noexcept {
    return plus(acc, times(x, x));
  }
};
struct ProdR {
  template <class C>
  static C first() {
    return 1;
  }
  template <class C>
  static C fold(C acc, C x) noexcept {
    return times(acc, x);
  }
};
struct MaxR {
  template <class C>
  static C first() {
    return real<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
  }
  template <class C>
  static C fold(C acc, C x) noexcept {
    return acc >= x || acc != acc ? acc : x;
  }
};
struct MinR {
  template <class C>
  static C first() {
    return real<C> ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
  }
  template <class C>
  static C fold(C acc, C x) noexcept {
    return acc <= x || acc != acc ? acc : x;
  }
};

template <class C>
struct Folding {
  C first;
  C (*row)(C acc, const C* x, int64_t n);         // folds x into one number
  void (*column)(C* acc, const C* x, int64_t n);  // folds element by element
};
template <class C, class R>
C fold_row(C acc, const C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc = R::template fold<C>(acc, x[i]);
  return acc;
}
template <class C, class R>
void fold_column(C* acc, const C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] = R::template fold<C>(acc[i], x[i]);
}
template <class C, class R>
Folding<C> folding() {
  return {R::template first<C>(), fold_row<C, R>, fold_column<C, R>};
}

enum class Ending { none, mean, root, log, log_exp };

template <class C>
struct ReduceState : Base {
  Folding<C> folding{};
  Ending ending = Ending::none;
  bool empty_means_none = false;
  Dims attribute_axes;  // older spelling; operands win
  Load<C> load = nullptr;
  Store<C> store = nullptr;
};

template <class C>
int reduce_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ReduceState<C>>(a);
  const auto& dims = s.in[0].dims;
  const int rank = s.in[0].rank();
  bool reduced[max_rank] = {};
  const int64_t listed = s.has_in(1) ? s.in[1].count : 0;
  for (int64_t i = 0; i < listed; ++i) {
    const int64_t axis = integer_at(a->inputs[1], s.in[1].dtype, i);
    if (axis < -rank || axis >= rank) return index_fail(a, "a reduction's axis", axis, rank);
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
  for (int64_t axis : s.attribute_axes) reduced[axis] = true;
  if (listed == 0 && s.attribute_axes.empty() && !s.empty_means_none)
    std::fill(reduced, reduced + max_rank, true);

  int64_t strides[max_rank] = {}, stride = 1;
  for (int i = rank; i-- > 0; stride *= dims[static_cast<size_t>(i)]) strides[i] = stride;
  Walk<1> kept, gone;
  for (int i = 0; i < rank; ++i) (reduced[i] ? gone : kept).axis(dims[static_cast<size_t>(i)], {strides[i]});
  if (kept.count != s.out[0].count)
    return run_fail(a, run_bad_operand, "a reduction's axes do not yield the shape that was planned");

  const auto r = tile_range(kept.count, s.tiles, tile);
  const int64_t kept_stride = kept.inner_stride(0), gone_stride = gone.inner_stride(0);
  const auto finish_block = [&](C* acc, int64_t n, int64_t at) {
    for (int64_t i = 0; i < n; ++i) {
      if (s.ending == Ending::mean) {
        if constexpr (real<C>)
          acc[i] /= static_cast<double>(gone.count);
        else
          acc[i] = gone.count ? acc[i] / static_cast<C>(gone.count) : 0;
      } else if constexpr (real<C>) {
        if (s.ending == Ending::root)
          acc[i] = std::sqrt(acc[i]);
        else if (s.ending == Ending::log)
          acc[i] = std::log(acc[i]);
      }
    }
    s.store(acc, n, a->outputs[0], at);
  };
  C x[block];
  if constexpr (real<C>) {
    if (s.ending == Ending::log_exp) {  // log sum exp(x - largest) + largest
      const auto largest_of = folding<C, MaxR>();
      kept.rows(r.begin, r.end, [&](int64_t at, const int64_t(&offset)[1], int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          double largest = largest_of.first, sum = 0;
          const auto each = [&](auto&& f) {
            gone.rows(0, gone.count, [&](int64_t, const int64_t(&o)[1], int64_t m) {
              for (int64_t q = 0; q < m; q += block) {
                const int64_t k = std::min(block, m - q);
                s.load(a->inputs[0], offset[0] + i * kept_stride + o[0] + q * gone_stride, gone_stride, k, x);
                f(k);
              }
            });
          };
          each([&](int64_t k) { largest = largest_of.row(largest, x, k); });
          if (std::isinf(largest)) largest = 0;
          each([&](int64_t k) {
            for (int64_t q = 0; q < k; ++q) sum += std::exp(x[q] - largest);
          });
          const double y = std::log(sum) + largest;
          s.store(&y, 1, a->outputs[0], at + i);
        }
      });
      return run_ok;
    }
  }
  if (kept_stride == 1 && gone_stride != 1) {  // runs of results beside one another
    C acc[block];
    kept.rows(r.begin, r.end, [&](int64_t at, const int64_t(&offset)[1], int64_t n) {
      for (int64_t i = 0; i < n; i += block) {
        const int64_t k = std::min(block, n - i);
        std::fill(acc, acc + k, s.folding.first);
        gone.rows(0, gone.count, [&](int64_t, const int64_t(&o)[1], int64_t m) {
          for (int64_t q = 0; q < m; ++q) {
            s.load(a->inputs[0], offset[0] + i + o[0] + q * gone_stride, 1, k, x);
            s.folding.column(acc, x, k);
          }
        });
        finish_block(acc, k, at + i);
      }
    });
    return run_ok;
  }
  kept.rows(r.begin, r.end, [&](int64_t at, const int64_t(&offset)[1], int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      C acc = s.folding.first;
      gone.rows(0, gone.count, [&](int64_t, const int64_t(&o)[1], int64_t m) {
        for (int64_t q = 0; q < m; q += block) {
          const int64_t k = std::min(block, m - q);
          s.load(a->inputs[0], offset[0] + i * kept_stride + o[0] + q * gone_stride, gone_stride, k, x);
          acc = s.folding.row(acc, x, k);
        }
      });
      finish_block(&acc, 1, at + i);
    }
  });
  return run_ok;
}

template <class C>
void plan_as(const PlanView& v, Planned& p) {
  auto s = make_state<ReduceState<C>>(v);
  const auto op = v.op_name();
  if (op == "ReduceL1")
    s->folding = folding<C, AbsR>();
  else if (op == "ReduceL2" || op == "ReduceSumSquare")
    s->folding = folding<C, SquareR>();
  else if (op == "ReduceProd")
    s->folding = folding<C, ProdR>();
  else if (op == "ReduceMax")
    s->folding = folding<C, MaxR>();
  else if (op == "ReduceMin")
    s->folding = folding<C, MinR>();
  else
    s->folding = folding<C, SumR>();
  if constexpr (!real<C>) {
    // The neutral elements of the type itself, which survive being stored.
    if (op == "ReduceMax" || op == "ReduceMin")
      visit_number(s->in[0].dtype, [&](auto x) {
        using T = decltype(x);
        s->folding.first = static_cast<C>(op == "ReduceMax" ? std::numeric_limits<T>::lowest()
                                                            : std::numeric_limits<T>::max());
      });
  }
  s->ending = op == "ReduceMean"        ? Ending::mean
              : op == "ReduceL2"        ? Ending::root
              : op == "ReduceLogSum"    ? Ending::log
              : op == "ReduceLogSumExp" ? Ending::log_exp
                                        : Ending::none;
  s->empty_means_none = v.attrs().get_int("noop_with_empty_axes", 0) != 0;
  for (int64_t axis : v.attrs().get_ints("axes")) s->attribute_axes.push_back(axis_of(axis, s->in[0].rank()));
  s->load = loader<C>(s->in[0].dtype);
  s->store = storer<C>(s->out[0].dtype);
  const int64_t units = s->out[0].count, work = s->in[0].count * 2;
  finish(v, p, reduce_fn<C>, std::move(s), units, work);
}
void plan_reduce(const PlanView& v, Planned& p) {
  const auto op = v.op_name();
  const Domain domain = domain_of(v.input(0).dtype());
  if (domain == Domain::real || op == "ReduceL2" || op == "ReduceLogSum" || op == "ReduceLogSumExp")
    plan_as<double>(v, p);
  else if (domain == Domain::signed_integer)
    plan_as<int64_t>(v, p);
  else
    plan_as<uint64_t>(v, p);
}

}  // namespace

void provide_reduce(Plugin& p) {
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                         "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"})
    reference_kernel(p, op).plan<plan_reduce>();
}

}  // namespace tenon::reference
