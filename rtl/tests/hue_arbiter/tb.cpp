// Bench of hue_arbiter: compares frames of five input queues and copies with a queue for each; checks which frame may begin; counts
// turns and shares.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;
using stream::Arrival;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned Share = HUE_SHARE;
constexpr unsigned LongBytes = 2048;
constexpr unsigned MacPorts = 4, Cpu = MacPorts, Queues = MacPorts + 1, Copies = Queues, Sources = Queues + 1;
constexpr unsigned Latency = 1;
constexpr unsigned FrameBytesMin = 14;
constexpr int BeatsMax = (9216 + Width - 1) / Width;

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes;
  Arrival arrival;
  unsigned port = 0;  // the copy's port, or the number of the CPU queue
};

bool is_long(const Frame& frame) { return frame.bytes.size() >= LongBytes; }
bool is_group(unsigned source, const Frame& frame) {
  return source < MacPorts && frame.bytes.size() >= FrameBytesMin && (frame.bytes[0] & 1) != 0;
}

// The rules in the module's head, by frames and clocks.
struct Rules {
  unsigned mac = MacPorts - 1;                   // the latest winner
  bool mac_went = false, ahead = false;          // ahead: the frame inside went before waiting MAC ports
  int64_t debt = 0;                              // clocks until another frame may do so
  int lead = 0;                                  // beats of copies less those of CPU queues
  std::array<unsigned, MacPorts> passed{};       // beats of short frames that have passed the waiting long frame
  std::array<unsigned, MacPorts> before{};       // the same one clock ago

