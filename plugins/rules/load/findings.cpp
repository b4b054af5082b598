#include "load/findings.hpp"

#include <algorithm>

namespace tenon::rules {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t old = row[j];
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0u : 1u)});
      diagonal = old;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const auto k : known) {
    if (k.empty() || k == word) continue;
    const size_t limit = std::max<size_t>(1, std::min(word.size(), k.size()) / 3 + 1);
    if (k.size() > word.size() + limit || word.size() > k.size() + limit) continue;
    const size_t d = edit_distance(word, k);
    if (d <= limit) near.emplace_back(d, k);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  while (!near.empty() && near.back().first > near.front().first) near.pop_back();  // the nearest alone
  if (near.size() > 3) near.resize(3);
  if (near.empty()) return {};
  std::string s = "did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i) s += i + 1 == near.size() ? " or " : ", ";
    s += "'" + std::string(near[i].second) + "'";
  }
  return s + "?";
}

std::string Findings::render(const Finding& f) const {
  std::string s = f.message;
  const std::string pointer = source_->pointer(f.offset);
  if (!pointer.empty()) s += "  [" + pointer + "]";
  std::string_view line = source_->line_text(f.offset);
  size_t column = source_->place(f.offset).column - 1;
  constexpr size_t width = 120;
  std::string shown(line);
  if (line.size() > width) {  // a window round the place; rule files often have very long lines
    const size_t from = column > width / 2 ? column - width / 2 : 0;
    shown = std::string(line.substr(std::min(from, line.size()), width));
    column -= from;
  }
  s += "\n  " + shown + "\n  " + std::string(column, ' ') + "^";
  if (!f.hint.empty()) s += "  hint: " + f.hint;
  return s;
}

void Findings::emit(const sdk::Diag& diag, bool strict) const {
  std::vector<const Finding*> order;
  for (const auto& f : found_) order.push_back(&f);
  std::stable_sort(order.begin(), order.end(),
                   [](const Finding* a, const Finding* b) { return a->offset < b->offset; });
  for (const Finding* f : order) {
    const auto p = source_->place(f->offset);
    const auto severity = strict && f->severity == TN_SEVERITY_WARNING ? TN_SEVERITY_ERROR : f->severity;
    diag.report(severity, f->code,
                source_->path + ":" + std::to_string(p.line) + ":" + std::to_string(p.column), render(*f));
  }
}

}  // namespace tenon::rules
