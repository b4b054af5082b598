// Random valid graphs, optimised and not, on the same inputs: docs/fuzzing.md.
#include <CLI/CLI.hpp>

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "../fuzz_support.hpp"
#include "core/base/files.hpp"
#include "core/base/memory_budget.hpp"
#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "draw.hpp"
#include "judge.hpp"
#include "shrink.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

struct Options {
  uint64_t seed = 1, count = 1000;
  std::vector<std::string> texts;
  std::string out = ".", dump, corpus, keep;
  bool shrink = false, list = false, stop = false, print = false;
  uint64_t written = 16;  // every so many graphs also go through the exporter
};

// Where a crash or a hang happened: said by a signal handler, so kept as text.
char current[64] = "no seed yet\n";

void on_signal(int number) {
  const char* const text =
      number == SIGALRM ? "random_graphs: no end within 60 s: " : "random_graphs: crashed: ";
  size_t length = 0;
  while (text[length] != 0) ++length;
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, text, length);
  length = 0;
  while (current[length] != 0) ++length;
  ignored = ::write(STDERR_FILENO, current, length);
  ::signal(number, SIG_DFL);
  ::raise(number == SIGALRM ? SIGABRT : number);
}

bool is_same_fault(const Judgement& a, const Judgement& b) {
  return b.verdict == Verdict::broken && a.kind == b.kind && a.by_kernels == b.by_kernels;
}

Judgement judge_one(Judge& judge, const Graph& graph, uint64_t seed, bool wild, bool written) {
  const Judgement judgement = judge.judge(graph, seed, wild);
  if (judgement.verdict != Verdict::same || !written || wild) return judgement;
  return judge.judge_written(graph, seed);
}

void tell(const Judgement& judgement, std::unique_ptr<Graph> graph, Judge& judge, const Options& options,
          uint64_t seed, bool wild, bool written) {
  std::printf("seed %llu%s: %s%s: %s\n", static_cast<unsigned long long>(seed), wild ? " (wild)" : "",
              judgement.kind.c_str(), judgement.by_kernels ? ", by kernels" : "", judgement.text.c_str());
  if (options.shrink)
    graph = shrink(std::move(graph), [&](const Graph& candidate) {
      const Judgement again = judge_one(judge, candidate, seed, wild, written);
      if (judgement.verdict != Verdict::broken)
        return again.verdict == judgement.verdict && again.text.find(options.keep) != std::string::npos;
      return is_same_fault(judgement, again);
    });
  const std::string path = options.out + "/mismatch-" + std::to_string(seed) + ".graph";
  std::string text = fmt::format("# seed {}{}{}: {}: {}\n", seed, wild ? " wild" : "",
                                 written ? " written" : "", judgement.kind, judgement.text);
  for (char& c : text)
    if (c == '\n' && &c != &text.back()) c = ' ';
  write_file_atomically(path, text + print(*graph));
  std::printf("  %u nodes in %s\n", graph->live_node_count(), path.c_str());
  std::fflush(stdout);
}

// A file of tell(): its first line has the seed.
int replay(const std::string& path, const Options& options, Judge& judge) {
  const std::string text = read_text_file(path);
  unsigned long long seed = options.seed;
  std::sscanf(text.c_str(), "# seed %llu", &seed);
  const std::string first = text.substr(0, text.find('\n'));
  const bool wild = first.find(" wild") != std::string::npos,
             written = first.find(" written") != std::string::npos;
  Diagnostics findings;
  std::unique_ptr<Graph> graph = parse(text, &judge.registries(), findings);
  if (graph != nullptr) infer_graph(*graph, findings);
  if (graph == nullptr || findings.has_errors()) {
    std::printf("%s: %s\n", path.c_str(), findings.first_error().c_str());
    return 2;
  }
  const Judgement judgement = judge_one(judge, *graph, seed, wild, written);
  if (options.print) std::printf("%s", judge.optimized_text(*graph, wild).c_str());
  if (judgement.verdict == Verdict::broken) {
    tell(judgement, std::move(graph), judge, options, seed, wild, written);
    return 1;
  }
  const bool same = judgement.verdict == Verdict::same;  // a kept graph that does not run tests nothing
  std::printf("%s: %s\n", path.c_str(),
              same ? "the results are the same" : ("not run: " + judgement.text).c_str());
  return same ? 0 : 1;
}

// Bytes. Sizes that a graph computes may be anything: a window of 10^9 elements is only slow.
constexpr uint64_t largest_run = 64 << 20;

