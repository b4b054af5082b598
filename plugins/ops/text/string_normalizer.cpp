// StringNormalizer: takes out stop words, then changes case.
//
// An element is compared as a whole. Without is_case_sensitive both sides are compared in lower case. Case is
// changed character by character, as the locale's towlower and towupper do; bytes that are no UTF-8 stay. A
// locale that is not installed is replaced by C.UTF-8, which has the same mappings, but for the languages
// that have mappings of their own.
#include <clocale>
#include <cwctype>
#include <unordered_set>

#include "support/define.hpp"
#include "support/handle.hpp"
#include "text/utf8.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

/// False: the rank is not known.
bool check_shape(Infer& c) {
  if (!ranked(c, 0, "X", 1, 2)) return false;
  require(c.rank(0) == 1 || !c.differ(c.dims(0)[0], 1),
          "operand X has shape " + c.text(c.dims(0)) + "; expected [C] or [1,C]");
  return true;
}
void infer_normalizer(Infer& c) {
  if (!check_shape(c)) return c.set_unranked(0, TN_STRING);
  auto d = c.dims(0);
  const auto count = c.number(d.back());
  const bool keeps_all = c.attrs().get_strings("stopwords").empty();
  const auto axis = static_cast<uint32_t>(d.size()) - 1;
  if (count ? *count == 0 || (keeps_all || *count == 1) : false)
    d.back() = std::max<int64_t>(*count, 1);
  else
    d.back() = c.data_dependent(0, axis, 1, count ? *count : TN_DIM_MAX);
  if (d.size() == 2) d[0] = 1;
  c.set(0, TN_STRING, d);
}

class Locale {
 public:
  explicit Locale(const std::string& name) {
    for (const std::string& tried : {name, name + ".UTF-8"})
      if (!name.empty() && !handle_) handle_ = newlocale(LC_CTYPE_MASK, tried.c_str(), nullptr);
    const std::string language = name.substr(0, name.find_first_of("_-.@"));
    if (!handle_ && (language == "tr" || language == "az" || language == "lt"))
      fail("attribute 'locale' is '" + name + "', which is not installed here; install it");
    if (!handle_) handle_ = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (!handle_) fail("the locale C.UTF-8 is not installed here; install it");
  }
  Locale(const Locale&) = delete;
  Locale& operator=(const Locale&) = delete;
  ~Locale() { freelocale(handle_); }
  std::string change(std::string_view text, bool to_upper) const {
    std::string r;
    while (!text.empty()) {
      const text::Character c = text::first_character(text);
      if (c.code == text::no_character)
        r += text[0];
      else
        text::append_character(
            r, static_cast<char32_t>(to_upper ? towupper_l(static_cast<wint_t>(c.code), handle_)
                                              : towlower_l(static_cast<wint_t>(c.code), handle_)));
      text.remove_prefix(c.size);
    }
    return r;
  }

 private:
  locale_t handle_ = nullptr;
};

struct NormalizerState {
  enum { none, lower, upper } action = none;
  bool case_sensitive = false;
  std::unordered_set<std::string> stop_words;
  std::unique_ptr<Locale> locale;
};
void run_normalizer(Run& run, const tn_kernel_args* a) {
  const auto& s = state<NormalizerState>(a);
  const auto x = run.input(0);
  if (x.rank() != 1 && !(x.rank() == 2 && x.dims()[0] == 1))
    fail(format("operand X has shape %s; expected [C] or [1,C]", dims_text(x.dims()).c_str()));
  std::vector<std::string_view> kept;
  for (int64_t i = 0; i < x.count(); ++i) {
    const std::string_view text = view(x.data<tn_str>()[i]);
    const bool stops =
        !s.stop_words.empty() &&
        s.stop_words.count(s.case_sensitive ? std::string(text) : s.locale->change(text, false)) != 0;
    if (!stops) kept.push_back(text);
  }
  if (kept.empty()) kept.emplace_back();  // one empty string stands for none
  Dims dims{static_cast<int64_t>(kept.size())};
  if (x.rank() == 2) dims.insert(dims.begin(), 1);
  auto* y = static_cast<tn_str*>(run.output(0, TN_STRING, dims));
  for (std::string_view text : kept) {
    const std::string changed = s.action == NormalizerState::none
                                    ? std::string(text)
                                    : s.locale->change(text, s.action == NormalizerState::upper);
    *y++ = run.api->keep_text(run.run, str(changed));
  }
}
void plan_normalizer(const PlanView& v, Planned& p) {
  auto s = std::make_unique<NormalizerState>();
  const auto a = v.attrs();
  const auto action = a.get_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    fail("attribute 'case_change_action' is '" + std::string(action) + "'; expected NONE, LOWER or UPPER");
  s->action = action == "NONE"    ? NormalizerState::none
              : action == "LOWER" ? NormalizerState::lower
                                  : NormalizerState::upper;
  s->case_sensitive = a.get_int("is_case_sensitive", 0) != 0;
  s->locale = std::make_unique<Locale>(std::string(a.get_string("locale", "")));
  for (const tn_str& word : a.get_strings("stopwords"))
    s->stop_words.insert(s->case_sensitive ? std::string(view(word)) : s->locale->change(view(word), false));
  p.set(dynamic_kernel<run_normalizer>, std::move(s));
}

}  // namespace

void add_string_normalizer(Plugin& p) {
  define(p, "StringNormalizer").infer<infer_normalizer>();
  reference_kernel(p, "StringNormalizer").flags(TN_KERNEL_DYNAMIC_OUTPUT).plan<plan_normalizer>();
}

}  // namespace tenon::ops
