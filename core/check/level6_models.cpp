// Level 6: frontends and exporters.
#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/damage.hpp"
#include "core/check/file_trials.hpp"
#include "core/check/levels.hpp"
#include "core/check/stage.hpp"
#include "core/graph/verify.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::check {

namespace {

namespace fs = std::filesystem;

constexpr size_t probed_bytes = 4096;

int probe(const FrontendEntry& frontend, const std::string& name, const std::string& bytes) {
  // Copied, so that reading past the end is reading past the end of a block.
  const std::vector<uint8_t> first(
      bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min(bytes.size(), probed_bytes)));
  return frontend.record->probe(frontend.instance, to_abi(name), first.data(), first.size());
}

// The engine's record of one of our frontends or exporters.
template <class Entry, class Look>
void each_own(Checker& checker, const std::vector<Entry>& entries, Look&& look) {
  for (const Entry& entry : entries)
    if (checker.is_own(entry.plugin)) look(entry, string(entry.record->id));
}

struct OtherFormat {
  const char* name;
  std::string bytes;
};

// What lies about in folders of models, and is somebody else's.
std::vector<OtherFormat> other_formats() {
  using namespace std::string_literals;
  return {{"empty", ""},
          {"library.so", "\x7f"s + "ELF\2\1\1\0\0\0\0\0\0\0\0\0"s + std::string(200, '\0')},
          {"picture.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s + std::string(100, '\1')},
          {"picture.jpg", "\xff\xd8\xff\xe0\0\20JFIF"s + std::string(100, '\2')},
          {"archive.zip", "PK\3\4"s + std::string(100, '\3')},
          {"archive.gz", "\x1f\x8b\10\0"s + std::string(100, '\4')},
          {"array.npy", "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"s},
          {"settings.json", "{\"schema\": \"tenon.pipeline/1\", \"plugins\": []}"},
          {"page.xml", "<?xml version=\"1.0\"?><net name=\"x\"></net>"},
          {"script.py", "#!/usr/bin/env python3\nimport torch\nprint(1)\n"},
          {"notes.txt", "These are notes about a model.\n"},
          {"zeros.bin", std::string(4096, '\0')},
          {"ones.bin", std::string(4096, '\xff')}};
}

}  // namespace

std::vector<SampleFile> samples_of(Checker& checker, const FrontendEntry& frontend) {
  std::vector<SampleFile> files =
      sample_files(checker, {frontend.record->suffixes, frontend.record->suffix_count});
  if (files.empty())
    checker.note(
        fmt::format("frontend {}: there is no file to damage, as no exporter writes its format; give "
                    "--samples FOLDER with one",
                    view(frontend.record->id)));
  return files;
}

static tn_status load_file(Checker& checker, const FrontendEntry& frontend, const std::string& name,
                           const std::string& bytes, bool& was_sound, std::string& said_why) {
  Engine& engine = checker.engine();
  const fs::path path = checker.scratch() / name;
  write_file_atomically(path, bytes);
  checker.reproducer(path);
  Graph graph;
  graph.set_registry(&engine.registries());
  Diagnostics said;
  tn_status status = TN_OK;
  {
    Transaction edit(graph, "load", TN_EDIT_BUILD);
    status = frontend.record->load(frontend.instance, engine.host().abi(), to_abi(path.string()), &graph,
                                   edit.get(), said.abi());
    if (status == TN_OK) edit.commit(said);
  }
  said_why = said.first_error();
  Diagnostics faults;
  was_sound = verify(graph, faults);
  return status;
}

// Whatever the bytes are, the answer is a graph or an error with a reason.
void load_and_judge(Checker& checker, const FrontendEntry& frontend, const std::string& name,
                    const std::string& bytes) {
  bool was_sound = true;
  std::string why;
  const tn_status status = load_file(checker, frontend, name, bytes, was_sound, why);
  if (status != TN_OK && why.empty())
    checker.finding(fmt::format("load answers status {} and does not say why", status));
  if (status == TN_ERR_INTERNAL) checker.finding("load answers that it has a bug (TN_ERR_INTERNAL): " + why);
  if (!was_sound) checker.finding("it leaves a graph that is not sound");
}

void check_probe_range(Checker& checker) {
  const Registries& records = checker.records();
  Random random = checker.random("bytes");
  std::string noise(300, '\0');
  for (char& c : noise) c = static_cast<char>(random.next());
  for (const FrontendEntry& frontend : records.frontends()) {
    for (const std::string& name :
         {std::string(), std::string("x"),
          "m" + (frontend.record->suffix_count == 0 ? std::string(".bin")
                                                    : string(frontend.record->suffixes[0])),
          std::string(5000, 'a')})
      for (size_t size = 0; size <= noise.size(); size = size < 16 ? size + 1 : size * 3) {
        if (!checker.begin(fmt::format("frontend {}: {} bytes, a name of {} letters",
                                       view(frontend.record->id), size, name.size())))
          continue;
        const int sure = probe(frontend, name, noise.substr(0, size));
        if (sure < 0 || sure > 100)
          checker.finding(fmt::format("probe answers {}; 0 to 100 is possible", sure));
      }
  }
}