int run(const Options& options) {
  set_install_root(TENON_FUZZ_ROOT);
  Judge judge;
  int worst = 0;
  for (const std::string& path : options.texts) worst = std::max(worst, replay(path, options, judge));
  if (!options.texts.empty()) return worst;
  set_memory_limit(largest_run);
  std::signal(SIGALRM, on_signal);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) std::signal(number, on_signal);

  std::map<std::string, uint64_t, std::less<>> operators;
  std::map<std::string, uint64_t> faults, unfit;
  uint64_t verdicts[4] = {}, close = 0, nodes = 0;
  for (uint64_t i = 0; i < options.count; ++i) {
    const uint64_t seed = options.seed + i;
    std::snprintf(current, sizeof current, "seed %llu\n", static_cast<unsigned long long>(seed));
    ::alarm(60);
    Drawer drawer(judge.registries(), seed);
    std::unique_ptr<Graph> graph = drawer.draw(operators);
    if (graph->region(0).outputs.empty()) continue;
    nodes += graph->live_node_count();
    require_sound(*graph, "after drawing");
    const bool wild = drawer.wishes().wild, written = options.written != 0 && i % options.written == 0;
    const Judgement judgement = judge_one(judge, *graph, seed, wild, written);
    ::alarm(0);
    ++verdicts[static_cast<int>(judgement.verdict)];
    close += judgement.was_close;
    const bool not_run = judgement.verdict == Verdict::unfit || judgement.verdict == Verdict::refused;
    if (not_run && !options.keep.empty() && judgement.text.find(options.keep) != std::string::npos) {
      tell({judgement.verdict, "not run", judgement.text}, std::move(graph), judge, options, seed, wild,
           false);
      continue;
    }
    if (judgement.verdict == Verdict::unfit || (options.list && judgement.verdict == Verdict::refused))
      ++unfit[judgement.text.substr(0, judgement.text.find('\n'))];
    if (judgement.verdict == Verdict::same && !wild && !options.dump.empty())
      judge.dump(*graph, seed, options.dump);
    if (judgement.verdict == Verdict::same && !wild && !judgement.was_close && !options.corpus.empty())
      write_file_atomically(options.corpus + "/" + std::to_string(seed) + ".graph", print(*graph));
    if (judgement.verdict != Verdict::broken) continue;
    ++faults[judgement.kind + (judgement.by_kernels ? ", by kernels" : "")];
    tell(judgement, std::move(graph), judge, options, seed, wild, written);
    if (options.stop) break;
  }
  const uint64_t graphs = verdicts[0] + verdicts[1] + verdicts[2] + verdicts[3];
  std::printf(
      "%llu graphs of %.1f nodes from seed %llu: %llu the same (%llu after asking what roundings do), %llu "
      "that do not run, "
      "%llu without a kernel, %llu broken; %llu rewrites\n",
      static_cast<unsigned long long>(graphs),
      graphs == 0 ? 0.0 : static_cast<double>(nodes) / static_cast<double>(graphs),
      static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(verdicts[0]),
      static_cast<unsigned long long>(close), static_cast<unsigned long long>(verdicts[1]),
      static_cast<unsigned long long>(verdicts[2]), static_cast<unsigned long long>(verdicts[3]),
      static_cast<unsigned long long>(judge.rewrites()));
  std::printf("%zu of %zu operators drawn, %zu rules applied\n", operators.size(),
              judge.registries().op_symbols().size(), judge.rules().size());
  for (const auto& [kind, count] : faults)
    std::printf("  %llu x %s\n", static_cast<unsigned long long>(count), kind.c_str());
  if (options.list) {
    for (const auto& [op, count] : operators)
      std::printf("  operator %s: %llu\n", op.c_str(), static_cast<unsigned long long>(count));
    for (const auto& [rule, count] : judge.rules())
      std::printf("  rule %s: %llu\n", rule.c_str(), static_cast<unsigned long long>(count));
    for (const auto& [text, count] : unfit)
      std::printf("  not run: %llu x %s\n", static_cast<unsigned long long>(count), text.c_str());
  }
  return verdicts[3] == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  CLI::App app{"Draws random graphs and compares their optimised with their unoptimised results"};
  app.add_option("--seed", options.seed, "of the first graph; the next one has the next");
  app.add_option("--count", options.count, "graphs to draw");
  app.add_option("--text", options.texts, "judge these files, as mismatches were written, instead")
      ->type_name("FILE");
  app.add_option("--out", options.out, "where mismatches go")->type_name("DIR");
  app.add_option("--keep", options.keep, "write graphs too that do not run when the reason has this text");
  app.add_option("--dump", options.dump, "write each model with its inputs and results here")
      ->type_name("DIR");
  app.add_option("--corpus", options.corpus, "write each graph whose results are the same beyond doubt here")
      ->type_name("DIR");
  app.add_option("--written", options.written, "every so many graphs also go through the exporter; 0: none");
  app.add_flag("--shrink", options.shrink, "take out of a mismatch what it does not need");
  app.add_flag("--stop", options.stop, "stop at the first mismatch");
  app.add_flag("--print", options.print, "with --text: print the optimised graph");
  app.add_flag("--list", options.list,
               "list the operators drawn, the rules applied and why graphs did not run");
  CLI11_PARSE(app, count, arguments);
  try {
    return run(options);
  } catch (const Error& error) {
    for (const Diagnostic& finding : error.diagnostics)
      std::fprintf(stderr, "random_graphs: %s\n", to_string(finding).c_str());
    return 2;
  }
}
