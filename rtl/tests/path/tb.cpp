// Bench of hue_card's path: sends frames through all ports, with stages that read verdicts from the frames (hue_stages.sv in this
// folder), and compares them with a model of whole frames. Registers and tables are accessed over AXI-Lite.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "bench.h"

using bench::Bytes;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned Ports = 8;
constexpr bool Floods = HUE_KINDS & 8;  // the card has a kind that floods and learns
constexpr unsigned Tcontrol = 0x84, TableId = 0x100, TableIndex = 0x104, TableCommand = 0x108, TableStatus = 0x10c,
                   TableData = 0x120, Accepted = 0xa0, Retired = 0xa4;
constexpr unsigned TableAttach = 2, TableAttachHead = 3, TablePort = 14, TableOutDrops = 16;
// Number of networks that are attached to a MAC port, and the network in each place, whose virtual port is the place.
constexpr unsigned attached(unsigned port) { return port == 3 ? 0 : port + 1; }
constexpr unsigned network_at(unsigned port, unsigned place) { return 10 * port + place; }

struct Frame {
  Bytes bytes;
  uint32_t tag;
};
struct Leaving {
  Bytes bytes;
  uint32_t tag;
  unsigned port;  // ingress
  bool group;
  unsigned net;
};

std::unique_ptr<Vtop> top;
uint64_t cycle;

unsigned beats_of(size_t bytes) { return bytes == 0 ? 1 : (bytes + Width - 1) / Width; }

// ---- the model

struct Expectation {
  // The frames that must come, by egress port and tag. A frame may leave by the same port several times.
  std::array<std::map<uint32_t, std::vector<Leaving>>, Ports> leaving;
  // Notes have no tag, and come in any order.
  std::array<std::vector<Bytes>, Ports> notes;
  std::array<std::array<uint64_t, 7>, Ports> counters{};
  uint64_t frames = 0;  // frames and copies
};

void model(Expectation& all, unsigned port, const Frame& frame, bool counts = true) {
  Bytes f = frame.bytes;
  bool from_plane = false;
  unsigned cpu_out = 0, cpu_net = 0;
  if (port >= 4) {
    if (f.size() < 16) {
      f.clear();
    } else {
      from_plane = f[7] & 1;
      cpu_out = f[6] & 7;
      cpu_net = f[2];
      f.erase(f.begin(), f.begin() + 16);
    }
  }
  if (counts) {
    all.counters[port][0] += 1;
    all.counters[port][1] += f.size();
  }
  const bool group = port < 4 && f.size() >= 14 && f.size() <= 9216 && (f[0] & 1);
  all.frames += group && attached(port) != 0 ? attached(port) : 1;
  if (f.size() < 14 || f.size() > 9216) return;
  auto leave = [&](unsigned out, unsigned named, Bytes bytes, unsigned vid, unsigned net, unsigned copy, unsigned outcome,
                   bool note = false) {
    if (note && bytes.size() > 16) bytes.resize(16);
    all.counters[out][3] += 1;
    all.counters[out][4] += bytes.size();
    if (out >= 4) {
      const Bytes header = {uint8_t(vid >> 8), uint8_t(vid), uint8_t(net), uint8_t(copy), uint8_t(outcome), uint8_t(port),
                            uint8_t(named), uint8_t(note ? 2 : 0), uint8_t(bytes.size() >> 8), uint8_t(bytes.size()), 0, 0, 0, 0, 0, 0};
      bytes.insert(bytes.begin(), header.begin(), header.end());
    }
    if (note) all.notes[out].push_back(bytes);
    else all.leaving[out][frame.tag].push_back({bytes, frame.tag, port, group, net});
  };
  if (from_plane) {
    leave(cpu_out, cpu_out, f, 0, cpu_net, 0, 0);
    return;
  }
  const unsigned verdict = f[1] & 3;
  for (unsigned copy = 0; copy < (group && attached(port) != 0 ? attached(port) : 1); ++copy) {
    const unsigned net = group && attached(port) != 0 ? network_at(port, copy) : f[3];
    const unsigned out = (f[2] + copy) % 8;
    if (verdict == 1) {
      Bytes g = f;
      if (f[0] & 0x80) {
        for (unsigned i = 0; i < 6; ++i) g[i] = 0x11, g[6 + i] = 0x22;
        if (g.size() > 22) g[22] = 0x33;
        if (g.size() > 24) g[24] = 0x44;
        if (g.size() > 25) g[25] = 0x54;
      }
      const bool floods = Floods && (f[1] & 4);
      for (unsigned p = 0; floods && p < 4; ++p) {
        if (f[4] >> p & 1) leave(p, p, g, 0x100 + net, net, copy, f[5] & 31);
      }
      if (!floods) leave(out, out, g, 0x100 + net, net, copy, f[5] & 31);
    } else if (verdict == 2) {
      leave(4 + net % 4, out, f, 0x100 + net, net, copy, f[5] & 31);
    }
    if (Floods && (f[1] & 8) && verdict != 3) leave(4 + net % 4, 4 + net % 4, f, 0x100 + net, net, copy, f[5] & 31, true);
  }
}

