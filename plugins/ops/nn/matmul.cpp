// Products of matrices: MatMul, Gemm, their integer kin, Einsum.
#include <algorithm>
#include <map>

#include "nn/matmul.hpp"

namespace tenon::ops {

std::vector<tn_dim> matmul_dims(Infer& c, std::vector<tn_dim> a, std::vector<tn_dim> b) {
  const std::string shapes = c.text(a) + " times " + c.text(b);
  require(!a.empty() && !b.empty(), "a scalar is no matrix: " + shapes);
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const tn_dim m = a[a.size() - 2], n = b.back();
  require(!c.differ(a.back(), b[b.size() - 2]), "inner dimensions differ: " + shapes);
  std::vector<tn_dim> out;
  try {
    out = c.broadcast(Span<const tn_dim>(a.data(), a.size() - 2), Span<const tn_dim>(b.data(), b.size() - 2));
  } catch (const Failure& f) {
    fail(std::string(f.what()) + " (" + shapes + ")");
  }
  if (!row) out.push_back(m);
  if (!column) out.push_back(n);
  return out;
}

void infer_gemm_like(Infer& c, uint32_t a_index, uint32_t b_index, uint32_t c_index) {
  const tn_dtype dtype = c.dtype(a_index);
  if (!ranked(c, a_index, "A", 2, 2) || !ranked(c, b_index, "B", 2, 2)) return c.set_unranked(0, dtype);
  const bool ta = c.attrs().get_int("transA", 0) != 0, tb = c.attrs().get_int("transB", 0) != 0;
  const auto a = c.dims(a_index), b = c.dims(b_index);
  const std::string shapes =
      c.text(a) + (ta ? " transposed" : "") + " times " + c.text(b) + (tb ? " transposed" : "");
  require(!c.differ(a[ta ? 0 : 1], b[tb ? 1 : 0]), "inner dimensions differ: " + shapes);
  const tn_dim out[] = {a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (c.has_input(c_index) && c.has_rank(c_index)) {
    const auto bias = c.dims(c_index);
    bool good = bias.size() <= 2;
    for (size_t i = 0; good && i < bias.size(); ++i)
      good = bias[bias.size() - 1 - i] == 1 || !c.differ(bias[bias.size() - 1 - i], out[1 - i]);
    require(good, "operand C has shape " + c.text(bias) + ", which does not broadcast to the result " +
                      c.text(Span<const tn_dim>(out, 2)));
  }
  c.set(0, dtype, Span<const tn_dim>(out, 2));
}

namespace {

void infer_product(Infer& c, uint32_t a, uint32_t b, tn_dtype dtype) {
  if (!c.has_rank(a) || !c.has_rank(b)) return c.set_unranked(0, dtype);
  c.set(0, dtype, matmul_dims(c, c.dims(a), c.dims(b)));
}
void infer_matmul(Infer& c) { infer_product(c, 0, 1, c.dtype(0)); }
void infer_matmul_integer(Infer& c) { infer_product(c, 0, 1, TN_INT32); }
void infer_gemm(Infer& c) { infer_gemm_like(c, 0, 1, 2); }

/// `broadcast` of opsets below 7 let C have fewer axes, aligned at the end, as broadcasting does now.
void upgrade_gemm(Editor& e, const Node& n) {
  const tn_node id = n.id();
  drop_attr(e, n, "broadcast");
  upgrade_version_only(e, e.graph().node(id));
}

void decompose_gemm(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const bool ta = a.get_int("transA", 0) != 0, tb = a.get_int("transB", 0) != 0;
  const double alpha = a.get_float("alpha", 1), beta = a.get_float("beta", 1);
  Rewrite w(e, n);
  const auto turned = [&](tn_value v, bool yes) { return yes ? w.make("Transpose", {v}) : v; };
  const auto scaled = [&](tn_value v, double by) {
    return by == 1 ? v : w.make("Mul", {v, w.number_like(by, v)});
  };
  tn_value y = scaled(w.make("MatMul", {turned(w.input(0), ta), turned(w.input(1), tb)}), alpha);
  if (w.input(2) != TN_NONE) y = w.make("Add", {y, scaled(w.input(2), beta)});
  w.become(0, y);
}

// ---- Einsum
// ---------------------------------------------------------------------------------------------------------

constexpr char dots = '.';  // one character for "..."

/// "ij,jk->ik" with its blanks gone and every ellipsis as one dot.
std::string compact(std::string_view equation) {
  std::string r;
  for (size_t i = 0; i < equation.size(); ++i) {
    const char ch = equation[i];
    if (ch == ' ') continue;
    if (ch == '.') {
      require(equation.substr(i, 3) == "...",
              "attribute 'equation' is '" + std::string(equation) + "': a dot outside '...'");
      i += 2;
      r += dots;
      continue;
    }
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
    require(letter || ch == ',' || ch == '-' || ch == '>',
            "attribute 'equation' is '" + std::string(equation) + "': unexpected character '" + ch + "'");
    r += ch;
  }
  return r;
}

void infer_einsum(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const std::string shown(c.attrs().get_string("equation", ""));
  const std::string equation = compact(shown);
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  require(left.find_first_of("->") == std::string::npos,
          "attribute 'equation' is '" + shown + "': more than one arrow");
  std::vector<std::string> terms(1);
  for (char ch : left) {
    if (ch == ',')
      terms.emplace_back();
    else
      terms.back() += ch;
  }
  require(terms.size() == c.input_count(),
          format("attribute 'equation' is '%s', of %zu operands; the node has %u", shown.c_str(),
                 terms.size(), c.input_count()));
  std::map<char, tn_dim> size;
  std::map<char, int> seen;
  std::vector<tn_dim> shared;  // of the ellipsis
  bool all_ranked = true;
  for (uint32_t i = 0; i < terms.size(); ++i) {
    for (char ch : terms[i]) ++seen[ch];
    if (!c.has_rank(i)) {
      all_ranked = false;
      continue;
    }
    const auto dims = c.dims(i);
    const auto ellipses = std::count(terms[i].begin(), terms[i].end(), dots);
    const size_t letters = terms[i].size() - static_cast<size_t>(ellipses);
    require(
        ellipses <= 1 && (ellipses ? dims.size() >= letters : dims.size() == letters),
        "operand " + text_of(i) + " has shape " + c.text(dims) + "; the equation says '" + terms[i] + "'");
    size_t at = 0;
    for (char ch : terms[i]) {
      if (ch == dots) {
        const size_t n = dims.size() - letters;
        shared = c.broadcast(shared, Span<const tn_dim>(dims.data() + at, n));
        at += n;
        continue;
      }
      const auto [old, fresh] = size.emplace(ch, dims[at]);
      if (!fresh) old->second = c.broadcast_dim(old->second, dims[at]);
      ++at;
    }
  }
  std::string right;
  if (arrow != std::string::npos) {
    right = equation.substr(arrow + 2);
  } else {  // numpy's rule: the ellipsis, then letters that occur once, sorted
    if (seen.count(dots)) right += dots;
    for (const auto& [ch, count] : seen)
      if (ch != dots && count == 1) right += ch;
  }
  if (!all_ranked) return c.set_unranked(0, dtype);
  std::vector<tn_dim> out;
  for (char ch : right) {
    if (ch == dots) {
      out.insert(out.end(), shared.begin(), shared.end());
      continue;
    }
    const auto found = size.find(ch);
    require(found != size.end(),
            "attribute 'equation' is '" + shown + "': '" + ch + "' of the result is in no operand");
    out.push_back(found->second);
  }
  c.set(0, dtype, out);
}

}  // namespace

void add_matmul(Plugin& p) {
  define(p, "MatMul").infer<infer_matmul>().alias("batch_matmul");
  define(p, "Gemm")
      .infer<infer_gemm>()
      .upgrade<upgrade_gemm>()
      .decompose<decompose_gemm>()
      .alias("linear")
      .alias("dense")
      .alias("fully_connected");
  define(p, "MatMulInteger").infer<infer_matmul_integer>();
  define(p, "Einsum").infer<infer_einsum>();
}

}  // namespace tenon::ops
