#include <fmt/core.h>

#include "spellings.hpp"

namespace tenon::test {

Draft& Draft::number(const std::string& name, double value, const std::string& shape) {
  head_ += fmt::format("  const %{}: float32[{}] = [{:.9g}]\n", name, shape, value);
  return *this;
}

Draft& Draft::ints(const std::string& name, std::initializer_list<long long> values) {
  std::string list;
  for (const long long v : values) list += (list.empty() ? "" : ",") + std::to_string(v);
  head_ += fmt::format("  const %{}: int64[{}] = [{}]\n", name, values.size(), list);
  return *this;
}

Draft& Draft::weights(const std::string& name, const std::string& shape, double scale, double shift,
                      size_t twin) {
  size_t n = 1;
  for (size_t at = 0; at < shape.size();) {
    size_t used = 0;
    n *= std::stoul(shape.substr(at), &used);
    at += used + 1;
  }
  std::string list;
  unsigned state = 12345;  // by name: equal constants would be merged
  for (const char c : name) state = state * 31 + static_cast<unsigned char>(c);
  std::vector<std::string> written;
  for (size_t i = 0; i < n; ++i) {
    state = state * 1103515245u + 12345u;
    written.push_back(
        fmt::format("{:.5f}", shift + scale * (static_cast<double>(state >> 16 & 0x7fff) / 16384 - 1)));
    if (twin && i / twin % 2) written[i] = written[i - twin];
    list += (i ? "," : "") + written[i];
  }
  head_ += fmt::format("  const %{}: float32[{}] = [{}]\n", name, shape, list);
  return *this;
}

Draft& Draft::input(const std::string& name, const std::string& shape) {
  body_ += fmt::format("  input %{}: float32[{}]\n", name, shape);
  return *this;
}

Draft& Draft::node(const std::string& line) {
  body_ += "  %" + line + "\n";
  return *this;
}

std::string Draft::finish(std::initializer_list<const char*> outputs) const {
  std::string text = "graph \"g\" {\n  opset \"\" 28\n" + head_ + body_;
  for (const char* o : outputs) text += fmt::format("  output %{} as \"{}\"\n", o, o);
  return text + "}\n";
}

std::string call(const std::string& op, const std::string& a, const std::string& b, bool swapped) {
  return op + "(%" + (swapped ? b : a) + ", %" + (swapped ? a : b) + ")";
}

}  // namespace tenon::test
