// Reads the text models that LIBLINEAR's train writes: a header of keys, then `w` and one row of weights for
// each feature. What is wrong in a file is an error with its line; nothing of a file is trusted.
//
//   classifiers          label [batch] and scores [batch, rows]; logistic ones also probabilities [batch,
//   classes] regression           value [batch, 1] one-class machines   label [batch], 1 inside and -1
//   outside, and scores
//
// LIBLINEAR computes in double, the graph in float32: a score within rounding of a tie may go the other way.
#include <algorithm>
#include <charconv>

#include "tenon/sdk/frontend.hpp"
#include "tenon/sdk/plugin.hpp"

namespace {

using namespace tenon::sdk;

/// The words of a text, and the line that the last one stood in.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}
  std::string_view next() {  // empty at the end
    for (; at_ < text_.size() && is_space(text_[at_]); ++at_) line_ += text_[at_] == '\n';
    const size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  template <class T>
  T number(T least, T most, const char* what) {
    const std::string_view word = next();
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    // Not (value < least): a NaN must not pass.
    if (error != std::errc() || end != word.data() + word.size() || !(value >= least && value <= most))
      wrong(word.empty() ? std::string("the file ends; expected ") + what
                         : "'" + std::string(word.substr(0, 40)) + "' is no " + what);
    return value;
  }
  size_t bytes_left() const { return text_.size() - at_; }
  [[noreturn]] void wrong(const std::string& text) const {
    throw Failure(TN_ERR_INVALID, text, "line " + std::to_string(line_));
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

struct Header {
  std::string solver;
  int64_t classes = 0, features = 0;
  double bias = -1, rho = 0;
  std::vector<int64_t> labels;
  bool ends_with(std::string_view end) const {
    return solver.size() >= end.size() && solver.compare(solver.size() - end.size(), end.size(), end) == 0;
  }
  bool regression() const { return solver.find("_SVR") != solver.npos; }
  bool one_class() const { return solver == "ONECLASS_SVM"; }
  bool logistic() const { return ends_with("_LR") || ends_with("_LR_DUAL"); }
  int64_t rows() const { return classes == 2 && solver != "MCSVM_CS" ? 1 : classes; }
};

constexpr const char* solvers[] = {"L2R_LR",
                                   "L2R_L2LOSS_SVC_DUAL",
                                   "L2R_L2LOSS_SVC",
                                   "L2R_L1LOSS_SVC_DUAL",
                                   "MCSVM_CS",
                                   "L1R_L2LOSS_SVC",
                                   "L1R_LR",
                                   "L2R_LR_DUAL",
                                   "L2R_L2LOSS_SVR",
                                   "L2R_L2LOSS_SVR_DUAL",
                                   "L2R_L1LOSS_SVR_DUAL",
                                   "ONECLASS_SVM"};

Header read_header(Words& words) {
  Header header;
  for (std::string_view key = words.next(); key != "w"; key = words.next()) {
    if (key == "solver_type") {
      header.solver = words.next();
      if (std::find(std::begin(solvers), std::end(solvers), header.solver) == std::end(solvers))
        words.wrong("unknown solver_type '" + header.solver.substr(0, 40) +
                    "'; expected LIBLINEAR's, such as L2R_LR");
    } else if (key == "nr_class") {
      header.classes = words.number<int64_t>(2, 1 << 24, "number of classes, 2 or more");
    } else if (key == "label") {
      if (header.classes == 0) words.wrong("'label' stands before 'nr_class'");
      for (int64_t i = 0; i < header.classes; ++i)
        header.labels.push_back(words.number<int64_t>(INT32_MIN, INT32_MAX, "label, a whole number"));
    } else if (key == "nr_feature") {
      header.features = words.number<int64_t>(1, INT32_MAX, "number of features, 1 or more");
    } else if (key == "bias") {
      header.bias = words.number(-1e30, 1e30, "number");
    } else if (key == "rho") {
      header.rho = words.number(-1e30, 1e30, "number");
    } else {
      words.wrong(key.empty() ? "the file ends before 'w'"
                              : "unknown key '" + std::string(key.substr(0, 40)) + "'");
    }
  }
  if (header.solver.empty() || header.classes == 0 || header.features == 0)
    words.wrong("solver_type, nr_class and nr_feature must stand before 'w'");
  if (header.labels.empty() && !header.regression() && !header.one_class())
    words.wrong("a classifier has a 'label' line before 'w'");
  return header;
}

void load(ModelBuilder& model, const File& file) {
  Words words(file.text());
  const Header header = read_header(words);
  const int64_t rows = header.rows(), lines = header.features + (header.bias >= 0 ? 1 : 0);
  // A weight takes two bytes at least: what the header says is believed only as far as the file reaches.
  if (lines > static_cast<int64_t>(words.bytes_left()) / 2 / rows + 1)
    words.wrong(format("%lld lines of %lld weights do not fit in the rest of the file",
                       static_cast<long long>(lines), static_cast<long long>(rows)));
  std::vector<float> weights(static_cast<size_t>(header.features * rows)), offset(static_cast<size_t>(rows));
  for (float& w : weights) w = static_cast<float>(words.number(-1e38, 1e38, "weight"));
  for (float& o : offset)
    o = static_cast<float>((header.bias >= 0 ? header.bias * words.number(-1e38, 1e38, "weight") : 0) -
                           header.rho);
  if (!words.next().empty()) words.wrong("there is more than the weights that the header announces");

  model.opset("", 22);
  const tn_value x = model.input("x", TN_FLOAT32, {model.named_dim("batch"), header.features});
  const Dims shape{header.features, rows};
  const tn_value scores =
      model.node("Gemm", {x, model.constant<float>(weights, shape), model.vector(offset)}, {}, "scores");
  if (header.regression())
    return model.outputs(std::vector<tn_value>{scores}, std::vector<std::string>{"value"});

  const tn_value axis = model.vector(std::vector<int64_t>{1});
  tn_value label = TN_NONE;
  if (rows == 1) {
    const tn_value above = model.node("Greater", {scores, model.scalar(0.0f)});
    const auto [yes, no] = header.one_class() ? std::pair<int64_t, int64_t>{1, -1}
                                              : std::pair{header.labels[0], header.labels[1]};
    label = model.node("Squeeze", {model.node("Where", {above, model.scalar(yes), model.scalar(no)}), axis});
  } else {
    const auto best = model.node("ArgMax", {scores},
                                 {AttrValue::of("axis", int64_t{1}), AttrValue::of("keepdims", int64_t{0})});
    label = model.node("Gather", {model.vector(header.labels), best});
  }
  std::vector<tn_value> values{label, scores};
  std::vector<std::string> names{"label", "scores"};
  if (header.logistic()) {
    tn_value p = model.node("Sigmoid", {scores});
    if (rows == 1)
      p = model.node("Concat", {p, model.node("Sub", {model.scalar(1.0f), p})},
                     {AttrValue::of("axis", int64_t{1})});
    else
      p = model.node("Div", {p, model.node("ReduceSum", {p, axis})});
    values.push_back(p);
    names.push_back("probabilities");
  }
  model.outputs(values, names);
}

int probe(std::string_view, std::string_view head) {
  return head.substr(0, 12) == "solver_type " && head.find("nr_class") != head.npos ? 90 : 0;
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("Acme").license("Apache-2.0").summary("reads LIBLINEAR's models");
  static FrontendBuilder frontend("liblinear",
                                  "linear classifiers and regressions as LIBLINEAR's train writes them");
  plugin.frontend(frontend.suffix(".model").probe<probe>().load<load>().record());
}

}  // namespace

TENON_PLUGIN(provide)
