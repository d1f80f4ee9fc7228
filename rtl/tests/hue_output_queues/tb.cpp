// Bench of hue_output_queues: compares frames for all ports and networks with a queue for each; checks drops and shares.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;

#ifndef HUE_CELL_BYTES
#define HUE_CELL_BYTES 64
#endif
#ifndef HUE_EXTERNAL
#define HUE_EXTERNAL 0
#endif
#ifndef HUE_PART_LATENCY
#define HUE_PART_LATENCY 24
#define HUE_REFRESH_PERIOD 488
#define HUE_REFRESH_CLOCKS 22
#endif

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned Nets = HUE_NETS;
constexpr unsigned Cells = HUE_CELLS;
constexpr unsigned Ports = 8;
constexpr unsigned CellBytes = HUE_CELL_BYTES;
constexpr bool External = HUE_EXTERNAL != 0;
// Additional clocks for a refresh of the external memory.
constexpr unsigned Away = External ? HUE_REFRESH_CLOCKS + 1 : 0;
// The memory is available for less time than a full rate needs.
constexpr bool Slow = External && 4 * HUE_REFRESH_CLOCKS > HUE_REFRESH_PERIOD;
// Number of the table of quanta, and a row's value after reset.
constexpr unsigned QuantumTable = 22;
constexpr unsigned Quantum = 2048;
constexpr unsigned Latency = 29 + (External ? HUE_PART_LATENCY + 3 : 0);
// Clocks from a frame's first beat until its drop is reported.
constexpr unsigned Deciding = 6;
// Clocks from a frame's last beat until its network is reported as waiting, unless the frame is held back.
constexpr unsigned Joining = 10 + (Slow ? 400 : Away);
// Fewest clocks from the start of a frame to the start of the next one at the same port.
constexpr unsigned Step = 2;
constexpr unsigned MacPorts = 4;
// Frames of a port that are planned: they no longer count as waiting.
constexpr unsigned Planned = 5;
// Beats that a port has read but not sent.
constexpr unsigned Read = External ? 64 : 8;

std::unique_ptr<Vtop> top;

// Networks that are reported as waiting, of the first 64.
uint64_t first_waits() { return bench::bits(top->waits_o, 0, 64); }

