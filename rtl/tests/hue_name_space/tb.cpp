// Bench of hue_name_space: labels of four networks come, change and go; between changes keys are looked up, one each clock, and each answer is
// the shortest clockwise way among the network's labels, 4 clocks later. It prints how many clocks changes took.
#include <cstdio>
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "bench.h"

namespace {
constexpr unsigned Names = 1u << HUE_LABEL_BITS, Latency = 4;
using Labels = std::map<unsigned, unsigned>;

// The closest label before a key.
Labels::const_iterator closest(const Labels& labels, unsigned key) {
  auto behind = labels.upper_bound(key);
  return std::prev(behind == labels.begin() ? labels.end() : behind);
}

struct Answer {
  bool valid, found, exact;
  unsigned label, hop;
};
}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Random random(seed);
  bench::Tests tests(seed);
  auto top = std::make_unique<Vtop>();
  uint64_t clocks = 0;
  auto edge = [&] {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
    top->eval();
    ++clocks;
  };
  tests.begin("name spaces beside each other");
  top->rst_ni = 0;
  top->base_write_i = top->change_i = top->valid_i = 0;
  edge();
  edge();
  top->rst_ni = 1;
  // The name spaces fill the memory, in another order than the networks.
  for (unsigned net = 0; net < HUE_NETS; ++net) {
    top->base_write_i = 1;
    top->base_net_i = net;
    top->base_i = (net * 3 + 1) % 4 * Names;
    edge();
  }
  top->base_write_i = 0;
  Labels labels[HUE_NETS];
  uint64_t changes = 0, changed = 0;
  auto change = [&](unsigned net, unsigned label, bool exists, bool clear, unsigned to, unsigned hop) {
    top->valid_i = 0;
    for (unsigned i = 0; i < Latency; ++i) edge();
    top->change_i = 1;
    top->change_net_i = net;
    top->change_label_i = label;
    top->exists_i = exists;
    top->clear_i = clear;
    top->closest_i = to;
    top->closest_hop_i = hop;
    const uint64_t before = clocks;
    edge();
    top->change_i = 0;
    for (unsigned i = 0; top->busy_o && i < 4 * Names; ++i) edge();
    if (top->busy_o) tests.wrong("a change does not end");
    changes += 1;
    changed += clocks - before;
  };
  for (unsigned net = 0; net < HUE_NETS; ++net) change(net, 0, false, true, 0, 0);
  for (unsigned round = 0; round < 3000; ++round) {
    const unsigned net = random.below(HUE_NETS), label = random.below(Names), hop = random.byte();
    Labels& own = labels[net];
    if (!own.count(label) || random.percent(30)) {
      own[label] = hop;
      change(net, label, true, false, label, hop);
    } else {
      own.erase(label);
      if (own.empty()) {
        change(net, label, false, true, 0, 0);
      } else {
        const auto before = closest(own, label);
        change(net, label, false, false, before->first, before->second);
      }
    }
    std::deque<Answer> wanted;
    for (unsigned i = 0; i < 24 + Latency; ++i) {
      const bool asks = i < 24 && random.percent(90);
      const unsigned of = random.percent(60) ? net : random.below(HUE_NETS);
      const unsigned key = random.percent(50) ? label + random.below(3) - 1 & (Names - 1) : random.below(Names);
      top->valid_i = asks;
      top->net_i = of;
      top->key_i = key;
      Answer answer{asks, !labels[of].empty(), false, 0, 0};
      if (answer.found) {
        const auto found = closest(labels[of], key);
        answer = {asks, true, found->first == key, found->first, found->second};
      }
      wanted.push_back(answer);
      edge();
      if (wanted.size() < Latency) continue;
      const Answer want = wanted.front();
      wanted.pop_front();
      if (top->valid_o != want.valid) tests.wrong("round %u: valid %u, expected %u", round, top->valid_o, want.valid);
      if (!want.valid) continue;
      const bool same = top->found_o == want.found &&
                        (!want.found || (top->exact_o == want.exact && top->label_o == want.label && top->hop_o == want.hop));
      if (!same) {
        tests.wrong("round %u: found %u, label %02x, hop %02x, exact %u; expected %u, %02x, %02x, %u", round, top->found_o, (unsigned)top->label_o,
                    (unsigned)top->hop_o, top->exact_o, want.found, want.label, want.hop, want.exact);
      }
    }
  }
  std::printf("# %.1f clocks a change, name spaces of %u labels\n", double(changed) / changes, Names);
  tests.end();
  return tests.result();
}
