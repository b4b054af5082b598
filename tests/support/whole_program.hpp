// The whole program in a test: the built plugins and rules, and models on their way from a file to a session.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"
#include "core/runtime/session.hpp"

namespace tenon::test {

// Plugins and rules are those of the build tree, caches go to the scratch folder, a scan may take its time.
void use_build_tree(const std::string& build, const std::string& scratch);

// The default manifest on one thread; `set` as after --set. Throws Error.
Manifest one_thread_manifest(std::vector<std::string> set = {});

struct WholeProgram {
  explicit WholeProgram(Manifest manifest, bool verify = false);
  // As `tenon run` makes it: read, upgraded, refused where something cannot run, optimised. Throws Error.
  std::unique_ptr<Session> session(const std::filesystem::path& model);

  Engine engine;
  Evaluator evaluator;  // folding computes with it
};

}  // namespace tenon::test
