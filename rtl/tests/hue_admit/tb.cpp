// Bench of hue_admit: checks verdicts against the rules in the module's head, clock by clock. The bench itself decides which frames
// leave the output queues.
#include <array>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

namespace {
constexpr unsigned Nets = HUE_NETS;
constexpr unsigned Cells = HUE_CELLS;
constexpr unsigned CellBytes = 64;
constexpr unsigned Window = HUE_WINDOW;
constexpr unsigned Ports = 8, MacPorts = 4;
constexpr unsigned HeaderBytes = 16, NoteBytes = 16, FrameBytesMin = 14, FrameBytesMax = 9216;
constexpr unsigned Latency = 6;
// Clocks from a verdict until its decision. The decision uses an older state of its queue, and an older state of the backlog.
constexpr unsigned Deciding = 5, GoneBefore = 3, StampBefore = 2, WaitsBefore = 1;
constexpr unsigned Drop = 0, Forward = 1, Punt = 2, Unclaimed = 3;
constexpr unsigned NetBits = Nets <= 2 ? 1 : Nets <= 8 ? 3 : 8;

std::unique_ptr<Vtop> top;

struct Verdict {
  unsigned verdict = 0, net = 0, port = 0, len = 0;
  bool more = false;
  uint64_t rest = 0;  // identifies the verdict; in the field of a MAC address
  unsigned ports = 0;  // of a flood
  bool note = false;  // of a sender; its drop is not counted
  unsigned out() const { return verdict == Punt ? MacPorts + net % 4 : port; }
  bool sends() const { return verdict == Forward || verdict == Punt; }
  bool grows() const { return sends() && out() >= MacPorts; }
  bool extra() const { return sends() && (out() >= MacPorts || more || ports != 0); }
  unsigned bytes() const { return note && len > NoteBytes ? NoteBytes : len; }
  unsigned cells() const { return (bytes() + (out() >= MacPorts ? HeaderBytes : 0) + CellBytes - 1) / CellBytes; }
};

struct Modes {
  bool offline;
  unsigned idle, stall, leave, counts, backlog;  // percent
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random, const Modes& modes) : tests_(tests), random_(random), modes_(modes) {
    top->rst_ni = 0;
    top->s_valid_i = top->m_ready_i = top->gone_i = top->freed_i = top->freed_cpu_i = 0;
    top->offline_i = modes.offline;
    top->backlog_i = top->late_i = 0;
    top->counts_i = 1;
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
    for (unsigned i = 0; i < 4 * Ports * Nets + 16; ++i, ++clocks_) {
      top->eval();
      if (top->s_ready_o) break;
      edge();
    }
    if (!top->s_ready_o) tests.wrong("not ready");
  }

  void send(const Verdict& verdict) { in_.push_back(verdict); }
  uint64_t admitted = 0, dropped = 0, cycle = 1, first_in = 0, first_out = 0, out = 0;
  bool leaves = true;
  std::array<std::array<uint64_t, Nets>, Ports> drops{};
  unsigned used(unsigned port, unsigned net) const { return put_[port][net] - gone_[port][net]; }

  void run() {
    for (unsigned quiet = 0; (!in_.empty() || !order_.empty()) && quiet < 400000; ++quiet) {
      if (clock()) quiet = 0;
    }
    if (!in_.empty() || !order_.empty()) tests_.wrong("%zu verdicts do not leave", in_.size() + order_.size());
    // All frames that were admitted leave the queues.
    leaves = true;
    modes_.leave = 100;
    for (unsigned i = 0; i < 20 * Cells && held_ != 0; ++i) clock();
    for (int i = 0; i < 12; ++i) clock();
    if (!top->idle_o || !top->empty_o) tests_.wrong("not idle and empty at the end: %u cells held", held_);
  }

