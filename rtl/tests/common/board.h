// Shared by the benches of the shells' adapters: two clocks, a register bus, streams with length, source and destination as side
// fields, tables written over the bus, and a model of the card for whole frames.
//
// A bench provides a `Shell`: its streams (MAC ports first), how to transfer a beat and to access a register, and the shell's codes
// for the card's ports.
#ifndef HUE_BOARD_H
#define HUE_BOARD_H

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "bench.h"

namespace board {

using bench::Bytes;

constexpr unsigned Width = 64;  // bytes in a beat
constexpr unsigned MacPorts = 4;
constexpr unsigned MacBytesMin = 60;
constexpr unsigned Nets = 8;
constexpr unsigned Metered = 8;  // one more network, with a rate limit
constexpr unsigned HeaderBytes = 16;

// Registers and tables: docs/reference/card.md.
enum Register : unsigned {
  Ident = 0x000, Bus = 0x00c, Scratch = 0x080, Control = 0x084, TableId = 0x100, TableIndex = 0x104, TableCommand = 0x108,
  TableStatus = 0x10c, TableData = 0x120
};
enum Table : unsigned { Select = 1, Network = 4, Meter = 5, Hop = 7, Level0 = 8, Port = 14, Unclaimed = 15 };
constexpr unsigned KindIpv4 = 1;
// Codes of spec/kinds.toml.
enum Outcome : unsigned { Arp = 3, Local = 10, Ttl = 14 };
enum Command : unsigned { Read = 1, Write = 2 };

struct Beat {
  Bytes bytes;  // the valid bytes
  bool first = false, last = false;
  unsigned size = 0, source = 0, destination = 0;
};

struct Frame {
  Bytes bytes;
  unsigned stream = 0;  // number of the shell's stream
  unsigned port = 0;    // number of the card's port
  unsigned source = 0;
};

struct Leaving {
  Bytes bytes;
  unsigned source, destination;
};

// A row of a table, built from its lowest field up.
class Row {
 public:
  Row& put(unsigned width, uint64_t value) {
    for (unsigned i = 0; i < width; ++i, ++at_) words_[at_ / 32] |= static_cast<uint32_t>(value >> i & 1) << at_ % 32;
    return *this;
  }
  const std::array<uint32_t, 8>& words() const { return words_; }