void check_probe_claims(Checker& checker) {
  Engine& engine = checker.engine();
  each_own(
      checker, engine.registries().frontends(), [&](const FrontendEntry& frontend, const std::string& id) {
        for (const OtherFormat& other : other_formats()) {
          if (!checker.begin(fmt::format("frontend {} on {}", id, other.name))) continue;
          const int sure = probe(frontend, other.name, other.bytes);
          if (sure >= 50)
            checker.finding(fmt::format("it is {} sure that this file is its own; look at the bytes", sure));
        }
        // Files of other frontends: whoever wrote them knows better.
        for (const FrontendEntry& other : engine.registries().frontends()) {
          if (checker.is_own(other.plugin)) continue;
          for (const SampleFile& file :
               sample_files(checker, {other.record->suffixes, other.record->suffix_count})) {
            if (!checker.begin(fmt::format("frontend {} on a file of {}", id, view(other.record->id))))
              continue;
            const int sure = probe(frontend, file.name, file.bytes),
                      theirs = probe(other, file.name, file.bytes);
            if (sure >= theirs && theirs > 0)
              checker.finding(fmt::format("it is {} sure of {}, which frontend {} is {} sure of", sure,
                                          file.name, view(other.record->id), theirs));
          }
        }
      });
}

void check_model_cut_short(Checker& checker) {
  each_own(checker, checker.engine().registries().frontends(),
           [&](const FrontendEntry& frontend, const std::string& id) {
             for (const SampleFile& file : samples_of(checker, frontend))
               for (const size_t size : cuts(file.bytes.size(), 40 * checker.request().effort)) {
                 const std::string name = fmt::format("cut-{}-{}", size, file.name);
                 if (checker.begin(
                         fmt::format("frontend {}: the first {} of {} bytes", id, size, file.bytes.size())))
                   load_and_judge(checker, frontend, name, file.bytes.substr(0, size));
               }
           });
}

void check_model_damaged(Checker& checker) {
  each_own(checker, checker.engine().registries().frontends(),
           [&](const FrontendEntry& frontend, const std::string& id) {
             for (const SampleFile& file : samples_of(checker, frontend))
               for (uint32_t i = 0; i < 60 * checker.request().effort; ++i) {
                 Random random = checker.random(fmt::format("{} {}", file.name, i));
                 const std::string name = fmt::format("damaged-{}-{}", i, file.name);
                 if (checker.begin(fmt::format("frontend {}: {} damaged, {}", id, file.name, i)))
                   load_and_judge(checker, frontend, name, flipped(file.bytes, random));
               }
           });
}

void check_exporters_round_trip(Checker& checker) {
  Engine& engine = checker.engine();
  each_own(
      checker, engine.registries().exporters(), [&](const ExporterEntry& exporter, const std::string& id) {
        const PreparedPass options = default_options(*exporter.record);
        if (exporter.record->suffix_count == 0) {
          if (checker.begin("exporter " + id)) checker.finding("it has no suffix, so no file name picks it");
          return;
        }
        for (const CorpusGraph& one : load_corpus(engine.registries(), checker.request())) {
          if (!checker.begin(fmt::format("exporter {} on {}", id, one.name))) continue;
          const fs::path path = checker.scratch() / ("written" + string(exporter.record->suffixes[0]));
          const std::unique_ptr<Graph> copy = one.graph->clone();
          Diagnostics said;
          const tn_status status = exporter.record->write(
              exporter.instance, engine.host().abi(), copy.get(), to_abi(path.string()),
              options.options.data(), static_cast<uint32_t>(options.options.size()), said.abi());
          if (status != TN_OK) {
            if (said.all().empty()) checker.finding(fmt::format("status {} without a reason", status));
            if (status == TN_ERR_INTERNAL)
              checker.finding("it says that it has a bug: " + said.first_error());
            continue;  // a format need not have everything
          }
          if (!fs::exists(path)) {
            checker.finding("it says that it wrote the file, but there is none");
            continue;
          }
          // Whoever reads the format reads back the same network.
          const std::string bytes = read_text_file(path);
          const FrontendEntry* reader = nullptr;
          int surest = 0;
          for (const FrontendEntry& frontend : engine.registries().frontends())
            if (const int sure = probe(frontend, path.filename().string(), bytes); sure > surest) {
              surest = sure;
              reader = &frontend;
            }
          if (reader == nullptr) {
            checker.note("no frontend reads what exporter " + id +
                         " writes; only that it writes was looked at");
            return;
          }
          const std::vector<Tensor> inputs = random_inputs(*one.graph, checker.random(one.name), Fill::tame);
          const RunResult want = run_graph(*one.graph, engine.registries(), inputs, {});
          if (!want.error.empty()) continue;
          try {
            const std::unique_ptr<Graph> read = engine.load_model(path);
            const RunResult got = run_graph(*read, engine.registries(), inputs, {});
            if (!got.error.empty())
              checker.finding("what it wrote does not run: " + got.error);
            else if (auto text = difference(want.outputs, got.outputs))
              checker.finding("what it wrote computes otherwise: " + *text);
          } catch (const Error& error) {
            checker.finding(std::string("what it wrote is refused: ") + error.what());
          }
        }
      });
}

void check_exporters_cannot_write(Checker& checker) {
  Engine& engine = checker.engine();
  each_own(
      checker, engine.registries().exporters(), [&](const ExporterEntry& exporter, const std::string& id) {
        const PreparedPass options = default_options(*exporter.record);
        const std::string path = (checker.scratch() / "no-such-folder" / "model").string();
        for (const CorpusGraph& one : load_corpus(engine.registries(), checker.request())) {
          if (!checker.begin(fmt::format("exporter {}: {} into a folder that does not exist", id, one.name)))
            continue;
          Diagnostics said;
          const tn_status status = exporter.record->write(
              exporter.instance, engine.host().abi(), one.graph.get(), to_abi(path), options.options.data(),
              static_cast<uint32_t>(options.options.size()), said.abi());
          if (status == TN_OK)
            checker.finding("it says that it wrote the file");
          else if (said.all().empty())
            checker.finding("it does not say why it could not");
          if (status == TN_OK) break;
        }
      });
}

}  // namespace tenon::check