  bool clock() {
    if (!offered_) offered_ = !in_.empty() && !random_.percent(modes_.idle);
    top->s_valid_i = offered_;
    if (offered_) drive(in_.front());
    top->m_ready_i = !random_.percent(modes_.stall);
    top->counts_i = !random_.percent(modes_.counts);
    top->backlog_i = random_.percent(modes_.backlog);
    top->late_i = random_.percent(modes_.backlog / 3);
    leave();
    top->eval();
    if (top->empty_o && free_before_ != Cells) tests_.wrong("empty with %u cells free", free_before_);
    if (top->idle_o != (order_.empty())) tests_.wrong("idle %u with %zu verdicts", top->idle_o, order_.size());
    bool moved = false;
    if (top->m_valid_o && top->m_ready_i) take(), moved = true;
    check_drop();
    if (exact()) decide();
    remember();
    if (offered_ && top->s_ready_o) {
      if (first_in == 0) first_in = cycle;
      deciding_.push_back({in_.front(), cycle});
      order_.push_back(in_.front());
      in_.pop_front();
      offered_ = false;
      moved = true;
    }
    edge();
    ++cycle;
    ++clocks_;
    return moved;
  }

 private:
  struct Deciding_ {
    Verdict verdict;
    uint64_t cycle;
  };
  // The state one clock ago and earlier.
  struct Past {
    std::array<std::array<unsigned, Nets>, Ports> gone;
    std::array<unsigned, Nets> stamps, note_stamps;
    bool backlog, late;
    unsigned window, note_window;
  };

  // In these modes every verdict is decided at its first attempt.
  bool exact() const { return !modes_.offline && modes_.counts == 0; }

  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  void drive(const Verdict& v) {
    using hue_pkg::hue_verdict_t;
    bench::set(top->s_verdict_i, hue_verdict_t::verdict, v.verdict);
    bench::set(top->s_verdict_i, hue_verdict_t::outcome, 3);
    bench::set(top->s_verdict_i, hue_verdict_t::net, v.net);
    bench::set(top->s_verdict_i, hue_verdict_t::vid, 0x111);
    bench::set(top->s_verdict_i, hue_verdict_t::vport, 9);
    bench::set(top->s_verdict_i, hue_verdict_t::port_in, 5);
    bench::set(top->s_verdict_i, hue_verdict_t::port_out, v.port);
    bench::set(top->s_verdict_i, hue_verdict_t::len, v.len);
    bench::set(top->s_verdict_i, hue_verdict_t::edit, 1);
    bench::set(top->s_verdict_i, hue_verdict_t::dst_mac, ~v.rest);
    bench::set(top->s_verdict_i, hue_verdict_t::src_mac, v.rest);
    bench::set(top->s_verdict_i, hue_verdict_t::ttl, 7);
    bench::set(top->s_verdict_i, hue_verdict_t::checksum, 0x1234);
    bench::set(top->s_verdict_i, hue_verdict_t::more, v.more);
    bench::set(top->s_verdict_i, hue_verdict_t::note, v.note);
    bench::set(top->s_verdict_i, hue_verdict_t::ports, v.ports);
  }

  // A frame leaves a queue, and cells are freed.
  void leave() {
    top->gone_i = top->freed_i = top->freed_cpu_i = 0;
    if (leaves && random_.percent(modes_.leave)) {
      unsigned port = random_.below(Ports), net = random_.below(Nets);
      // The next queue that has frames.
      for (unsigned i = 0; i < Ports * Nets && queues_[port][net].empty(); ++i) {
        if (++net == Nets) net = 0, port = (port + 1) % Ports;
      }
      auto& queue = queues_[port][net];
      if (!queue.empty()) {
        gone_[port][net] += queue.front();
        for (unsigned i = 0; i < queue.front(); ++i) back_.push_back(port >= MacPorts);
        queue.pop_front();
        top->gone_i = 1;
        top->gone_queue_i = port << NetBits | net;
        top->gone_cells_i = gone_[port][net] % (2 * Cells);
      }
    }
    free_before_ = free_last_;
    free_last_ = free_;
    if (!back_.empty() && leaves && random_.percent(80)) {
      top->freed_i = 1;
      top->freed_cpu_i = back_.front();
      freed_ = true;
      freed_cpu_ = back_.front();
      back_.pop_front();
    }
  }