struct Frame {
  Bytes bytes;
  unsigned port = 0, net = 0;
  uint32_t tag = 0;
  uint64_t came = 0;  // clock of its last beat
  unsigned cells() const { return (bytes.size() + CellBytes - 1) / CellBytes; }
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random, bool offline) : tests_(tests), random_(random), offline_(offline) {
    top->rst_ni = 0;
    top->s_valid_i = top->m_ready_i = 0;
    top->offline_i = offline;
    hold(false, 0);
    request(false, false, 0, 0);
    top->s_departure_i = 0;
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
    // The queues are cleared first.
    unsigned clocks = 0;
    for (top->eval(); !top->s_ready_o && clocks < 10000; ++clocks) edge(), top->eval();
    if (clocks > Ports * std::max(Nets, 64u) + 2) tests.wrong("%u clocks until ready", clocks);
    for (int i = 0; i < 4; ++i) edge(), top->eval();
  }

  void send(const Frame& frame) { waiting_.push_back(frame); }
  bool hungry() const { return waiting_.size() < 2; }
  unsigned cells_of(unsigned port, unsigned net) const { return queued_[port][net]; }
  uint64_t cycle = 1, last_in = 0, first_in = 0, first_out = 0, last_out = 0;
  unsigned came = 0;
  std::map<unsigned, unsigned> dropped;                     // by network
  std::array<std::array<uint64_t, Nets>, Ports> sent{};     // bytes sent
  struct Left {
    unsigned port, net;
  };
  std::vector<Left> left;                                   // in the order in which they left
  unsigned blocked = 0;                                     // bits of the ports that take nothing
  void hold(bool on, unsigned net) { top->hold_i = on, top->hold_net_i = net; }

  // Writes a network's row of quanta, or reads it, while frames flow.
  void write(unsigned net, unsigned bytes, const stream::Rates& rates) { access(true, net, bytes, rates); }
  unsigned read(unsigned net, const stream::Rates& rates) {
    access(false, net, 0, rates);
    return row_;
  }

  bool clock(const stream::Rates& rates) {
    if (!offered_) offered_ = !waiting_.empty() && !random_.percent(rates.idle);
    top->s_valid_i = offered_;
    if (offered_) {
      const Frame& frame = waiting_.front();
      stream::put_beat(top->s_data_i, frame.bytes, Width, beat_);
      top->s_last_i = beat_ + 1 == stream::beats_of(frame.bytes.size(), Width);
      top->s_departure_i = stream::departure_of(frame.port, frame.net, frame.tag, frame.bytes.size());
    }
    unsigned ready = 0;
    for (unsigned p = 0; p < Ports; ++p) ready |= unsigned{!random_.percent(rates.stall)} << p;
    top->m_ready_i = ready & ~blocked;
    top->eval();
    look();
    const bool taken = offered_ && top->s_ready_o;
    if (top->dropped_o) drop();
    if (taken) put();
    answered_ = stream::answered(top->tbl_rsp_o);
    if (answered_) row_ = bench::get(top->tbl_rsp_o, hue_pkg::tbl_rsp_t::rdata.part(0, 16));
    for (unsigned p = 0; p < Ports; ++p) {
      const bool moves = (top->m_valid_o & top->m_ready_i) >> p & 1;
      if (moves) take(p);
      if ((top->sent_o >> p & 1) != (moves && (top->m_last_o >> p & 1))) tests_.wrong("port %u: sent", p);
    }
    const bool moved = taken || (top->m_valid_o & top->m_ready_i) != 0;
    edge();
    ++cycle;
    return moved;
  }

  void run(const stream::Rates& rates) {
    for (unsigned quiet = 0; (!waiting_.empty() || in_ != 0) && quiet < 5000; ++quiet) {
      if (clock(rates)) quiet = 0;
    }
    if (!waiting_.empty() || in_ != 0) tests_.wrong("%zu frames do not leave", waiting_.size() + in_);
    top->s_valid_i = 0;
    for (int i = 0; i < 12; ++i) top->eval(), edge();
    top->eval();
    if (!top->idle_o) tests_.wrong("not idle at the end");
    for (unsigned n = 0; n < Nets; ++n) {
      if (waits(n)) tests_.wrong("network %u waits at the end", n);
    }
  }
  bool waits(unsigned net) const { return bench::bits(top->waits_o, net, 1); }
  // Number of frames of a network inside for MAC ports.
  unsigned inside(unsigned net) const {
    unsigned count = 0;
    for (unsigned p = 0; p < MacPorts; ++p) count += inside_[p][net].size();
    return count;
  }
  bool empty() const { return waiting_.empty() && in_ == 0; }

 private:
  void request(bool valid, bool write, unsigned net, unsigned bytes) {
    for (unsigned i = 0; i < 8; ++i) stream::put_word(top->tbl_req_i, i, i == 0 ? bytes : 0);
    stream::put_request(top->tbl_req_i, valid, write, false, QuantumTable, net);
  }
  void access(bool write, unsigned net, unsigned bytes, const stream::Rates& rates) {
    request(true, write, net, bytes);
    answered_ = false;
    for (unsigned i = 0; i < 20 && !answered_; ++i) clock(rates);
    if (!answered_) tests_.wrong("no answer to an access of network %u's quantum", net);
    request(false, false, 0, 0);
    clock(rates);
  }
  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  // Checks what the driver reads: whether a network waits, and whether the module is idle.
  void look() {
    bool partly = beat_ != 0;
    for (unsigned p = 0; p < Ports; ++p) partly = partly || !coming_[p].empty();
    if (top->idle_o && (in_ != 0 || partly)) tests_.wrong("clock %llu: idle with %zu frames inside", (unsigned long long)cycle, in_);
    for (unsigned n = 0; n < Nets; ++n) {
      bool any = false, waits = false;
      for (unsigned p = 0; p < MacPorts; ++p) {
        const auto& frames = inside_[p][n];
        any = any || !frames.empty();
        // Frames that may already have been taken do not count, nor frames that may not have joined the queue yet.
        const size_t taken = Planned + Read;
        waits = waits || (!offline_ && frames.size() > taken && frames[taken].came + Joining < cycle);
      }
      const bool seen = bench::bits(top->waits_o, n, 1);
      if (waits && !seen) tests_.wrong("clock %llu: network %u waits but is not reported", (unsigned long long)cycle, n);
      if (!any && seen) tests_.wrong("clock %llu: network %u is reported as waiting but has no frames", (unsigned long long)cycle, n);
    }
  }

  void put() {
    const Frame& frame = waiting_.front();
    offered_ = false;
    if (beat_ == 0) {
      if (first_in == 0) first_in = cycle;
      lost_ = false;
      // The queue holds at most the cells that have not left, and at least the cells that nothing holds are free.
      const unsigned own = queued_[frame.port][frame.net] + frame.cells();
      undecided_.push_back({frame, cycle, own + held_, frame.port < MacPorts ? 0 : own + held_cpu_});
      held_ += frame.cells();
      if (frame.port >= MacPorts) held_cpu_ += frame.cells();
    }
    if (++beat_ < stream::beats_of(frame.bytes.size(), Width)) return;
    beat_ = 0;
    last_in = cycle;
    if (!lost_) {
      queued_[frame.port][frame.net] += frame.cells();
      inside_[frame.port][frame.net].push_back(frame);
      inside_[frame.port][frame.net].back().came = cycle;
      ++in_;
    }
    waiting_.pop_front();
  }

  // The frame whose first beat came `Deciding` clocks ago is dropped.
  void drop() {
    while (!undecided_.empty() && undecided_.front().cycle + Deciding < cycle) undecided_.pop_front();
    if (undecided_.empty() || undecided_.front().cycle + Deciding != cycle) return tests_.wrong("a drop of no frame");
    const auto [frame, began, cells, cpu_cells] = undecided_.front();
    if (top->dropped_port_o != frame.port || top->dropped_net_o != frame.net) tests_.wrong("a drop of another frame");
    if (offline_) tests_.wrong("dropped although held back");
    if (cells <= Cells && cpu_cells <= Cells / 2)
      tests_.wrong("port %u network %u: %u cells dropped, %u of %u would be in use", frame.port, frame.net, frame.cells(), cells,
                   Cells);
    ++dropped[frame.net];
    held_ -= frame.cells();
    if (frame.port >= MacPorts) held_cpu_ -= frame.cells();
    auto& inside = inside_[frame.port][frame.net];
    for (auto one = inside.begin(); one != inside.end(); ++one) {
      if (one->tag != frame.tag) continue;
      inside.erase(one);
      queued_[frame.port][frame.net] -= frame.cells();
      --in_;
      return;
    }
    lost_ = true;  // the frame is still coming in
  }

  void take(unsigned p) {
    const uint32_t tag = bench::bits(top->m_tag_o, 32 * p, 32);
    const unsigned bits = HUE_BUS_BYTES == 8 ? 4 : HUE_BUS_BYTES == 32 ? 6 : 7;
    const unsigned count = bench::bits(top->m_bytes_o, bits * p, bits);
    // The tag is valid with the first beat.
    if (coming_[p].empty()) tag_[p] = tag;
    for (unsigned b = 0; b < count; ++b) coming_[p].push_back(bench::bits(top->m_data_o, 8 * (Width * p + b), 8));
    if (first_out == 0) first_out = cycle;
    last_out = cycle;
    const unsigned back = coming_[p].size() % CellBytes == 0 || (top->m_last_o >> p & 1);
    held_ -= back;
    if (p >= MacPorts) held_cpu_ -= back;
    if (!(top->m_last_o >> p & 1)) {
      if (count != Width) tests_.wrong("port %u: a beat that is not full is not the last", p);
      return;
    }
    // The frame that leaves must be the first of some network for the port.
    unsigned net = Nets;
    for (unsigned n = 0; n < Nets; ++n) {
      if (!inside_[p][n].empty() && inside_[p][n].front().tag == tag_[p]) net = n;
    }
    if (net == Nets) {
      tests_.wrong("port %u: frame %u is no network's first", p, tag_[p]);
    } else {
      const Frame& frame = inside_[p][net].front();
      if (frame.bytes != coming_[p]) tests_.wrong("port %u: frame %u of %zu bytes differs", p, frame.tag, frame.bytes.size());
      if (bench::bits(top->sent_len_o, 14 * p, 14) != frame.bytes.size()) tests_.wrong("port %u: length of frame %u", p, frame.tag);
      queued_[p][net] -= frame.cells();
      sent[p][net] += frame.bytes.size();
      inside_[p][net].pop_front();
      left.push_back({p, net});
      ++came;
      --in_;
    }
    coming_[p].clear();
  }

  bench::Tests& tests_;
  bench::Random& random_;
  bool offline_, offered_ = false, lost_ = false, answered_ = false;
  unsigned row_ = 0;
  std::deque<Frame> waiting_;
  struct Undecided {
    Frame frame;
    uint64_t cycle;
    unsigned cells;      // most cells in use by its queue and in all, with this frame
    unsigned cpu_cells;  // the same for the CPU queues, if it is for one of them
  };
  std::deque<Undecided> undecided_;
  unsigned beat_ = 0, held_ = 0, held_cpu_ = 0;
  size_t in_ = 0;
  std::array<std::array<std::deque<Frame>, Nets>, Ports> inside_;
  std::array<std::array<unsigned, Nets>, Ports> queued_{};
  std::array<Bytes, Ports> coming_;
  std::array<uint32_t, Ports> tag_{};
};