// ---- the bench

struct Rates {
  unsigned idle, stall, slow_port = 99, slow_stall = 97;
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random) {}

  void reset() {
    top->rst_ni = 0;
    top->s_tvalid_i = 0;
    top->m_tready_i = 0;
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_arvalid_i = 0;
    top->s_axil_bready_i = top->s_axil_rready_i = 1;
    top->s_axil_wstrb_i = 15;
    for (unsigned p = 0; p < Ports; ++p) {
      queues_[p].clear();
      offered_[p] = false;
      beat_[p] = 0;
      coming_[p].clear();
    }
    for (int i = 0; i < 4; ++i) tick();
    top->rst_ni = 1;
    first_out_ = last_out_ = 0;
  }

  void send(unsigned port, const Frame& frame) { queues_[port].push_back(frame); }
  bool hungry(unsigned port) const { return queues_[port].size() < 4; }

  // One clock with frames moving at the given rates.
  void clock(const Rates& rates) {
    uint8_t valid = 0;
    for (unsigned p = 0; p < Ports; ++p) {
      if (!offered_[p] && !queues_[p].empty() && !random_.percent(rates.idle)) {
        offered_[p] = true;
        drive(p);
      }
      valid |= offered_[p] << p;
    }
    top->s_tvalid_i = valid;
    uint8_t ready = 0;
    for (unsigned p = 0; p < Ports; ++p) ready |= (!random_.percent(p == rates.slow_port ? rates.slow_stall : rates.stall)) << p;
    top->m_tready_i = ready;
    top->eval();
    for (unsigned p = 0; p < Ports; ++p) {
      if (offered_[p] && (top->s_tready_o >> p & 1)) {
        offered_[p] = false;
        if (++beat_[p] == beats_of(queues_[p].front().bytes.size())) {
          beat_[p] = 0;
          queues_[p].pop_front();
        }
        quiet_ = 0;
      }
      if ((top->m_tvalid_o & top->m_tready_i) >> p & 1) take(p);
    }
    if (top->moves_o) quiet_ = 0;
    rise();
  }

  // Runs until all frames are sent and the card reports idle.
  void run(const Rates& rates) {
    quiet_ = 0;
    while (quiet_++ < 5000) {
      bool left = false;
      for (unsigned p = 0; p < Ports; ++p) left |= !queues_[p].empty();
      clock(rates);
      if (!left && top->idle_o && quiet_ > 4) return;
    }
    tests_.wrong("not idle at the end");
  }

  void expect_all(Expectation& wanted) {
    for (unsigned p = 0; p < Ports; ++p) {
      size_t missing = 0;
      for (const auto& [tag, list] : wanted.leaving[p]) missing += list.size();
      missing += wanted.notes[p].size();
      if (missing != 0) tests_.wrong("port %u: %zu frames missing, the first is %u", p, missing,
                                     wanted.leaving[p].empty() ? 0 : wanted.leaving[p].begin()->first);
    }
  }

  void write(unsigned address, uint32_t value) {
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = 1;
    top->s_axil_awaddr_i = address;
    top->s_axil_wdata_i = value;
    bool taken = false;
    while (!taken) {
      top->eval();
      taken = top->s_axil_awready_o;
      rise();
    }
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = 0;
    for (bool done = false; !done;) {
      top->eval();
      done = top->s_axil_bvalid_o;
      rise();
    }
  }

  uint32_t read(unsigned address) {
    top->s_axil_arvalid_i = 1;
    top->s_axil_araddr_i = address;
    for (bool taken = false; !taken;) {
      top->eval();
      taken = top->s_axil_arready_o;
      rise();
    }
    top->s_axil_arvalid_i = 0;
    for (;;) {
      top->eval();
      const bool valid = top->s_axil_rvalid_o;
      const uint32_t value = top->s_axil_rdata_o;
      rise();
      if (valid) return value;
    }
  }

  // A table access. Returns its error; `value` gets the low 64 bits.
  unsigned table(unsigned id, unsigned index, unsigned command, uint64_t& value) {
    write(TableId, id);
    write(TableIndex, index);
    write(TableCommand, command);
    uint32_t status = 1;
    while (status & 1) status = read(TableStatus);
    value = read(TableData) | uint64_t{read(TableData + 4)} << 32;
    return status >> 1;
  }

  // Writes a row of up to 64 bits.
  void write_row(unsigned id, unsigned index, uint64_t data) {
    write(TableId, id);
    write(TableIndex, index);
    write(TableData, data);
    write(TableData + 4, data >> 32);
    write(TableCommand, 2);
    uint32_t status = 1;
    while (status & 1) status = read(TableStatus);
    if (status != 0) tests_.wrong("table %u index %u: error %u", id, index, status >> 1);
  }

  // Writes the runs of attached networks.
  void attach() {
    unsigned start = 0;
    for (unsigned p = 0; p < 4; ++p) {
      for (unsigned i = 0; i < attached(p); ++i) write_row(TableAttach, start + i, 1 | network_at(p, i) << 1 | i << 9);
      write_row(TableAttachHead, p, start | attached(p) << 16);
      start += attached(p);
    }
  }

  void expect_counters(const Expectation& wanted) {
    for (unsigned p = 0; p < Ports; ++p) {
      for (unsigned k = 0; k < 7; ++k) {
        uint64_t value = 0;
        const unsigned error = table(TablePort, 8 * p + k, 1, value);
        if (error != 0 || value != wanted.counters[p][k])
          tests_.wrong("port %u counter %u is %llu (error %u), expected %llu", p, k, (unsigned long long)value, error,
                       (unsigned long long)wanted.counters[p][k]);
      }
    }
  }

  Expectation* wanted = nullptr;
  uint64_t first_out_ = 0, last_out_ = 0, out_ = 0;
  // Frames that left, by port and in order, for tests of shares.
  std::array<std::vector<Bytes>, Ports> got;
  bool keep = false;
  bool ordered = true;
  bool loose = false;  // frames may be missing, lost in full queues

 private:
  void tick() {
    top->eval();
    rise();
  }
  void rise() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
    ++cycle;
  }

  void drive(unsigned p) {
    const Frame& frame = queues_[p].front();
    const size_t beats = beats_of(frame.bytes.size());
    for (unsigned b = 0; b < Width; ++b) {
      const size_t at = beat_[p] * Width + b;
      bench::set_bits(top->s_tdata_i, 8 * (p * Width + b), 8, at < frame.bytes.size() ? frame.bytes[at] : 0xee);
      bench::set_bits(top->s_tkeep_i, p * Width + b, 1, at < frame.bytes.size());
    }
    bench::set_bits(top->s_tlast_i, p, 1, beat_[p] + 1 == beats);
    // Time and tag are sampled with the first beat only.
    bench::set_bits(top->s_ttag_i, 32 * p, 32, beat_[p] == 0 ? frame.tag : 0xdeadbeef);
    bench::set_bits(top->s_ttime_i, 64 * p, 64, cycle);
  }

  void take(unsigned p) {
    quiet_ = 0;
    bool ended = false;
    for (unsigned b = 0; b < Width; ++b) {
      const bool kept = bench::bits(top->m_tkeep_o, p * Width + b, 1);
      if (kept && ended) tests_.wrong("port %u: kept bytes are not contiguous", p);
      ended |= !kept;
      if (kept) coming_[p].push_back(bench::bits(top->m_tdata_o, 8 * (p * Width + b), 8));
    }
    // The tag is valid with the first beat.
    if (coming_[p].size() <= Width) coming_tag_[p] = bench::bits(top->m_ttag_o, 32 * p, 32);
    const uint32_t tag = coming_tag_[p];
    const bool last = top->m_tlast_o >> p & 1;
    if (!last && ended) tests_.wrong("port %u: a beat that is not full is not the last", p);
    if (!last) return;
    if (first_out_ == 0) first_out_ = cycle;
    last_out_ = cycle;
    ++out_;
    if (keep) got[p].push_back(coming_[p]);
    if (wanted != nullptr && p >= 4 && coming_[p].size() > 7 && (coming_[p][7] & 2)) {
      auto& notes = wanted->notes[p];
      const auto note = std::find(notes.begin(), notes.end(), coming_[p]);
      if (note == notes.end()) tests_.wrong("port %u: a note of %zu bytes was not expected", p, coming_[p].size());
      else notes.erase(note);
      if (tag != 0) tests_.wrong("port %u: a note has tag %u", p, tag);
    } else if (wanted != nullptr) {
      auto found = wanted->leaving[p].find(tag);
      if (found == wanted->leaving[p].end()) {
        tests_.wrong("port %u: frame %u of %zu bytes was not expected", p, tag, coming_[p].size());
      } else {
        const Leaving want = found->second.front();
        if (want.bytes != coming_[p])
          tests_.wrong("port %u: frame %u: %zu bytes differ from the %zu expected", p, tag, coming_[p].size(),
                       want.bytes.size());
        found->second.erase(found->second.begin());
        // Frames from one port to another, of one network, stay in order: tags rise. (Copies of a group frame for several networks
        // that flood to one port cannot be told apart.)
        if (ordered && !loose && !(Floods && want.group)) {
          for (const auto& [earlier, list] : wanted->leaving[p]) {
            if (earlier >= tag) break;
            if (!list.empty() && list.front().port == want.port && list.front().group == want.group &&
                list.front().net == want.net) {
              tests_.wrong("port %u: frame %u came before %u", p, tag, earlier);
              break;
            }
          }
        }
        if (found->second.empty()) wanted->leaving[p].erase(found);
      }
    }
    coming_[p].clear();
  }

  bench::Tests& tests_;
  bench::Random& random_;
  std::array<std::deque<Frame>, Ports> queues_;
  std::array<bool, Ports> offered_{};
  std::array<size_t, Ports> beat_{};
  std::array<Bytes, Ports> coming_;
  std::array<uint32_t, Ports> coming_tag_{};
  unsigned quiet_ = 0;
};

