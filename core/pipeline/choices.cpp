#include "core/pipeline/choices.hpp"

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/pipeline/json_source.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

namespace {

constexpr std::string_view schema = "tenon.choices/1";

}  // namespace

ChoiceStore& ChoiceStore::of(const tn_host* host) {
  return *static_cast<ChoiceStore*>(Host::from(host).context(TN_CHOICES_ID));
}

const tn_choices_api* ChoiceStore::api() {
  static const tn_choices_api api = {
      sizeof(tn_choices_api), 0, [](const tn_host* host) -> int { return of(host).may_measure_ ? 1 : 0; },
      [](const tn_host* host, tn_str question, tn_str* chosen, tn_str* note) {
        const ChoiceStore& store = of(host);
        const auto found = store.choices_.find(string(question));
        if (found == store.choices_.end()) return TN_CHOICE_NONE;
        const Choice& choice = found->second;
        *chosen = to_abi(choice.chosen);
        *note = to_abi(choice.note);
        return choice.of_this_run                 ? TN_CHOICE_THIS_RUN
               : choice.machine == store.machine_ ? TN_CHOICE_OWN
                                                  : TN_CHOICE_FOREIGN;
      },
      [](const tn_host* host, tn_str question, tn_str chosen, tn_str note) -> tn_status {
        ChoiceStore& store = of(host);
        if (!store.may_measure_) return TN_ERR_UNSUPPORTED;
        store.choices_[string(question)] = {string(chosen), string(note), store.machine_, true};
        store.is_changed_ = true;
        return TN_OK;
      }};
  return &api;
}

ChoiceStore::ChoiceStore(Host& host, std::filesystem::path file, bool may_measure, std::string machine)
    : host_(host), file_(std::move(file)), may_measure_(may_measure), machine_(std::move(machine)) {
  if (!file_.empty()) host_.provide(TN_CHOICES_ID, api(), this);
}

ChoiceStore::~ChoiceStore() {
  if (!file_.empty()) host_.provide(TN_CHOICES_ID, nullptr, nullptr);
}

void ChoiceStore::read(Diagnostics& diagnostics) {
  if (file_.empty()) {
    if (may_measure_)
      diagnostics.error("M260", "--measure",
                        "what is measured is kept in a file; name one: --choices FILE, or \"choices\" in the "
                        "manifest");
    return;
  }
  std::error_code error;
  if (may_measure_ && !std::filesystem::exists(file_, error)) return;
  const std::optional<JsonSource> source = JsonSource::read(file_, diagnostics);
  if (!source) return;
  const auto fault = [&](const std::string& pointer, const std::string& what, const std::string& hint) {
    diagnostics.add(source->finding(TN_SEVERITY_ERROR, "M261", pointer, what, hint));
  };
  const Json& root = source->root();
  if (!root.is_object() || !root.contains("schema") || root.at("schema") != schema ||
      !root.contains("choices") || !root.at("choices").is_object())
    return fault(
        "", "is no file of choices",
        "expected {\"schema\": \"tenon.choices/1\", \"choices\": {...}}, as optimize --measure writes it");
  for (const auto& item : root.at("choices").items()) {
    Choice choice;
    const std::string pointer = "/choices/" + pointer_step(item.key());
    const auto text = [&](const char* key, std::string* out) {
      const bool is_text =
          item.value().is_object() && item.value().contains(key) && item.value().at(key).is_string();
      if (is_text) *out = item.value().at(key).get<std::string>();
      return is_text;
    };
    if (!text("chosen", &choice.chosen) || !text("note", &choice.note) || !text("machine", &choice.machine))
      fault(pointer, "a choice has the texts 'chosen', 'note' and 'machine'",
            "let optimize --measure write it");
    choices_[item.key()] = std::move(choice);
  }
}

void ChoiceStore::write() {
  if (!is_changed_) return;
  Json all = Json::object();
  for (const auto& [question, choice] : choices_)
    all[question] = {{"chosen", choice.chosen}, {"note", choice.note}, {"machine", choice.machine}};
  const Json root = {{"schema", schema}, {"choices", std::move(all)}};
  write_file_atomically(file_, root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  is_changed_ = false;
}

}  // namespace tenon
