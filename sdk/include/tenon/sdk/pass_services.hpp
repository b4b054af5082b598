// The instance of a plugin of passes: Services of a host that has all that passes work with.
#pragma once
#include "plugin.hpp"

namespace tenon::sdk {

/// `plugin.instance<PassServices>()`: a host without graphs, their editing, symbols or the operators'
/// registry is told so in open, and no pass has to ask.
struct PassServices : Services {
  explicit PassServices(const tn_host* h) : Services(h) {
    if (!graph || !edit || !symbols || !registry)
      throw Failure(
          TN_ERR_UNSUPPORTED,
          "this host does not offer graphs, their editing, symbols and the operators' registry; use one that "
          "does");
  }
};

}  // namespace tenon::sdk
