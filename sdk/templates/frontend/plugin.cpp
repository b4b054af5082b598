// The frontend @NAME@: a text file of layers, read to a graph of ONNX operators. What is wrong in a file is
// an error with its line; nothing of a file is trusted.
#include <cmath>
#include <cstdlib>

#include "tenon/sdk/frontend.hpp"
#include "tenon/sdk/plugin.hpp"

namespace {

using namespace tenon::sdk;

constexpr int64_t largest = 1 << 20;  // elements of a layer's weights

/// The words of a text, line by line; `#` begins a comment.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  /// The next word of this line; empty at its end.
  std::string_view word() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (at_ < text_.size() && text_[at_] == '#')
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n#").find(text_[at_]) == std::string_view::npos)
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  /// On to the next line; false after the last one.
  bool next_line() {
    if (const std::string_view rest = word(); !rest.empty())
      wrong("'" + std::string(rest) + "' is too much here");
    if (at_ == text_.size()) return false;
    ++at_;
    ++line_;
    return true;
  }
  float number() {
    const std::string text(word());
    char* end = nullptr;
    const float value = std::strtof(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value))
      wrong("expected a number, found '" + text + "'");
    return value;
  }
  int64_t size() {
    const float value = number();
    if (value < 1 || value > largest || value != std::floor(value))
      wrong("expected a size from 1 to 1048576");
    return static_cast<int64_t>(value);
  }
  [[noreturn]] void wrong(const std::string& what) const {
    throw Failure(TN_ERR_INVALID, what, "line " + std::to_string(line_));
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

tn_value dense(ModelBuilder& model, Words& words, tn_value x, int64_t& width) {
  const int64_t rows = words.size();
  if (rows * width > largest) words.wrong("the layer has more than 1048576 weights");
  std::vector<float> weights(static_cast<size_t>(rows * width)), biases(static_cast<size_t>(rows));
  for (float& w : weights) w = words.number();
  for (float& b : biases) b = words.number();
  const int64_t dims[] = {rows, width};
  const tn_value w = model.constant<float>(weights, Span<const int64_t>(dims, 2));
  width = rows;
  return model.node("Gemm", {x, w, model.vector(biases)}, {AttrValue::of("transB", int64_t{1})});
}

void load(ModelBuilder& model, const File& file) {
  Words words(file.text());
  if (words.word() != "@NAME@" || words.number() != 1) words.wrong("expected '@NAME@ 1'");
  model.opset("", 22);
  tn_value x = TN_NONE;
  int64_t width = 0;
  while (words.next_line()) {
    const std::string layer(words.word());
    if (layer.empty()) continue;
    if ((layer == "input") != (x == TN_NONE))
      words.wrong("expected one 'input' before all layers, found '" + layer + "'");
    if (layer == "input") {
      width = words.size();
      x = model.input("x", TN_FLOAT32, {model.named_dim("batch"), width});
    } else if (layer == "dense") {
      x = dense(model, words, x, width);
    } else if (layer == "relu") {
      x = model.node("Relu", {x});
    } else {
      words.wrong("unknown layer '" + layer + "'; expected input, dense or relu");
    }
  }
  if (x == TN_NONE) words.wrong("the file has no 'input'");
  model.outputs(std::vector<tn_value>{x}, std::vector<std::string>{"y"});
}

int probe(std::string_view path, std::string_view head) {
  const std::string_view magic = "@NAME@ ", suffix = ".@NAME@";
  if (head.substr(0, magic.size()) == magic) return 90;
  return path.size() > suffix.size() && path.substr(path.size() - suffix.size()) == suffix ? 40 : 0;
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("reads .@NAME@ models");
  static FrontendBuilder frontend("@NAME@", "layers, one a line");
  plugin.frontend(frontend.suffix(".@NAME@").probe<probe>().load<load>().record());
}

}  // namespace

TENON_PLUGIN(provide)