Frame random_frame(bench::Random& random, uint32_t tag, unsigned port, unsigned net) {
  const unsigned sort = random.below(100);
  unsigned len = sort < 4    ? random.below(16)
                 : sort < 60 ? random.between(14, 140)
                 : sort < 97 ? random.between(60, 1600)
                 : sort < 98 ? random.between(9000, 9216)
                             : random.between(9210, 9800);
  if (random.percent(10)) len = Width * random.between(1, 5);
  Frame frame;
  frame.tag = tag;
  frame.bytes.resize(len);
  for (auto& byte : frame.bytes) byte = random.byte();
  auto set = [&](unsigned at, unsigned value) {
    if (at < frame.bytes.size()) frame.bytes[at] = value;
  };
  unsigned base = 0;
  if (port >= 4) {
    base = 16;
    // A frame from a software plane leaves by the port in the header.
    if (frame.bytes.size() > 7) frame.bytes[7] = random.percent(50) ? 1 : 0;
    set(2, net);
  }
  set(base + 0, (random.byte() & 0xfe) | random.percent(15));
  const unsigned verdicts[] = {0, 1, 1, 1, 1, 2, 2, 3};
  set(base + 1, verdicts[random.below(8)] | (Floods && random.percent(25) ? 4 : 0) | (Floods && random.percent(20) ? 8 : 0));
  set(base + 3, net);
  return frame;
}

