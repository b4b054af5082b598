// Results whose size depends on data: NonZero, Compress, Unique, NonMaxSuppression.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct SelectState {
  bool has_axis = false, sorted = true, center = false;
  int64_t axis = 0;
};
void plan_state(const PlanView& v, SelectState& s) {
  s.has_axis = v.attrs().has("axis");
  s.axis = v.attrs().get_int("axis", 0);
  s.sorted = v.attrs().get_int("sorted", 1) != 0;
  s.center = v.attrs().get_int("center_point_box", 0) != 0;
}

/// A complex number is two real ones.
tn_dtype part_type(tn_dtype dtype) noexcept {
  return dtype == TN_COMPLEX64 ? TN_FLOAT32 : dtype == TN_COMPLEX128 ? TN_FLOAT64 : dtype;
}
int64_t parts_of(tn_dtype dtype) noexcept { return part_type(dtype) == dtype ? 1 : 2; }

std::vector<bool> truth(const TensorView& x) {
  std::vector<bool> r(static_cast<size_t>(x.count()));
  if (x.dtype() == TN_STRING) {
    for (size_t i = 0; i < r.size(); ++i) r[i] = x.data<tn_str>()[i].size != 0;
    return r;
  }
  const int64_t parts = parts_of(x.dtype());
  const auto load = loader<double>(part_type(x.dtype()));
  for (size_t i = 0; i < r.size(); ++i) {
    double value[2] = {};
    load(x.raw().data, static_cast<int64_t>(i) * parts, 1, parts, value);
    r[i] = value[0] != 0 || value[1] != 0;
  }
  return r;
}

void non_zero(Run& run, const tn_kernel_args*) {
  const auto x = run.input(0);
  const auto set = truth(x);
  const auto n = static_cast<int64_t>(std::count(set.begin(), set.end(), true));
  const int32_t rank = x.rank();
  auto* y = static_cast<int64_t*>(run.output(0, TN_INT64, Dims{rank, n}));
  int64_t column = 0;
  for (size_t i = 0; i < set.size(); ++i) {
    if (!set[i]) continue;
    auto rest = static_cast<int64_t>(i);
    for (int32_t a = rank; a-- > 0; rest /= x.dims()[static_cast<size_t>(a)])
      y[a * n + column] = rest % x.dims()[static_cast<size_t>(a)];
    ++column;
  }
}

void compress(Run& run, const tn_kernel_args* a) {
  const auto& s = state<SelectState>(a);
  const auto x = run.input(0), condition = run.input(1);
  Dims dims = s.has_axis ? x.dims().copy() : Dims{x.count()};
  const auto axis = static_cast<size_t>(s.has_axis ? axis_of(s.axis, x.rank()) : 0);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < std::min(condition.count(), dims[axis]); ++i)
    if (condition.int_at(i)) kept.push_back(i);
  const int64_t outer = product(dims, 0, axis), size = dims[axis],
                inner = product(dims, axis + 1, dims.size()) * element_bytes(x.dtype());
  const auto n = static_cast<int64_t>(kept.size());
  dims[axis] = n;
  auto* y = static_cast<char*>(run.output(0, x.dtype(), dims));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < n; ++k)
      std::memcpy(y + (o * n + k) * inner, x.data<char>() + (o * size + kept[static_cast<size_t>(k)]) * inner,
                  static_cast<size_t>(inner));
}

/// Items to compare: slices along an axis, or single elements.
struct Items {
  TensorView x;
  int64_t count = 0, each = 1, outer = 1, inner = 1, parts = 1;
  std::vector<double> numbers;  // parts of them an element
  std::vector<int64_t> integers;
  int64_t place(int64_t item, int64_t k) const noexcept {
    return (k / inner * count + item) * inner + k % inner;
  }
  int compare_at(int64_t p, int64_t q) const noexcept {
    if (x.dtype() == TN_STRING) return view(x.data<tn_str>()[p]).compare(view(x.data<tn_str>()[q]));
    if (!integers.empty()) {
      const auto a = integers[static_cast<size_t>(p)], b = integers[static_cast<size_t>(q)];
      if (x.dtype() == TN_UINT64) return static_cast<uint64_t>(a) < static_cast<uint64_t>(b) ? -1 : a != b;
      return a < b ? -1 : a > b;
    }
    for (int64_t part = 0; part < parts; ++part) {
      const double a = numbers[static_cast<size_t>(p * parts + part)],
                   b = numbers[static_cast<size_t>(q * parts + part)];
      const int c = a != a || b != b ? (a != a) - (b != b) : a < b ? -1 : a > b;  // NaN last, and one
      if (c) return c;
    }
    return 0;
  }
  int compare(int64_t i, int64_t j) const noexcept {
    for (int64_t k = 0; k < each; ++k)
      if (const int c = compare_at(place(i, k), place(j, k))) return c;
    return 0;
  }
};
void unique(Run& run, const tn_kernel_args* a) {
  const auto& s = state<SelectState>(a);
  Items items;
  items.x = run.input(0);
  const auto& x = items.x;
  Dims dims = s.has_axis ? x.dims().copy() : Dims{x.count()};
  const auto axis = static_cast<size_t>(s.has_axis ? axis_of(s.axis, x.rank()) : 0);
  items.count = dims[axis];
  items.outer = product(dims, 0, axis);
  items.inner = std::max<int64_t>(product(dims, axis + 1, dims.size()), 1);
  items.each = items.outer * product(dims, axis + 1, dims.size());
  const auto total = static_cast<size_t>(x.count());
  if (is_float(part_type(x.dtype()))) {
    items.parts = parts_of(x.dtype());
    items.numbers.resize(total * static_cast<size_t>(items.parts));
    loader<double>(part_type(x.dtype()))(x.raw().data, 0, 1, x.count() * items.parts, items.numbers.data());
  } else if (x.dtype() != TN_STRING) {
    items.integers.resize(total);
    loader<int64_t>(x.dtype())(x.raw().data, 0, 1, x.count(), items.integers.data());
  }
  std::vector<int64_t> order(static_cast<size_t>(items.count));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return items.compare(i, j) < 0; });
  std::vector<int64_t> first, counts, group(order.size());  // equal items, by value
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || items.compare(order[i - 1], order[i]) != 0) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    group[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
  }
  std::vector<int64_t> rank(first.size()), by(first.size());  // the group in place i of the result
  for (size_t i = 0; i < by.size(); ++i) by[i] = static_cast<int64_t>(i);
  if (!s.sorted)
    std::sort(by.begin(), by.end(), [&](int64_t i, int64_t j) {
      return first[static_cast<size_t>(i)] < first[static_cast<size_t>(j)];
    });
  for (size_t i = 0; i < by.size(); ++i) rank[static_cast<size_t>(by[i])] = static_cast<int64_t>(i);

  const auto n = static_cast<int64_t>(first.size());
  dims[axis] = n;
  const int64_t bytes = element_bytes(x.dtype());
  auto* y = static_cast<char*>(run.output(0, x.dtype(), dims));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < items.each; ++k)
      std::memcpy(
          y + ((k / items.inner * n + i) * items.inner + k % items.inner) * bytes,
          x.data<char>() + items.place(first[static_cast<size_t>(by[static_cast<size_t>(i)])], k) * bytes,
          static_cast<size_t>(bytes));
  const auto list = [&](uint32_t output, int64_t size, auto&& f) {
    if (output >= a->output_count) return;
    auto* to = static_cast<int64_t*>(run.output(output, TN_INT64, Dims{size}));
    for (int64_t i = 0; i < size; ++i) to[i] = f(static_cast<size_t>(i));
  };
  list(1, n, [&](size_t i) { return first[static_cast<size_t>(by[i])]; });
  list(2, items.count, [&](size_t i) { return rank[static_cast<size_t>(group[i])]; });
  list(3, n, [&](size_t i) { return counts[static_cast<size_t>(by[i])]; });
}

