// Bench of the small cells: compares streams with queues, turns with a count, and counters with sums.
#include <array>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "bench.h"

#ifndef HUE_DEPTH
#define HUE_DEPTH 8
#endif

#ifndef HUE_ASKERS
#define HUE_ASKERS 5
#endif

#ifndef HUE_DEEP
#define HUE_DEEP 0
#endif

namespace {
// Words held outside the queue's memory, and clocks until the first word comes out: a queue in block RAM prefetches words.
constexpr unsigned Held = HUE_DEEP ? 8 : 2;
constexpr unsigned Way = HUE_DEEP ? 6 : 4;

std::unique_ptr<Vtop> top;

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
}

void reset() {
  top->rst_ni = 0;
  top->valid_i = top->ready_i = top->take_i = 0;
  top->frame_write_i = top->frame_commit_i = top->frame_rewind_i = top->frame_cut_i = top->frame_ready_i = 0;
  top->asks_i = 0;
  for (int i = 0; i < 4; ++i) bench::set_bits(top->adds_i, 32 * i, 32, 0);
  top->adds_host_valid_i = top->ram_host_valid_i = top->ram_valid_i = 0;
  for (int i = 0; i < 3; ++i) {
    top->eval();
    edge();
  }
  top->rst_ni = 1;
}

void streams(bench::Tests& tests, bench::Random& random, unsigned idle, unsigned stall) {
  tests.begin("register and queue, idle " + std::to_string(idle) + " %, back-pressure " + std::to_string(stall) + " %");
  reset();
  std::deque<uint32_t> inside;
  uint32_t next = 0, out = 0;
  bool offered = false;
  const unsigned clocks = 20000;
  for (unsigned clock = 0; clock < clocks; ++clock) {
    if (!offered) offered = !random.percent(idle);
    top->valid_i = offered;
    top->data_i = next;
    top->ready_i = !random.percent(stall);
    top->eval();
    if (top->valid_o && top->ready_i) {
      if (inside.empty() || top->data_o != inside.front()) tests.wrong("word %u came", top->data_o);
      if (!inside.empty()) inside.pop_front();
      ++out;
    }
    if (top->valid_i && top->ready_o) {
      inside.push_back(next++);
      offered = false;
    }
    edge();
  }
  if (inside.size() > HUE_DEPTH + Held) tests.wrong("%zu words lost", inside.size());
  if (idle == 0 && stall == 0 && out + Way < clocks) tests.wrong("%u words in %u clocks", out, clocks);
  tests.end();
}

void frames(bench::Tests& tests, bench::Random& random, unsigned stall) {
  tests.begin("queue of frames, back-pressure " + std::to_string(stall) + " %");
  reset();
  std::deque<uint32_t> committed, present;
  uint32_t next = 0, out = 0;
  for (unsigned clock = 0; clock < 40000; ++clock) {
    top->frame_write_i = top->frame_commit_i = top->frame_rewind_i = top->frame_cut_i = 0;
    top->frame_ready_i = !random.percent(stall);
    top->eval();
    const unsigned what = random.below(10);
    if (what == 0 && !present.empty()) {
      top->frame_rewind_i = 1;
    } else if (what == 1 && !present.empty()) {
      top->frame_cut_i = 1;
      top->frame_commit_i = random.percent(50);
    } else if (what < 8 && !top->frame_full_o) {
      top->frame_write_i = 1;
      top->frame_data_i = ++next;
      top->frame_commit_i = random.percent(25);
    } else if (!present.empty()) {
      top->frame_commit_i = 1;
    }
    // A frame as long as the memory can only be discarded.
    if (top->frame_full_o && committed.empty()) {
      top->frame_commit_i = top->frame_cut_i = top->frame_write_i = 0;
      top->frame_rewind_i = 1;
    }
    top->eval();
    if (top->frame_valid_o && top->frame_ready_i) {
      if (committed.empty() || top->frame_data_o != committed.front()) tests.wrong("word %u came", top->frame_data_o);
      if (!committed.empty()) committed.pop_front();
      ++out;
    }
    if (top->frame_write_i) present.push_back(next);
    if (top->frame_cut_i) present.resize(1);
    if (top->frame_rewind_i) present.clear();
    if (top->frame_commit_i) {
      committed.insert(committed.end(), present.begin(), present.end());
      present.clear();
    }
    edge();
    top->eval();
    if (top->frame_empty_o != committed.empty()) tests.wrong("empty is %u", top->frame_empty_o);
  }
  if (out < 1000) tests.wrong("only %u words came", out);
  tests.end();
}