// A frame of `len` bytes, of network `net`, that leaves unchanged by port `out`.
Frame plain(uint32_t tag, unsigned len, unsigned out, unsigned net) {
  Frame frame;
  frame.tag = tag;
  frame.bytes.assign(len, 0);
  for (unsigned i = 6; i < len; ++i) frame.bytes[i] = tag + i;
  frame.bytes[1] = 1;
  frame.bytes[2] = out;
  frame.bytes[3] = net;
  return frame;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string width = std::to_string(8 * Width) + " bit";
  Bench bench(tests, random);

  const Rates mixes[] = {{0, 0}, {40, 0}, {0, 40}, {60, 60}, {0, 10, 2}};
  for (const auto& rates : mixes) {
    tests.begin("path " + width + ", held back: idle " + std::to_string(rates.idle) + " %, back-pressure " +
                std::to_string(rates.stall) + " %" + (rates.slow_port < Ports ? ", one slow port" : ""));
    bench.reset();
    bench.write(Tcontrol, 1);
    bench.attach();
    Expectation wanted;
    for (uint32_t i = 0; i < 1500; ++i) {
      const unsigned port = random.below(Ports);
      const Frame frame = random_frame(random, i, port, port);
      model(wanted, port, frame);
      bench.send(port, frame);
    }
    const Expectation counted = wanted;
    bench.wanted = &wanted;
    bench.run(rates);
    bench.expect_all(wanted);
    bench.expect_counters(counted);
    if (bench.read(Accepted) != counted.frames || bench.read(Retired) != counted.frames)
      tests.wrong("accepted %u, retired %u of %llu frames", bench.read(Accepted), bench.read(Retired),
                  (unsigned long long)counted.frames);
    bench.wanted = nullptr;
    tests.end();
  }

  tests.begin("path " + width + ", 64-byte frames at full rate");
  {
    bench.reset();
    bench.write(Tcontrol, 1);
    Expectation wanted;
    const unsigned count = 3000;
    uint32_t tag = 0;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned port = i % 4;
      const Frame frame = plain(tag++, 64, (port + 1) % 4, port);
      model(wanted, port, frame);
      bench.send(port, frame);
    }
    bench.wanted = &wanted;
    bench.run({0, 0});
    bench.expect_all(wanted);
    const uint64_t clocks = bench.last_out_ - bench.first_out_, ideal = uint64_t{count} * (64 / Width);
    std::printf("  %u frames of 64 bytes left within %llu clocks\n", count, (unsigned long long)clocks);
    if (clocks > ideal + 40) tests.wrong("%llu clocks, expected %llu", (unsigned long long)clocks,
                                          (unsigned long long)ideal);
    bench.wanted = nullptr;
  }
  tests.end();

  tests.begin("path " + width + ", 64-byte frames at full rate to one port");
  {
    bench.reset();
    bench.write(Tcontrol, 1);
    Expectation wanted;
    const unsigned count = 2000;
    for (uint32_t i = 0; i < count; ++i) {
      const Frame frame = plain(i, 64, 2, i % 2);
      model(wanted, i % 2, frame);
      bench.send(i % 2, frame);
    }
    bench.wanted = &wanted;
    bench.run({0, 0});
    bench.expect_all(wanted);
    // A port begins at most one frame every second clock. The turns of its two networks are 2,048 bytes; each turn costs 3 clocks.
    const uint64_t clocks = bench.last_out_ - bench.first_out_, ideal = uint64_t{count} * std::max(64 / Width, 2u) + 3 * (count / 32);
    std::printf("  %u frames of 64 bytes left within %llu clocks\n", count, (unsigned long long)clocks);
    if (clocks > ideal + 40)
      tests.wrong("%llu clocks, expected %llu", (unsigned long long)clocks, (unsigned long long)ideal);
    bench.wanted = nullptr;
  }
  tests.end();

  tests.begin("path " + width + ", full queues drop and count");
  {
    bench.reset();
    bench.write(Tcontrol, 0);
    Expectation wanted;
    // Port 5 takes very little: its queue overflows, and no other queue.
    const unsigned count = 800, nets = 3;
    uint64_t to_slow = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const unsigned port = i % 2, out = random.percent(50) ? 5 : 1;
      const Frame frame = plain(i, random.between(60, 600), out, random.below(nets));
      to_slow += out == 5;
      model(wanted, port, frame);
      bench.send(port, frame);
    }
    const Expectation counted = wanted;
    bench.wanted = &wanted;
    bench.loose = true;
    bench.run({70, 0, 5});
    bench.loose = false;
    bench.wanted = nullptr;
    uint64_t lost = 0, sent = 0, dropped = 0, by_net = 0, value = 0, rx = 0, rx_lost = 0;
    for (const auto& [tag, list] : wanted.leaving[5]) lost += list.size();
    if (!wanted.leaving[1].empty()) tests.wrong("frames for a port with room were lost");
    bench.table(TablePort, 8 * 5 + 3, 1, sent);
    bench.table(TablePort, 8 * 5 + 5, 1, dropped);
    for (unsigned net = 0; net < 256; ++net) {
      bench.table(TableOutDrops, 256 * 5 + net, 3, value);
      by_net += value;
      bench.table(TableOutDrops, 256 * 5 + net, 1, value);
      if (value != 0) tests.wrong("a counter that was cleared is %llu", (unsigned long long)value);
    }
    for (unsigned p = 0; p < 2; ++p) {
      bench.table(TablePort, 8 * p, 1, value);
      rx += value;
      bench.table(TablePort, 8 * p + 2, 1, value);
      rx_lost += value;
    }
    if (rx + rx_lost != count || rx_lost != 0) tests.wrong("received %llu, lost %llu of %u", (unsigned long long)rx,
                                                           (unsigned long long)rx_lost, count);
    if (lost == 0 || lost != dropped || lost != by_net || sent + lost != to_slow)
      tests.wrong("lost %llu, counted %llu, by network %llu, sent %llu of %llu", (unsigned long long)lost,
                  (unsigned long long)dropped, (unsigned long long)by_net, (unsigned long long)sent,
                  (unsigned long long)to_slow);
    (void)counted;
  }
  tests.end();

  tests.begin("path " + width + ", networks above their share divide a port by bytes, one below its share loses nothing");
  {
    bench.reset();
    bench.write(Tcontrol, 0);
    bench.keep = true;
    for (auto& got : bench.got) got.clear();
    // Networks 1 and 2 send as much as they can, in frames of 64 and 300 bytes; network 3 sends little. Port 0 takes a fifth.
    uint32_t tag = 0;
    uint64_t light = 0;
    size_t from = 0;
    for (unsigned clock = 0; clock < 80000; ++clock) {
      if (bench.hungry(1)) bench.send(1, plain(tag++, 64, 0, 1));
      if (bench.hungry(2)) bench.send(2, plain(tag++, 300, 0, 2));
      if (clock % 700 == 0) bench.send(3, plain(tag++, 200, 0, 3)), ++light;
      bench.clock({0, 0, 0, 80});
      if (clock == 30000) from = bench.got[0].size();
    }
    const size_t to = bench.got[0].size();
    bench.run({0, 0});
    bench.keep = false;
    uint64_t bytes[4] = {}, light_out = 0, drops[4] = {};
    for (size_t i = 0; i < bench.got[0].size(); ++i) {
      const unsigned net = bench.got[0][i][3];
      if (i >= from && i < to) bytes[net] += bench.got[0][i].size();
      light_out += net == 3;
    }
    for (unsigned net = 1; net < 4; ++net) bench.table(TableOutDrops, net, 1, drops[net]);
    const double ratio = double(bytes[1]) / double(bytes[2]);
    std::printf("  bytes of networks 1, 2, 3: %llu, %llu, %llu; frames lost: %llu, %llu, %llu\n",
                (unsigned long long)bytes[1], (unsigned long long)bytes[2], (unsigned long long)bytes[3],
                (unsigned long long)drops[1], (unsigned long long)drops[2], (unsigned long long)drops[3]);
    // Within a quantum and two frames, in either direction.
    const double slack = 2 * (2048 + 2 * 300) / double(bytes[2]);
    if (ratio < 1 - slack || ratio > 1 + slack) tests.wrong("bytes 1 : 2 are %.3f, allowed 1 +- %.3f", ratio, slack);
    if (drops[1] == 0 || drops[2] == 0) tests.wrong("the test is too weak: nothing was lost");
    if (drops[3] != 0 || light_out != light)
      tests.wrong("network 3 lost %llu, %llu of %llu came", (unsigned long long)drops[3], (unsigned long long)light_out,
                  (unsigned long long)light);
  }
  tests.end();

  tests.begin("path " + width + ", a burst beyond an input queue drops and counts");
  {
    bench.reset();
    bench.write(Tcontrol, 0);
    Expectation wanted;
    const unsigned count = 100;
    // Seven ports at full rate offer seven times the rate of the path.
    for (uint32_t i = 0; i < 7 * count; ++i) {
      const Frame frame = i % 7 < 4 ? plain(i, 1000, 0, 1) : Frame{Bytes(1016, 0), i};
      model(wanted, i % 7, frame);
      bench.send(i % 7, frame);
    }
    bench.wanted = &wanted;
    bench.loose = true;
    bench.run({0, 0});
    bench.loose = false;
    bench.wanted = nullptr;
    uint64_t taken = 0, lost = 0, sent = 0, dropped = 0, value = 0;
    for (unsigned p = 0; p < 7; ++p) {
      bench.table(TablePort, 8 * p, 1, value);
      taken += value;
      bench.table(TablePort, 8 * p + 2, 1, value);
      lost += value;
    }
    bench.table(TablePort, 3, 1, sent);
    bench.table(TablePort, 5, 1, dropped);
    if (taken + lost != 7 * count || lost == 0)
      tests.wrong("taken %llu, lost %llu of %u", (unsigned long long)taken, (unsigned long long)lost, 7 * count);
    if (bench.read(Retired) != taken) tests.wrong("retired %u of %llu", bench.read(Retired), (unsigned long long)taken);
    size_t missing = 0;
    for (const auto& [tag, list] : wanted.leaving[0]) missing += list.size();
    if (sent + missing != 4 * count) tests.wrong("sent %llu, missing %zu of %u", (unsigned long long)sent, missing, 4 * count);
  }
  tests.end();

  tests.begin("path " + width + ", invalid table accesses");
  {
    bench.reset();
    uint64_t value = 0;
    const unsigned cases[][4] = {{TablePort, 64, 1, 2}, {TableOutDrops, 2048, 1, 2}, {TablePort, 0, 2, 3},
                                 {TableOutDrops, 0, 2, 3}, {99, 0, 1, 1}, {TablePort, 63, 3, 0}};
    for (const auto& c : cases) {
      const unsigned error = bench.table(c[0], c[1], c[2], value);
      if (error != c[3]) tests.wrong("table %u index %u command %u: error %u, expected %u", c[0], c[1], c[2], error, c[3]);
    }
  }
  tests.end();

  top->final();
  top.reset();
  return tests.result();
}