  // Decides the verdict of this clock by the rules.
  void decide() {
    if (deciding_.empty() || deciding_.front().cycle + Deciding != cycle) return;
    const Verdict v = deciding_.front().verdict;
    deciding_.pop_front();
    bool lets = true;
    if (v.sends()) {
      const unsigned used = put_[v.out()][v.net] - past_[GoneBefore - 1].gone[v.out()][v.net] + v.cells();
      const Past& past = past_[WaitsBefore - 1];
      const bool recent = v.note ? past_[StampBefore].note_stamps[v.net] == past.note_window : past_[StampBefore].stamps[v.net] == past.window;
      lets = used <= free_ && (!v.grows() || used <= cpu_free_) && !(v.extra() && (past.late || (past.backlog && recent)));
      if (lets) {
        admit(v);
        if (v.extra()) (v.note ? note_stamps_ : stamps_)[v.net] = v.note ? note_window() : window();
      }
    }
    decided_.push_back(lets);
    if (!lets) drop_ = {!v.note, v};
  }

  void admit(const Verdict& v) {
    put_[v.out()][v.net] += v.cells();
    taken_ += v.cells();
    if (v.grows()) taken_cpu_ += v.cells();
    queues_[v.out()][v.net].push_back(v.cells());
    held_ += v.cells();
    ++admitted;
  }

  unsigned window() const { return (1 + clocks_ / Window) % 16; }
  unsigned note_window() const { return clocks_ / (Window / 16) % 16; }

  void check_drop() {
    const bool drop = top->dropped_o;
    if (exact() && drop != was_drop_.first) tests_.wrong("clock %llu: dropped %u, expected %u", (unsigned long long)cycle, drop, was_drop_.first);
    if (modes_.offline && drop) tests_.wrong("dropped although held back");
    if (!drop) return;
    ++dropped;
    if (!counts_before_) tests_.wrong("dropped when it cannot be counted");
    if (top->dropped_port_o < Ports && top->dropped_net_o < Nets) ++drops[top->dropped_port_o][top->dropped_net_o];
    if (exact() && was_drop_.first && (top->dropped_port_o != was_drop_.second.out() || top->dropped_net_o != was_drop_.second.net))
      tests_.wrong("a drop of another frame");
  }

  void take() {
    if (order_.empty()) return tests_.wrong("a verdict of no frame");
    const Verdict v = order_.front();
    order_.pop_front();
    if (first_out == 0) first_out = cycle;
    ++out;
    using hue_pkg::hue_verdict_t;
    const unsigned verdict = bench::get(top->m_verdict_o, hue_verdict_t::verdict);
    const unsigned net = bench::get(top->m_verdict_o, hue_verdict_t::net);
    const unsigned port = bench::get(top->m_verdict_o, hue_verdict_t::port_out);
    const unsigned len = bench::get(top->m_verdict_o, hue_verdict_t::len);
    const uint64_t rest = bench::get(top->m_verdict_o, hue_verdict_t::src_mac);
    const bool more = bench::get(top->m_verdict_o, hue_verdict_t::more);
    if (more != v.more) tests_.wrong("verdict %llx has lost whether copies follow", (unsigned long long)v.rest);
    if (net != v.net || port != v.port || len != v.len || rest != v.rest) tests_.wrong("verdict %llx comes as %llx", (unsigned long long)v.rest, (unsigned long long)rest);
    if (!exact()) {
      // The verdict may have been held back, and is dropped only when the drop can be counted. An admitted frame must have room.
      if (verdict == v.verdict && v.sends()) {
        admit(v);
        if (held_ > Cells) tests_.wrong("%u cells held", held_);
      } else if (verdict != v.verdict && modes_.offline) {
        tests_.wrong("verdict %u becomes %u", v.verdict, verdict);
      }
      return;
    }
    const bool lets = decided_.front();
    decided_.pop_front();
    if (verdict != (lets ? v.verdict : Drop)) tests_.wrong("verdict %u becomes %u", v.verdict, verdict);
  }

  void remember() {
    past_.push_front({gone_, stamps_, note_stamps_, bool(top->backlog_i), bool(top->late_i), window(), note_window()});
    if (past_.size() > 8) past_.pop_back();
    while (past_.size() < 8) past_.push_back(past_.back());
    free_ += freed_ - taken_;
    cpu_free_ += (freed_ && freed_cpu_) - taken_cpu_;
    held_ -= freed_;
    freed_ = freed_cpu_ = false;
    taken_ = taken_cpu_ = 0;
    was_drop_ = drop_;
    drop_ = {};
    counts_before_ = top->counts_i;
  }

