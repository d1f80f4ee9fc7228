// Bench of hue_flood: sends group frames of four ports, and compares the copies with a queue for each port and the runs of ATTACH at
// the time a copy begins. Runs change during holds. Frames for which there is no room are dropped.
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned MemoryBytes = HUE_BYTES;
constexpr unsigned AttachRows = HUE_ATTACH_ROWS;
constexpr unsigned Ports = 4;
constexpr unsigned TableAttach = 2, TableAttachHead = 3;
constexpr unsigned CellBytes = Width > 32 ? 2 * Width : 64;
constexpr unsigned Cells = MemoryBytes / CellBytes;
constexpr unsigned FrameBytesMin = 14, FrameBytesMax = 9216;
constexpr unsigned Latency = 9;
constexpr unsigned turn_of(unsigned beats) { return std::max(7u, beats + 5); }
constexpr unsigned DropClocks = 2;  // from a frame's first beat until its drop is reported

std::unique_ptr<Vtop> top;

unsigned cells_of(size_t bytes) { return (bytes + CellBytes - 1) / CellBytes; }

struct Frame {
  Bytes bytes;
  unsigned port = 0;
  uint32_t tag = 0;
  unsigned slot = 0;      // where the search for its next copy starts
  bool sent = false;
  bool maybe_gone = false;  // at some time there was no row left for it
};
struct Row {
  bool valid = false;
  unsigned net = 0, vport = 0;
};
struct Run {
  unsigned start = 0;
  std::vector<Row> rows;
};