  bool may_go_ahead() const { return debt == 0 && mac_went; }
  static unsigned next(unsigned last, unsigned first, unsigned count, unsigned asks) {
    unsigned at = last;
    do at = first + (at - first + 1) % count;
    while (!(asks >> at & 1));
    return at;
  }
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random) {
    top->rst_ni = 0;
    top->s_valid_i = top->c_valid_i = top->m_ready_i = 0;
    top->hold_i = top->pause_i = top->backlog_i = top->full_i = 0;
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
  }

  void send(unsigned source, const Frame& frame) { in_[source].push_back(frame); }
  bool hungry(unsigned source) const { return in_[source].size() < 2; }
  uint64_t cycle = 1, first_in = 0, first_out = 0, last_out = 0;
  std::vector<unsigned> turns;
  std::array<uint64_t, Sources> beats{};
  unsigned hold = 0, backlog = 0, full = 0;  // percent of the time
  uint64_t longest_wait = 0;                 // clocks for which a MAC port's frame waited for low-priority frames

  void run(const stream::Rates& rates) {
    for (unsigned quiet = 0; quiet < 4000; ++quiet) {
      bool left = false;
      for (unsigned p = 0; p < Sources; ++p) left |= !in_[p].empty() || !out_[p].empty();
      if (!left) break;
      if (clock(rates)) quiet = 0;
    }
    for (unsigned p = 0; p < Sources; ++p) {
      if (!in_[p].empty() || !out_[p].empty())
        tests_.wrong("source %u: %zu frames do not leave", p, in_[p].size() + out_[p].size());
    }
    top->s_valid_i = top->c_valid_i = 0;
    clock({100, 0});
    top->eval();
    if (!top->idle_o) tests_.wrong("not idle at the end");
    if (begun_ != frames_) tests_.wrong("%llu frames begun, %llu reported", (unsigned long long)frames_, (unsigned long long)begun_);
  }

  bool clock(const stream::Rates& rates) {
    unsigned valid = 0;
    for (unsigned p = 0; p < Sources; ++p) {
      if (!offered_[p]) offered_[p] = !in_[p].empty() && (beat_[p] != 0 || !random_.percent(rates.idle));
      // There may be gaps inside a frame, too.
      if (beat_[p] != 0 && !shown_[p]) shown_[p] = !random_.percent(rates.idle);
      if (beat_[p] == 0) shown_[p] = offered_[p];
      if (shown_[p]) drive(p);
      valid |= unsigned{shown_[p]} << p;
    }
    if (random_.percent(3)) modes_[0] = random_.percent(hold);
    if (random_.percent(3)) modes_[1] = random_.percent(backlog);
    if (random_.percent(3)) modes_[2] = random_.percent(full);
    top->hold_i = modes_[0];
    top->backlog_i = modes_[1];
    top->full_i = modes_[2];
    top->s_valid_i = valid & ((1u << Queues) - 1);
    top->c_valid_i = valid >> Copies & 1;
    top->m_ready_i = !random_.percent(rates.stall);
    top->eval();
    const unsigned taken = (valid & top->s_ready_o) | unsigned{top->c_valid_i && top->c_ready_o} << Copies;
    bool moved = taken != 0;
    if (top->m_valid_o && top->m_ready_i) {
      take();
      moved = true;
    }
    begun_ += top->begun_o;
    bool paid = false;
    for (unsigned p = 0; p < Sources; ++p) {
      if (!(taken >> p & 1)) continue;
      if (first_in == 0) first_in = cycle;
      if (beat_[p] == 0) begin(p, valid);
      ++beats[p];
      short_beat_ = short_beat_ || (p < MacPorts && !is_long(in_[p].front()));
      if (p >= MacPorts) {
        if (rules_.ahead) rules_.debt += top->pause_i ? 1 : Share, paid = true;
        rules_.lead = std::clamp(rules_.lead + (p == Copies ? 1 : -1), -BeatsMax, BeatsMax);
      }
      shown_[p] = false;
      if (++beat_[p] == stream::beats_of(in_[p].front().bytes.size(), Width)) {
        beat_[p] = 0;
        offered_[p] = false;
        in_[p].pop_front();
      }
    }
    if (!paid && rules_.debt > 0) --rules_.debt;
    for (unsigned p = 0; p < MacPorts; ++p) {
      rules_.before[p] = rules_.passed[p];
      if (taken >> p & 1) rules_.passed[p] = rules_.before[p] = 0, lets_[p] = false;
      else if (short_beat_ && (valid >> p & 1) && !lets_[p]) ++rules_.passed[p];
    }
    short_beat_ = false;
    const unsigned mac_waits = valid & 15 & ~taken;
    bool other = false;
    for (unsigned p = MacPorts; p < Sources; ++p) other |= (taken >> p & 1) != 0;
    wait_ = mac_waits != 0 && other ? wait_ + 1 : mac_waits != 0 && taken == 0 ? wait_ : 0;
    longest_wait = std::max(longest_wait, wait_);
    edge();
    ++cycle;
    return moved;
  }

 private:
  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  void drive(unsigned p) {
    const Frame& frame = in_[p].front();
    const bool last = beat_[p] + 1 == stream::beats_of(frame.bytes.size(), Width);
    using hue_pkg::hue_arrival_t, hue_pkg::hue_class_t;
    VlWide<(hue_arrival_t::Bits + 31) / 32> arrival{};
    stream::put_arrival(arrival, frame.arrival);
    for (unsigned b = 0; b < Width; ++b) {
      const size_t at = size_t{beat_[p]} * Width + b;
      const unsigned byte = at < frame.bytes.size() ? frame.bytes[at] : 0xee;
      if (p == Copies) bench::set_bits(top->c_data_i, 8 * b, 8, byte);
      else bench::set_bits(top->s_data_i, 8 * (p * Width + b), 8, byte);
    }
    if (p == Copies) {
      top->c_last_i = last;
      top->c_port_i = frame.port;
      top->c_arrival_i = arrival;
      return;
    }
    bench::set_bits(top->s_last_i, p, 1, last);
    if (p == Cpu) top->s_cpu_port_i = frame.port;
    else {
      bench::set(top->s_class_i, hue_class_t::group.of(p, hue_class_t::Bits), frame.bytes.size() > 0 && is_group(p, frame));
      bench::set(top->s_class_i, hue_class_t::is_long.of(p, hue_class_t::Bits), is_long(frame));
    }
    for (unsigned i = 0; i < hue_arrival_t::Bits; ++i)
      bench::set_bits(top->s_arrival_i, p * hue_arrival_t::Bits + i, 1, bench::bits(arrival, i, 1));
  }

  // A frame of source p begins: check that it is its turn.
  void begin(unsigned p, unsigned valid) {
    unsigned mac = 0;
    unsigned first = 0;  // ports that do not give way
    for (unsigned m = 0; m < MacPorts; ++m) {
      if (!(valid >> m & 1) || (top->full_i && beat_[m] == 0 && is_group(m, in_[m].front()))) continue;
      mac |= 1u << m;
      const Frame& frame = in_[m].front();
      lets_[m] = is_long(frame) && rules_.before[m] >= stream::beats_of(frame.bytes.size(), Width);
      if (!is_long(frame) || lets_[m]) first |= 1u << m;
    }
    if (first != 0) mac = first;
    const unsigned cpu = valid >> Cpu & 1, copy = valid >> Copies & 1;
    const bool ahead = rules_.may_go_ahead() && (cpu != 0 || copy != 0);
    if (top->hold_i) tests_.wrong("source %u begins in a hold", p);
    if (p < MacPorts) {
      if (!(mac >> p & 1)) tests_.wrong("port %u begins a group frame for which there is no room", p);
      else if (p != Rules::next(rules_.mac, 0, MacPorts, mac)) tests_.wrong("port %u had its turn, after %u, %x waiting", p, rules_.mac, mac);
      if (ahead) tests_.wrong("port %u goes before one that has waited", p);
      rules_.mac = p;
      time_ = in_[p].front().arrival.time;
    } else {
      if (!ahead && mac != 0) tests_.wrong("source %u goes before MAC ports %x, %lld clocks in debt", p, mac, (long long)rules_.debt);
      if (!ahead && top->backlog_i) tests_.wrong("source %u begins in a backlog", p);
      const unsigned wanted = copy && (cpu == 0 || rules_.lead <= 0) ? Copies : Cpu;
      if (p != wanted) tests_.wrong("source %u had its turn, not %u: %x waiting, lead %d", p, wanted, valid, rules_.lead);
    }
    rules_.mac_went = p < MacPorts;
    rules_.ahead = p >= MacPorts && ahead;
    turns.push_back(p);
    Frame frame = in_[p].front();
    if (p == Copies) frame.arrival.time = time_;
    out_[p].push_back(frame);
    order_.push_back(p);
    frames_ += !is_group(p, frame);
  }

  void take() {
    if (order_.empty()) {
      tests_.wrong("a beat of no frame");
      return;
    }
    const unsigned p = order_.front();
    const Frame& frame = out_[p].front();
    if (top->m_port_o != (p == Copies ? frame.port : p == Cpu ? MacPorts + frame.port : p)) tests_.wrong("source %u: port %u", p, top->m_port_o);
    if (top->m_first_o != (taken_ == 0)) tests_.wrong("source %u: first", p);
    if (top->m_group_o != is_group(p, frame)) tests_.wrong("source %u: group", p);
    if (!(stream::arrival_of(top->m_arrival_o) == frame.arrival)) tests_.wrong("source %u: arrival record", p);
    for (unsigned b = 0; b < stream::bytes_of(frame.bytes.size(), Width, taken_); ++b) {
      if (bench::bits(top->m_data_o, 8 * b, 8) != frame.bytes[size_t{taken_} * Width + b]) tests_.wrong("source %u: a byte", p);
    }
    if (first_out == 0) first_out = cycle;
    last_out = cycle;
    ++taken_;
    const bool last = taken_ == stream::beats_of(frame.bytes.size(), Width);
    if (top->m_last_o != last) tests_.wrong("source %u: last", p);
    if (last) {
      taken_ = 0;
      out_[p].pop_front();
      order_.pop_front();
    }
  }

  bench::Tests& tests_;
  bench::Random& random_;
  Rules rules_;
  std::array<std::deque<Frame>, Sources> in_, out_;
  std::deque<unsigned> order_;
  std::array<bool, Sources> offered_{}, shown_{};
  std::array<unsigned, Sources> beat_{};
  std::array<bool, 3> modes_{};
  std::array<bool, MacPorts> lets_{};  // the port's long frame no longer gives way
  bool short_beat_ = false;
  uint64_t time_ = 0, begun_ = 0, frames_ = 0, wait_ = 0;
  unsigned taken_ = 0;
};

