// The plugin opened on a host of one's own making, beside the records of the other plugins, and put to work.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/check/checker.hpp"
#include "core/check/corpus.hpp"
#include "core/pipeline/pass_manager.hpp"

namespace tenon::check {

struct PassTrial {
  std::unique_ptr<Graph> graph;
  std::string failure;  // why it was undone; empty: it went through
  uint64_t edits = 0;
};
struct PassTrialOptions {
  Json options = Json::object();
  uint64_t edit_limit = UINT64_MAX;
  bool cancelled = false;
};
// One pass over a copy of the graph, as the pipeline runs it, the full verifier after it.
PassTrial run_pass(Host& host, const Registries& registries, const PassEntry& pass,
                   std::span<const tn_rule_source> rules, const Graph& graph,
                   const PassTrialOptions& options = {});

// Of an exporter; one for each it declares.
PreparedPass default_options(const tn_exporter_record& record);

class Stage {
 public:
  explicit Stage(Checker& checker);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  CompleteHost& host() { return host_; }
  tn_host* plugin_host();  // what open gets; may be changed before
  // The status of open; what it said is in said().
  tn_status open();
  const Diagnostics& said() const { return said_; }
  // Every record of the plugin's, once or twice: what happens is the checker's subject.
  void exercise();

 private:
  Checker& checker_;
  CompleteHost host_;
  tn_host* handle_ = nullptr;
  void* instance_ = nullptr;
  bool is_open_ = false;
  Diagnostics said_;
};

// Files that frontends and tensor formats of this plugin may read: written by exporters and formats of the
// engine, and the samples with a suffix of theirs.
struct SampleFile {
  std::string name, bytes;
};
std::vector<SampleFile> sample_files(Checker& checker, std::span<const tn_str> suffixes);

}  // namespace tenon::check
