// Einsum by its definition, and RotaryEmbedding.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

// Each axis name is a letter; the axes an ellipsis stands for are numbered from -1 down, the last axis first.
struct EinsumState : Base {
  std::vector<int64_t> kept, summed;  // sizes of the result's axes, of the others
  std::vector<std::vector<int64_t>> kept_strides, summed_strides;  // of each operand
};

template <class C>
int einsum_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<EinsumState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  const size_t operands = s.in.size();
  int64_t terms = 1;
  for (int64_t n : s.summed) terms *= n;
  const auto store = storer<C>(s.out[0].dtype);
  const auto load = loader<C>(s.in[0].dtype);
  for (int64_t at = r.begin; at < r.end; ++at) {
    C sum = 0;
    for (int64_t term = 0; term < terms; ++term) {
      C factor = 1;
      for (size_t k = 0; k < operands; ++k) {
        int64_t offset = 0, rest = at;
        for (size_t i = s.kept.size(); i-- > 0; rest /= s.kept[i])
          offset += rest % s.kept[i] * s.kept_strides[k][i];
        rest = term;
        for (size_t i = s.summed.size(); i-- > 0; rest /= s.summed[i])
          offset += rest % s.summed[i] * s.summed_strides[k][i];
        C x;
        load(a->inputs[k], offset, 1, 1, &x);
        if constexpr (std::is_same_v<C, double>)
          factor *= x;
        else
          factor = static_cast<C>(static_cast<uint64_t>(factor) * static_cast<uint64_t>(x));
      }
      if constexpr (std::is_same_v<C, double>)
        sum += factor;
      else
        sum = static_cast<C>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(factor));
    }
    store(&sum, 1, a->outputs[0], at);
  }
  return run_ok;
}

/// Axis names of one term; an ellipsis takes the axes that letters leave.
std::vector<int> names_of(std::string_view term, int rank) {
  std::vector<int> names;
  int letters = 0;
  for (char c : term) letters += c != '.';
  const size_t dots = term.find("...");
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      const int n = rank - letters;
      if (n < 0) fail("Einsum's equation names more axes than an operand has");
      for (int k = n; k > 0; --k) names.push_back(-k);
      i += 2;
    } else {
      const char c = term[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        fail(std::string("Einsum's equation holds '") + c +
             "'; expected letters, commas, one ellipsis a term and ->");
      names.push_back(c);
    }
  }
  return names;
}

void plan_einsum(const PlanView& v, Planned& p) {
  auto s = make_state<EinsumState>(v);
  std::string equation;
  for (char c : v.attrs().get_string("equation", ""))
    if (c != ' ') equation += c;
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::vector<int>> terms;
  for (size_t at = 0, k = 0; at <= left.size(); ++k) {
    const size_t comma = std::min(left.find(',', at), left.size());
    if (k >= s->in.size()) fail("Einsum's equation has more terms than operands");
    terms.push_back(names_of(std::string_view(left).substr(at, comma - at), s->in[k].rank()));
    if (terms.back().size() != s->in[k].dims.size())
      fail(format("Einsum's term %zu names %zu axes; its operand has %d", k, terms.back().size(),
                  s->in[k].rank()));
    at = comma + 1;
  }
  if (terms.size() != s->in.size()) fail("Einsum's equation has fewer terms than operands");
  std::vector<std::pair<int, int64_t>> sizes;  // of each name, in order of appearance
  const auto find = [&](int name) {
    return std::find_if(sizes.begin(), sizes.end(), [&](const auto& n) { return n.first == name; });
  };
  for (size_t k = 0; k < terms.size(); ++k)
    for (size_t i = 0; i < terms[k].size(); ++i) {
      const int64_t d = s->in[k].dims[i];
      const auto known = find(terms[k][i]);
      if (known == sizes.end())
        sizes.emplace_back(terms[k][i], d);
      else if (known->second == 1)
        known->second = d;
      else if (d != 1 && d != known->second)
        fail(format("Einsum: an axis has size %lld in one operand and %lld in another",
                    static_cast<long long>(known->second), static_cast<long long>(d)));
    }
  std::vector<int> result;
  if (arrow != std::string::npos) {
    int dots = 0;
    for (const auto& n : sizes) dots = std::min(dots, n.first);
    const std::string right = equation.substr(arrow + 2);
    const int letters =
        static_cast<int>(std::count_if(right.begin(), right.end(), [](char c) { return c != '.'; }));
    result = names_of(right, letters + (right.find("...") != std::string::npos ? -dots : 0));
  } else {  // the ellipsis, then every letter that occurs once, sorted
    std::vector<int> letters;
    for (const auto& n : sizes) {
      int uses = 0;
      for (const auto& t : terms) uses += static_cast<int>(std::count(t.begin(), t.end(), n.first));
      if (n.first < 0)
        result.push_back(n.first);
      else if (uses == 1)
        letters.push_back(n.first);
    }
    std::sort(result.begin(), result.end());
    std::sort(letters.begin(), letters.end());
    result.insert(result.end(), letters.begin(), letters.end());
  }
  for (int name : result) {
    const auto n = find(name);
    if (n == sizes.end()) fail("Einsum's result names an axis that no operand has");
    s->kept.push_back(n->second);
  }
  if (s->kept != s->out[0].dims)
    fail(format("Einsum yields %s, but its result was planned as %s", dims_text(s->kept).c_str(),
                dims_text(s->out[0].dims).c_str()));
  std::vector<int> others;
  for (const auto& n : sizes)
    if (std::find(result.begin(), result.end(), n.first) == result.end()) {
      others.push_back(n.first);
      s->summed.push_back(n.second);
    }
  int64_t work = s->out[0].count;
  for (int64_t n : s->summed) work = checked_mul(work, n);
  for (size_t k = 0; k < terms.size(); ++k) {
    const auto stride_of = [&](int name) {  // a name may stand twice in a term: the diagonal
      int64_t sum = 0, stride = 1;
      for (size_t i = terms[k].size(); i-- > 0; stride *= s->in[k].dims[i])
        if (terms[k][i] == name && s->in[k].dims[i] != 1) sum += stride;
      return sum;
    };
    std::vector<int64_t> kept, summed;
    for (int name : result) kept.push_back(stride_of(name));
    for (int name : others) summed.push_back(stride_of(name));
    s->kept_strides.push_back(kept);
    s->summed_strides.push_back(summed);
  }
  const int64_t units = s->out[0].count;
  visit_domain(s->in[0].dtype,
               [&](auto c) { finish(v, p, einsum_fn<decltype(c)>, std::move(s), units, work); });
}