 private:
  std::array<uint32_t, 8> words_{};
  unsigned at_ = 0;
};

inline uint64_t mac_of(unsigned net, unsigned kind) { return 0x020000000000 | kind << 8 | net; }

inline void put(Bytes& f, size_t at, unsigned width, uint64_t value) {
  for (unsigned i = 0; i < width; ++i) f.at(at + i) = value >> 8 * (width - 1 - i);
}
inline unsigned be16(const Bytes& f, size_t at) { return f[at] << 8 | f[at + 1]; }

inline void fix_sum(Bytes& f) {
  put(f, 24, 2, 0);
  uint32_t sum = 0;
  for (unsigned i = 14; i < 34; i += 2) sum += be16(f, i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  put(f, 24, 2, ~sum & 0xffff);
}

// The networks' routes: in each network, packets to addresses below 128.0.0.0 go to its first next hop, to those below 192.0.0.0 to
// its second, and all others are for the router itself.
struct Tables {
  unsigned macs;  // MAC ports of the shell
  unsigned port_of(unsigned net, unsigned hop) const { return (net + hop) % macs; }
};

struct Rates {
  unsigned idle, stall;
};

template <typename Shell>
class Bench {
 public:
  Bench(Shell& shell, bench::Tests& tests, bench::Random& random) : shell_(shell), tests_(tests), random_(random) {}

  // Periods in picoseconds; the first edges are `phase_ps` apart.
  void clocks(uint64_t axis_ps, uint64_t axil_ps, uint64_t phase_ps) {
    axis_ps_ = axis_ps;
    axil_ps_ = axil_ps;
    next_axis_ = now_ + axis_ps;
    next_axil_ = now_ + axis_ps + phase_ps;
  }

  void reset() {
    for (auto& queue : queues_) queue.clear();
    for (auto& wanted : wanted_) wanted.clear();
    offered_.fill(false);
    beat_.fill(0);
    for (auto& coming : coming_) coming.clear();
    access_.state = Access::Idle;
    rates_ = {0, 0};
    shell_.begin_reset();
    for (unsigned i = 0; i < 40; ++i) step();
    shell_.end_reset();
    for (unsigned i = 0; !shell_.ready(); ++i) {
      if (i == 10000) {
        tests_.wrong("the reset does not end");
        return;
      }
      step();
    }
    // The card takes no frame until its counters are cleared.
    for (unsigned i = 0; i < 2000; ++i) step();
  }

  void set(const Rates& rates) { rates_ = rates; }

  // ---- registers

  uint32_t read(unsigned address, unsigned* response = nullptr) { return access(false, address, 0, response); }
  unsigned write(unsigned address, uint32_t value) {
    unsigned response = 0;
    access(true, address, value, &response);
    return response;
  }
  unsigned command(unsigned table, unsigned index, unsigned what) {
    write(TableId, table);
    write(TableIndex, index);
    write(TableCommand, what);
    uint32_t status = 1;
    for (unsigned i = 0; status & 1; ++i) {
      if (i == 100) tests_.wrong("table %u does not answer", table);
      if (i == 100) return 4;
      status = read(TableStatus);
    }
    return status >> 1;
  }
  void row(unsigned table, unsigned index, const Row& row) {
    for (unsigned i = 0; i < 8; ++i) write(TableData + 4 * i, row.words()[i]);
    const unsigned error = command(table, index, Write);
    if (error != 0) tests_.wrong("table %u row %u: error %u", table, index, error);
  }
  uint64_t counter(unsigned table, unsigned index) {
    const unsigned error = command(table, index, Read);
    if (error != 0) tests_.wrong("table %u counter %u: error %u", table, index, error);
    const uint64_t low = read(TableData);
    return low | uint64_t{read(TableData + 4)} << 32;
  }

  void load(const Tables& tables) {
    for (unsigned n = 0; n <= Metered; ++n) {
      // A list of three runs: its header, then half-word items, each word with its parity (crates/tables/src/dag36/words.rs).
      row(Level0, 4 * n, Row().put(8, 128).put(8, 192).put(19, 0).put(1, 1));
      row(Level0, 4 * n + 1, Row().put(16, 0).put(16, 1).put(3, 0).put(1, 1));
      row(Level0, 4 * n + 2, Row().put(16, 2).put(19, 0).put(1, 1));
      for (unsigned hop = 0; hop < 2; ++hop) {
        row(Hop, 4 * n + hop, Row().put(2, 3).put(3, tables.port_of(n, hop)).put(16, 9000)
                                   .put(48, mac_of(n, 0x80 + hop)).put(48, mac_of(n, 0x40 + hop)));
      }
      row(Hop, 4 * n + 2, Row().put(2, 1));
      const uint64_t root = uint64_t{1} << 34 | uint64_t{1} << 30 | 4 * n;
      row(Network, n, Row().put(1, 1).put(12, 0x100 + n).put(4, n % 4).put(36, root).put(16, 4 * n).put(16, 3)
                          .put(3, 0).put(5, KindIpv4));
      row(Select, n, Row().put(1, 1).put(4, 0).put(1, 1).put(48, mac_of(n, 0)).put(32, 0).put(32, 0).put(1, 0).put(1, 0).put(8, n)
                              .put(8, 0x20 + n));
    }
    // One packet a microsecond, with a burst of one.
    row(Meter, Metered, Row().put(1, 1).put(40, 1000000).put(40, 1));
  }

  // ---- frames

  void send(const Frame& frame) { queues_.at(frame.stream).push_back(frame); }
  bool hungry(unsigned stream) const { return queues_.at(stream).size() < 4; }
  void expect(unsigned stream, const Leaving& leaving) {
    wanted_.at(stream)[number_of(leaving.bytes, stream)].push_back(leaving);
  }
  uint64_t now_ns() const { return now_ / 1000; }
  bool loose = false;  // frames may be missing, because they are dropped on purpose

  // The number behind the IPv4 header identifies a frame.
  static unsigned number_of(const Bytes& f, unsigned stream) {
    const size_t at = stream < Shell::Macs ? 0 : HeaderBytes;
    return f.size() < at + 38 ? ~0u : be16(f, at + 34) << 16 | be16(f, at + 36);
  }

  // Runs until every frame sent has come out or been dropped.
  void run(const Rates& rates) {
    rates_ = rates;
    for (quiet_ = 0; quiet_ < 4000;) step();
    rates_ = {0, 0};
  }

  void expect_nothing_more() {
    for (unsigned s = 0; s < Shell::Streams; ++s) {
      if (!queues_[s].empty()) tests_.wrong("stream %u: %zu frames were not taken", s, queues_[s].size());
      if (!wanted_[s].empty())
        tests_.wrong("stream %u: %zu frames are missing, the first is %u", s, wanted_[s].size(), wanted_[s].begin()->first);
    }
  }

  void step() {
    now_ = next_axis_ < next_axil_ ? next_axis_ : next_axil_;
    const bool axis = now_ == next_axis_, axil = now_ == next_axil_;
    if (axis) drive_streams();
    if (axil) drive_access();
    shell_.eval();
    if (axis) sample_streams();
    if (axil) sample_access();
    shell_.edge(axis, axil);
    if (axis) next_axis_ += axis_ps_;
    if (axil) next_axil_ += axil_ps_;
  }

 private:
  struct Access {
    enum { Idle, Asking, Waiting } state = Idle;
    bool write = false;
    unsigned address = 0, response = 0;
    uint32_t data = 0;
  };

  uint32_t access(bool write, unsigned address, uint32_t data, unsigned* response) {
    access_ = {Access::Asking, write, address, 0, data};
    for (unsigned i = 0; access_.state != Access::Idle; ++i) {
      if (i == 4000) {
        tests_.wrong("no answer at %x", address);
        access_.state = Access::Idle;
        return 0;
      }
      step();
    }
    if (response != nullptr) *response = access_.response;
    return access_.data;
  }

  void drive_access() {
    shell_.ask(access_.state == Access::Asking, access_.write, access_.address, access_.data);
    answer_ready_ = access_.state == Access::Waiting && random_.percent(60);
    shell_.take_answer(access_.write, answer_ready_);
  }
  void sample_access() {
    if (access_.state == Access::Asking && shell_.asked(access_.write)) {
      access_.state = Access::Waiting;
    } else if (answer_ready_ && shell_.answered(access_.write)) {
      access_.response = shell_.response(access_.write);
      if (!access_.write) access_.data = shell_.data();
      access_.state = Access::Idle;
    }
  }

  void drive_streams() {
    for (unsigned s = 0; s < Shell::Streams; ++s) {
      if (!offered_[s] && !queues_[s].empty() && !random_.percent(rates_.idle)) {
        offered_[s] = true;
        const Frame& frame = queues_[s].front();
        const size_t from = beat_[s] * Width, to = std::min(from + Width, frame.bytes.size());
        Beat beat;
        beat.bytes.assign(frame.bytes.begin() + from, frame.bytes.begin() + to);
        beat.first = from == 0;
        beat.last = to == frame.bytes.size();
        beat.size = frame.bytes.size();
        beat.source = frame.source;
        shell_.drive(s, beat);
      }
      shell_.offer(s, offered_[s]);
      shell_.take(s, !random_.percent(rates_.stall));
    }
  }
  void sample_streams() {
    ++quiet_;
    for (unsigned s = 0; s < Shell::Streams; ++s) {
      if (offered_[s] && shell_.taken(s)) {
        offered_[s] = false;
        if (++beat_[s] * Width >= queues_[s].front().bytes.size()) {
          beat_[s] = 0;
          queues_[s].pop_front();
        }
        quiet_ = 0;
      }
      if (shell_.given(s)) take(s, shell_.beat(s));
    }
  }

  void take(unsigned s, const Beat& beat) {
    quiet_ = 0;
    Bytes& coming = coming_[s];
    if (!coming.empty() && (beat.size != first_[s].size || beat.source != first_[s].source ||
                            beat.destination != first_[s].destination))
      tests_.wrong("stream %u: a side field changed inside a frame", s);
    if (coming.empty()) first_[s] = beat;
    if (!beat.last && beat.bytes.size() != Width) tests_.wrong("stream %u: a beat that is not full is not the last", s);
    coming.insert(coming.end(), beat.bytes.begin(), beat.bytes.end());
    if (!beat.last) return;
    if (beat.size != coming.size()) tests_.wrong("stream %u: a frame of %zu bytes has length %u", s, coming.size(), beat.size);
    const unsigned number = number_of(coming, s);
    auto found = wanted_[s].find(number);
    if (found == wanted_[s].end()) {
      tests_.wrong("stream %u: frame %u of %zu bytes was not expected", s, number, coming.size());
    } else {
      const Leaving want = found->second.front();
      if (want.bytes != coming)
        tests_.wrong("stream %u: frame %u: %zu bytes differ from the %zu expected", s, number, coming.size(),
                     want.bytes.size());
      if (want.source != beat.source || want.destination != beat.destination)
        tests_.wrong("stream %u: frame %u is from %x to %x, expected from %x to %x", s, number, beat.source,
                     beat.destination, want.source, want.destination);
      // Frames from one source stay in order.
      for (auto before = wanted_[s].begin(); !loose && before != found; ++before) {
        if (before->second.front().source == want.source && same_net(before->second.front().bytes, want.bytes, s)) {
          tests_.wrong("stream %u: frame %u came before %u", s, number, before->first);
          break;
        }
      }
      found->second.pop_front();
      if (found->second.empty()) wanted_[s].erase(found);
    }
    coming.clear();
  }
  // The network of a frame: in the last byte of the source MAC that the card writes, or in the CPU header.
  static bool same_net(const Bytes& a, const Bytes& b, unsigned s) {
    return s < Shell::Macs ? a[11] == b[11] : a[2] == b[2];
  }

  Shell& shell_;
  bench::Tests& tests_;
  bench::Random& random_;
  uint64_t now_ = 0, axis_ps_ = 4000, axil_ps_ = 8000, next_axis_ = 4000, next_axil_ = 4000;
  Rates rates_{0, 0};
  std::array<std::deque<Frame>, Shell::Streams> queues_;
  std::array<bool, Shell::Streams> offered_{};
  std::array<size_t, Shell::Streams> beat_{};
  std::array<Bytes, Shell::Streams> coming_;
  std::array<Beat, Shell::Streams> first_;
  std::array<std::map<unsigned, std::deque<Leaving>>, Shell::Streams> wanted_;
  Access access_;
  bool answer_ready_ = false;
  unsigned quiet_ = 0;
};

// ---- frames and expected results

// An IPv4 packet for network `net`, of `len` bytes, which contains its number.
inline Bytes packet(bench::Random& random, uint32_t number, unsigned net, unsigned len) {
  Bytes f(len);
  for (auto& byte : f) byte = random.byte();
  put(f, 0, 6, mac_of(net, 0));
  put(f, 6, 6, mac_of(net, 0x99));
  put(f, 12, 2, 0x0800);
  f[14] = 0x45;
  put(f, 16, 2, random.percent(80) ? len - 14 : random.between(24, len - 14));
  put(f, 20, 2, 0);
  f[22] = random.percent(90) ? random.between(2, 255) : random.below(2);
  f[23] = 17;
  f[26] = 10;
  f[30] = random.percent(80) ? random.between(1, 191) : random.between(192, 223);
  if (f[30] == 127) f[30] = 126;
  put(f, 34, 4, number);
  fix_sum(f);
  return f;
}

inline unsigned random_length(bench::Random& random) {
  const unsigned sort = random.below(100);
  if (sort < 10) return random.between(38, 60);
  if (sort < 20) return Width * random.between(1, 4) + random.below(3) - 1;
  return sort < 60 ? random.between(60, 200) : sort < 98 ? random.between(60, 1518) : random.between(1500, 9000);
}

inline Bytes padded(Bytes bytes) {
  if (bytes.size() < MacBytesMin) bytes.resize(MacBytesMin, 0);
  return bytes;
}

// Sends random frames of all sorts into all streams, and records the expected results.
template <typename Shell>
void mixture(Bench<Shell>& bench, bench::Random& random, const Tables& tables, unsigned count) {
  for (uint32_t number = 0; number < count; ++number) {
    const auto place = Shell::places()[random.below(Shell::places().size())];
    const unsigned net = random.below(Nets);
    Bytes f = packet(random, number, net, random_length(random));
    Frame frame{f, place.stream, place.port, place.source};
    const unsigned queue = MacPorts + net % 4;
    if (place.port >= MacPorts) {
      // A software plane sends it: it leaves unchanged by the port in its header.
      const unsigned out = random.below(tables.macs);
      const unsigned len = f.size();
      const Bytes header = {1, uint8_t(net), uint8_t(net), 0, 0, 0, uint8_t(out), 1, uint8_t(len >> 8), uint8_t(len),
                            0, 0, 0, 0, 0, 0};
      frame.bytes.insert(frame.bytes.begin(), header.begin(), header.end());
      bench.expect(Shell::stream_of(out), {padded(f), place.source, Shell::code_of(out)});
    } else {
      unsigned outcome = 0;
      if (random.percent(5)) {
        put(f, 12, 2, 0x0806);
        outcome = Arp;
      } else if (f[30] >= 192) {
        outcome = Local;
      } else if (f[22] < 2) {
        outcome = Ttl;
      }
      if (random.percent(3)) {
        put(f, 0, 6, 0x02ffffffffff);  // of no network
        frame.bytes = f;
        bench.send(frame);
        continue;
      }
      frame.bytes = f;
      if (outcome != 0) {
        const unsigned len = f.size();
        const Bytes header = {1, uint8_t(net), uint8_t(net), uint8_t(0x20 + net), uint8_t(outcome), uint8_t(place.port),
                              uint8_t(queue), 0, uint8_t(len >> 8), uint8_t(len), 0, 0, 0, 0, 0, 0};
        f.insert(f.begin(), header.begin(), header.end());
        bench.expect(Shell::stream_of(queue), {f, place.source, Shell::code_of(queue)});
      } else {
        const unsigned hop = f[30] >= 128;
        put(f, 0, 6, mac_of(net, 0x80 + hop));
        put(f, 6, 6, mac_of(net, 0x40 + hop));
        --f[22];
        fix_sum(f);
        const unsigned out = tables.port_of(net, hop);
        bench.expect(Shell::stream_of(out), {padded(f), place.source, Shell::code_of(out)});
      }
    }
    bench.send(frame);
  }
}

// The tests of every adapter.
template <typename Shell>
void all(Shell& shell, const std::string& name, bench::Tests& tests, bench::Random& random) {
  Bench<Shell> bench(shell, tests, random);
  const Tables tables{Shell::Macs};
  const uint64_t clocks[][3] = {{4000, 8000, 0}, {4000, 4000, 0}, {4000, 11300, 700}, {4000, 2700, 1900}};

  for (const auto& clock : clocks) {
    tests.begin(name + ", registers, clock periods of " + std::to_string(clock[1]) + " ps and " +
                std::to_string(clock[0]));
    bench.clocks(clock[0], clock[1], clock[2]);
    bench.reset();
    if (bench.read(Ident) != 0x48554543) tests.wrong("no card");
    if ((bench.read(Bus) & 0xff) != Width) tests.wrong("wrong bus width");
    for (unsigned i = 0; i < 300; ++i) {
      const uint32_t value = random.next() >> 32;
      if (bench.write(Scratch, value) != 0) tests.wrong("a write was refused");
      if (bench.read(Scratch) != value) tests.wrong("a register does not hold the written value");
      unsigned response = 0;
      if (i % 7 == 0 && (bench.read(0x7fc, &response) != 0 || response != 2))
        tests.wrong("a read of no register was answered with %u", response);
      if (i % 11 == 0 && bench.write(Ident, 0) != 2) tests.wrong("a write to a read-only register was not refused");
    }
    tests.end();
  }

  const Rates mixes[] = {{0, 0}, {50, 0}, {0, 50}, {40, 60}};
  for (const Rates& rates : mixes) {
    tests.begin(name + ", frames, idle " + std::to_string(rates.idle) + " %, back-pressure " +
                std::to_string(rates.stall) + " %");
    bench.clocks(4000, 8000, 0);
    bench.reset();
    bench.write(Control, 1);  // full queues stall their inputs
    bench.load(tables);
    mixture(bench, random, tables, 800);
    bench.run(rates);
    bench.expect_nothing_more();
    tests.end();
  }

  tests.begin(name + ", a rate limit runs on the adapter's time");
  bench.reset();
  bench.write(Control, 1);
  bench.load(tables);
  bench.loose = true;
  const unsigned out = tables.port_of(Metered, 0);
  uint64_t sent = bench.counter(Port, 8 * out + 3);
  const uint64_t from = bench.now_ns();
  // Frames of the metered network at full rate for 100 microseconds. The bench does not predict which of them pass.
  const auto place = Shell::places()[0];
  uint32_t number = 0;
  while (bench.now_ns() - from < 100000) {
    if (bench.hungry(place.stream)) {
      Bytes f = packet(random, number++, Metered, 64);
      f[22] = 9;
      f[30] = 1;
      fix_sum(f);
      bench.send({f, place.stream, place.port, place.source});
      put(f, 0, 6, mac_of(Metered, 0x80));
      put(f, 6, 6, mac_of(Metered, 0x40));
      --f[22];
      fix_sum(f);
      bench.expect(Shell::stream_of(out), {f, place.source, Shell::code_of(out)});
    }
    bench.step();
  }
  bench.run({0, 0});
  bench.loose = false;
  sent = bench.counter(Port, 8 * out + 3) - sent;
  std::printf("  %llu of %u frames passed in 100 microseconds\n", (unsigned long long)sent, number);
  if (sent < 98 || sent > 103) tests.wrong("%llu frames passed, expected 100 and some", (unsigned long long)sent);
  tests.end();
}

}  // namespace board

#endif
