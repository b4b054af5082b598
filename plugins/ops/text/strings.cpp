// StringConcat, StringSplit, RegexFullMatch.
//
// StringSplit splits as Python's str.split: without a delimiter at runs of white space, which may also stand
// at both ends; with one at each of its occurrences, so that an empty string is one empty piece. A regular
// expression is RE2's, over UTF-8.
#include <re2/re2.h>

#include "support/define.hpp"
#include "support/handle.hpp"
#include "text/utf8.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

// ---- StringConcat ----

void infer_concat(Infer& c) {
  const auto d = broadcast_inputs(c, 0, 2);
  d ? c.set(0, TN_STRING, *d) : c.set_unranked(0, TN_STRING);
}
struct ConcatState : Base {
  Dims dims;
  Walk<2> walk;
};
void run_concat(Run& run, const tn_kernel_args* a) {
  const auto& s = state<ConcatState>(a);
  const auto x = run.input(0), y = run.input(1);
  auto* z = static_cast<tn_str*>(run.output(0, TN_STRING, s.dims));
  std::string joined;
  const int64_t step_x = s.walk.inner_stride(0), step_y = s.walk.inner_stride(1);
  s.walk.rows(0, element_count(s.dims), [&](int64_t at, const int64_t(&offset)[2], int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      joined = view(x.data<tn_str>()[offset[0] + i * step_x]);
      joined += view(y.data<tn_str>()[offset[1] + i * step_y]);
      z[at + i] = run.api->keep_text(run.run, str(joined));
    }
  });
}
void plan_concat(const PlanView& v, Planned& p) {
  auto s = make_state<ConcatState>(v);
  const Dims &x = s->in[0].dims, &y = s->in[1].dims;
  s->dims.resize(std::max(x.size(), y.size()));
  for (size_t i = 0; i < s->dims.size(); ++i) {
    const int64_t a = i < x.size() ? x[x.size() - 1 - i] : 1, b = i < y.size() ? y[y.size() - 1 - i] : 1;
    s->dims[s->dims.size() - 1 - i] = a == 1 ? b : a;
  }
  s->walk = broadcast_walk<2>(s->dims, {&x, &y});
  p.set(dynamic_kernel<run_concat>, std::move(s));
}

// ---- StringSplit ----

void infer_split(Infer& c) {
  if (!c.has_rank(0)) {
    c.set_unranked(0, TN_STRING);
    return c.set_unranked(1, TN_INT64);
  }
  auto d = c.dims(0);
  c.set(1, TN_INT64, d);
  d.push_back(c.data_dependent(0, static_cast<uint32_t>(d.size())));
  c.set(0, TN_STRING, d);
}
struct SplitState {
  std::string delimiter;              // empty: white space
  bool pieces = true, counts = true;  // results that are wanted
  int64_t most = INT64_MAX;
};
/// Without the white space that it begins with.
std::string_view skip_space(std::string_view text) {
  while (!text.empty()) {
    const text::Character c = text::first_character(text);
    if (!text::is_space(c.code)) break;
    text.remove_prefix(c.size);
  }
  return text;
}
void split(std::string_view text, const SplitState& s, std::vector<std::string_view>& pieces) {
  const bool spaces = s.delimiter.empty();
  if (spaces) text = skip_space(text);
  for (int64_t splits = 0; !spaces || !text.empty(); ++splits) {
    size_t end = 0, size = s.delimiter.size();
    if (splits >= s.most) {
      end = text.size();
    } else if (!spaces) {
      end = std::min(text.find(s.delimiter), text.size());
    } else {
      for (text::Character c; end < text.size(); end += c.size) {
        c = text::first_character(text.substr(end));
        if (text::is_space(c.code)) break;
      }
    }
    pieces.push_back(text.substr(0, end));
    if (end == text.size()) return;
    text.remove_prefix(spaces ? end : end + size);
    if (spaces) text = skip_space(text);
  }
}
void run_split(Run& run, const tn_kernel_args* a) {
  const auto& s = state<SplitState>(a);
  const auto x = run.input(0);
  const int64_t count = x.count();
  std::vector<std::string_view> pieces;
  std::vector<size_t> ends;
  size_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t begin = pieces.size();
    split(view(x.data<tn_str>()[i]), s, pieces);
    ends.push_back(pieces.size());
    most = std::max(most, pieces.size() - begin);
  }
  Dims dims = x.dims().copy();
  if (s.counts) {
    auto* z = static_cast<int64_t*>(run.output(1, TN_INT64, dims));
    for (size_t i = 0; i < ends.size(); ++i) z[i] = static_cast<int64_t>(ends[i] - (i ? ends[i - 1] : 0));
  }
  if (!s.pieces) return;
  dims.push_back(static_cast<int64_t>(most));
  auto* y = static_cast<tn_str*>(run.output(0, TN_STRING, dims));
  for (size_t i = 0, at = 0; i < ends.size(); ++i)
    for (size_t k = 0; k < most; ++k)
      *y++ = at < ends[i] ? run.api->keep_text(run.run, str(pieces[at++])) : tn_str{"", 0};
}
void plan_split(const PlanView& v, Planned& p) {
  auto s = std::make_unique<SplitState>();
  s->pieces = v.has_output(0);
  s->counts = v.has_output(1);
  s->delimiter = v.attrs().get_string("delimiter", "");
  s->most = v.attrs().get_int("maxsplit", -1);
  if (s->most < 0) s->most = INT64_MAX;
  p.set(dynamic_kernel<run_split>, std::move(s));
}

// ---- RegexFullMatch ----

void infer_match(Infer& c) { same_shape(c, 0, 0, TN_BOOL); }
struct MatchState : Base {
  std::unique_ptr<RE2> pattern;
};
int run_match(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<MatchState>(a);
  const Range range = tile_range(s.in[0].count, s.tiles, tile, 16);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const std::string_view x = view(in<tn_str>(a, 0)[i]);
    out<bool>(a)[i] = RE2::FullMatch({x.data(), x.size()}, *s.pattern);
  }
  return run_ok;
}
void plan_match(const PlanView& v, Planned& p) {
  auto s = make_state<MatchState>(v);
  const auto pattern = v.attrs().get_string("pattern", "");
  RE2::Options options;
  options.set_log_errors(false);
  s->pattern = std::make_unique<RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!s->pattern->ok())
    fail("attribute 'pattern' is '" + std::string(pattern) +
         "', which is no regular expression of RE2: " + s->pattern->error());
  const int64_t n = s->in[0].count;
  finish(v, p, run_match, std::move(s), n, n * 100);
}

}  // namespace

void add_strings(Plugin& p) {
  define(p, "StringConcat").infer<infer_concat>();
  define(p, "StringSplit").infer<infer_split>();
  define(p, "RegexFullMatch").infer<infer_match>();
  reference_kernel(p, "StringConcat").flags(TN_KERNEL_DYNAMIC_OUTPUT).plan<plan_concat>();
  reference_kernel(p, "StringSplit").flags(TN_KERNEL_DYNAMIC_OUTPUT).plan<plan_split>();
  reference_kernel(p, "RegexFullMatch").plan<plan_match>();
}

}  // namespace tenon::ops
