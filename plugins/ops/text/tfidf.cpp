// TfIdfVectorizer: counts the n-grams of a pool in each row, their tokens up to max_skip_count + 1 apart.
//
// The i-th weight belongs to the i-th n-gram. N-grams of one token are counted once, whatever the skips.
#include <unordered_map>

#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

/// Columns of the result.
int64_t columns_of(const Attributes& a) {
  int64_t last = -1;
  for (int64_t i : a.get_ints("ngram_indexes")) {
    if (i < 0 || i > INT32_MAX)
      fail(format("attribute 'ngram_indexes' holds %lld; expected 0 to 2147483647",
                  static_cast<long long>(i)));
    last = std::max(last, i);
  }
  return last + 1;
}
void infer_tfidf(Infer& c) {
  const tn_dim columns = columns_of(c.attrs());
  if (!ranked(c, 0, "X", 0, 2)) return c.set_unranked(0, TN_FLOAT32);
  if (c.rank(0) == 2)
    c.set(0, TN_FLOAT32, std::vector<tn_dim>{c.dims(0)[0], columns});
  else
    c.set(0, TN_FLOAT32, std::vector<tn_dim>{columns});
}

/// The pool as a tree of tokens. Node 0 is the root.
class Pool {
 public:
  int64_t child(int64_t node, int64_t token) const {
    const auto at = links_.find({node, token});
    return at == links_.end() ? -1 : at->second;
  }
  int64_t add(int64_t node, int64_t token) {
    const auto [at, fresh] = links_.try_emplace({node, token}, static_cast<int64_t>(grams_.size()));
    if (fresh) grams_.push_back(-1);
    return at->second;
  }
  /// The number of the n-gram that ends at the node; -1 for none.
  int64_t gram(int64_t node) const { return grams_[static_cast<size_t>(node)]; }
  void set_gram(int64_t node, int64_t gram) { grams_[static_cast<size_t>(node)] = gram; }

 private:
  struct Hash {
    size_t operator()(const std::pair<int64_t, int64_t>& key) const {
      return std::hash<int64_t>()(key.first) * 0x9e3779b97f4a7c15u ^ std::hash<int64_t>()(key.second);
    }
  };
  std::unordered_map<std::pair<int64_t, int64_t>, int64_t, Hash> links_;
  std::vector<int64_t> grams_{-1};
};

struct TfIdfState : Base {
  Pool pool;
  std::unordered_map<std::string, int64_t> texts;  // numbers of the tokens of text
  std::vector<int64_t> columns;                    // of each n-gram
  std::vector<float> weights;
  int64_t rows = 1, length = 1, width = 0, shortest = 1, longest = 1, skips = 0;
  enum { tf, idf, tfidf } mode = tf;

  int64_t token(const void* x, int64_t i) const noexcept {
    if (in[0].dtype != TN_STRING) return integer_at(x, in[0].dtype, i);
    const auto at = texts.find(std::string(view(static_cast<const tn_str*>(x)[i])));
    return at == texts.end() ? -1 : at->second;
  }
  void count(int64_t gram, float* row) const noexcept {
    const auto g = static_cast<size_t>(gram);
    const float weight = weights.empty() ? 1 : weights[g];
    float& to = row[columns[g]];
    to = mode == tf ? to + 1 : mode == idf ? weight : to + weight;
  }
};
int run_tfidf(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<TfIdfState>(a);
  const Range range = tile_range(s.rows, s.tiles, tile);
  for (int64_t r = range.begin; r < range.end; ++r) {
    float* row = out<float>(a) + r * s.width;
    std::fill(row, row + s.width, 0.0f);
    const int64_t first = r * s.length;
    for (int64_t step = 1; step <= s.skips + 1; ++step) {
      const int64_t shortest = step == 1 ? s.shortest : std::max<int64_t>(s.shortest, 2);
      if (shortest > s.longest || (shortest - 1) > (s.length - 1) / step) break;
      for (int64_t start = 0; start < s.length; ++start) {
        int64_t node = 0;
        for (int64_t size = 1, at = start; size <= s.longest && at < s.length; ++size, at += step) {
          const int64_t token = s.token(a->inputs[0], first + at);
          if (token < 0 && s.in[0].dtype == TN_STRING) break;
          node = s.pool.child(node, token);
          if (node < 0) break;
          if (size >= shortest && s.pool.gram(node) >= 0) s.count(s.pool.gram(node), row);
        }
      }
    }
  }
  return run_ok;
}

