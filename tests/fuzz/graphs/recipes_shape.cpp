// Operators that move elements or compute with shapes.
#include "draw.hpp"

#include <algorithm>
#include <numeric>

namespace tenon::fuzz {

namespace {

const Dtypes movable = {TN_FLOAT32, TN_FLOAT32, TN_FLOAT32, TN_FLOAT32,  TN_FLOAT16, TN_INT64, TN_INT32,
                        TN_BOOL,    TN_UINT8,   TN_FLOAT64, TN_BFLOAT16, TN_STRING,  TN_INT8};

std::vector<int64_t> permutation(Drawer& d, int64_t rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = perm.size(); i > 1; --i) std::swap(perm[i - 1], perm[d.random.below(i)]);
  return perm;
}

bool add_transpose(Drawer& d) {
  Drawn x = d.any(movable, 1);
  for (int64_t i = d.random.between(1, 2); i > 0 && x.id != TN_NONE; --i)
    x = d.node1("Transpose", {x},
                d.random.chance(0.15) ? Attributes{} : Attributes{{"perm", permutation(d, x.rank())}});
  return x.id != TN_NONE;
}

bool add_reshape(Drawer& d) {
  Drawn x = d.any(movable);
  for (int64_t i = d.random.between(1, 3); i > 0 && x.id != TN_NONE; --i) {
    switch (d.random.below(5)) {
      case 0:
        x = d.node1("Flatten", {x}, {{"axis", d.random.between(-x.rank(), x.rank())}});
        break;
      case 1: {
        std::vector<int64_t> axes;
        for (int64_t k = d.random.between(1, 2); k > 0; --k) axes.push_back(d.random.between(0, x.rank()));
        std::sort(axes.begin(), axes.end());
        axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
        x = x.rank() > 4 ? Drawn{} : d.node1("Unsqueeze", {x, d.ints(axes)});
        break;
      }
      case 2: {
        std::vector<int64_t> axes;
        for (int64_t k = 0; k < x.rank(); ++k)
          if (x.dims[static_cast<size_t>(k)] == 1) axes.push_back(d.random.chance(0.5) ? k : k - x.rank());
        if (axes.empty()) return false;
        x = d.node1("Squeeze",
                    {x, d.random.chance(0.3) && d.wishes().symbolic == 0 ? Drawn{} : d.ints(axes)});
        break;
      }
      default: {
        // Another grouping of the same elements, with a -1 or a 0 now and then.
        std::vector<int64_t> shape = x.dims;
        for (size_t k = 0; k + 1 < shape.size(); ++k)
          if (d.random.chance(0.4)) {
            shape[k] *= shape[k + 1];
            shape.erase(shape.begin() + static_cast<ptrdiff_t>(k) + 1);
          }
        if (d.random.chance(0.3))
          shape.insert(shape.begin() + static_cast<ptrdiff_t>(d.random.below(shape.size() + 1)), 1);
        if (d.random.chance(0.2)) std::reverse(shape.begin(), shape.end());
        if (!shape.empty() && x.count() > 0 && d.random.chance(0.4)) shape[d.random.below(shape.size())] = -1;
        Attributes attributes;
        if (d.random.chance(0.1)) attributes.push_back({"allowzero", 1});
        x = d.node1("Reshape", {x, d.ints(shape)}, attributes);
      }
    }
  }
  return x.id != TN_NONE;
}

// The shape by way of Shape, Gather and Concat, as exporters write it.
bool add_shape_arithmetic(Drawer& d) {
  const Drawn x = d.any_float(2, 4);
  const Drawn shape = d.node1("Shape", {x});
  if (shape.id == TN_NONE) return false;
  const Drawn first = d.node1("Gather", {shape, d.ints({0})}, {{"axis", 0}});
  if (first.id == TN_NONE) return false;
  if (d.random.chance(0.3)) {
    const Drawn filled = d.node1("ConstantOfShape", {shape});
    return filled.id != TN_NONE && d.node1("Add", {filled, filled}).id != TN_NONE;
  }
  if (d.random.chance(0.2)) {
    const Drawn end = d.node1("Squeeze", {first});
    return end.id != TN_NONE &&
           d.node1("Range", {d.constant(int64_scalar(0)), end, d.constant(int64_scalar(1))}).id != TN_NONE;
  }
  if (x.count() == 0) return false;
  const Drawn target = d.node1("Concat", {first, d.ints({-1})}, {{"axis", 0}});
  return target.id != TN_NONE && d.node1("Reshape", {x, target}).id != TN_NONE;
}

bool add_slice(Drawer& d) {
  Drawn x = d.any(movable, 1);
  for (int64_t i = d.random.between(1, 2); i > 0 && x.id != TN_NONE && x.rank() > 0; --i) {
    std::vector<int64_t> starts, ends, axes, steps;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      if (!d.random.chance(0.5) && !(axis == 0 && x.rank() == 1)) continue;
      const int64_t size = x.dims[static_cast<size_t>(axis)];
      axes.push_back(d.random.chance(0.5) ? axis : axis - x.rank());
      const bool backward = d.random.chance(0.2);
      steps.push_back(d.random.chance(0.7) ? (backward ? -1 : 1) : (backward ? -2 : 2));
      starts.push_back(backward ? d.random.of<int64_t>({size - 1, -1, INT64_MAX})
                                : d.random.between(-size, size));
      ends.push_back(backward
                         ? d.random.of<int64_t>({INT64_MIN, 0, -size - 1})
                         : d.random.of<int64_t>({size, INT64_MAX, -1, d.random.between(-size, size + 2)}));
    }
    if (axes.empty()) return false;
    std::vector<Drawn> inputs = {x, d.ints(starts), d.ints(ends)};
    if (d.random.chance(0.9) || axes.size() < x.dims.size()) inputs.push_back(d.ints(axes));
    if (inputs.size() == 4 && d.random.chance(0.8)) inputs.push_back(d.ints(steps));
    x = d.node1("Slice", inputs);
  }
  return x.id != TN_NONE;
}

