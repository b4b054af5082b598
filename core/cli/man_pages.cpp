#include "core/cli/man_pages.hpp"

#include <cctype>
#include <cstdio>

#include "core/base/diagnostics.hpp"
#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/plugin/host.hpp"

namespace tenon::cli {

namespace {

// What troff would take for its own: backslashes, hyphens that are to stay as typed, dots and quotes that
// begin a line.
std::string escaped(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  std::vector<const CLI::App*> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!verb->get_group().empty()) verbs.push_back(verb);
  return verbs;
}

// "FILE", where the option takes a value.
std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const std::string type = option.get_type_name();
  return type.empty() ? "VALUE" : type;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : ", ") + bold("--" + name);
  if (names.empty())
    names = italic(upper(option.get_single_name()));
  else if (const std::string value = value_of(option); !value.empty())
    names += " " + italic(value);
  return ".TP\n" + names + "\n" + escaped(option.get_description()) + "\n";
}

std::string entries(const CLI::App& app, bool positional) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->nonpositional() == positional) continue;
    text += entry(*option);
  }
  return text;
}

std::string synopsis(const CLI::App& app, const std::string& name) {
  std::string text = ".B " + escaped(name) + "\n";
  bool has_options = false;
  std::string arguments;
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      has_options = true;
      continue;
    }
    const std::string argument = italic(upper(option->get_single_name()));
    arguments += (option->get_required() ? argument : "[" + argument + "]") + "\n";
  }
  if (has_options) text += "[" + italic("OPTIONS") + "]\n";
  text += arguments;
  if (!verbs_of(app).empty()) text += italic("VERB") + " ...\n";
  return text;
}

std::string verb_list(const CLI::App& app) {
  std::string text;
  for (const CLI::App* verb : verbs_of(app))
    text += ".TP\n" + bold(verb->get_name()) + "\n" + escaped(verb->get_description()) + "\n";
  return text;
}

// A verb of a verb has a section in the verb's own page.
std::string nested(const CLI::App& app, const std::string& name) {
  std::string text;
  for (const CLI::App* verb : verbs_of(app)) {
    const std::string full = name + " " + verb->get_name();
    text += ".SS " + quoted(escaped(full)) + "\n" + synopsis(*verb, full) + ".PP\n" +
            escaped(verb->get_description()) + "\n" + entries(*verb, true) + entries(*verb, false);
  }
  return text;
}

constexpr const char* environment = R"(.SH ENVIRONMENT
.TP
.B TENON_PLUGIN_PATH
Further plugin folders, absolute, first in the search; colons between.
.TP
.B TENON_ROOT
The folder that holds lib/tenon and share/tenon, when the program lies elsewhere.
.TP
.B TENON_CACHE_DIR
Where scans of plugins are remembered; else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon.
.TP
.B TENON_SCAN_TIMEOUT_MS
Time limit of a plugin's scan; 10000.
.TP
.B TENON_MAX_ISA
The newest instruction set that kernels may use: sse42, avx2, avx512, vnni or amx.
.TP
.B TENON_GUARD
1: guard words behind every buffer.
.TP
.B TENON_LOG
debug, info, warning, error or off.
)";

}  // namespace

std::string man_page(const CLI::App& app, const std::string& parents) {
  const std::string name = parents + app.get_name();
  std::string page_name = name;
  for (char& c : page_name)
    if (c == ' ') c = '-';
  const bool is_program = parents.empty();
  const std::string version(program_version());
  std::string text =
      ".TH " + quoted(upper(page_name)) + " 1 \"\" " + quoted("tenon " + version) + " \"Tenon\"\n";
  text += ".SH NAME\n" + escaped(page_name) + " \\- " + escaped(app.get_description()) + "\n";
  text += ".SH SYNOPSIS\n" + synopsis(app, name);
  if (const std::string arguments = entries(app, true); !arguments.empty())
    text += ".SH ARGUMENTS\n" + arguments;
  if (const std::string options = entries(app, false); !options.empty()) text += ".SH OPTIONS\n" + options;
  if (const std::string verbs = verb_list(app); !verbs.empty())
    text += ".SH VERBS\n" + (is_program ? verbs : nested(app, name));
  text += ".SH \"EXIT STATUS\"\n0: fine; 1: the job failed; 2: bad input or usage.\n";
  if (is_program) text += environment;
  text += ".SH \"SEE ALSO\"\n";
  if (!is_program) return text + ".BR tenon (1)\n";
  std::string others;
  for (const CLI::App* verb : verbs_of(app))
    others += (others.empty() ? "" : ",\n") + (".BR tenon\\-" + escaped(verb->get_name()) + " (1)");
  return text + others + "\n";
}

int write_man_pages(const CLI::App& app, const std::filesystem::path& folder) {
  try {
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / (app.get_name() + ".1"), man_page(app, {}));
    for (const CLI::App* verb : verbs_of(app))
      write_file_atomically(folder / (app.get_name() + "-" + verb->get_name() + ".1"),
                            man_page(*verb, app.get_name() + " "));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: error: %s\n", error.what());
    return exit_job_failed;
  }
}

}  // namespace tenon::cli
