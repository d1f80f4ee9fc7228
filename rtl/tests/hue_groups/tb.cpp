// Bench of hue_groups: packets of several networks, with and without stalls, while the host writes and reads both tables: sound groups and
// any other contents. The member must be that of the tables before or after a write that a packet meets. Whatever the tables contain, a
// packet takes no slot of another network.
#include <deque>
#include <memory>
#include <set>
#include <tuple>

#include "Vtop.h"
#include "stream.h"

namespace {
using hue_pkg::tbl_rsp_t;
// Rows of spec/regs.
struct row_group_t {
  static constexpr bench::Field valid{0, 1}, first{1, 16}, bits{17, 4};
};
struct row_slot_t {
  static constexpr bench::Field net{0, 8}, hop{8, 16};
};
constexpr unsigned HopRows = HUE_HOP_ROWS, SlotRows = HUE_SLOT_ROWS, Nets = 4, Latency = 7;
constexpr unsigned TableGroup = 29, TableSlot = 30, Missing = 0xffff, HashMask = 0xfff, AccessClocksMax = 60;

struct Group {
  bool valid = false;
  unsigned first = 0, bits = 0;
  bool operator<(const Group& other) const { return std::tie(valid, first, bits) < std::tie(other.valid, other.first, other.bits); }
};

struct Slot {
  unsigned net = 0, hop = 0;
};

struct Packet {
  bool asks = false;
  unsigned hop = 0, base = 0, count = 0, net = 0, hash = 0;
  std::set<Group> groups;   // that it may have met
  std::set<unsigned> right;
};

class Bench {
 public:
  Bench(bench::Tests& tests, uint64_t seed) : tests_(tests), random_(seed), top_(std::make_unique<Vtop>()), groups_(HopRows), slots_(SlotRows) {
    top_->rst_ni = 0;
    top_->en_i = 0;
    top_->clk_i = 0;
    stream::put_request(top_->tbl_req_i, false, false, false, 0, 0);
    for (int i = 0; i < 4; ++i) edge();
    top_->rst_ni = 1;
    // As the driver leaves them: every network has a part of both tables.
    for (unsigned row = 0; row < SlotRows; ++row) write_slot(row, sound_slot(row));
    for (unsigned row = 0; row < HopRows; ++row) write_group(row, sound_group(row));
  }

  // In percent: stalls, clocks without a packet, clocks in which an access begins; and whether rows may contain anything.
  void run(unsigned clocks, unsigned stalls, unsigned idle, unsigned host, bool any) {
    any_ = any;
    for (unsigned i = 0; i < clocks && !tests_.failed(); ++i) {
      // A clock without a request comes before the next one.
      if (!access_.open && gap_ && random_.percent(host)) begin(any);
      tick(stalls, random_.percent(idle));
    }
    for (unsigned i = 0; i < 60; ++i) tick(0, true);
    if (access_.open) tests_.wrong("an access was not answered");
  }
  void end() { top_->final(); }
  unsigned members = 0, plain = 0, foreign = 0, met = 0, read = 0;

 private:
  struct Access {
    bool open = false, write = false;
    unsigned table = 0, row = 0, clocks = 0;
    Group group;
    Slot slot;
  };

  void edge() {
    top_->clk_i = 1;
    top_->eval();
    top_->clk_i = 0;
    top_->eval();
  }

  unsigned net_of_slot(unsigned row) const { return row * Nets / SlotRows; }
  unsigned net_of_hop(unsigned row) const { return row * Nets / HopRows; }
  Slot sound_slot(unsigned row) { return {net_of_slot(row), random_.below(HopRows / Nets)}; }
  Group sound_group(unsigned row) {
    const unsigned net = net_of_hop(row), size = SlotRows / Nets;
    unsigned bits = random_.below(13);
    while (1u << bits > size) bits = random_.below(13);
    return {random_.percent(60), net * size + (random_.below(size) >> bits << bits), bits};
  }

  void write_slot(unsigned row, Slot slot) {
    access_ = {true, true, TableSlot, row, 0, {}, slot};
    put();
    while (access_.open && !tests_.failed()) tick(100, true);
    tick(100, true);
  }
  void write_group(unsigned row, Group group) {
    access_ = {true, true, TableGroup, row, 0, group, {}};
    put();
    while (access_.open && !tests_.failed()) tick(100, true);
    tick(100, true);
  }

  void put() {
    stream::put_request(top_->tbl_req_i, access_.open, access_.write, false, access_.table, access_.row);
    uint32_t word = 0;
    if (access_.table == TableGroup) {
      bench::set(word, row_group_t::valid, access_.group.valid);
      bench::set(word, row_group_t::first, access_.group.first);
      bench::set(word, row_group_t::bits, access_.group.bits);
    } else {
      bench::set(word, row_slot_t::net, access_.slot.net);
      bench::set(word, row_slot_t::hop, access_.slot.hop);
    }
    stream::put_word(top_->tbl_req_i, 0, word);
  }

  void begin(bool any) {
    const bool of_groups = random_.percent(50);
    access_ = {true, random_.percent(70), of_groups ? TableGroup : TableSlot, random_.below(of_groups ? HopRows : SlotRows), 0, {}, {}};
    access_.group = any ? Group{random_.percent(70), random_.below(65536), random_.below(16)} : sound_group(access_.row);
    access_.slot = any ? Slot{random_.below(Nets + 1), random_.below(65536)} : sound_slot(access_.row);
    put();
    if (!access_.write) return;
    // Packets inside may meet the row as it is or as it will be.
    std::vector<Group> groups = groups_;
    std::vector<Slot> slots = slots_;
    apply(groups, slots);
    for (auto& packet : inside_) add(packet, groups, slots);
  }

