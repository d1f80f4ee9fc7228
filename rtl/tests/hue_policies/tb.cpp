// Bench of hue_policies: packets of several networks with policies of both families, a model of the walk that answers after any time, and a host
// that exchanges the policies of networks while packets are searched. The judgement of each packet is compared with a model that looks at every
// range: of the policies before an exchange, or of those after. With any rows, nothing hangs, and addresses are those of the network's rules.
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "stream.h"

namespace {
using hue_pkg::tbl_rsp_t;
using Key = std::array<uint64_t, 2>;  // upper half, lower half

// Rows of spec/regs.
struct row_policy_t {
  static constexpr bench::Field source_first{0, 16}, source_count{16, 16}, source_bits{32, 4}, destination_first{36, 16},
      destination_count{52, 16}, destination_bits{68, 4}, pair_first{72, 16}, pair_count{88, 16}, rule_first{104, 16}, rule_count{120, 16};
};
struct row_range_t {
  static constexpr bench::Field low{0, 64}, high{64, 64}, value{128, 16};
};
struct row_rule_t {
  static constexpr bench::Field low{0, 64}, high{64, 64}, both{128, 9};
};
constexpr unsigned Slots = HUE_SLOTS, RangeRows = HUE_RANGE_ROWS, PairRows = HUE_PAIR_ROWS, RuleRows = HUE_RULE_ROWS, HopRows = HUE_HOP_ROWS;
constexpr unsigned TablePolicy = 34, TableRange = 35, TablePair = 36, TableRule = 37, NoRoute = 0xffff, AccessClocksMax = 60;
// Networks that are used, each with two sets of policies, of which one is in force.
constexpr unsigned Nets = 4, Sets = 2 * Nets, HopsEach = HopRows / Nets;

struct Range {
  Key start{};
  unsigned value = 0;
};
struct Rule {
  Key via{};
  unsigned both = 0;
};
struct Policy {
  unsigned first[2]{}, count[2]{}, bits[2]{}, pair_first = 0, pair_count = 0, rule_first = 0, rule_count = 0;
};
struct Judgement {
  bool again = false;
  Key key{};
  bool operator==(const Judgement& other) const { return again == other.again && (!again || key == other.key); }
};
struct Packet {
  bool busy = false, wide = false, failed = false;
  unsigned net = 0, hop = 0, wait = 0;
  Key source{}, destination{};
  std::vector<Judgement> right;
};

unsigned bits_for(unsigned count) {
  unsigned bits = 0;
  while (1u << bits < count) ++bits;
  return bits;
}

class Bench {
 public:
  Bench(bench::Tests& tests, uint64_t seed)
      : tests_(tests), random_(seed), top_(std::make_unique<Vtop>()), ranges_(RangeRows), pairs_(PairRows), rules_(RuleRows), locals_(HopRows), packets_(Slots) {
    top_->rst_ni = 0;
    top_->clk_i = 0;
    top_->enter_i = top_->hop_write_i = 0;
    stream::put_request(top_->tbl_req_i, false, false, false, 0, 0);
    for (int i = 0; i < 4; ++i) edge();
    top_->rst_ni = 1;
  }

  // Two sets of policies for each network, in parts of the tables of their own.
  void fill(bool any) {
    any_ = any;
    for (unsigned set = 0; set < Sets; ++set) fill_set(set, any);
    for (unsigned row = 0; row < HopRows; ++row) {
      locals_[row] = random_.percent(40);
      top_->hop_write_i = 1;
      top_->hop_write_addr_i = row;
      top_->hop_write_local_i = locals_[row];
      edge();
    }
    top_->hop_write_i = 0;
    for (unsigned net = 0; net < Nets; ++net) write(TablePolicy, net, 2 * net);
  }

  // In percent: clocks without a packet, clocks in which the walk is busy, and in which an exchange or a read begins.
  void run(unsigned clocks, unsigned idle, unsigned busy, unsigned host) {
    busy_ = busy;
    for (unsigned i = 0; i < clocks && !tests_.failed(); ++i) {
      if (host_wait_ > 0) --host_wait_;
      else if (!open_ && random_.percent(host)) begin();
      tick(random_.percent(idle));
    }
    for (unsigned i = 0; i < 4000; ++i) tick(true);
    if (open_) tests_.wrong("an access was not answered");
    for (const auto& packet : packets_) if (packet.busy) tests_.wrong("a packet of network %u was not judged", packet.net);
  }
  // Clocks a packet, with packets waiting all the time.
  double rate(unsigned packets) {
    busy_ = 0;
    const unsigned before = judged;
    uint64_t clocks = 0;
    while (judged < before + packets && !tests_.failed()) tick(false), ++clocks;
    for (unsigned i = 0; i < 4000; ++i) tick(true);
    return double(clocks) / packets;
  }
  void end() { top_->final(); }
  unsigned judged = 0, again = 0, local = 0, met = 0, read = 0;