  bench::Tests& tests_;
  bench::Random& random_;
  Modes modes_;
  std::deque<Verdict> in_, order_;
  std::deque<Deciding_> deciding_;
  std::deque<bool> decided_, back_;
  std::deque<Past> past_;
  std::array<std::array<std::deque<unsigned>, Nets>, Ports> queues_;
  std::array<std::array<unsigned, Nets>, Ports> put_{}, gone_{};
  std::array<unsigned, Nets> stamps_{}, note_stamps_{};
  std::pair<bool, Verdict> drop_{}, was_drop_{};
  unsigned free_ = Cells, cpu_free_ = Cells / 2, free_last_ = Cells, free_before_ = Cells, held_ = 0, taken_ = 0, taken_cpu_ = 0;
  uint64_t clocks_ = 0;
  bool offered_ = false, freed_ = false, freed_cpu_ = false, counts_before_ = true;
};

Verdict verdict_of(bench::Random& random, uint64_t number, unsigned nets) {
  const unsigned verdicts[] = {Forward, Forward, Forward, Punt, Punt, Drop, Unclaimed, Forward};
  Verdict v;
  v.verdict = verdicts[random.below(8)];
  v.net = random.below(nets);
  v.more = random.percent(10);
  v.note = v.verdict == Punt && random.percent(30);
  v.ports = random.percent(10) ? random.below(16) : 0;
  v.port = random.percent(90) ? random.below(MacPorts) : random.below(Ports);
  const unsigned sort = random.below(100);
  v.len = sort < 60 ? random.between(FrameBytesMin, 200) : sort < 96 ? random.between(FrameBytesMin, 1600) : random.between(FrameBytesMin, FrameBytesMax);
  v.rest = number;
  return v;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;

  constexpr Modes All[] = {{false, 0, 0, 100, 0, 0},  {false, 0, 0, 20, 0, 0},   {false, 50, 0, 60, 0, 0}, {false, 0, 60, 60, 0, 0},
                           {false, 0, 0, 80, 0, 40},  {false, 0, 0, 80, 0, 90},  {false, 0, 0, 20, 50, 0}, {true, 0, 0, 60, 0, 0},
                           {true, 40, 40, 100, 0, 0}, {false, 95, 0, 20, 0, 20}};
  for (const Modes& modes : All) {
    tests.begin("admit, idle " + std::to_string(modes.idle) + " %, back-pressure " + std::to_string(modes.stall) + " %, leaving " +
                std::to_string(modes.leave) + " %" + (modes.offline ? ", held back" : "") + (modes.counts ? ", a busy counter" : "") +
                (modes.backlog ? ", bodies wait " + std::to_string(modes.backlog) + " %" : ""));
    Bench bench(tests, random, modes);
    for (uint64_t i = 0; i < 6000; ++i) bench.send(verdict_of(random, i, i < 3000 ? 2 : Nets));
    bench.run();
    if (bench.admitted == 0 || (!modes.offline && modes.leave < 60 && bench.dropped == 0)) tests.wrong("%llu let in, %llu dropped", (unsigned long long)bench.admitted, (unsigned long long)bench.dropped);
    tests.end();
  }

  tests.begin("admit, latency " + std::to_string(Latency) + " clocks, a verdict a clock, also for dropped frames");
  {
    Bench bench(tests, random, {false, 0, 0, 0, 0, 0});
    bench.leaves = false;
    for (uint64_t i = 0; i < 4 * Cells; ++i) bench.send({Forward, 1, 2, 60, false, i});
    const uint64_t before = bench.cycle;
    while (bench.out < 4 * Cells && bench.cycle < before + 5 * Cells) bench.clock();
    if (bench.first_out - bench.first_in != Latency) tests.wrong("after %llu clocks", (unsigned long long)(bench.first_out - bench.first_in));
    if (bench.cycle - before > 4 * Cells + 2 * Latency) tests.wrong("%llu clocks for %u verdicts", (unsigned long long)(bench.cycle - before), 4 * Cells);
    if (bench.used(2, 1) != Cells / 2) tests.wrong("%u of %u cells", bench.used(2, 1), Cells);
    bench.run();
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