Frame frame_of(bench::Random& random, uint32_t tag, unsigned port, unsigned net, unsigned len) {
  return {stream::random_bytes(random, len), port, net, tag};
}

void shares(bench::Tests& tests, bench::Random& random, unsigned long_frame) {
  Bench bench(tests, random, true);
  // Two networks that always wait, one of them with short frames, share a port that takes a beat every other clock.
  uint32_t tag = 0;
  const unsigned lens[2] = {64, long_frame};
  uint64_t base[2] = {}, worst = 0;
  for (unsigned clock = 0; clock < 60000; ++clock) {
    if (bench.hungry()) {
      const unsigned net = bench.cells_of(3, 1) < bench.cells_of(3, 2) ? 1 : 2;
      bench.send(frame_of(random, tag++, 3, net, lens[net - 1]));
    }
    bench.clock({0, 50});
    if (clock == 10000) base[0] = bench.sent[3][1], base[1] = bench.sent[3][2];
    if (clock > 10000) {
      const uint64_t a = bench.sent[3][1] - base[0], b = bench.sent[3][2] - base[1];
      worst = std::max(worst, a > b ? a - b : b - a);
    }
  }
  bench.run({0, 0});
  std::printf("  networks with frames of 64 and %u bytes were at most %llu bytes apart\n", long_frame,
              (unsigned long long)worst);
  // In any interval the difference is at most a quantum and two frames.
  if (worst > Quantum + 2 * long_frame + 2 * 64) tests.wrong("%llu bytes apart", (unsigned long long)worst);
}

