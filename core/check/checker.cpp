#include "core/check/checker.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/child_process.hpp"
#include "core/base/text.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/plugin/plugin_table.hpp"
#include "core/runtime/eval.hpp"

namespace tenon::check {

namespace {

constexpr uint64_t most_findings_of_a_subject = 8;

std::string texts_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.all()) text += (text.empty() ? "" : "; ") + diagnostic.text;
  return text;
}

}  // namespace

CompleteHost::CompleteHost() {
  provide_core_services(host);
  registries.provide(host);
  RuntimeOptions options;
  options.threads = 1;
  evaluator = std::make_unique<Evaluator>(host, registries, options);
}
CompleteHost::~CompleteHost() = default;

Checker::Checker(Request request, std::string check_id, std::vector<uint64_t> ended_at)
    : request_(std::move(request)), id_(std::move(check_id)), ended_at_(std::move(ended_at)) {}

Checker::~Checker() = default;

Random Checker::random(std::string_view stream) const {
  return Random(request_.seed, id_ + "/" + std::string(stream));
}

void Checker::write_line(char kind, const std::string& text) {
  std::string line =
      kind + nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  line += '\n';
  for (size_t written = 0; written < line.size();) {
    const ssize_t count = write(child_result_descriptor, line.data() + written, line.size() - written);
    if (count <= 0) return;
    written += static_cast<size_t>(count);
  }
}

bool Checker::begin(std::string_view subject) {
  subject_ = subject;
  findings_of_subject_ = 0;
  const uint64_t number = next_subject_++;
  if (!ended_at_.empty() && number <= ended_at_.back()) return false;
  write_line('S', subject_);
  return true;
}

bool Checker::ended_here() const {
  return std::find(ended_at_.begin(), ended_at_.end(), next_subject_ - 1) != ended_at_.end();
}

void Checker::finding(std::string_view text) {
  ++findings_;
  if (++findings_of_subject_ <= most_findings_of_a_subject) write_line('F', std::string(text));
}

void Checker::note(std::string_view text) { write_line('N', std::string(text)); }

void Checker::reproducer(const std::filesystem::path& file) { write_line('R', file.string()); }

void Checker::announce_prelude(std::string_view stage) { write_line('P', std::string(stage)); }

void Checker::give_up(const std::string& why) {
  write_line('G', why);
  _exit(0);
}

const tn_plugin& Checker::plugin() {
  if (plugin_ != nullptr) return *plugin_;
  announce_prelude("while it is loaded");
  const auto loaded = load_library(request_.library);
  if (const auto* refusal = std::get_if<Refusal>(&loaded)) give_up("it cannot be loaded: " + refusal->reason);
  announce_prelude("in its entry function");
  const auto checked = check_table(std::get<tenon_plugin_entry_fn>(loaded));
  if (const auto* refusal = std::get_if<Refusal>(&checked))
    give_up("its table is refused: " + refusal->reason);
  plugin_ = std::get<const tn_plugin*>(checked);
  return *plugin_;
}

CompleteHost& Checker::host() {
  if (!host_) host_ = std::make_unique<CompleteHost>();
  return *host_;
}

void* Checker::instance() {
  if (is_open_) return instance_;
  const tn_plugin& table = plugin();
  announce_prelude("in open");
  Diagnostics said;
  const tn_status status =
      table.open(host().host.make_plugin_host(string(table.name), "{}"), said.abi(), &instance_);
  if (status != TN_OK)
    give_up("its open failed with status " + std::to_string(status) + ": " + texts_of(said));
  is_open_ = true;
  return instance_;
}

const Registries& Checker::records() {
  if (!records_) {
    void* const opened = instance();
    announce_prelude("while its records are read");
    Diagnostics said;
    records_ = std::make_unique<Registries>();
    records_->add_plugin(plugin(), opened, said);
  }
  return *records_;
}

std::unique_ptr<Engine> Checker::make_engine(bool with_plugin) const {
  Diagnostics said;
  ManifestOptions options;
  options.set = {"runtime.threads=1"};
  Manifest manifest = default_manifest(options, said);
  // It comes first: of two with one id, such as a new build of an installed one, it is the one that counts.
  for (PluginRequest& other : manifest.plugins) other.required = false;
  PluginRequest own;
  own.path = request_.library;
  own.where = "the plugin";
  if (with_plugin) manifest.plugins.insert(manifest.plugins.begin(), own);
  EngineOptions engine_options;
  engine_options.verify_graph = true;
  engine_options.scan.use_child = false;
  engine_options.scan.use_cache = false;
  return std::make_unique<Engine>(std::move(manifest), engine_options);
}

Engine& Checker::engine() {
  if (engine_) return *engine_;
  announce_prelude("while a pipeline with it is made");
  try {
    engine_ = make_engine(true);
    RuntimeOptions runtime;
    runtime.threads = 1;
    runtime.random_seed = 1;
    evaluator_ = std::make_unique<Evaluator>(engine_->host(), engine_->registries(), runtime);
  } catch (const Error& error) {
    give_up(std::string("no pipeline can be made with it: ") + error.what());
  }
  return *engine_;
}

bool Checker::is_own(std::string_view plugin_name) {
  return plugin_name == engine().plugins().loaded().front().name;
}

}  // namespace tenon::check