void fill_pool(TfIdfState& s, const Attributes& a) {
  const auto numbers = a.get_ints("pool_int64s");
  const auto names = a.get_strings("pool_strings");
  const bool text = s.in[0].dtype == TN_STRING;
  if ((text ? names.empty() : numbers.empty()) || !(text ? numbers.empty() : names.empty()))
    fail(format("operand X holds %s; expected tokens in attribute '%s' and none in the other pool",
                dtype_name(s.in[0].dtype), text ? "pool_strings" : "pool_int64s"));
  std::vector<int64_t> tokens = numbers.copy();
  for (const tn_str& name : names)
    tokens.push_back(
        s.texts.try_emplace(std::string(view(name)), static_cast<int64_t>(s.texts.size())).first->second);
  const auto starts = a.get_ints("ngram_counts");
  const auto total = static_cast<int64_t>(tokens.size());
  int64_t gram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t size = static_cast<int64_t>(i) + 1, begin = starts[i],
                  end = i + 1 < starts.size() ? starts[i + 1] : total;
    if (begin < 0 || begin > end || end > total || (end - begin) % size != 0)
      fail(
          format("attribute 'ngram_counts' lets the n-grams of %lld tokens reach from %lld to %lld of a pool "
                 "of %lld; "
                 "expected whole ones inside it",
                 static_cast<long long>(size), static_cast<long long>(begin), static_cast<long long>(end),
                 static_cast<long long>(total)));
    for (int64_t at = begin; at < end; at += size, ++gram) {
      if (size < s.shortest || size > s.longest) continue;
      int64_t node = 0;
      for (int64_t k = 0; k < size; ++k) node = s.pool.add(node, tokens[static_cast<size_t>(at + k)]);
      s.pool.set_gram(node, gram);
    }
  }
  if (gram != static_cast<int64_t>(s.columns.size()))
    fail(format("attribute 'ngram_indexes' has %zu elements; the pool has %lld n-grams", s.columns.size(),
                static_cast<long long>(gram)));
}
void plan_tfidf(const PlanView& v, Planned& p) {
  auto s = make_state<TfIdfState>(v);
  const auto a = v.attrs();
  const int rank = s->in[0].rank();
  if (rank > 2)
    fail(format("operand X has shape %s; expected [C] or [N,C]", dims_text(s->in[0].dims).c_str()));
  if (rank >= 1) s->length = s->in[0].dim(-1);
  if (rank == 2) s->rows = s->in[0].dim(0);
  s->shortest = required_int(a, "min_gram_length");
  s->longest = required_int(a, "max_gram_length");
  s->skips = required_int(a, "max_skip_count");
  if (s->shortest < 1 || s->longest < s->shortest || s->skips < 0 || s->skips > INT32_MAX)
    fail(format(
        "min_gram_length, max_gram_length and max_skip_count are %lld, %lld and %lld; expected 1 or more, no "
        "less than the first, and 0 or more",
        static_cast<long long>(s->shortest), static_cast<long long>(s->longest),
        static_cast<long long>(s->skips)));
  const auto mode = a.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    fail("attribute 'mode' is '" + std::string(mode) + "'; expected TF, IDF or TFIDF");
  s->mode = mode == "TF" ? TfIdfState::tf : mode == "IDF" ? TfIdfState::idf : TfIdfState::tfidf;
  s->width = columns_of(a);
  s->columns = a.get_ints("ngram_indexes").copy();
  for (double w : a.get_floats("weights")) s->weights.push_back(static_cast<float>(w));
  if (!s->weights.empty() && s->weights.size() != s->columns.size())
    fail(format("attribute 'weights' has %zu elements, 'ngram_indexes' has %zu; expected as many",
                s->weights.size(), s->columns.size()));
  fill_pool(*s, a);
  const int64_t rows = s->rows, work = checked_mul(rows, s->width + s->length * 8);
  finish(v, p, run_tfidf, std::move(s), rows, work);
}

}  // namespace

void add_tfidf(Plugin& p) {
  define(p, "TfIdfVectorizer").infer<infer_tfidf>();
  reference_kernel(p, "TfIdfVectorizer").plan<plan_tfidf>();
}

}  // namespace tenon::ops
