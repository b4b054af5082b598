// Runs a graph as it is, with the reference kernels, and optimised, with the kernels of a run, on the same
// inputs, and says whether the results are the same.
//
// What "the same" means for floats: a difference within a few roundings is none. A larger one is held against
// what the graph itself makes of roundings: every float value of the unoptimised graph, inputs included, is
// multiplied by 1 + a few units in its last place at random, several times over; results may be apart by some
// times what that moves them. So subtractions that cancel, thresholds and Floor of an almost whole number
// raise no alarm, and what is wrong does, since roundings do not move a result that far. Integers, texts and
// shapes must be equal unless such roundings change them too.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"
#include "core/runtime/session.hpp"

namespace tenon::fuzz {

// The two ways to optimise a graph: as by default, and bit-preserving, for inputs with NaN and infinities.
class Workshop {
 public:
  explicit Workshop(const char* precision);
  Engine engine;
  Evaluator evaluator;
};

enum class Verdict {
  same,
  refused,  // the unoptimised graph does not run on these inputs: nothing to compare with
  unfit,    // no kernel for some node
  broken    // a mismatch, or an error of the optimised side alone
};

struct Judgement {
  Verdict verdict = Verdict::same;
  std::string kind;  // of what is broken, the same for one cause: "values", "shape", "pass rolled back" ...
  std::string text;
  bool by_kernels = false;  // without any rewrite the kernels differ from the reference ones already
  bool was_close = false;   // the roundings had to be asked
};

class Judge {
 public:
  Judge();
  ~Judge();
  // `seed` decides the inputs; `wild` puts NaN, infinities and extremes among them.
  Judgement judge(const Graph& graph, uint64_t seed, bool wild);
  Judgement judge_written(const Graph& graph, uint64_t seed);  // through the exporter and the reader
  // The model as it is, all its values outputs, its inputs and what the reference kernels give,
  // FOLDER/<seed>.onnx and .inputs.npz and .outputs.npz: for tests/fuzz/against_onnxruntime.py. False where
  // one of them cannot be written.
  bool dump(const Graph& graph, uint64_t seed, const std::string& folder);
  std::string optimized_text(const Graph& graph, bool wild);
  const Registries& registries() const { return default_->engine.registries(); }
  uint64_t rewrites() const { return rewrites_; }
  const std::map<std::string, uint64_t>& rules() const { return rules_; }

 private:
  struct Run;
  struct Inputs;
  static Inputs inputs_of(const Graph& graph, uint64_t seed, bool wild);
  Judgement compare(const Graph& graph, const Inputs& inputs, const Run& want, const Run& got, uint64_t seed);
  Run optimized(const Graph& graph, const Inputs& inputs, Workshop& workshop, Judgement& judgement);

  std::unique_ptr<Workshop> default_, strict_;
  uint64_t rewrites_ = 0;
  std::map<std::string, uint64_t> rules_;
};

}  // namespace tenon::fuzz