// RotaryEmbedding(x, cos, sin, position_ids?).
struct RotaryState : Base {
  int64_t batch = 0, steps = 0, heads = 1, size = 0, turned = 0;
  bool interleaved = false, heads_first = false;
  Load<double> load = nullptr, load_cos = nullptr, load_sin = nullptr;
  Store<double> store = nullptr;
};
int rotary_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<RotaryState>(a);
  const auto r = tile_range(s.batch * s.heads * s.steps, s.tiles, tile);
  const int64_t half = s.turned / 2;
  for (int64_t unit = r.begin; unit < r.end; ++unit) {  // units follow the operand's rows of one head
    const int64_t step = s.heads_first ? unit % s.steps : unit / s.heads % s.steps,
                  b = unit / (s.heads * s.steps);
    int64_t row = b * s.steps + step;
    if (s.has_in(3)) {
      row = integer_at(a->inputs[3], s.in[3].dtype, row);
      const int64_t limit = s.in[1].dims[0];
      if (row < 0 || row >= limit) return index_fail(a, "RotaryEmbedding: position", row, limit);
    }
    for (int64_t i = 0; i < half; ++i) {
      const int64_t first = unit * s.size + (s.interleaved ? 2 * i : i),
                    second = unit * s.size + (s.interleaved ? 2 * i + 1 : i + half);
      double x, y, cosine, sine;
      s.load(a->inputs[0], first, 1, 1, &x);
      s.load(a->inputs[0], second, 1, 1, &y);
      s.load_cos(a->inputs[1], row * half + i, 1, 1, &cosine);
      s.load_sin(a->inputs[2], row * half + i, 1, 1, &sine);
      const double real = cosine * x - sine * y, imaginary = sine * x + cosine * y;
      s.store(&real, 1, a->outputs[0], first);
      s.store(&imaginary, 1, a->outputs[0], second);
    }
    for (int64_t i = s.turned; i < s.size; ++i) {
      double x;
      s.load(a->inputs[0], unit * s.size + i, 1, 1, &x);
      s.store(&x, 1, a->outputs[0], unit * s.size + i);
    }
  }
  return run_ok;
}
void plan_rotary(const PlanView& v, Planned& p) {
  auto s = make_state<RotaryState>(v);
  const auto& x = s->in[0].dims;
  if (x.size() != 3 && x.size() != 4) fail("RotaryEmbedding needs an operand of rank 3 or 4");
  s->heads_first = x.size() == 4;
  s->heads = s->heads_first ? x[1] : v.attrs().get_int("num_heads", 0);
  if (s->heads < 1 || (!s->heads_first && x[2] % s->heads))
    fail("RotaryEmbedding's num_heads must divide the last axis of an operand of rank 3");
  s->batch = x[0];
  s->steps = x[s->heads_first ? 2 : 1];
  s->size = s->heads_first ? x[3] : x[2] / s->heads;
  s->turned = v.attrs().get_int("rotary_embedding_dim", 0);
  if (s->turned == 0) s->turned = s->size;
  s->interleaved = v.attrs().get_int("interleaved", 0) != 0;
  const int64_t half = s->turned / 2;
  if (s->turned < 0 || s->turned > s->size || s->turned % 2 || s->in.at(1).rank() < 1 ||
      s->in[1].dim(-1) != half || s->in.at(2).dims != s->in[1].dims)
    fail(format("RotaryEmbedding's caches must have %lld columns", static_cast<long long>(half)));
  if (s->has_in(3) ? s->in[3].count != s->batch * s->steps || s->in[1].rank() != 2
                   : s->in[1].count != s->batch * s->steps * half)
    fail("RotaryEmbedding's caches or positions do not fit its operand");
  s->load = loader<double>(s->in[0].dtype);
  s->load_cos = loader<double>(s->in[1].dtype);
  s->load_sin = loader<double>(s->in[2].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units = s->batch * s->heads * s->steps, work = s->out[0].count * 4;
  finish(v, p, rotary_fn, std::move(s), units, work);
}

}  // namespace

void provide_einsum(Plugin& p) {
  reference_kernel(p, "Einsum").plan<plan_einsum>();
  reference_kernel(p, "RotaryEmbedding").plan<plan_rotary>();
}

}  // namespace tenon::reference
