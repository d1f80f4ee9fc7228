// Bench of hue_loop: frames of several networks, compared with a queue that knows the share of each; floods; and a card that may not drop.
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;

namespace {
constexpr unsigned Width = 32;
constexpr unsigned Usable = HUE_WORDS - 4;
using item = hue_pkg::hue_loop_t;

std::unique_ptr<Vtop> top;

struct Frame {
  unsigned net, vport, port, tunnel;
  uint32_t tag;
  Bytes bytes;
  unsigned beats() const { return stream::beats_of(bytes.size(), Width); }
};

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
}

struct Result {
  std::map<unsigned, unsigned> sent, dropped;
};

// Sends frames of `next`, while `more`, and takes them out at this rate.
template <typename Next>
Result run(bench::Tests& tests, bench::Random& random, Next next, unsigned count, const stream::Rates& rates, bool offline) {
  top->rst_ni = 0;
  top->s_valid_i = top->m_ready_i = top->offline_i = 0;
  for (int i = 0; i < 3; ++i) top->eval(), edge();
  top->rst_ni = 1;
  top->offline_i = offline;
  std::deque<Frame> inside;
  std::map<unsigned, unsigned> used;
  unsigned free = Usable, beat = 0, made = 0;
  bool offered = false, decided = false, taken = false, expect_drop = false;
  Frame frame;
  Bytes coming;
  Result result;
  for (unsigned quiet = 0; (made < count || offered || !inside.empty()) && quiet < 5000; ++quiet) {
    if (!offered && made < count && !random.percent(rates.idle)) {
      frame = next(made++);
      offered = true;
      decided = false;
      beat = 0;
    }
    top->s_valid_i = offered;
    if (offered) {
      stream::put_beat(top->s_data_i, frame.bytes, Width, beat);
      top->s_last_i = beat + 1 == frame.beats();
      bench::set(top->s_item_i, item::tunnel, frame.tunnel);
      bench::set(top->s_item_i, item::net, frame.net);
      bench::set(top->s_item_i, item::vport, frame.vport);
      bench::set(top->s_item_i, item::port_in, frame.port);
      bench::set(top->s_item_i, item::tag, frame.tag);
      bench::set(top->s_item_i, item::len, frame.bytes.size());
    }
    top->m_ready_i = !random.percent(rates.stall);
    top->eval();
    if (top->dropped_o != expect_drop || (expect_drop && top->dropped_net_o != frame.net)) tests.wrong("frame %u: dropped %u", frame.tag, top->dropped_o);
    expect_drop = false;
    const unsigned free_before = free;
    std::map<unsigned, unsigned> before = used;
    if (top->m_valid_o && top->m_ready_i) {
      quiet = 0;
      if (inside.empty()) {
        tests.wrong("a beat of no frame");
        break;
      }
      const Frame& first = inside.front();
      stream::take_beat(top->m_data_o, coming, Width);
      if (bench::get(top->m_item_o, item::tag) != first.tag || bench::get(top->m_item_o, item::net) != first.net ||
          bench::get(top->m_item_o, item::vport) != first.vport || bench::get(top->m_item_o, item::port_in) != first.port ||
          bench::get(top->m_item_o, item::tunnel) != first.tunnel || bench::get(top->m_item_o, item::len) != first.bytes.size())
        tests.wrong("frame %u: wrong description", first.tag);
      if (top->m_last_o != (coming.size() >= first.bytes.size())) tests.wrong("frame %u: last after %zu", first.tag, coming.size());
      if (top->m_last_o) {
        coming.resize(first.bytes.size());
        if (coming != first.bytes) tests.wrong("frame %u differs", first.tag);
        used[first.net] -= first.beats();
        free += first.beats();
        ++result.sent[first.net];
        inside.pop_front();
        coming.clear();
      }
    }
    const bool ready = top->s_ready_o;
    if (offered && ready) {
      quiet = 0;
      if (!decided) tests.wrong("frame %u is taken before it is decided", frame.tag);
      if (++beat == frame.beats()) {
        offered = false;
        if (taken) inside.push_back(frame);
      }
    } else if (offered && !decided && top->rst_ni) {
      // The decision, with what was free before this clock. After reset the shares are cleared for a while.
      const unsigned need = frame.beats();
      const bool fits = (offline ? need : before[frame.net] + need) <= free_before;
      edge();
      top->eval();
      if (top->s_ready_o) {
        if (offline && !fits) tests.wrong("frame %u is taken without room", frame.tag);
        decided = true;
        taken = fits;
        if (taken) used[frame.net] += need, free -= need;
        else ++result.dropped[frame.net];
        expect_drop = !taken;
        quiet = 0;
      }
      continue;
    }
    edge();
  }
  top->s_valid_i = 0;
  for (int i = 0; i < 4; ++i) top->eval(), edge();
  top->eval();
  if (!inside.empty() || offered || made < count) tests.wrong("%zu frames do not leave", inside.size());
  if (!top->idle_o) tests.wrong("not idle at the end");
  return result;
}

Frame random_frame(bench::Random& random, uint32_t tag, unsigned net, unsigned bytes) {
  return {net, random.below(256), random.below(8), random.between(1, 2), tag, stream::random_bytes(random, bytes)};
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  for (const bool offline : {false, true}) {
    for (const auto& rates : stream::Mixes) {
      tests.begin("loop, " + stream::text_of(rates) + (offline ? ", without drops" : ""));
      const auto next = [&](uint32_t tag) {
        return random_frame(random, tag, random.below(HUE_NETS), random.percent(2) ? random.between(2000, 9216) : random.between(14, 1600));
      };
      const Result result = run(tests, random, next, 3000, rates, offline);
      unsigned dropped = 0;
      for (const auto& [net, count] : result.dropped) dropped += count;
      if (offline && dropped != 0) tests.wrong("%u frames dropped", dropped);
      tests.end();
    }
  }
  // A network that sends as much as it can loses frames; one that sends little loses none.
  tests.begin("a flood costs its own network");
  {
    const auto next = [&](uint32_t tag) { return random_frame(random, tag, tag % 12 == 0 ? 3 : 5, tag % 12 == 0 ? 300 : 1500); };
    Result result = run(tests, random, next, 6000, {0, 85}, false);
    if (result.dropped[3] != 0 || result.dropped[5] == 0) tests.wrong("dropped: %u of the flood, %u beside it", result.dropped[5], result.dropped[3]);
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