struct Rates {
  unsigned idle, stall, change;
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random, bool offline) : tests_(tests), random_(random), offline_(offline) {
    top->rst_ni = 0;
    top->offline_i = offline;
    top->hold_i = top->s_valid_i = top->c_ready_i = 0;
    set_request(false, 0, 0, 0);
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
    for (unsigned p = 0; p < Ports; ++p) write(TableAttachHead, p, 0);
  }

  // Writes the rows of each port's run during a hold.
  void set_runs(const std::array<Run, Ports>& runs) {
    hold_ = true;
    for (int i = 0; i < 3; ++i) clock({100, 0, 0});
    for (unsigned p = 0; p < Ports; ++p) {
      for (unsigned i = 0; i < runs[p].rows.size(); ++i) {
        const Row& row = runs[p].rows[i];
        write(TableAttach, runs[p].start + i, row.valid | row.net << 1 | row.vport << 9);
      }
      write(TableAttachHead, p, runs[p].start | runs[p].rows.size() << 16);
    }
    runs_ = runs;
    for (auto& queue : queues_) {
      if (!queue.empty() && queue.front().sent && next(queue.front()) < 0) queue.front().maybe_gone = true;
    }
    hold_ = false;
  }

  void send(const Frame& frame) { in_.push_back(frame); }
  size_t waiting() const { return in_.size(); }
  uint64_t cycle = 0, last_in = 0, dropped = 0, copies = 0, nobodys = 0;
  std::vector<uint64_t> begins;
  std::vector<unsigned> ports;  // ports of the copies, in order
  std::array<unsigned, Ports> drops{};
  bool blocked = false;

  void run(const Rates& rates) {
    uint64_t quiet = 0;
    while (!in_.empty() || !top->idle_o || quiet < 8) {
      if (random_.percent(rates.change)) change();
      quiet = clock(rates) ? 0 : quiet + 1;
      if (quiet > 3000) break;
    }
    for (unsigned p = 0; p < Ports; ++p) {
      while (!queues_[p].empty() && queues_[p].front().sent && (next(queues_[p].front()) < 0 || queues_[p].front().maybe_gone)) queues_[p].pop_front();
      if (!queues_[p].empty()) tests_.wrong("port %u: %zu frames do not leave, %u at slot %u", p, queues_[p].size(), queues_[p].front().tag, queues_[p].front().slot);
    }
    if (!top->idle_o) tests_.wrong("not idle at the end");
  }

  // One clock. Returns whether anything moved.
  bool clock(const Rates& rates) {
    bool moved = false;
    // As the arbiter does: offline, no frame begins in the clock after `full_o` was 1.
    const bool begins_now = !may_.empty() && may_[0];
    may_ = {!in_.empty() && !(offline_ && top->full_o)};
    top->hold_i = hold_;
    if (beat_ == 0 && !stands_) stands_ = !in_.empty() && begins_now && !random_.percent(rates.idle);
    const bool valid = beat_ == 0 ? stands_ : !random_.percent(rates.idle);
    top->s_valid_i = valid;
    if (valid) drive();
    top->c_ready_i = !blocked && !random_.percent(rates.stall) && (!hold_ || out_beat_ != 0);
    top->eval();
    if (top->error_o) tests_.wrong("a memory error");
    for (unsigned p = 0; p < Ports; ++p) {
      if (top->dropped_o >> p & 1) drop(p);
    }
    if (top->c_valid_o && top->c_ready_i) {
      take();
      moved = true;
    }
    if (valid) {
      moved = true;
      stands_ = false;
      Frame& frame = in_.front();
      if (beat_ == 0) {
        frame.slot = 0;
        queues_[frame.port].push_back(frame);
        begun_.push_back({cycle, frame.port, frame.tag, frame.bytes.size()});
      }
      if (++beat_ == stream::beats_of(frame.bytes.size(), Width)) {
        beat_ = 0;
        last_in = cycle;
        in_.pop_front();
      }
    }
    edge();
    ++cycle;
    return moved;
  }

 private:
  struct Begun {
    uint64_t cycle;
    unsigned port;
    uint32_t tag;
    size_t bytes;
  };

  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  void set_request(bool valid, unsigned table, unsigned row, uint64_t data) {
    for (unsigned i = 0; i < 8; ++i) stream::put_word(top->tbl_req_i, i, i < 2 ? data >> 32 * i : 0);
    stream::put_request(top->tbl_req_i, valid, valid, false, table, row);
  }

  void write(unsigned table, unsigned row, uint64_t data) {
    set_request(true, table, row, data);
    for (unsigned i = 0; !stream::answered(top->tbl_rsp_o); ++i) {
      if (i > 50) {
        tests_.wrong("table %u row %u: no answer", table, row);
        break;
      }
      clock({100, 0, 0});
    }
    set_request(false, 0, 0, 0);
    clock({100, 0, 0});
  }

  // A network is attached or detached, or a run moves.
  void change() {
    std::array<Run, Ports> runs = runs_;
    Run& run = runs[random_.below(Ports)];
    const unsigned room = AttachRows / Ports;
    switch (random_.below(4)) {
      case 0:
        if (!run.rows.empty()) run.rows[random_.below(run.rows.size())].valid = false;
        break;
      case 1:
        for (Row& row : run.rows) {
          if (!row.valid) row = {true, random_.below(256), random_.below(256)};
        }
        break;
      case 2:
        if (run.rows.size() < room) run.rows.push_back({true, random_.below(256), random_.below(256)});
        break;
      default:
        if (!run.rows.empty()) run.rows.pop_back();
    }
    while (!run.rows.empty() && !run.rows.back().valid) run.rows.pop_back();
    // A different order of the runs.
    const unsigned shift = random_.below(Ports);
    for (unsigned p = 0; p < Ports; ++p) runs[p].start = (p + shift) % Ports * room + (room - runs[p].rows.size()) * random_.below(2);
    set_runs(runs);
  }

  void drive() {
    const Frame& frame = in_.front();
    stream::put_beat(top->s_data_i, frame.bytes, Width, beat_);
    top->s_first_i = beat_ == 0;
    top->s_last_i = beat_ + 1 == stream::beats_of(frame.bytes.size(), Width);
    top->s_port_i = frame.port;
    stream::Arrival arrival = stream::random_arrival(random_, frame.tag);
    arrival.len = frame.bytes.size();
    stream::put_arrival(top->s_arrival_i, arrival);
  }

  // The slot of a frame's next copy, or -1.
  int next(const Frame& frame) const {
    const auto& rows = runs_[frame.port].rows;
    for (unsigned slot = frame.slot; slot < rows.size(); ++slot) {
      if (rows[slot].valid) return slot;
    }
    return -1;
  }

  void drop(unsigned port) {
    if (offline_) tests_.wrong("port %u: a frame is dropped", port);
    while (!begun_.empty() && begun_.front().cycle + DropClocks < cycle) begun_.pop_front();
    if (begun_.empty() || begun_.front().cycle + DropClocks != cycle || begun_.front().port != port) {
      tests_.wrong("port %u: a frame that did not come is dropped", port);
      return;
    }
    const Begun frame = begun_.front();
    auto& queue = queues_[port];
    unsigned used = 0, all = 0;
    for (unsigned p = 0; p < Ports; ++p) {
      unsigned own = returning_;
      for (const Frame& one : queues_[p]) own += cells_of(one.bytes.size());
      all += own - returning_;
      if (p == port) used = own;
    }
    // The frame is counted among those of its port, and cells that are being freed among all.
    const unsigned need = cells_of(frame.bytes);
    if (used + all - need + returning_ <= Cells - Ports && used <= Cells) {
      tests_.wrong("port %u: a frame of %u cells is dropped: %u of its port, %u in all", port, need, used - need, all - need);
    }
    for (auto one = queue.begin(); one != queue.end(); ++one) {
      if (one->tag != frame.tag) continue;
      queue.erase(one);
      break;
    }
    ++dropped;
    ++drops[port];
  }

  void take() {
    const unsigned port = top->c_port_o;
    if (out_beat_ == 0) begin(port);
    const Frame& frame = out_;
    if (port != frame.port) tests_.wrong("a beat of port %u inside a frame of port %u", port, frame.port);
    const stream::Arrival arrival = stream::arrival_of(top->c_arrival_o);
    if (arrival.tag != frame.tag || arrival.len != frame.bytes.size() || arrival.from_cpu || arrival.copy != copy_.valid ||
        (copy_.valid && (arrival.net != copy_.net || arrival.vport != copy_.vport)))
      tests_.wrong("frame %u: a copy %u for network %u, port %u, expected %u, %u, %u", frame.tag, arrival.copy, arrival.net,
                   arrival.vport, copy_.valid, copy_.net, copy_.vport);
    for (unsigned b = 0; b < stream::bytes_of(frame.bytes.size(), Width, out_beat_); ++b) {
      if (bench::bits(top->c_data_o, 8 * b, 8) != frame.bytes[size_t{out_beat_} * Width + b]) {
        tests_.wrong("frame %u: beat %u", frame.tag, out_beat_);
        break;
      }
    }
    const bool last = ++out_beat_ == stream::beats_of(frame.bytes.size(), Width);
    if (top->c_last_o != last) tests_.wrong("frame %u: last", frame.tag);
    if (last) out_beat_ = 0;
  }

  // A copy begins: its network must be in the run now.
  void begin(unsigned port) {
    if (hold_) tests_.wrong("port %u: a copy begins in a hold", port);
    begins.push_back(cycle);
    ports.push_back(port);
    ++copies;
    auto& queue = queues_[port];
    const uint32_t tag = stream::arrival_of(top->c_arrival_o).tag;
    while (!queue.empty() && queue.front().sent && (next(queue.front()) < 0 || (queue.front().maybe_gone && queue.front().tag != tag))) queue.pop_front();
    if (queue.empty()) {
      tests_.wrong("port %u: a copy of no frame", port);
      out_ = {Bytes(FrameBytesMax), port, 0};
      return;
    }
    Frame& frame = queue.front();
    out_ = frame;
    const int slot = next(frame);
    copy_ = slot < 0 ? Row{} : runs_[port].rows[slot];
    nobodys += slot < 0;
    frame.sent = true;
    frame.slot = slot < 0 ? runs_[port].rows.size() : slot + 1;
    if (next(frame) < 0) {
      // The frame's last copy, by the rows as they are now.
      queue.pop_front();
      returning_ = cells_of(out_.bytes.size());
    }
  }

  bench::Tests& tests_;
  bench::Random& random_;
  bool offline_, hold_ = false, stands_ = false;
  std::array<Run, Ports> runs_;
  std::deque<Frame> in_;
  std::array<std::deque<Frame>, Ports> queues_;
  std::deque<Begun> begun_;
  std::vector<bool> may_;
  Frame out_;
  Row copy_;
  unsigned beat_ = 0, out_beat_ = 0;
  unsigned returning_ = 0;  // cells of the frame that finished last: they may not be free yet
};