bool add_join_split(Drawer& d) {
  const Drawn x = d.any(movable, 1);
  const int64_t axis = d.axis(x.rank());
  const auto at = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
  if (d.random.chance(0.5)) {
    std::vector<Drawn> parts = {x};
    for (int64_t i = d.random.between(0, 3); i > 0; --i) {
      Dims dims = x.dims;
      if (d.random.chance(0.5)) dims[at] = d.random.between(0, 3);
      parts.push_back(d.operand(x.dtype, dims));
    }
    return d.node1("Concat", parts, {{"axis", axis}}).id != TN_NONE;
  }
  const int64_t size = x.dims[at];
  if (d.random.chance(0.5)) {
    std::vector<int64_t> sizes;
    for (int64_t left = size; left > 0;) {
      sizes.push_back(d.random.between(sizes.size() > 2 ? left : 0, left));
      left -= sizes.back();
    }
    if (sizes.empty()) return false;
    return !d.node("Split", {x, d.ints(sizes)}, {{"axis", axis}}, static_cast<uint32_t>(sizes.size()))
                .empty();
  }
  if (size < 1) return false;
  const int64_t parts = d.random.between(1, std::min<int64_t>(size, 3));
  return !d.node("Split", {x}, {{"axis", axis}, {"num_outputs", parts}}, static_cast<uint32_t>(parts))
              .empty();
}

Drawn indices(Drawer& d, const Dims& dims, int64_t size) {
  Tensor tensor(d.random.chance(0.8) ? TN_INT64 : TN_INT32, dims);
  for (uint64_t i = 0; i < tensor.count(); ++i) {
    const int64_t index = d.random.between(-size, size - 1);
    if (tensor.dtype() == TN_INT64)
      tensor.as<int64_t>()[i] = index;
    else
      tensor.as<int32_t>()[i] = static_cast<int32_t>(index);
  }
  return d.constant(tensor);
}

bool add_gather(Drawer& d) {
  const Drawn x = d.any(movable, 1);
  const int64_t axis = d.axis(x.rank());
  const auto at = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
  const int64_t size = x.dims[at];
  if (size == 0) return false;
  switch (d.random.below(6)) {
    case 0:
    case 1:
      return d.node1("Gather", {x, indices(d, d.random_dims(0, 2), size)}, {{"axis", axis}}).id != TN_NONE;
    case 2: {
      Dims dims = x.dims;
      dims[at] = d.random.between(1, 4);
      return d.node1("GatherElements", {x, indices(d, dims, size)}, {{"axis", axis}}).id != TN_NONE;
    }
    case 3: {
      int64_t smallest = x.dims[0];
      const int64_t depth = d.random.between(1, x.rank());
      for (int64_t i = 0; i < depth; ++i) smallest = std::min(smallest, x.dims[static_cast<size_t>(i)]);
      if (smallest == 0) return false;
      Drawn index = indices(d, {d.random.between(1, 4), depth}, smallest);
      if (index.dtype != TN_INT64) return false;
      return d.node1("GatherND", {x, index}).id != TN_NONE;
    }
    case 4: {
      Dims dims = x.dims;
      dims[at] = 1;  // one place an index: with several, the order of writing would decide
      return d.node1("ScatterElements", {x, indices(d, dims, size), d.operand(x.dtype, dims)},
                     {{"axis", axis}})
                 .id != TN_NONE;
    }
    default: {
      if (x.dims[0] == 0) return false;
      Dims updates(x.dims.begin() + 1, x.dims.end());
      updates.insert(updates.begin(), 1);
      Tensor index(TN_INT64, {1, 1});
      index.as<int64_t>()[0] = d.random.between(-x.dims[0], x.dims[0] - 1);
      return d.node1("ScatterND", {x, d.constant(index), d.operand(x.dtype, updates)}).id != TN_NONE;
    }
  }
}