struct Box {
  double y1, x1, y2, x2;
};
double overlap(const Box& a, const Box& b) noexcept {
  const double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1),
               w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (h <= 0 || w <= 0) return 0;
  const double both = h * w, all = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - both;
  return all > 0 ? both / all : 0;
}
void non_max_suppression(Run& run, const tn_kernel_args* a) {
  const auto& s = state<SelectState>(a);
  const auto boxes = run.input(0), scores = run.input(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dims()[2] != 4 ||
      boxes.dims()[0] != scores.dims()[0] || boxes.dims()[1] != scores.dims()[2])
    fail(format("NonMaxSuppression's boxes %s and scores %s do not fit; expected [B, N, 4] and [B, C, N]",
                dims_text(boxes.dims()).c_str(), dims_text(scores.dims()).c_str()));
  const int64_t batches = boxes.dims()[0], n = boxes.dims()[1], classes = scores.dims()[1];
  const int64_t most = run.has_input(2) ? run.input(2).int_at(0) : 0;
  const double iou = run.has_input(3) ? run.input(3).float_at(0) : 0;
  const bool has_threshold = run.has_input(4);
  const double threshold = has_threshold ? run.input(4).float_at(0) : 0;
  std::vector<int64_t> found;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t c = 0; c < classes && most > 0; ++c) {
      std::vector<int64_t> order;
      for (int64_t i = 0; i < n; ++i)
        if (!has_threshold || scores.float_at((b * classes + c) * n + i) > threshold) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return scores.float_at((b * classes + c) * n + i) > scores.float_at((b * classes + c) * n + j);
      });
      const auto box = [&](int64_t i) {
        double q[4];
        for (int64_t k = 0; k < 4; ++k) q[k] = boxes.float_at((b * n + i) * 4 + k);
        if (s.center) return Box{q[1] - q[3] / 2, q[0] - q[2] / 2, q[1] + q[3] / 2, q[0] + q[2] / 2};
        return Box{std::min(q[0], q[2]), std::min(q[1], q[3]), std::max(q[0], q[2]), std::max(q[1], q[3])};
      };
      std::vector<Box> kept;
      for (int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const Box candidate = box(i);
        if (std::any_of(kept.begin(), kept.end(), [&](const Box& k) { return overlap(k, candidate) > iou; }))
          continue;
        kept.push_back(candidate);
        found.insert(found.end(), {b, c, i});
      }
    }
  auto* y = run.output(0, TN_INT64, Dims{static_cast<int64_t>(found.size() / 3), 3});
  if (!found.empty()) std::memcpy(y, found.data(), found.size() * sizeof(int64_t));
}

template <void (*F)(Run&, const tn_kernel_args*)>
void plan_select(const PlanView& v, Planned& p) {
  auto s = std::make_unique<SelectState>();
  plan_state(v, *s);
  p.set(dynamic_kernel<F>, std::move(s));
}

}  // namespace

void provide_select(Plugin& p) {
  constexpr uint32_t dynamic = TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT;
  reference_kernel(p, "NonZero").flags(dynamic).plan<plan_select<non_zero>>();
  reference_kernel(p, "Compress").flags(dynamic).plan<plan_select<compress>>();
  reference_kernel(p, "Unique").flags(dynamic).plan<plan_select<unique>>();
  reference_kernel(p, "NonMaxSuppression").flags(dynamic).plan<plan_select<non_max_suppression>>();
}

}  // namespace tenon::reference