Frame frame_of(bench::Random& random, unsigned port, uint32_t tag, unsigned len) {
  Frame frame{stream::random_bytes(random, len), port, tag};
  frame.bytes[0] |= 1;
  return frame;
}

std::array<Run, Ports> runs_of(bench::Random& random, std::array<unsigned, Ports> counts) {
  std::array<Run, Ports> runs;
  for (unsigned p = 0; p < Ports; ++p) {
    runs[p].start = p * (AttachRows / Ports);
    for (unsigned i = 0; i < counts[p]; ++i) runs[p].rows.push_back({true, random.below(256), random.below(256)});
  }
  return runs;
}

unsigned length(bench::Random& random) {
  const unsigned sort = random.below(100);
  if (sort < 40) return random.between(FrameBytesMin, 64);
  if (sort < 60) return CellBytes * random.between(1, 4) + random.below(3) - 1;
  return sort < 97 ? random.between(FrameBytesMin, 600) : random.between(FrameBytesMin, FrameBytesMax);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "flood " + std::to_string(8 * Width) + " bit, ";
  constexpr Rates Mixes[] = {{0, 0, 0}, {60, 0, 0}, {0, 50, 1}, {98, 0, 0}, {97, 40, 2}, {90, 0, 5}, {50, 70, 1}};

  for (bool offline : {false, true}) {
    for (const Rates& rates : Mixes) {
      tests.begin(name + "idle " + std::to_string(rates.idle) + " %, back-pressure " + std::to_string(rates.stall) +
                  " %, changes " + std::to_string(rates.change) + " %" + (offline ? ", nothing is lost" : ""));
      Bench bench(tests, random, offline);
      bench.set_runs(runs_of(random, {3, 0, 1, AttachRows / Ports}));
      for (uint32_t i = 0; i < 600; ++i) bench.send(frame_of(random, random.below(Ports), i, length(random)));
      bench.run(rates);
      if (bench.copies == 0 || bench.nobodys == 0) tests.wrong("%llu copies, %llu without a network", (unsigned long long)bench.copies, (unsigned long long)bench.nobodys);
      if (rates.idle == 0 && !offline && bench.dropped == 0) tests.wrong("nothing was dropped");
      tests.end();
    }
  }

  tests.begin(name + "latency " + std::to_string(Latency) + " clocks, and turns");
  for (unsigned len : {FrameBytesMin, 60u, 61u, 1514u, FrameBytesMax}) {
    Bench bench(tests, random, false);
    bench.set_runs(runs_of(random, {4, 0, 0, 0}));
    for (int i = 0; i < 20; ++i) bench.clock({100, 0, 0});
    bench.send(frame_of(random, 0, 1, len));
    bench.run({0, 0, 0});
    if (bench.begins.size() != 4) {
      tests.wrong("%zu copies", bench.begins.size());
      continue;
    }
    if (bench.begins[0] - bench.last_in != Latency)
      tests.wrong("%u bytes: first beat after %llu clocks", len, (unsigned long long)(bench.begins[0] - bench.last_in));
    const unsigned turn = turn_of(stream::beats_of(len, Width));
    for (unsigned i = 1; i < 4; ++i) {
      if (bench.begins[i] - bench.begins[i - 1] != turn)
        tests.wrong("%u bytes: a copy after %llu clocks, expected %u", len, (unsigned long long)(bench.begins[i] - bench.begins[i - 1]), turn);
    }
  }
  tests.end();

  // One port's frames take half of the memory, the next port's half of the rest, and there is still room for a frame of maximum length.
  tests.begin(name + "shares of the memory");
  {
    Bench bench(tests, random, false);
    bench.set_runs(runs_of(random, {1, 1, 1, 1}));
    bench.blocked = true;
    std::array<unsigned, Ports> kept{};
    unsigned free = Cells - Ports, tag = 0;
    for (unsigned p = 0; p < Ports; ++p) {
      for (unsigned i = 0; i < Cells; ++i) bench.send(frame_of(random, p, tag++, 60));
      while (bench.waiting() != 0) bench.clock({0, 0, 0});
      for (int i = 0; i < 4; ++i) bench.clock({100, 0, 0});
      unsigned used = 0;
      while (used + 1 <= free) ++used, --free;
      kept[p] = used;
      if (bench.drops[p] != Cells - kept[p]) tests.wrong("port %u: %u frames are kept, expected %u", p, Cells - bench.drops[p], kept[p]);
    }
    bench.blocked = false;
    bench.run({0, 0, 0});
    bench.send(frame_of(random, 1, tag++, FrameBytesMax));
    const uint64_t dropped = bench.dropped;
    bench.run({0, 0, 0});
    if (bench.dropped != dropped) tests.wrong("a frame of maximum length is dropped");
  }
  tests.end();

  // Ports that always have frames take turns, however many networks are on the other ports.
  tests.begin(name + "ports take turns, one copy each");
  {
    Bench bench(tests, random, false);
    bench.set_runs(runs_of(random, {AttachRows / Ports, 1, 0, 0}));
    uint32_t tag = 0;
    for (int i = 0; i < 12; ++i) bench.send(frame_of(random, 0, tag++, 60));
    for (int i = 0; i < 4; ++i) bench.send(frame_of(random, 1, tag++, 60));
    bench.run({0, 0, 0});
    if (bench.dropped != 0 || bench.copies != 12 * (AttachRows / Ports) + 4) tests.wrong("%llu copies", (unsigned long long)bench.copies);
    // Copies of the second port, from its first one on.
    const auto first = std::find(bench.ports.begin(), bench.ports.end(), 1u);
    if (bench.ports.end() - first < 8 || std::count(first, first + 7, 1u) != 4) tests.wrong("a port waits for more than one copy of another port");
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
