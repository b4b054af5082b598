// tenon doctor: what is wrong with this installation, and what to do about it.
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/cli/doctor_checks.hpp"
#include "core/plugin/host.hpp"

namespace tenon::cli {

namespace {

struct Options {
  std::string manifest;
  bool json = false, verbose = false;
};

int doctor(const Options& o) {
  const std::vector<DoctorFinding> findings = examine_installation(o.manifest);
  size_t errors = 0, warnings = 0;
  Json list = Json::array();
  for (const DoctorFinding& finding : findings) {
    errors += finding.health == Health::error;
    warnings += finding.health == Health::warning;
    list.push_back({{"check", finding.check},
                    {"health", health_name(finding.health)},
                    {"where", finding.where},
                    {"text", finding.text},
                    {"remedy", finding.remedy}});
    if (o.json || (finding.health == Health::ok && !o.verbose)) continue;
    std::string line = fmt::format("{:<8} {:<16} ", health_name(finding.health), finding.check);
    if (!finding.where.empty()) line += finding.where + ": ";
    line += finding.text;
    std::printf("%s\n", printable(line).c_str());
    if (!finding.remedy.empty()) std::printf("%26s-> %s\n", "", printable(finding.remedy).c_str());
  }
  if (o.json)
    print_json({{"version", program_version()},
                {"root", install_root().string()},
                {"errors", errors},
                {"warnings", warnings},
                {"findings", std::move(list)}});
  else
    std::printf("tenon %s in %s: %zu checked, %zu errors, %zu warnings\n",
                std::string(program_version()).c_str(), install_root().c_str(), findings.size(), errors,
                warnings);
  return errors == 0 ? 0 : exit_job_failed;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  auto* verb = app.add_subcommand(
      "doctor", "what is wrong with this installation, and the remedy; exit code 1 when there are errors");
  verb->add_option("manifest", o->manifest, "also open this manifest and check its lock file")
      ->type_name("MANIFEST");
  verb->add_flag("--verbose,-v", o->verbose, "print what is in order, too");
  verb->add_flag("--json", o->json, "print one JSON object");
  verb->callback([o, &action] { action = [o] { return doctor(*o); }; });
}

}  // namespace tenon::cli
