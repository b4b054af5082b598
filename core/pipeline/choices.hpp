// Decisions made by measuring, in a file: a run that is given it decides the same, and times nothing unless
// it is asked to.
#pragma once
#include <tenon/abi/choices.h>

#include <filesystem>
#include <map>
#include <string>

#include "core/base/diagnostics.hpp"

namespace tenon {

class Host;

class ChoiceStore {
 public:
  // `machine`: where and how this run would measure. Provides tenon.choices.draft/1 to the host while it
  // lives, when there is a file.
  ChoiceStore(Host& host, std::filesystem::path file, bool may_measure, std::string machine);
  ~ChoiceStore();
  ChoiceStore(const ChoiceStore&) = delete;
  ChoiceStore& operator=(const ChoiceStore&) = delete;

  // A file that is not there is an error, unless this run may measure and write it.
  void read(Diagnostics& diagnostics);
  // When something was measured. Throws Error when it cannot be written.
  void write();
  static const tn_choices_api* api();

 private:
  struct Choice {
    std::string chosen, note, machine;
    bool of_this_run = false;
  };
  static ChoiceStore& of(const tn_host* host);

  Host& host_;
  std::filesystem::path file_;
  bool may_measure_;
  std::string machine_;
  std::map<std::string, Choice> choices_;  // by question
  bool is_changed_ = false;
};

}  // namespace tenon