Frame frame_of(bench::Random& random, uint32_t tag, unsigned len) {
  Frame frame{stream::random_bytes(random, len), stream::random_arrival(random, tag), random.below(MacPorts)};
  frame.arrival.len = len;
  return frame;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  // Frames of an experiment.
  const uint32_t frames = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1500;
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "arbiter " + std::to_string(8 * Width) + " bit, ";

  for (const auto& rates : stream::Mixes) {
    for (unsigned mode = 0; mode < 3; ++mode) {
      tests.begin(name + stream::text_of(rates) + (mode == 0 ? "" : mode == 1 ? ", holds" : ", MAC ports that can wait"));
      Bench bench(tests, random);
      top->pause_i = mode == 2;
      bench.hold = mode == 1 ? 30 : 0;
      bench.backlog = mode == 0 ? 0 : 40;
      bench.full = mode == 0 ? 0 : 40;
      // A frame of a MAC port comes first, so that a copy's time is known.
      bench.send(0, frame_of(random, 0, 100));
      for (int i = 0; i < 100; ++i) bench.clock({0, 0});
      for (uint32_t i = 0; i < frames; ++i) {
        const unsigned source = random.below(Sources);
        bench.send(source, frame_of(random, i, random.percent(10) ? random.between(LongBytes - 2, 4000) : stream::random_length(random, Width, 1000)));
      }
      bench.run(rates);
      tests.end();
    }
  }

  tests.begin(name + "latency " + std::to_string(Latency) + " clock, a beat a clock, each MAC port its turn, then the others");
  {
    Bench bench(tests, random);
    const unsigned count = 100, len = std::max(64u, Width);
    for (uint32_t i = 0; i < Queues * count; ++i) bench.send(i % Queues, frame_of(random, i, len));
    bench.run({0, 0});
    if (bench.first_out - bench.first_in != Latency)
      tests.wrong("first beat after %llu clocks", (unsigned long long)(bench.first_out - bench.first_in));
    if (bench.last_out - bench.first_out != Queues * count * (len / Width) - 1)
      tests.wrong("%llu clocks for %u frames", (unsigned long long)(bench.last_out - bench.first_out), Queues * count);
    unsigned mac = 0;
    for (unsigned i = 0; i < MacPorts * count; ++i) mac += bench.turns[i] < MacPorts;
    if (mac + 8 * len / Width * count / Share + 8 < MacPorts * count) tests.wrong("%u of the first turns were MAC ports'", mac);
  }
  tests.end();

  // All sources always wait. MAC ports get all clocks except one of `Share`, or half of the clocks if they can wait. CPU queues and
  // copies get equal shares, whatever the lengths of their frames.
  for (unsigned pause = 0; pause < 2; ++pause) {
    tests.begin(name + (pause ? "low-priority frames get half of the clocks" : "low-priority frames get their share of the clocks"));
    Bench bench(tests, random);
    top->pause_i = pause;
    const unsigned clocks = 300 * Share;
    for (unsigned i = 0; i < clocks; ++i) {
      for (unsigned p = 0; p < Sources; ++p) {
        if (bench.hungry(p)) bench.send(p, frame_of(random, i, p == Copies ? 8 * Width : 3 * Width));
      }
      bench.clock({0, 0});
    }
    const uint64_t cpu = bench.beats[Cpu];
    const uint64_t low = cpu + bench.beats[Copies], wanted = pause ? clocks / 2 : clocks / (Share + 1);
    if (low > wanted + 16 || low + 16 < wanted * 9 / 10)
      tests.wrong("%llu clocks of %u, expected %llu", (unsigned long long)low, clocks, (unsigned long long)wanted);
    if (cpu > bench.beats[Copies] + 16 || bench.beats[Copies] > cpu + 16)
      tests.wrong("%llu clocks of CPU queues, %llu of copies", (unsigned long long)cpu, (unsigned long long)bench.beats[Copies]);
    // A MAC port waits for at most one low-priority frame.
    if (bench.longest_wait > 8) tests.wrong("a MAC port waited %llu clocks", (unsigned long long)bench.longest_wait);
    tests.end();
  }
  top->final();
  top.reset();
  return tests.result();
}
