// Bench of hue_sorted_labels: labels and pointers come and go while keys are looked up, and each answer is the shortest clockwise way among all
// of them, 2 clocks later.
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "bench.h"

namespace {
constexpr unsigned Mask = (1u << HUE_LABEL_BITS) - 1, Latency = 2;

struct Answer {
  bool valid, found, exact;
  unsigned label, hop;
};

using Labels = std::map<unsigned, unsigned>;

Answer closest(const Labels& entries, const Labels& pointers, unsigned key) {
  Answer best{true, false, false, 0, 0};
  unsigned way = 0;
  // Entries come first: a pointer wins only if it is closer.
  for (const Labels* labels : {&entries, &pointers}) {
    for (auto [label, hop] : *labels) {
      const unsigned own = (key - label) & Mask;
      if (best.found && own >= way) continue;
      way = own;
      best = {true, true, own == 0, label, hop};
    }
  }
  return best;
}
}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Random random(seed);
  bench::Tests tests(seed);
  auto top = std::make_unique<Vtop>();
  auto edge = [&] {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
    top->eval();
  };
  tests.begin("labels and pointers that come and go");
  top->rst_ni = 0;
  top->insert_i = top->remove_i = top->valid_i = 0;
  edge();
  edge();
  top->rst_ni = 1;
  Labels tables[2];
  const unsigned room[2] = {HUE_ROWS, HUE_POINTER_ROWS};
  std::deque<Answer> wanted;
  for (unsigned clock = 0; clock < 200000; ++clock) {
    const bool pointer = random.percent(40);
    Labels& table = tables[pointer];
    // Often full, sometimes empty, and often the same labels in both tables.
    const unsigned label = random.percent(50) ? random.below(12) * 21 & Mask : random.next() & Mask;
    const bool comes = !table.count(label) && table.size() < room[pointer] && random.percent(clock / 1000 % 2 ? 30 : 8);
    const bool goes = table.count(label) && random.percent(60);
    const unsigned hop = random.byte();
    top->insert_i = comes;
    top->remove_i = goes;
    top->pointer_i = pointer;
    top->label_i = label;
    top->hop_i = hop;
    const bool asks = random.percent(80);
    const unsigned key = random.percent(60) ? label + random.below(3) - 1 & Mask : random.next() & Mask;
    top->valid_i = asks;
    top->key_i = key;
    Answer answer = closest(tables[0], tables[1], key);
    answer.valid = asks;
    wanted.push_back(answer);
    edge();
    if (comes) table[label] = hop;
    if (goes) table.erase(label);
    if (wanted.size() < Latency) continue;
    const Answer want = wanted.front();
    wanted.pop_front();
    if (top->valid_o != want.valid) tests.wrong("clock %u: valid %u, expected %u", clock, top->valid_o, want.valid);
    if (!want.valid) continue;
    const bool same = top->found_o == want.found &&
                      (!want.found || (top->exact_o == want.exact && top->label_o == want.label && top->hop_o == want.hop));
    if (!same) {
      tests.wrong("clock %u: found %u, label %02x, hop %02x, exact %u; expected %u, %02x, %02x, %u", clock, top->found_o, (unsigned)top->label_o,
                  (unsigned)top->hop_o, top->exact_o, want.found, want.label, want.hop, want.exact);
    }
  }
  tests.end();
  return tests.result();
}