// Two networks that always wait for a port, one of them with short frames, get bytes in proportion to their quanta, while the driver
// writes and reads rows of other networks. A third network that rarely waits does not change the proportion.
void weights(bench::Tests& tests, bench::Random& random, unsigned a, unsigned b, unsigned long_frame) {
  Bench bench(tests, random, true);
  const stream::Rates rates{0, 20};
  const unsigned quanta[3] = {0, a, b}, lens[3] = {0, 64, long_frame};
  bench.write(1, a, rates);
  bench.write(2, b, rates);
  uint32_t tag = 0;
  const auto round = [&] {
    if (bench.hungry()) {
      const unsigned net = bench.cells_of(3, 1) < bench.cells_of(3, 2) ? 1 : 2;
      bench.send(frame_of(random, tag++, 3, net, lens[net]));
    }
    bench.clock(rates);
  };
  // Both networks wait with more frames than are planned, and the turns that the queues began with are over.
  bench.blocked = 1 << 3;
  while (bench.cells_of(3, 1) + bench.cells_of(3, 2) < Cells / 2) round();
  bench.blocked = 0;
  const uint64_t all = 8ull * (a + b) + 40000;
  while (bench.sent[3][1] < Quantum + a || bench.sent[3][2] < Quantum + b) round();
  const uint64_t base[3] = {0, bench.sent[3][1], bench.sent[3][2]};
  const auto sent = [&](unsigned net) { return bench.sent[3][net] - base[net]; };
  double worst = 0;
  while (sent(1) + sent(2) < all) {
    round();
    if (random.percent(2)) {
      const unsigned net = 3 + random.below(Nets - 3), bytes = random.between(1, 65535);
      bench.write(net, bytes, rates);
      if (bench.read(net, rates) != bytes) tests.wrong("network %u: the quantum read differs from the one written", net);
    }
    // How far one network is ahead, in turns.
    const double ahead = double(sent(1)) / a - double(sent(2)) / b;
    worst = std::max(worst, ahead < 0 ? -ahead : ahead);
  }
  std::printf("  quanta %u and %u: %llu and %llu bytes, at most %.2f turns apart\n", a, b, (unsigned long long)sent(1),
              (unsigned long long)sent(2), worst);
  // At most one turn, and two frames of each network.
  const double bound = 1.0 + 2.0 * lens[1] / a + 2.0 * lens[2] / b;
  if (worst > bound) tests.wrong("%.2f turns apart, of %.2f", worst, bound);
  if (bench.read(1, rates) != quanta[1] || bench.read(2, rates) != quanta[2]) tests.wrong("quanta changed without a write");
  bench.run({0, 0});
}

