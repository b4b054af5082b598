// LSTM, GRU, RNN. X is [sequence, batch, input] (layout 1: [batch, sequence, input]), W [directions,
// gates*hidden, input].
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_recurrent(Infer& c, int64_t gates) {
  const tn_dtype dtype = c.dtype(0);
  const int64_t layout = c.attrs().get_int("layout", 0);
  require(layout == 0 || layout == 1, "attribute 'layout' is " + text_of(layout) + "; expected 0 or 1");
  const auto direction = c.attrs().get_string("direction", "forward");
  require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
          "attribute 'direction' is '" + std::string(direction) +
              "'; expected forward, reverse or bidirectional");
  const tn_dim directions = direction == "bidirectional" ? 2 : 1;
  const bool has_x = ranked(c, 0, "X", 3, 3), has_w = ranked(c, 1, "W", 3, 3),
             has_r = ranked(c, 2, "R", 3, 3);
  tn_dim hidden = -1;
  bool hidden_known = false;
  if (c.attrs().has("hidden_size")) {
    hidden = c.attrs().get_int("hidden_size", 0);
    hidden_known = true;
    require(hidden >= 1, "attribute 'hidden_size' is " + text_of(hidden) + "; expected 1 or more");
  } else if (has_r) {
    hidden = c.dims(2)[2];
    hidden_known = true;
  }
  if (!has_x || !hidden_known) {
    for (uint32_t i = 0; i < c.output_count(); ++i) c.set_unranked(i, dtype);
    return;
  }
  const auto x = c.dims(0);
  const tn_dim length = x[layout == 0 ? 0 : 1], batch = x[layout == 0 ? 1 : 0];
  const auto expect = [&](uint32_t i, const char* name, std::vector<tn_dim> wanted) {
    const auto found = c.dims(i);
    for (size_t k = 0; k < wanted.size(); ++k)
      require(!c.differ(found[k], wanted[k]), std::string("operand ") + name + " has shape " + c.text(found) +
                                                  "; expected " + c.text(wanted));
  };
  const tn_dim rows = c.mul(hidden, gates);
  if (has_w) expect(1, "W", {directions, rows, x[2]});
  if (has_r) expect(2, "R", {directions, rows, hidden});
  if (c.has_input(3) && ranked(c, 3, "B", 2, 2)) expect(3, "B", {directions, c.mul(rows, 2)});
  if (c.has_input(4) && ranked(c, 4, "sequence_lens", 1, 1)) expect(4, "sequence_lens", {batch});
  const std::vector<tn_dim> last = layout == 0 ? std::vector<tn_dim>{directions, batch, hidden}
                                               : std::vector<tn_dim>{batch, directions, hidden};
  if (c.has_input(5) && ranked(c, 5, "initial_h", 3, 3)) expect(5, "initial_h", last);
  const std::vector<tn_dim> all = layout == 0 ? std::vector<tn_dim>{length, directions, batch, hidden}
                                              : std::vector<tn_dim>{batch, length, directions, hidden};
  c.set(0, dtype, all);
  c.set(1, dtype, last);
  c.set(2, dtype, last);
}
void infer_lstm(Infer& c) { infer_recurrent(c, 4); }
void infer_gru(Infer& c) { infer_recurrent(c, 3); }
void infer_rnn(Infer& c) { infer_recurrent(c, 1); }

void upgrade_recurrent(Editor& e, const Node& n) {
  const tn_node id = n.id();
  drop_attr(e, n, "output_sequence");  // said whether result 0 is wanted; now its presence does
  upgrade_version_only(e, e.graph().node(id));
}

}  // namespace

void add_recurrent(Plugin& p) {
  define(p, "LSTM").infer<infer_lstm>().upgrade<upgrade_recurrent>();
  define(p, "GRU").infer<infer_gru>().upgrade<upgrade_recurrent>();
  define(p, "RNN").infer<infer_rnn>().upgrade<upgrade_recurrent>();
}

}  // namespace tenon::ops