bool add_stretch(Drawer& d) {
  const Drawn x = d.any(movable, 1);
  if (x.count() > 200) return false;
  switch (d.random.below(4)) {
    case 0: {
      Dims shape = x.dims;
      for (int64_t& dim : shape)
        if (dim == 1) dim = d.random.between(1, 3);
      if (d.random.chance(0.3)) shape.insert(shape.begin(), d.random.between(1, 3));
      return d.node1("Expand", {x, d.ints(shape)}).id != TN_NONE;
    }
    case 1: {
      std::vector<int64_t> repeats;
      for (int64_t i = 0; i < x.rank(); ++i)
        repeats.push_back(d.random.between(d.random.chance(0.1) ? 0 : 1, 2));
      return d.node1("Tile", {x, d.ints(repeats)}).id != TN_NONE;
    }
    default: {
      if (x.dtype == TN_STRING) return false;
      const char* const mode = d.random.of({"constant", "constant", "reflect", "edge", "wrap"});
      std::vector<int64_t> pads;
      for (int64_t i = 0; i < 2 * x.rank(); ++i) {
        const int64_t size = x.dims[static_cast<size_t>(i % x.rank())];
        pads.push_back(d.random.chance(0.5)
                           ? 0
                           : d.random.between(mode[0] == 'c' && size > 0 ? -1 : 0,
                                              std::min<int64_t>(2, std::max<int64_t>(size - 1, 0))));
      }
      const Drawn value =
          mode[0] == 'c' && d.random.chance(0.4) ? d.weight(x.dtype, {}, Fill::tame) : Drawn{};
      return d.node1("Pad", {x, d.ints(pads), value}, {{"mode", mode}}).id != TN_NONE;
    }
  }
}

bool add_other_moves(Drawer& d) {
  switch (d.random.below(9)) {
    case 0: {
      const Drawn x = d.any({TN_FLOAT32, TN_INT64, TN_FLOAT16, TN_BOOL}, 2, 4);
      return d.node1("Trilu",
                     {x, d.random.chance(0.5) ? Drawn{} : d.constant(int64_scalar(d.random.between(-2, 2)))},
                     {{"upper", d.random.between(0, 1)}})
                 .id != TN_NONE;
    }
    case 1: {
      const Drawn x = d.any({TN_FLOAT32, TN_BOOL, TN_INT32}, 1, 3);
      return d.node1("NonZero", {x}).id != TN_NONE;
    }
    case 2: {
      const Drawn x = d.any(movable, 1);
      const int64_t axis = d.random.between(0, x.rank() - 1);
      return d.node1("Compress", {x, d.operand(TN_BOOL, {x.dims[static_cast<size_t>(axis)]})},
                     {{"axis", axis}})
                 .id != TN_NONE;
    }
    case 3: {
      Tensor depth = int64_scalar(d.random.between(1, 5));
      Tensor values(TN_FLOAT32, {2});
      values.as<float>()[1] = 1;
      return d.node1("OneHot", {d.any({TN_INT64, TN_INT32}, 0, 2), d.constant(depth), d.constant(values)},
                     {{"axis", -1}})
                 .id != TN_NONE;
    }
    case 4:
      return d.node1("EyeLike", {d.any({TN_FLOAT32, TN_INT32, TN_INT64}, 2, 2)},
                     {{"k", d.random.between(-1, 1)}})
                 .id != TN_NONE;
    case 5: {
      const Drawn x = d.any({TN_FLOAT32, TN_FLOAT16}, 2, 4);
      const bool time_first = d.random.chance(0.5);
      const int64_t time = x.dims[time_first ? 0 : 1], batch = x.dims[time_first ? 1 : 0];
      if (time == 0) return false;
      std::vector<int64_t> lengths;
      for (int64_t i = 0; i < batch; ++i) lengths.push_back(d.random.between(1, time));
      return d.node1("ReverseSequence", {x, d.ints(lengths)},
                     {{"time_axis", time_first ? 0 : 1}, {"batch_axis", time_first ? 1 : 0}})
                 .id != TN_NONE;
    }
    case 6:
      return d.node1("Size", {d.any(movable)}).id != TN_NONE;
    case 7: {
      const Drawn x = d.any(movable);
      Attributes attributes;
      if (d.random.chance(0.5))
        attributes = {{"start", d.random.between(-3, 3)}, {"end", d.random.between(-3, 4)}};
      return d.node1("Shape", {x}, attributes).id != TN_NONE;
    }
    default: {
      const Drawn x = d.any({TN_FLOAT32, TN_INT64}, 1, 2);
      return !d.node("Unique", {x}, d.random.chance(0.5) ? Attributes{} : Attributes{{"axis", 0}}, 4).empty();
    }
  }
}

}  // namespace

std::span<const Recipe> shape_recipes() {
  static constexpr Recipe recipes[] = {{"transpose", 10, add_transpose},
                                       {"reshape", 12, add_reshape},
                                       {"shape arithmetic", 5, add_shape_arithmetic},
                                       {"slice", 9, add_slice},
                                       {"join and split", 8, add_join_split},
                                       {"gather", 9, add_gather},
                                       {"stretch", 7, add_stretch},
                                       {"other moves", 6, add_other_moves}};
  return recipes;
}

}  // namespace tenon::fuzz