void turns(bench::Tests& tests, bench::Random& random) {
  tests.begin("round robin");
  reset();
  int last = -1;
  std::array<unsigned, HUE_ASKERS> waited{};
  for (unsigned clock = 0; clock < 20000; ++clock) {
    const unsigned asks = random.percent(30) ? (1u << HUE_ASKERS) - 1 : random.below(1u << HUE_ASKERS);
    top->asks_i = asks;
    top->take_i = random.percent(80);
    top->eval();
    int wanted = -1;
    for (int i = 1; i <= HUE_ASKERS && wanted < 0; ++i) {
      const int at = (last + i + HUE_ASKERS) % HUE_ASKERS;
      if (asks >> at & 1) wanted = at;
    }
    if (top->any_o != (asks != 0) || (asks != 0 && int(top->winner_o) != wanted))
      tests.wrong("winner %u of %x after %d, expected %d", top->winner_o, asks, last, wanted);
    if (top->take_i && asks != 0) last = top->winner_o;
    edge();
  }
  tests.end();
}

void counters(bench::Tests& tests, bench::Random& random) {
  tests.begin("counters with several events at once add up");
  reset();
  std::array<uint64_t, 8> sums{};
  bool asking = false, clear = false;
  unsigned index = 0, reads = 0, waiting = 0;
  for (unsigned clock = 0; clock < 60000; ++clock) {
    for (unsigned c = 0; c < 8; ++c) {
      const uint16_t add = random.percent(30) ? 0 : random.percent(3) ? 0xffff : random.below(4000);
      bench::set_bits(top->adds_i, 16 * c, 16, add);
    }
    if (!asking && random.percent(20)) {
      asking = true;
      clear = random.percent(30);
      index = random.below(8);
      waiting = 0;
    }
    top->adds_host_valid_i = asking;
    top->adds_host_clear_i = clear;
    top->adds_host_index_i = index;
    top->eval();
    if (top->adds_host_done_o) {
      // The value includes all events of earlier clocks.
      if (!asking || top->adds_host_value_o != sums[index])
        tests.wrong("counter %u is %llu, expected %llu", index, (unsigned long long)top->adds_host_value_o,
                    (unsigned long long)sums[index]);
      if (clear) sums[index] = 0;
      asking = false;
      ++reads;
    } else if (asking && ++waiting > 3) {
      tests.wrong("no answer");
      break;
    }
    for (unsigned c = 0; c < 8; ++c) sums[c] += bench::bits(top->adds_i, 16 * c, 16);
    edge();
  }
  if (reads < 1000) tests.wrong("only %u reads", reads);
  tests.end();
}

void counter_ram(bench::Tests& tests, bench::Random& random, unsigned events) {
  tests.begin("counters in one memory add up, events in " + std::to_string(events) + " % of clocks");
  reset();
  std::array<uint64_t, 16> sums{};
  bool asking = false, clear = false;
  unsigned index = 0, reads = 0, waiting = 0;
  uint64_t at_start = 0, latest = 0;
  bool ready_next = false, ready_soon = false;  // as announced by `ready_soon_o`
  for (unsigned clock = 0; clock < 60000; ++clock) {
    if (!asking && random.percent(20)) {
      asking = true;
      clear = random.percent(30);
      index = random.below(16);
      waiting = 0;
    }
    top->ram_host_valid_i = asking;
    top->ram_host_clear_i = clear;
    top->ram_host_index_i = index;
    top->ram_valid_i = 0;
    top->eval();
    if (top->ram_ready_o != ready_next)
      tests.wrong("clock %u: ready is %u, not as announced two clocks before", clock, top->ram_ready_o);
    top->ram_valid_i = top->ram_ready_o && random.percent(events);
    // Often the same counter several times in a row.
    top->ram_index_i = random.percent(60) ? 3 : random.below(16);
    top->ram_add_i = random.below(65536);
    top->eval();
    if (top->ram_host_done_o) {
      // Sampled two clocks ago: events of this clock and of the one before are not included.
      if (!asking || top->ram_host_value_o != at_start)
        tests.wrong("counter %u is %llu, expected %llu", index, (unsigned long long)top->ram_host_value_o,
                    (unsigned long long)at_start);
      if (clear) sums[index] -= at_start;
      asking = false;
      ++reads;
    } else if (asking && ++waiting > 20) {
      tests.wrong("no answer");
      break;
    }
    if (top->ram_valid_i) sums[top->ram_index_i] += top->ram_add_i;
    at_start = latest;
    latest = sums[index];
    ready_next = ready_soon;
    ready_soon = top->ram_ready_soon_o;
    edge();
  }
  if (reads < 500) tests.wrong("only %u reads", reads);
  tests.end();
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const unsigned shares[][2] = {{0, 0}, {50, 0}, {0, 50}, {50, 50}, {10, 90}, {90, 10}};
  for (const auto& share : shares) streams(tests, random, share[0], share[1]);
  for (const unsigned stall : {0u, 40u, 80u}) frames(tests, random, stall);
  turns(tests, random);
  counters(tests, random);
  for (const unsigned events : {0u, 30u, 90u, 100u}) counter_ram(tests, random, events);
  top->final();
  top.reset();
  return tests.result();
}
