#include "core/graph/interner.hpp"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace tenon {

namespace {
struct Interner {
  std::shared_mutex mutex;
  std::deque<std::string> texts{std::string()};  // 0 is the empty text; a deque never moves its elements
  std::unordered_map<std::string_view, tn_sym> index{{std::string_view(), 0}};
};
// Never destroyed: plugins' threads may still ask while the process exits.
Interner& interner() {
  static Interner* const instance = new Interner;
  return *instance;
}
}  // namespace

tn_sym intern(std::string_view text) {
  Interner& all = interner();
  {
    std::shared_lock lock(all.mutex);
    if (const auto found = all.index.find(text); found != all.index.end()) return found->second;
  }
  std::unique_lock lock(all.mutex);
  if (const auto found = all.index.find(text); found != all.index.end()) return found->second;
  const auto symbol = static_cast<tn_sym>(all.texts.size());
  const std::string& kept = all.texts.emplace_back(text);
  all.index.emplace(kept, symbol);
  return symbol;
}

std::string_view symbol_text(tn_sym symbol) {
  Interner& all = interner();
  std::shared_lock lock(all.mutex);
  return symbol < all.texts.size() ? std::string_view(all.texts[symbol]) : std::string_view();
}

OpName split_op_name(std::string_view text) {
  const size_t colons = text.find("::");
  if (colons == std::string_view::npos) return {{}, text};
  return {text.substr(0, colons), text.substr(colons + 2)};
}

}  // namespace tenon
