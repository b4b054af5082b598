#include "core/check/report.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace tenon::check {

namespace {

std::string_view word_of(Result::Outcome outcome) {
  switch (outcome) {
    case Result::Outcome::passed:
      return "passed";
    case Result::Outcome::failed:
      return "failed";
    case Result::Outcome::nothing_to_do:
      return "nothing to check";
    case Result::Outcome::not_run:
      return "not run";
  }
  return "";
}

std::string shell_quoted(const std::string& text) {
  if (text.find_first_of(" '\"$&;()*?<>|\\`") == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

size_t count(const std::vector<Result>& results, Result::Outcome outcome) {
  return static_cast<size_t>(
      std::count_if(results.begin(), results.end(), [&](const Result& r) { return r.outcome == outcome; }));
}

}  // namespace

std::string repro(const Result& result, const Request& request) {
  std::string text = fmt::format("tenon plugins check {} --only {} --seed {}",
                                 shell_quoted(request.library.string()), result.check->id, request.seed);
  if (request.effort != 1) text += fmt::format(" --effort {}", request.effort);
  if (!request.samples.empty()) text += " --samples " + shell_quoted(request.samples.string());
  return text;
}

std::string text_of(const Result& result, const Request& request) {
  std::string text =
      fmt::format("{:<5} {:<16} {}", result.check->id, word_of(result.outcome), result.check->title);
  if (result.outcome == Result::Outcome::passed && result.subjects > 1)
    text += fmt::format(" ({})", result.subjects);
  if (result.outcome == Result::Outcome::not_run) text += ": " + result.reason;
  text += '\n';
  // The rest is in the JSON.
  constexpr size_t shown = 20;
  for (size_t i = 0; i < std::min(shown, result.findings.size()); ++i) {
    const Finding& finding = result.findings[i];
    text += fmt::format("        {}: {}\n", finding.subject, finding.text);
    if (!finding.reproducer.empty()) text += fmt::format("          kept: {}\n", finding.reproducer.string());
  }
  if (result.findings.size() > shown)
    text += fmt::format("        and {} more\n", result.findings.size() - shown);
  if (result.outcome == Result::Outcome::failed)
    text += fmt::format("        otherwise: {}\n        again: {}\n", result.check->consequence,
                        repro(result, request));
  for (const std::string& note : result.notes) text += fmt::format("        note: {}\n", note);
  return text;
}

std::string summary_of(const std::vector<Result>& results) {
  return fmt::format("{} checks: {} passed, {} failed, {} with nothing to check, {} not run\n",
                     results.size(), count(results, Result::Outcome::passed),
                     count(results, Result::Outcome::failed), count(results, Result::Outcome::nothing_to_do),
                     count(results, Result::Outcome::not_run));
}

nlohmann::json to_json(const std::vector<Result>& results, const Request& request) {
  nlohmann::json checks = nlohmann::json::array();
  for (const Result& result : results) {
    nlohmann::json findings = nlohmann::json::array();
    for (const Finding& finding : result.findings) {
      nlohmann::json one = {{"subject", finding.subject}, {"text", finding.text}};
      if (!finding.reproducer.empty()) one["reproducer"] = finding.reproducer.string();
      findings.push_back(std::move(one));
    }
    nlohmann::json json = {{"id", result.check->id},       {"level", result.check->level()},
                           {"title", result.check->title}, {"consequence", result.check->consequence},
                           {"host", result.check->host},   {"outcome", word_of(result.outcome)},
                           {"subjects", result.subjects},  {"findings", std::move(findings)},
                           {"notes", result.notes},        {"repro", repro(result, request)}};
    if (!result.reason.empty()) json["reason"] = result.reason;
    checks.push_back(std::move(json));
  }
  return {{"schema", "tenon.plugin-check/1"},
          {"library", request.library.string()},
          {"seed", request.seed},
          {"passed", !any_failed(results)},
          {"checks", std::move(checks)}};
}

// A check that could not run is none that passed; the one that could not be done without has failed, or is
// not among those asked for.
bool any_failed(const std::vector<Result>& results) {
  return std::any_of(results.begin(), results.end(), [](const Result& r) {
    return r.outcome == Result::Outcome::failed || r.outcome == Result::Outcome::not_run;
  });
}

}  // namespace tenon::check
