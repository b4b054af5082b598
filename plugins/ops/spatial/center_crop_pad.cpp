// CenterCropPad: each axis is cut or filled with zeros (false, empty text) at both ends. An odd element is
// cut, or added, at the end.
#include "families.hpp"
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct CropState : Base {
  int64_t bytes = 0, rows = 0;
  int64_t shift[max_rank] = {};  // operand index = result index + shift
};
int crop_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<CropState>(a);
  const int last = s.out[0].rank() - 1;
  const int64_t width = s.out[0].dim(last), from_width = s.in[0].dim(last), shift = s.shift[last];
  const int64_t begin = std::max<int64_t>(0, -shift), end = std::min(width, from_width - shift);
  const auto r = tile_range(s.rows, s.tiles, tile);
  for (int64_t row = r.begin; row < r.end; ++row) {
    char* to = out<char>(a) + row * width * s.bytes;
    std::memset(to, 0, static_cast<size_t>(width * s.bytes));
    int64_t rest = row, place = 0, stride = from_width;
    bool inside = begin < end;
    for (int k = last; k-- > 0; rest /= s.out[0].dim(k)) {
      const int64_t i = rest % s.out[0].dim(k) + s.shift[k];
      inside = inside && i >= 0 && i < s.in[0].dim(k);
      place += i * stride;
      stride *= s.in[0].dim(k);
    }
    if (inside)
      std::memcpy(to + begin * s.bytes, in<char>(a, 0) + (place + begin + shift) * s.bytes,
                  static_cast<size_t>((end - begin) * s.bytes));
  }
  return run_ok;
}
void plan_crop(const PlanView& v, Planned& p) {
  auto s = make_state<CropState>(v);
  const auto &x = s->in[0].dims, &y = s->out[0].dims;
  if (y.size() != x.size() || x.empty())
    fail("CenterCropPad keeps the rank of its operand, which must be 1 or more");
  for (size_t i = 0; i < x.size(); ++i) s->shift[i] = x[i] > y[i] ? (x[i] - y[i]) / 2 : -((y[i] - x[i]) / 2);
  s->bytes = element_bytes(s->in[0].dtype);
  s->rows = y.back() > 0 ? s->out[0].count / y.back() : 0;
  const int64_t rows = s->rows, work = s->out[0].count + rows * 16;
  finish(v, p, crop_fn, std::move(s), rows, work);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_crop(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  ranked(c, 1, "shape", 1, 1);
  if (!ranked(c, 0, "input_data", 1)) return c.set_unranked(0, dtype);
  auto out = c.dims(0);
  Dims axes = c.attrs().get_ints("axes").copy();
  if (!c.attrs().has("axes"))
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  const auto shape = c.elements(1);
  const auto count = shape           ? std::optional<int64_t>(static_cast<int64_t>(shape->size()))
                     : c.has_rank(1) ? c.number(c.dims(1)[0])
                                     : std::nullopt;
  require(!count || *count == static_cast<int64_t>(axes.size()),
          "operand shape has " + text_of(count.value_or(0)) + " numbers for " +
              text_of(static_cast<int64_t>(axes.size())) + " axes");
  std::vector<bool> seen(out.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = Infer::axis(axes[i], c.rank(0), "attribute 'axes': value");
    const auto k = static_cast<size_t>(axis);
    require(!seen[k], "attribute 'axes' names axis " + text_of(axis) + " twice");
    seen[k] = true;
    out[k] = shape ? (*shape)[i] : c.data_dependent(0, static_cast<uint32_t>(axis));
    if (const auto v = shape ? c.number(out[k]) : std::nullopt)
      require(*v >= 0, "operand shape is " + c.text(*shape) + "; expected sizes of 0 or more");
  }
  c.set(0, dtype, out);
}

}  // namespace

void add_center_crop_pad(Plugin& p) {
  define(p, "CenterCropPad").infer<infer_crop>();
  reference::reference_kernel(p, "CenterCropPad").plan<reference::plan_crop>();
}

}  // namespace tenon::ops