// A network moves as the driver does it: frames that came before a fence leave before those that use the queues of another index
// meanwhile. That index is held until no frame of the network waits.
void move(bench::Tests& tests, bench::Random& random, Bench& bench, uint32_t& tag) {
  const unsigned net = random.below(Nets), aside = (net + 1 + random.below(Nets - 1)) % Nets;
  const stream::Rates rates{random.below(60), random.below(90)};
  const auto some = [&](unsigned of, unsigned count) {
    for (unsigned i = 0; i < count; ++i) bench.send(frame_of(random, tag++, random.below(MacPorts), of, random.between(14, 300)));
  };
  const auto until = [&](const char* what, auto done) {
    unsigned clocks = 0;
    while (!done() && clocks++ < 20000) bench.clock(rates);
    if (!done()) tests.wrong("%s", what);
  };
  const unsigned before = random.below(30), fences = MacPorts + random.below(Ports - MacPorts);
  some(net, before);
  for (unsigned i = random.below(40); i > 0; --i) bench.clock(rates);
  bench.hold(true, aside);
  some(aside, random.below(10));
  some(net, random.below(4));
  bench.send(frame_of(random, tag++, fences, net, 64));
  some(aside, random.below(10));
  bench.left.clear();
  const auto passed = [&] {
    return std::any_of(bench.left.begin(), bench.left.end(), [&](const auto& one) { return one.port == fences && one.net == net; });
  };
  until("the fence does not leave", passed);
  // The driver polls from time to time.
  until("the network waits without end", [&] {
    for (unsigned i = random.below(20); i > 0; --i) bench.clock(rates);
    top->eval();
    return !bench.waits(net);
  });
  for (const auto& one : bench.left) {
    if (one.port < MacPorts && one.net == aside) tests.wrong("a held frame left");
  }
  const unsigned late = bench.inside(net);
  if (late > MacPorts * (Planned + Read)) tests.wrong("%u frames of a network that does not wait are inside", late);
  bench.hold(false, aside);
  bench.left.clear();
  until("frames do not leave", [&] { return bench.empty(); });
  // Frames that were taken before the hold ended leave first.
  std::array<bool, MacPorts> begun{};
  for (const auto& one : bench.left) {
    if (one.port >= MacPorts) continue;
    if (one.net == aside) begun[one.port] = true;
    if (one.net == net && begun[one.port]) tests.wrong("port %u: a frame of the network leaves after frames of the other index", one.port);
  }
  for (int i = 0; i < 3; ++i) bench.clock(rates);
}