 private:
  void edge() {
    top_->clk_i = 1;
    top_->eval();
    top_->clk_i = 0;
    top_->eval();
  }

  // Addresses that often are the same, or one apart.
  Key key(bool wide) {
    static const uint64_t parts[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    uint64_t high = 0, low = 0;
    for (int i = 0; i < 4; ++i) high = high << 8 | parts[random_.below(7)];
    if (!wide) return {high << 32, 0};
    high = high << 32 | parts[random_.below(7)];
    for (int i = 0; i < 8; ++i) low = low << 8 | parts[random_.below(7)];
    return {high, low};
  }

  bool wide(unsigned net) const { return net % 2 == 1; }

  void fill_set(unsigned set, bool any) {
    const unsigned net = set / 2, ranges = RangeRows / Sets, pairs = PairRows / Sets, rules = RuleRows / Sets;
    Policy& policy = policies_[set];
    // Sources and destinations share the ranges; the values together stay within the pairs, but for any rows.
    policy.count[0] = random_.between(1, ranges / 2);
    policy.count[1] = random_.between(1, ranges / 2);
    policy.first[0] = set * ranges;
    policy.first[1] = set * ranges + policy.count[0];
    const unsigned columns = std::min(8u, pairs), rows = pairs / columns;
    for (int which = 0; which < 2; ++which) {
      policy.bits[which] = bits_for(policy.count[which]);
      std::vector<Key> starts = {Key{}};
      while (starts.size() < policy.count[which]) starts.push_back(key(wide(net)));
      std::sort(starts.begin(), starts.end());
      for (unsigned i = 0; i < policy.count[which]; ++i) {
        const unsigned row = policy.first[which] + i;
        ranges_[row] = {starts[i], which == 0 ? random_.below(rows) * columns : random_.below(columns)};
        if (any && random_.percent(40)) ranges_[row].value = random_.below(random_.percent(70) ? PairRows : 65536);
        write(TableRange, row, 0);
      }
    }
    policy.pair_first = set * pairs;
    policy.pair_count = pairs;
    policy.rule_first = set * rules;
    policy.rule_count = rules;
    for (unsigned i = 0; i < pairs; ++i) {
      pairs_[policy.pair_first + i] = random_.percent(80) ? random_.below(rules) : any ? random_.below(65536) : 0xffff;
      write(TablePair, policy.pair_first + i, 0);
    }
    for (unsigned i = 0; i < rules; ++i) {
      const unsigned most = wide(net) ? 257 : 65;
      rules_[policy.rule_first + i] = {key(wide(net)), random_.percent(10) ? 511 : random_.below(most)};
      write(TableRule, policy.rule_first + i, 0);
    }
    if (any && random_.percent(50)) policy.pair_count = random_.below(random_.percent(70) ? pairs : 65536);
    if (any && random_.percent(30)) policy.rule_count = random_.below(65536);
    if (any && random_.percent(20)) policy.pair_first = random_.below(65536);
    if (any && random_.percent(20)) policy.rule_first = random_.below(65536);
    if (any && random_.percent(20)) policy.count[1] = random_.below(65536);
  }

  // ---- the model
  unsigned value(const Policy& policy, int which, const Key& key) const {
    // As the search is defined: steps of falling powers of two, over the rows that are there. With sound rows that is the last one that begins
    // at the key or before it, which is looked for here by looking at all of them.
    if (!any_) {
      unsigned found = 0;
      for (unsigned i = 0; i < policy.count[which]; ++i) if (ranges_[policy.first[which] + i].start <= key) found = ranges_[policy.first[which] + i].value;
      return found;
    }
    const auto reached = [&](unsigned at) {
      const unsigned row = policy.first[which] + at;
      return at < policy.count[which] && row < RangeRows && ranges_[row].start <= key;
    };
    unsigned at = 0, found = reached(0) ? ranges_[policy.first[which]].value : 0;
    for (unsigned bits = policy.bits[which]; bits > 0; --bits) {
      const unsigned next = at + (1u << (bits - 1));
      if (reached(next)) at = next, found = ranges_[policy.first[which] + next].value;
    }
    return found;
  }

  Judgement judge(const Packet& packet, unsigned set) const {
    const Policy& policy = policies_[set];
    const unsigned pair = (value(policy, 0, packet.source) + value(policy, 1, packet.destination)) & 0xffff;
    if (packet.failed || pair >= policy.pair_count || policy.pair_first + pair >= PairRows) return {};
    const unsigned rule = pairs_[policy.pair_first + pair];
    if (rule >= policy.rule_count || policy.rule_first + rule >= RuleRows) return {};
    const unsigned length = packet.hop % (packet.wide ? 129 : 33);
    const Rule& found = rules_[policy.rule_first + rule];
    if (packet.hop != NoRoute) {
      const bool own = packet.hop < HopsEach && locals_[packet.net * HopsEach + packet.hop];
      if (own && length == (packet.wide ? 128 : 32)) return {};
      if (found.both <= length) return {};
    }
    return {true, found.via};
  }

  // ---- the host
  void put_wide(unsigned part, uint64_t value) {
    stream::put_word(top_->tbl_req_i, 2 * part, uint32_t(value));
    stream::put_word(top_->tbl_req_i, 2 * part + 1, uint32_t(value >> 32));
  }
  void put(unsigned table, unsigned row, unsigned set, bool write) {
    stream::put_request(top_->tbl_req_i, true, write, false, table, row);
    for (unsigned part = 0; part < 4; ++part) put_wide(part, 0);
    if (table == TablePolicy) {
      VlWide<8> words{};
      const Policy& policy = policies_[set];
      bench::set(words, row_policy_t::source_first, policy.first[0]);
      bench::set(words, row_policy_t::source_count, policy.count[0]);
      bench::set(words, row_policy_t::source_bits, policy.bits[0]);
      bench::set(words, row_policy_t::destination_first, policy.first[1]);
      bench::set(words, row_policy_t::destination_count, policy.count[1]);
      bench::set(words, row_policy_t::destination_bits, policy.bits[1]);
      bench::set(words, row_policy_t::pair_first, policy.pair_first);
      bench::set(words, row_policy_t::pair_count, policy.pair_count);
      bench::set(words, row_policy_t::rule_first, policy.rule_first);
      bench::set(words, row_policy_t::rule_count, policy.rule_count);
      for (unsigned i = 0; i < 8; ++i) stream::put_word(top_->tbl_req_i, i, words[i]);
    } else if (table == TableRange) {
      put_wide(0, ranges_[row].start[1]);
      put_wide(1, ranges_[row].start[0]);
      put_wide(2, ranges_[row].value);
    } else if (table == TablePair) {
      put_wide(0, pairs_[row]);
    } else {
      put_wide(0, rules_[row].via[1]);
      put_wide(1, rules_[row].via[0]);
      put_wide(2, rules_[row].both);
    }
    open_ = true;
    write_ = write;
    table_ = table;
    row_ = row;
    set_ = set;
    clocks_ = 0;
  }
  void write(unsigned table, unsigned row, unsigned set) {
    put(table, row, set, true);
    while (open_ && !tests_.failed()) tick(true);
    tick(true);
    tick(true);
  }
  void begin() {
    if (random_.percent(30)) {
      // What a packet searches can be read meanwhile.
      const unsigned tables[] = {TableRange, TablePair, TableRule};
      const unsigned rows[] = {RangeRows, PairRows, RuleRows};
      const unsigned which = random_.below(3);
      put(tables[which], random_.below(rows[which]), 0, false);
      return;
    }
    const unsigned net = random_.below(Nets);
    const unsigned set = active_[net] ^ 1;
    put(TablePolicy, net, set, true);
    // Packets that are inside may be judged by the old policies or the new ones.
    for (auto& packet : packets_) if (packet.busy && packet.net == net) packet.right.push_back(judge(packet, set));
  }

  void tick(bool idle) {
    unsigned slot = next_;
    const bool enters = !idle && !packets_[slot].busy;
    Packet packet;
    if (enters) {
      packet.busy = true;
      packet.net = random_.below(Nets);
      packet.wide = wide(packet.net);
      packet.source = key(packet.wide);
      packet.destination = key(packet.wide);
      packet.hop = random_.percent(15) ? NoRoute : random_.percent(95) ? random_.below(HopsEach) : random_.below(65536);
      packet.failed = random_.percent(2);
      packet.wait = random_.below(200);
      packet.right = {judge(packet, active_[packet.net])};
      if (open_ && write_ && table_ == TablePolicy && row_ == packet.net) packet.right.push_back(judge(packet, set_));
      top_->slot_i = slot;
      top_->net_i = packet.net;
      top_->wide_i = packet.wide;
      top_->hop_base_i = packet.net * HopsEach;
      top_->hop_count_i = HopsEach;
      bench::set_bits(top_->source_i, 0, 64, packet.source[1]);
      bench::set_bits(top_->source_i, 64, 64, packet.source[0]);
      bench::set_bits(top_->destination_i, 0, 64, packet.destination[1]);
      bench::set_bits(top_->destination_i, 64, 64, packet.destination[0]);
    }
    top_->enter_i = enters;
    top_->ready_i = !enters && !random_.percent(busy_);
    top_->eval();
    // What the walk knows of the slot that is asked for.
    const Packet& asked = packets_[top_->ask_slot_o];
    top_->ended_i = asked.busy && asked.wait == 0;
    top_->failed_i = asked.failed;
    top_->hop_i = top_->ended_i ? asked.hop : random_.below(65536);
    top_->eval();
    if (top_->judged_o && top_->ready_i) judgement();
    if (stream::answered(top_->tbl_rsp_o) && open_) answer();
    else if (open_ && ++clocks_ > AccessClocksMax) tests_.wrong("an access takes too long");
    edge();
    if (!open_) stream::put_request(top_->tbl_req_i, false, false, false, 0, 0);
    if (top_->error_o) tests_.wrong("a row with wrong parity");
    for (auto& other : packets_) if (other.busy && other.wait > 0) --other.wait;
    if (enters) {
      packets_[slot] = packet;
      next_ = (slot + 1) % Slots;
    } else if (!idle) {
      next_ = (slot + 1) % Slots;
    }
  }

  void judgement() {
    Packet& packet = packets_[top_->judged_slot_o];
    if (!packet.busy || packet.wait != 0) {
      tests_.wrong("slot %u is judged without an answer", unsigned(top_->judged_slot_o));
      return;
    }
    const Judgement found = {bool(top_->again_o), {bench::bits(top_->key_o, 64, 64), bench::bits(top_->key_o, 0, 64)}};
    if (std::find(packet.right.begin(), packet.right.end(), found) == packet.right.end()) {
      tests_.wrong("network %u, answer %u, source %016llx %016llx, destination %016llx %016llx: %s %016llx, expected %s %016llx", packet.net, packet.hop,
                   (unsigned long long)packet.source[0], (unsigned long long)packet.source[1], (unsigned long long)packet.destination[0],
                   (unsigned long long)packet.destination[1], found.again ? "again" : "stands", (unsigned long long)found.key[0],
                   packet.right[0].again ? "again" : "stands", (unsigned long long)packet.right[0].key[0]);
    }
    ++judged;
    again += found.again;
    met += packet.right.size() > 1 && !(packet.right[0] == packet.right.back());
    local += packet.hop < HopsEach && locals_[packet.net * HopsEach + packet.hop] && packet.hop % (packet.wide ? 129 : 33) == (packet.wide ? 128 : 32);
    packet.busy = false;
  }

  void answer() {
    open_ = false;
    host_wait_ = 4;
    if (write_) {
      if (table_ == TablePolicy) active_[row_] = set_;
      return;
    }
    ++read;
    const uint64_t low = uint64_t{uint32_t(bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(0, 32)))} |
                         uint64_t{uint32_t(bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(32, 32)))} << 32;
    const uint64_t last = bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(128, 16));
    const bool fine = table_ == TableRange ? low == ranges_[row_].start[1] && last == ranges_[row_].value
                    : table_ == TablePair  ? low == pairs_[row_]
                                           : low == rules_[row_].via[1] && last == rules_[row_].both;
    if (!fine) tests_.wrong("row %u of table %u reads %016llx", row_, table_, (unsigned long long)low);
  }

  bench::Tests& tests_;
  bench::Random random_;
  std::unique_ptr<Vtop> top_;
  std::vector<Range> ranges_;
  std::vector<unsigned> pairs_;
  std::vector<Rule> rules_;
  std::vector<bool> locals_;
  std::vector<Packet> packets_;
  Policy policies_[Sets];
  unsigned active_[Nets] = {0, 2, 4, 6};
  unsigned next_ = 0, busy_ = 0, host_wait_ = 0;
  bool any_ = false, open_ = false, write_ = false;
  unsigned table_ = 0, row_ = 0, set_ = 0, clocks_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  Bench bench(tests, seed);
  struct Mix {
    const char* name;
    unsigned idle, busy, host;
    bool any;
  };
  static const Mix mixes[] = {
      {"packets at full rate", 0, 0, 0, false},
      {"exchanges of policies at full rate", 0, 0, 2, false},
      {"exchanges, gaps, and a walk that is busy", 60, 60, 5, false},
      {"any rows", 30, 30, 5, true},
  };
  for (const auto& mix : mixes) {
    tests.begin(mix.name);
    bench.fill(mix.any);
    bench.judged = bench.again = bench.local = bench.met = bench.read = 0;
    bench.run(150000, mix.idle, mix.busy, mix.host);
    std::printf("  %u packets, %u by a policy, %u for the router itself, %u met an exchange, %u reads\n", bench.judged, bench.again, bench.local,
                bench.met, bench.read);
    if (bench.judged < 2000 || bench.again < 500 || bench.judged - bench.again < 500 || bench.local < 10) tests.wrong("not all was tried");
    if (mix.host != 0 && (bench.read < 50 || (!mix.any && bench.met < 20))) tests.wrong("changes were not tried");
    tests.end();
  }
  tests.begin("rate");
  bench.fill(false);
  std::printf("  %.1f clocks a packet\n", bench.rate(2000));
  tests.end();
  bench.end();
  return tests.result();
}
