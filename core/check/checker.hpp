// What a check in its child may use: the plugin, a host, and ways to say what was found.
#pragma once
#include <tenon/abi/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/check/random.hpp"
#include "core/check/request.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/registries.hpp"

namespace tenon {
class Engine;
class Evaluator;
}  // namespace tenon

namespace tenon::check {

// A host with all its services, and nothing loaded.
struct CompleteHost {
  CompleteHost();
  ~CompleteHost();
  Host host;
  Registries registries;
  std::unique_ptr<Evaluator> evaluator;
};

class Checker {
 public:
  // `ended_at`: the subjects at which earlier children came to an end, ascending. What comes before the last
  // of them was looked at.
  Checker(Request request, std::string check_id, std::vector<uint64_t> ended_at);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  const Request& request() const { return request_; }
  // The stream of a name, so that what is drawn for one subject does not hang on the others.
  Random random(std::string_view stream) const;

  // --- what is looked at, and what was found
  // What is looked at from now on; whatever happens to the process is about it. False: leave it out, an
  // earlier child did it.
  bool begin(std::string_view subject);
  // After begin answered false: an earlier child came to its end at this subject, so that not even what finds
  // further subjects may be done again.
  bool ended_here() const;
  void finding(std::string_view text);  // about the subject begun last
  void note(std::string_view text);     // worth saying, no fault
  // The file in scratch() that makes what happens now happen again: kept when the child comes to an end.
  void reproducer(const std::filesystem::path& file);
  uint64_t subjects() const { return next_subject_; }
  uint64_t findings() const { return findings_; }

  // The check cannot be done, and why; ends this child.
  [[noreturn]] void give_up(const std::string& why);

  // --- the plugin; a failure to get there ends this child: another check tells it
  const tn_plugin& plugin();    // the library loaded, its table checked
  CompleteHost& host();         // that it was opened with
  void* instance();             // an open instance
  const Registries& records();  // what this plugin alone provides
  Engine& engine();             // the default pipeline's plugins and this one
  // Another one, with or without this plugin. Throws Error.
  std::unique_ptr<Engine> make_engine(bool with_plugin) const;
  bool is_own(std::string_view plugin_name);  // a record of the engine's is this plugin's

  // A folder for files, gone with the child.
  const std::filesystem::path& scratch() const { return request_.scratch; }

 private:
  // What is done before the check's own work, or in between for it.
  void announce_prelude(std::string_view stage);
  void write_line(char kind, const std::string& text);

  Request request_;
  std::string id_;
  std::vector<uint64_t> ended_at_;
  uint64_t next_subject_ = 0, findings_ = 0, findings_of_subject_ = 0;
  std::string subject_;
  const tn_plugin* plugin_ = nullptr;
  std::unique_ptr<CompleteHost> host_;
  bool is_open_ = false;
  void* instance_ = nullptr;
  std::unique_ptr<Registries> records_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace tenon::check