// Clocks from the first to the last beat out, for frames of 64 bytes that are queued for some ports.
uint64_t rate(bench::Tests& tests, bench::Random& random, unsigned ports, unsigned nets, unsigned count) {
  Bench bench(tests, random, true);
  bench.blocked = 0xff;
  for (uint32_t i = 0; i < count; ++i) bench.send(frame_of(random, i, i % ports, i / ports % nets, 64));
  for (unsigned i = 0; i < count * 64 / Width + 100; ++i) bench.clock({0, 0});
  bench.blocked = 0;
  bench.run({0, 0});
  return bench.last_out - bench.first_out + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "output queues " + std::to_string(8 * Width) + " bit, " + (External ? "external, " : "");

  for (const bool offline : {true, false}) {
    for (const auto& rates : stream::Mixes) {
      tests.begin(name + (offline ? "held back, " : "dropping, ") + stream::text_of(rates));
      Bench bench(tests, random, offline);
      const unsigned count = 2000;
      for (uint32_t i = 0; i < count; ++i) {
        // Half of the frames are for one port.
        const unsigned port = random.percent(50) ? 2 : random.below(Ports);
        const unsigned usual = std::max(1u, stream::random_length(random, Width, 1600));
        const unsigned len = random.percent(2) ? random.between(9000, 9232) : usual;
        bench.send(frame_of(random, i, port, random.below(Nets), len));
      }
      bench.run(rates);
      unsigned dropped = 0;
      for (const auto& [net, frames] : bench.dropped) dropped += frames;
      if (bench.came + dropped != count)
        tests.wrong("%u frames came and %u were dropped, of %u", bench.came, dropped, count);
      if (!offline && rates.stall == 90 && dropped == 0) tests.wrong("the test is too weak: nothing was dropped");
      tests.end();
    }
  }

  for (const unsigned port : {2u, 4u}) {
    const unsigned share = port < MacPorts ? Cells / 2 : Cells / 4;
    tests.begin(name + "a network that floods " + (port < MacPorts ? "a port fills half of what is free" : "a CPU queue fills a quarter") +
                ", others lose nothing");
    Bench bench(tests, random, false);
    bench.blocked = 1 << port;
    uint32_t tag = 0;
    while (bench.dropped[1] < 50) {
      if (bench.hungry()) bench.send(frame_of(random, tag++, port, 1, 200));
      bench.clock({0, 0});
    }
    for (unsigned i = 0; i < 20; ++i) bench.clock({0, 0});
    const unsigned flooded = bench.cells_of(port, 1);
    for (unsigned i = 0; i < 12; ++i) bench.send(frame_of(random, tag++, port, 2, 200));
    for (unsigned i = 0; i < 2000; ++i) bench.clock({0, 0});
    if (bench.dropped[2] != 0) tests.wrong("network 2 lost %u frames", bench.dropped[2]);
    // Half of all cells, within a frame. Frames that are planned do not count.
    if (flooded + 4 < share || flooded > share + 4 * (Planned + 1)) tests.wrong("%u of %u cells", flooded, Cells);
    bench.blocked = 0;
    bench.run({0, 0});
    tests.end();
  }

  tests.begin(name + "CPU queues that nobody reads leave half of the memory");
  {
    Bench bench(tests, random, false);
    bench.blocked = 0xf0;
    uint32_t tag = 0;
    for (unsigned i = 0; i < 3 * Cells; ++i) {
      while (!bench.hungry()) bench.clock({0, 0});
      bench.send(frame_of(random, tag++, 4 + i % 4, i % Nets, 200));
    }
    for (unsigned i = 0; i < 2000; ++i) bench.clock({0, 0});
    bench.dropped.clear();
    // Nearly a quarter of all cells for one port.
    bench.blocked = 0xf2;
    for (unsigned i = 0; i < Cells / 4 - 8; ++i) bench.send(frame_of(random, tag++, 1, 0, 64));
    for (unsigned i = 0; i < 4 * Cells; ++i) bench.clock({0, 0});
    if (!bench.dropped.empty()) tests.wrong("a port lost %u frames", bench.dropped.begin()->second);
    bench.blocked = 0;
    bench.run({0, 0});
  }
  tests.end();

  tests.begin(name + "a network that is held waits at MAC ports, in order, and others do not");
  {
    Bench bench(tests, random, true);
    uint32_t tag = 0;
    const auto of = [&](unsigned port, unsigned net, unsigned frames) {
      for (unsigned i = 0; i < frames; ++i) bench.send(frame_of(random, tag++, port, net, 100));
    };
    const auto clocks = [&](unsigned count) {
      for (unsigned i = 0; i < count; ++i) bench.clock({10, 10});
    };
    // The network's turn has begun at port 2: frames that are planned leave, and no others.
    bench.blocked = 1 << 2;
    of(2, 1, 12);
    clocks(600);
    bench.blocked = 0;
    while (bench.sent[2][1] < 300) clocks(1);
    bench.hold(true, 1);
    clocks(600);
    const uint64_t begun = bench.sent[2][1] / 100;
    if (begun > 3 + Planned + Read / stream::beats_of(100, Width)) tests.wrong("%llu frames left in a hold", (unsigned long long)begun);
    of(3, 1, 5);
    of(4, 1, 6);
    of(2, 2, 7);
    of(3, 2, 8);
    clocks(3000);
    if (bench.sent[2][1] / 100 != begun || bench.sent[3][1] != 0) tests.wrong("held frames left");
    if (bench.sent[4][1] != 600) tests.wrong("a CPU queue was held");
    if (bench.sent[2][2] != 700 || bench.sent[3][2] != 800) tests.wrong("the other network was held");
    if (first_waits() != 1u << 1) tests.wrong("networks 0x%llx wait", (unsigned long long)first_waits());
    // Another hold begins as this one ends.
    bench.hold(true, 2);
    of(3, 2, 3);
    clocks(3000);
    if (bench.sent[2][1] != 1200 || bench.sent[3][1] != 500) tests.wrong("released frames did not leave");
    if (bench.sent[3][2] != 800 || first_waits() != 1u << 2) tests.wrong("the second hold does not hold");
    bench.hold(false, 2);
    bench.run({10, 10});
    if (first_waits() != 0) tests.wrong("networks wait at the end");
  }
  tests.end();

  for (const unsigned len : {300u, 1500u, 3000u}) {
    tests.begin(name + "shares by bytes beside frames of " + std::to_string(len));
    shares(tests, random, len);
    tests.end();
  }

  tests.begin(name + "a network's quantum has its default until it is written");
  {
    Bench bench(tests, random, true);
    for (unsigned net = 0; net < Nets; ++net) {
      if (bench.read(net, {0, 0}) != Quantum) tests.wrong("network %u: %u bytes", net, bench.read(net, {0, 0}));
    }
  }
  tests.end();
  const unsigned quanta[][3] = {{2048, 6144, 600}, {6144, 2048, 300}, {64, 6400, 300}, {64000, 64, 300}, {65535, 65535, 300}, {1, 3, 64}};
  for (const auto& [a, b, len] : quanta) {
    tests.begin(name + "shares by quanta of " + std::to_string(a) + " and " + std::to_string(b));
    weights(tests, random, a, b, len);
    tests.end();
  }

  tests.begin(name + "networks move");
  {
    Bench bench(tests, random, false);
    uint32_t tag = 0;
    for (unsigned i = 0; i < 150; ++i) move(tests, random, bench, tag);
    bench.run({0, 0});
  }
  tests.end();

  // The output rate is a beat a clock: at one port with one network or many, and at more ports, which fill any bus.
  for (const unsigned ports : {1u, 2u, 4u}) {
    for (const unsigned nets : {1u, 3u, Nets}) {
      tests.begin(name + "rate of " + std::to_string(ports) + " ports, " + std::to_string(nets) + " networks");
      const unsigned count = std::min(240u, Cells / 2);  // at most half of all cells in one queue
      const uint64_t clocks = rate(tests, random, ports, nets, count);
      // A port begins two turns in 7 clocks. Here each turn is one frame if there are enough networks.
      const unsigned turns = count / ports <= nets ? (count * 7 + 2 * ports - 1) / (2 * ports) : 0;
      const unsigned ideal = std::max(count * std::max(64 / Width, ports == 1 ? Step : 1), turns);
      std::printf("  %u frames of 64 bytes: %llu clocks\n", count, (unsigned long long)clocks);
      if (!Slow && clocks > ideal + 16 + Away) tests.wrong("%llu clocks instead of %u", (unsigned long long)clocks, ideal);
      tests.end();
    }
    tests.begin(name + "frames for " + std::to_string(ports) + " ports come and leave at full rate");
    Bench busy(tests, random, true);
    const unsigned count = 1000, clocks_each = std::max(64 / Width, ports == 1 ? Step : 1);
    for (uint32_t i = 0; i < count; ++i) busy.send(frame_of(random, i, i % ports, 1, 64));
    busy.run({0, 0});
    const uint64_t out = busy.last_out - busy.first_out + 1;
    if (!Slow && out > count * clocks_each + 32 + Away) tests.wrong("%u frames within %llu clocks", count, (unsigned long long)out);
    tests.end();
  }

  tests.begin(name + "latency " + std::to_string(Latency) + " clocks, a beat a clock");
  {
    Bench bench(tests, random, true);
    bench.send(frame_of(random, 0, 5, 3, 64));
    bench.run({0, 0});
    const uint64_t took = bench.first_out - bench.last_in;
    std::printf("  first beat after %llu clocks\n", (unsigned long long)took);
    if (took < Latency || took > Latency + Away) tests.wrong("first beat after %llu clocks", (unsigned long long)took);
    // All ports with all networks, and the MAC ports with one network.
    for (const unsigned ports : {Ports, 4u}) {
      Bench busy(tests, random, true);
      const unsigned count = 1000;
      for (uint32_t i = 0; i < count; ++i) busy.send(frame_of(random, i, i % ports, ports == Ports ? i % Nets : 1, 64));
      busy.run({0, 0});
      const uint64_t clocks = busy.last_in - busy.first_in + 1, out = busy.last_out - busy.first_out + 1;
      std::printf("  %u frames for %u ports: in within %llu clocks, out within %llu\n", count, ports, (unsigned long long)clocks,
                  (unsigned long long)out);
      if (!Slow && (clocks != count * (64 / Width) || out > clocks + 32 + Away))
        tests.wrong("%u frames for %u ports in within %llu clocks, out within %llu", count, ports, (unsigned long long)clocks,
                    (unsigned long long)out);
    }
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
