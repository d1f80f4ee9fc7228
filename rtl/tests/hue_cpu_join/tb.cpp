// Bench of hue_cpu_join: compares frames of four CPU queues with a queue for each, and counts turns.
#include <array>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned Queues = 4;
constexpr unsigned Latency = 1;
constexpr unsigned ByteBits = __builtin_ctz(Width) + 1;  // width of a beat's byte count

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes;
  uint64_t time = 0;
  uint32_t tag = 0;
  unsigned beats() const { return stream::beats_of(bytes.size(), Width); }
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random) {
    top->rst_ni = 0;
    top->s_valid_i = top->m_ready_i = 0;
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
  }

  std::array<std::deque<Frame>, Queues> in;
  std::vector<unsigned> turns;
  uint64_t cycle = 1, first_in = 0, first_out = 0, last_out = 0;

  void run(const stream::Rates& rates) {
    for (unsigned quiet = 0; left() && quiet < 1000; ++quiet) {
      if (clock(rates)) quiet = 0;
    }
    if (left()) tests_.wrong("frames do not leave");
    top->s_valid_i = 0;
    top->eval();
    if (!top->idle_o) tests_.wrong("not idle at the end");
  }

 private:
  bool left() const {
    bool some = !order_.empty();
    for (const auto& frames : in) some |= !frames.empty();
    return some;
  }

  bool clock(const stream::Rates& rates) {
    unsigned valid = 0;
    for (unsigned q = 0; q < Queues; ++q) {
      if (!offered_[q]) offered_[q] = !in[q].empty() && !random_.percent(rates.idle);
      if (!offered_[q]) continue;
      valid |= 1u << q;
      const Frame& frame = in[q].front();
      for (unsigned b = 0; b < Width; ++b) {
        const size_t at = size_t{beat_[q]} * Width + b;
        bench::set_bits(top->s_data_i, 8 * (q * Width + b), 8, at < frame.bytes.size() ? frame.bytes[at] : 0xee);
      }
      bench::set_bits(top->s_bytes_i, q * ByteBits, ByteBits, stream::bytes_of(frame.bytes.size(), Width, beat_[q]));
      bench::set_bits(top->s_last_i, q, 1, beat_[q] + 1 == frame.beats());
      bench::set_bits(top->s_time_i, 64 * q, 64, frame.time);
      bench::set_bits(top->s_tag_i, 32 * q, 32, frame.tag);
    }
    top->s_valid_i = valid;
    top->m_ready_i = !random_.percent(rates.stall);
    top->eval();
    const unsigned taken = valid & top->s_ready_o;
    if ((taken & (taken - 1)) != 0) tests_.wrong("beats of two queues in a clock: %x", taken);
    const bool moved = taken != 0 || (top->m_valid_o && top->m_ready_i);
    if (top->idle_o != (order_.empty())) tests_.wrong("idle is %u", top->idle_o);
    if (top->m_valid_o && top->m_ready_i) take();
    for (unsigned q = 0; q < Queues; ++q) {
      if (!(taken >> q & 1)) continue;
      if (beat_[q] == 0) {
        if (inside_) tests_.wrong("queue %u begins inside a frame", q);
        unsigned wanted = last_;
        do wanted = (wanted + 1) % Queues;
        while (!(valid >> wanted & 1));
        if (q != wanted) tests_.wrong("queue %u had its turn, not %u", q, wanted);
        if (first_in == 0) first_in = cycle;
        last_ = q;
        turns.push_back(q);
        order_.push_back({q, in[q].front()});
      } else if (q != last_) {
        tests_.wrong("queue %u goes on inside a frame of %u", q, last_);
      }
      offered_[q] = false;
      inside_ = ++beat_[q] != in[q].front().beats();
      if (!inside_) {
        beat_[q] = 0;
        in[q].pop_front();
      }
    }
    edge();
    ++cycle;
    return moved;
  }

  void take() {
    if (order_.empty()) {
      tests_.wrong("a beat of no frame");
      return;
    }
    const auto& [queue, frame] = order_.front();
    if (first_out == 0) first_out = cycle;
    last_out = cycle;
    if (top->m_port_o != queue || top->m_time_o != frame.time || top->m_tag_o != frame.tag)
      tests_.wrong("a frame of queue %u: its port, time or tag", queue);
    if (top->m_bytes_o != stream::bytes_of(frame.bytes.size(), Width, out_)) tests_.wrong("a beat of %u bytes", top->m_bytes_o);
    for (unsigned b = 0; b < stream::bytes_of(frame.bytes.size(), Width, out_); ++b) {
      if (bench::bits(top->m_data_o, 8 * b, 8) != frame.bytes[size_t{out_} * Width + b]) tests_.wrong("a frame of queue %u: a byte", queue);
    }
    ++out_;
    if (top->m_last_o != (out_ == frame.beats())) tests_.wrong("a frame of queue %u: last", queue);
    if (out_ == frame.beats()) {
      out_ = 0;
      order_.pop_front();
    }
  }

  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  bench::Tests& tests_;
  bench::Random& random_;
  std::array<bool, Queues> offered_{};
  std::array<unsigned, Queues> beat_{};
  std::deque<std::pair<unsigned, Frame>> order_;
  unsigned last_ = Queues - 1, out_ = 0;
  bool inside_ = false;
};

Frame frame_of(bench::Random& random, uint32_t tag, unsigned len) { return {stream::random_bytes(random, len), random.next(), tag}; }

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "CPU queues joined, " + std::to_string(8 * Width) + " bit, ";
  for (const auto& rates : stream::Mixes) {
    tests.begin(name + stream::text_of(rates));
    Bench bench(tests, random);
    for (uint32_t i = 0; i < 2000; ++i)
      bench.in[random.below(Queues)].push_back(frame_of(random, i, stream::random_length(random, Width, 1600)));
    bench.run(rates);
    tests.end();
  }
  tests.begin(name + "latency " + std::to_string(Latency) + " clock, a beat a clock, each queue its turn");
  {
    Bench bench(tests, random);
    const unsigned count = 100, len = std::max(64u, Width);
    for (uint32_t i = 0; i < Queues * count; ++i) bench.in[i % Queues].push_back(frame_of(random, i, len));
    bench.run({0, 0});
    if (bench.first_out - bench.first_in != Latency)
      tests.wrong("first beat after %llu clocks", (unsigned long long)(bench.first_out - bench.first_in));
    if (bench.last_out - bench.first_out != Queues * count * (len / Width) - 1)
      tests.wrong("%llu clocks for %u frames", (unsigned long long)(bench.last_out - bench.first_out), Queues * count);
    for (unsigned i = 0; i < Queues * count; ++i) {
      if (bench.turns[i] != i % Queues) tests.wrong("turn %u is queue %u's", i, bench.turns[i]);
    }
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