  void apply(std::vector<Group>& groups, std::vector<Slot>& slots) const {
    if (access_.table == TableGroup) groups[access_.row] = access_.group;
    else slots[access_.row] = access_.slot;
  }

  unsigned member(const Packet& p, const Group& group, const std::vector<Slot>& slots) const {
    if (!group.valid) return p.hop;
    unsigned mask = 0;
    for (unsigned i = 0; i < 12; ++i) mask |= (i < group.bits) << i;
    const Slot& slot = slots[(group.first | (p.hash & mask)) % SlotRows];
    return slot.net == p.net ? slot.hop : Missing;
  }

  void add(Packet& p, const std::vector<Group>& groups, const std::vector<Slot>& slots) {
    if (!p.asks || p.hop >= p.count || p.base + p.hop >= HopRows) {
      p.right.insert(p.hop);
      return;
    }
    p.groups.insert(groups[p.base + p.hop]);
    for (const auto& group : p.groups) p.right.insert(member(p, group, slots));
  }

  Packet packet(bool idle) {
    Packet p;
    p.asks = !idle && random_.percent(90);
    p.net = random_.below(Nets);
    p.base = p.net * HopRows / Nets;
    p.count = HopRows / Nets;
    if (any_ && random_.percent(5)) p.base = HopRows - random_.below(4);  // a run that ends behind the table
    p.hop = random_.percent(90) ? random_.below(p.count) : random_.percent(50) ? Missing : random_.below(65536);
    p.hash = random_.below(HashMask + 1);
    add(p, groups_, slots_);
    if (access_.open && access_.write) {
      std::vector<Group> groups = groups_;
      std::vector<Slot> slots = slots_;
      apply(groups, slots);
      add(p, groups, slots);
    }
    return p;
  }

  void tick(unsigned stalls, bool idle) {
    const Packet p = packet(idle);
    top_->ask_i = p.asks;
    top_->hop_i = p.hop;
    top_->hop_base_i = p.base;
    top_->hop_count_i = p.count;
    top_->net_i = p.net;
    top_->hash_i = p.hash;
    top_->en_i = !waits_ && !random_.percent(stalls);
    top_->eval();
    waits_ = top_->wait_o;
    const bool moves = top_->en_i;
    if (stream::answered(top_->tbl_rsp_o) && access_.open) answer();
    else if (access_.open && ++access_.clocks > AccessClocksMax) tests_.wrong("an access takes too long");
    gap_ = !access_.open && !bench::get(top_->tbl_req_i, hue_pkg::tbl_req_t::valid);
    edge();
    if (!access_.open) stream::put_request(top_->tbl_req_i, false, false, false, 0, 0);
    if (top_->error_o) tests_.wrong("a row with wrong parity");
    if (!moves) return;
    inside_.push_back(p);
    if (inside_.size() < Latency) return;
    const Packet& out = inside_.front();
    const unsigned found = top_->hop_o;
    if (out.asks && !out.right.count(found)) {
      tests_.wrong("net %u, next hop %u of %u + %u, hash %03x: %u", out.net, out.hop, out.base, out.count, out.hash, found);
    }
    if (out.asks) {
      met += out.right.size() > 1;
      if (found == out.hop) ++plain;
      else if (found == Missing) ++foreign;
      else ++members;
    }
    inside_.pop_front();
  }

  void answer() {
    access_.open = false;
    if (access_.write) {
      apply(groups_, slots_);
      return;
    }
    ++read;
    const uint64_t row = bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(0, 32));
    const bool fine = access_.table == TableGroup
        ? bench::get(row, row_group_t::valid) == groups_[access_.row].valid && bench::get(row, row_group_t::first) == groups_[access_.row].first &&
              bench::get(row, row_group_t::bits) == groups_[access_.row].bits
        : bench::get(row, row_slot_t::net) == slots_[access_.row].net && bench::get(row, row_slot_t::hop) == slots_[access_.row].hop;
    if (!fine) tests_.wrong("row %u of table %u reads %llx", access_.row, access_.table, (unsigned long long)row);
  }

  bench::Tests& tests_;
  bench::Random random_;
  std::unique_ptr<Vtop> top_;
  std::vector<Group> groups_;
  std::vector<Slot> slots_;
  std::deque<Packet> inside_;
  Access access_;
  bool waits_ = false, gap_ = false, any_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  Bench bench(tests, seed);
  struct Mix {
    const char* name;
    unsigned stalls, idle, host;
    bool any;
  };
  static const Mix mixes[] = {
      {"packets at full rate", 0, 0, 0, false},
      {"changes at full rate", 0, 0, 3, false},
      {"changes, stalls and gaps", 40, 30, 10, false},
      {"any rows", 20, 10, 15, true},
  };
  for (const auto& mix : mixes) {
    tests.begin(mix.name);
    bench.members = bench.plain = bench.foreign = bench.met = bench.read = 0;
    bench.run(40000, mix.stalls, mix.idle, mix.host, mix.any);
    std::printf("  %u members, %u no groups, %u slots of others, %u packets met a change, %u reads\n", bench.members, bench.plain, bench.foreign,
                bench.met, bench.read);
    if (bench.members < 1000 || bench.plain < 1000 || (mix.any ? bench.foreign < 1000 : bench.foreign != 0)) tests.wrong("not all was tried");
    if (mix.host != 0 && (bench.met < 15 || bench.read < 50)) tests.wrong("changes were not tried");
    tests.end();
  }
  bench.end();
  return tests.result();
}
