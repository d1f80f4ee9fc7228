// Bench of hue_arbiter: frames of eight ports against a queue a port; turns counted.
#include <array>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;
using stream::Arrival;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned Ports = 8;
constexpr unsigned Latency = 1;

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes;
  Arrival arrival;
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random) {
    top->rst_ni = 0;
    top->s_valid_i = top->m_ready_i = 0;
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
  }

  void send(unsigned port, const Frame& frame) { in_[port].push_back(frame); }
  uint64_t cycle = 1, first_in = 0, first_out = 0, last_out = 0;
  std::vector<unsigned> turns;

  void run(const stream::Rates& rates) {
    for (unsigned quiet = 0; quiet < 2000; ++quiet) {
      bool left = false;
      for (unsigned p = 0; p < Ports; ++p) left |= !in_[p].empty() || !out_[p].empty();
      if (!left) break;
      if (clock(rates)) quiet = 0;
    }
    for (unsigned p = 0; p < Ports; ++p) {
      if (!in_[p].empty() || !out_[p].empty())
        tests_.wrong("port %u: %zu frames do not leave", p, in_[p].size() + out_[p].size());
    }
    top->s_valid_i = 0;
    top->eval();
    if (!top->idle_o) tests_.wrong("not idle at the end");
  }

 private:
  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  bool clock(const stream::Rates& rates) {
    unsigned valid = 0;
    for (unsigned p = 0; p < Ports; ++p) {
      if (!offered_[p]) offered_[p] = !in_[p].empty() && !random_.percent(rates.idle);
      if (offered_[p]) drive(p);
      valid |= unsigned{offered_[p]} << p;
    }
    top->s_valid_i = valid;
    top->m_ready_i = !random_.percent(rates.stall);
    top->eval();
    const unsigned taken = top->s_valid_i & top->s_ready_o;
    bool moved = taken != 0;
    if (top->m_valid_o && top->m_ready_i) {
      take();
      moved = true;
    }
    for (unsigned p = 0; p < Ports; ++p) {
      if (!(taken >> p & 1)) continue;
      if (first_in == 0) first_in = cycle;
      offered_[p] = false;
      if (beat_[p] == 0) begin(p, valid);
      if (++beat_[p] == stream::beats_of(in_[p].front().bytes.size(), Width)) {
        beat_[p] = 0;
        in_[p].pop_front();
      }
    }
    edge();
    ++cycle;
    return moved;
  }

  void drive(unsigned p) {
    const Frame& frame = in_[p].front();
    for (unsigned b = 0; b < Width; ++b) {
      const size_t at = size_t{beat_[p]} * Width + b;
      bench::set_bits(top->s_data_i, 8 * (p * Width + b), 8, at < frame.bytes.size() ? frame.bytes[at] : 0xee);
    }
    bench::set_bits(top->s_last_i, p, 1, beat_[p] + 1 == stream::beats_of(frame.bytes.size(), Width));
    VlWide<(stream::ArrivalBits + 31) / 32> arrival{};
    stream::put_arrival(arrival, frame.arrival);
    for (unsigned i = 0; i < stream::ArrivalBits; ++i)
      bench::set_bits(top->s_arrival_i, p * stream::ArrivalBits + i, 1, bench::bits(arrival, i, 1));
  }

  // A frame of port p begins: the first one that waits after the last turn.
  void begin(unsigned p, unsigned valid) {
    unsigned wanted = last_turn_;
    do wanted = (wanted + 1) % Ports;
    while (!(valid >> wanted & 1));
    if (p != wanted) tests_.wrong("port %u had its turn, after %u and with %x waiting", p, last_turn_, valid);
    last_turn_ = p;
    turns.push_back(p);
    out_[p].push_back(in_[p].front());
  }

  void take() {
    const unsigned p = top->m_port_o;
    if (top->m_first_o) inside_ = p;
    if (inside_ != p) tests_.wrong("a beat of port %u inside a frame of port %u", p, inside_);
    if (out_[p].empty()) {
      tests_.wrong("port %u: a beat of no frame", p);
      return;
    }
    const Frame& frame = out_[p].front();
    if (top->m_first_o != (taken_ == 0)) tests_.wrong("port %u: first", p);
    if (!(stream::arrival_of(top->m_arrival_o) == frame.arrival)) tests_.wrong("port %u: what stands beside the frame", p);
    for (unsigned b = 0; b < stream::bytes_of(frame.bytes.size(), Width, taken_); ++b) {
      if (bench::bits(top->m_data_o, 8 * b, 8) != frame.bytes[size_t{taken_} * Width + b]) tests_.wrong("port %u: a byte", p);
    }
    if (first_out == 0) first_out = cycle;
    last_out = cycle;
    ++taken_;
    const bool last = taken_ == stream::beats_of(frame.bytes.size(), Width);
    if (top->m_last_o != last) tests_.wrong("port %u: last", p);
    if (last) {
      taken_ = 0;
      out_[p].pop_front();
    }
  }

  bench::Tests& tests_;
  bench::Random& random_;
  std::array<std::deque<Frame>, Ports> in_, out_;
  std::array<bool, Ports> offered_{};
  std::array<unsigned, Ports> beat_{};
  unsigned taken_ = 0, inside_ = 0, last_turn_ = Ports - 1;
};

Frame frame_of(bench::Random& random, uint32_t tag, unsigned len) {
  Frame frame{stream::random_bytes(random, len), stream::random_arrival(random, tag)};
  frame.arrival.len = len;
  return frame;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "arbiter " + std::to_string(8 * Width) + " bit, ";

  for (const auto& rates : stream::Mixes) {
    tests.begin(name + stream::text_of(rates));
    Bench bench(tests, random);
    for (uint32_t i = 0; i < 1200; ++i)
      bench.send(random.below(Ports), frame_of(random, i, stream::random_length(random, Width, 1000)));
    bench.run(rates);
    tests.end();
  }

  tests.begin(name + "latency " + std::to_string(Latency) + " clock, a beat a clock, each port its turn");
  {
    Bench bench(tests, random);
    const unsigned count = 800, len = std::max(64u, Width);
    for (uint32_t i = 0; i < count; ++i) bench.send(i % Ports, frame_of(random, i, len));
    bench.run({0, 0});
    if (bench.first_out - bench.first_in != Latency)
      tests.wrong("first beat after %llu clocks", (unsigned long long)(bench.first_out - bench.first_in));
    if (bench.last_out - bench.first_out != count * (len / Width) - 1)
      tests.wrong("%llu clocks for %u frames", (unsigned long long)(bench.last_out - bench.first_out), count);
    for (unsigned i = 0; i < count; ++i) {
      if (bench.turns[i] != i % Ports) tests.wrong("turn %u was port %u's", i, bench.turns[i]);
    }
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
