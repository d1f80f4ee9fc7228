// Bench of hue_meter: sends packets of few networks in close succession, and compares them with token buckets in 128-bit integers as in
// crates/planes/src/meter.rs. Rows and debts are written meanwhile: packets that are inside then pass and are not charged. Debts are
// read too, which does not affect any packet.
#include <algorithm>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

namespace {
using Wide = __int128;

constexpr unsigned Latency = 11;
using hue_stages_pkg::packet_t;
using hue_pkg::tbl_rsp_t;
constexpr bool Storm = HUE_STORM;  // the limit on floods of kind l2
constexpr unsigned TableMeter = Storm ? 26 : 5, TableDebt = Storm ? 27 : 21;
constexpr unsigned WriteClocksMax = 40;
constexpr unsigned VerdictDrop = 0, RateLimited = Storm ? 9 : 2;  // of spec/kinds.toml
constexpr uint64_t MaxRate = 1'000'000'000'000;
constexpr uint64_t Unit = 1'000'000'000;

struct Bucket {
  bool on = false;
  uint64_t rate = 0, burst = 0;
  Wide level = 0;  // below zero if a debt of more than the burst was written
  Wide cap() const { return Wide{burst} * Unit; }
  Wide debt() const { return cap() - level; }
};

struct Meter {
  Bucket packets, bits;
  uint64_t last = 0;
  bool conforms(uint64_t now, unsigned bytes) {
    const uint64_t elapsed = now > last ? now - last : 0;
    last = std::max(last, now);
    const Wide costs[] = {Unit, Wide{bytes} * 8 * Unit};
    Bucket* const buckets[] = {&packets, &bits};
    bool all = true;
    for (unsigned i = 0; i < 2; ++i) {
      Bucket& bucket = *buckets[i];
      if (!bucket.on) continue;
      bucket.level = std::min(bucket.level + Wide{elapsed} * bucket.rate, bucket.cap());
      all = all && bucket.level >= costs[i];
    }
    for (unsigned i = 0; all && i < 2; ++i)
      if (buckets[i]->on) buckets[i]->level -= costs[i];
    return all;
  }
};

struct Packet {
  std::vector<uint32_t> words;  // the packet as it came in
  unsigned net = 0, len = 0;
  uint64_t now = 0, entered = 0;
  bool decided = false, spared = false, judged = false, limited = false;
};

class Bench {
 public:
  Bench(bench::Tests& tests, uint64_t seed) : tests_(tests), random_(seed), meters_(HUE_NETS), times_(HUE_NETS, 0) {
    top_->rst_ni = 0;
    top_->en_i = 0;
    for (int i = 0; i < 4; ++i) edge();
    top_->rst_ni = 1;
  }

  // A network's row is written first, and sometimes again. `stalls` and `idle` are in percent.
  void run(const char* name, unsigned packets, unsigned nets, unsigned stalls, unsigned idle, unsigned writes, bool extreme) {
    tests_.begin(name);
    extreme_ = extreme;
    passed_ = limited_ = spared_ = given_ = read_ = 0;
    clock(0, false, 0);  // a clock without a request before the next one
    for (unsigned net = 0; net < nets; ++net) {
      begin_write(net);
      while (writing_) clock(stalls, false, 0);
      clock(stalls, false, 0);
    }
    for (uint64_t clocks = 0, sent = 0; sent < packets && !tests_.failed(); ++clocks) {
      if (!writing_ && !answered_ && random_.below(10000) < writes) {
        const unsigned net = random_.below(nets);
        const unsigned what = random_.below(3);
        if (what == 0) begin_write(net);
        else if (what == 1) begin_give(net);
        else begin_read(net);
      }
      if (!random_.percent(70)) net_ = random_.below(nets);
      sent += clock(stalls, !random_.percent(idle), net_);
    }
    for (unsigned i = 0; i < 100 && (writing_ || !inside_.empty()); ++i) clock(0, false, 0);
    if (!inside_.empty()) tests_.wrong("%zu packets are missing", inside_.size());
    if (writing_) tests_.wrong("a write was not answered");
    std::printf("  %llu passed, %llu limited, %llu spared by a write; debts given %llu times, read %llu times\n",
                (unsigned long long)passed_, (unsigned long long)limited_, (unsigned long long)spared_,
                (unsigned long long)given_, (unsigned long long)read_);
    if (writes > 0 && (given_ < 5 || read_ < 5)) tests_.wrong("debts were not tried");
    if (passed_ < packets / 50 || limited_ < packets / 50) tests_.wrong("not both outcomes were tried");
    tests_.end();
  }

  void end() { top_->final(); }

 private:
  void edge() {
    top_->clk_i = 1;
    top_->eval();
    top_->clk_i = 0;
    top_->eval();
  }

  // A bucket that some packets exceed and some do not, or one of any size.
  void roll(Bucket& bucket, uint64_t unit) {
    bucket.on = random_.percent(70);
    if (extreme_ && random_.percent(50)) {
      bucket.rate = random_.percent(50) ? MaxRate : 1 + random_.next() % MaxRate;
      bucket.burst = random_.percent(50) ? MaxRate : 1 + random_.next() % MaxRate;
    } else {
      bucket.rate = 1 + random_.next() % (20'000'000 * unit);
      bucket.burst = random_.between(1, 8) * unit * (random_.percent(50) ? 1 : 3) / 2 + 1;
    }
    bucket.level = bucket.cap();
  }

  void begin_write(unsigned net) {
    row_ = Meter();
    roll(row_.packets, 1);
    roll(row_.bits, 1000);
    if (!row_.packets.on && !row_.bits.on) row_.packets.on = true;
    begin(net, Row);
  }

  // Writes debts of up to twice a burst, or of any size.
  void begin_give(unsigned net) {
    row_ = meters_[net];
    for (Bucket* bucket : {&row_.packets, &row_.bits}) {
      Wide debt = (Wide{random_.next()} << 64 | random_.next()) & ((Wide{1} << 70) - 1);
      if (!extreme_ || random_.percent(70)) debt %= 2 * bucket->cap() + 1;
      bucket->level = bucket->cap() - debt;
    }
    row_.last = times_[net] - std::min<uint64_t>(times_[net], random_.below(100));
    begin(net, Give);
  }

  void begin_read(unsigned net) { begin(net, Read); }

  void begin(unsigned net, unsigned what) {
    row_net_ = net;
    what_ = what;
    writing_ = true;
    write_clocks_ = stopped_ = 0;
  }

  void put_request() {
    stream::put_request(top_->tbl_req_i, writing_, writing_ && what_ != Read, false, what_ == Row ? TableMeter : TableDebt, row_net_);
    if (what_ != Row) {
      const Wide packets = row_.packets.debt(), bits = row_.bits.debt();
      stream::Put(top_->tbl_req_i)
          .put(64, uint64_t(packets)).put(6, uint64_t(packets >> 64)).put(64, uint64_t(bits)).put(6, uint64_t(bits >> 64))
          .put(64, row_.last);
      return;
    }
    stream::Put(top_->tbl_req_i)
        .put(1, row_.packets.on).put(40, row_.packets.rate).put(40, row_.packets.burst)
        .put(1, row_.bits.on).put(40, row_.bits.rate).put(40, row_.bits.burst);
  }

  uint64_t next_time(unsigned net) {
    uint64_t& time = times_[net];
    if (random_.percent(2)) return time - std::min<uint64_t>(time, random_.below(1000));
    if (extreme_ && random_.below(2000) == 0) time = random_.next() >> random_.below(64);
    const uint64_t step = random_.percent(30) ? 0 : random_.below(extreme_ && random_.percent(10) ? 1'000'000 : 150);
    time = time > ~step ? ~uint64_t{0} : time + step;
    return time;
  }

  // One clock. Returns whether a packet was taken.
  bool clock(unsigned stalls, bool offer, unsigned net) {
    put_request();
    top_->en_i = !wait_ && !random_.percent(stalls);
    Packet packet;
    top_->valid_i = offer;
    if (offer) {
      packet.net = net;
      packet.len = random_.percent(20) ? random_.between(14, 9216) : random_.between(60, 200);
      packet.now = next_time(net);
      packet.decided = random_.percent(5);
      for (unsigned at = 0; at < packet_t::Bits; at += 32) {
        const unsigned width = std::min(32u, packet_t::Bits - at);
        bench::set_bits(top_->packet_i, at, width, random_.next() >> 32 & ((uint64_t{1} << width) - 1));
      }
      bench::set(top_->packet_i, packet_t::len, packet.len);
      bench::set(top_->packet_i, packet_t::decided, packet.decided);
      bench::set(top_->packet_i, packet_t::net, net);
      // Other frames pass the limit on floods.
      if (Storm && bench::get(top_->packet_i, packet_t::flood) == 0) packet.decided = true;
      top_->time_ns_i = packet.now;
      for (unsigned at = 0; at < packet_t::Bits; at += 32)
        packet.words.push_back(bench::bits(top_->packet_i, at, std::min(32u, packet_t::Bits - at)));
    }
    top_->eval();
    if (top_->error_o) tests_.wrong("clock %llu: a row with wrong parity", (unsigned long long)now_);
    // In the clock of a write nothing moves. Packets inside pass, except that the one at the output keeps its result.
    if (wait_) {
      for (Packet& one : inside_) {
        if (moved_ - one.entered == Latency) judge(one);
        if (what_ != Read) one.spared |= one.net == row_net_;
      }
      if (what_ == Read && stopped_ == 0) note_debts();
      if (what_ != Read) meters_[row_net_] = row_;
      if (what_ == Row) times_[row_net_] = random_.percent(50) ? 0 : times_[row_net_];
      given_ += what_ == Give;
      ++stopped_;
    }
    wait_ = top_->wait_o;
    answered_ = writing_;
    if (writing_) {
      if (++write_clocks_ > WriteClocksMax) tests_.wrong("a write takes more than %u clocks", WriteClocksMax), writing_ = false;
      if (stream::answered(top_->tbl_rsp_o)) {
        if (bench::get(top_->tbl_rsp_o, tbl_rsp_t::error)) tests_.wrong("a write was refused");
        if (stopped_ != (what_ == Read ? 2 : 1)) tests_.wrong("an access stopped packets for %u clocks", stopped_);
        if (what_ == Read) compare_debts();
        writing_ = false;
      }
    }
    const bool moves = top_->en_i;
    if (moves && top_->valid_o) leaves();
    if (moves && !inside_.empty() && moved_ - inside_.front().entered >= Latency) tests_.wrong("a packet did not leave");
    if (moves && offer) {
      packet.entered = moved_;
      inside_.push_back(packet);
    }
    moved_ += moves;
    edge();
    ++now_;
    return moves && offer;
  }

  // The debts that the host must read: those before the packets that are not decided yet.
  void note_debts() {
    noted_ = meters_[row_net_];
    still_ = true;
    for (const Packet& one : inside_) still_ &= one.net != row_net_ || one.judged || one.decided;
  }

  void compare_debts() {
    const auto field = [&](unsigned lsb) {
      const bench::Field data = tbl_rsp_t::rdata;
      return Wide{bench::get(top_->tbl_rsp_o, data.part(lsb + 64, 6))} << 64 | bench::get(top_->tbl_rsp_o, data.part(lsb, 64));
    };
    const Wide packets = field(0), bits = field(70);
    const bool wrong = (noted_.packets.on && packets != noted_.packets.debt()) || (noted_.bits.on && bits != noted_.bits.debt());
    if (wrong) tests_.wrong("clock %llu: debts of network %u are read wrong", (unsigned long long)now_, row_net_);
    if (still_ && bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(140, 64)) != noted_.last) tests_.wrong("the time of network %u is read wrong", row_net_);
    ++read_;
  }

  void judge(Packet& packet) {
    if (packet.judged || packet.decided) return;
    packet.judged = true;
    if (packet.spared) ++spared_;
    else packet.limited = !meters_[packet.net].conforms(packet.now, packet.len);
    ++(packet.limited ? limited_ : passed_);
  }

  void leaves() {
    if (inside_.empty()) return tests_.wrong("a packet that was not sent");
    Packet packet = inside_.front();
    inside_.pop_front();
    judge(packet);
    if (moved_ - packet.entered != Latency) tests_.wrong("latency %llu, stated %u", (unsigned long long)(moved_ - packet.entered), Latency);
    const bool limited = packet.limited;
    if (limited) {
      const bool right = bench::get(top_->packet_o, packet_t::decided) == 1 &&
                         bench::get(top_->packet_o, packet_t::verdict) == VerdictDrop &&
                         bench::get(top_->packet_o, packet_t::outcome) == RateLimited;
      if (!right) tests_.wrong("clock %llu: a packet of network %u passed", (unsigned long long)now_, packet.net);
    }
    const auto is_in = [](unsigned bit, bench::Field field) { return bit >= field.lsb && bit < field.lsb + field.bits; };
    for (unsigned bit = 0; bit < packet_t::Bits; ++bit) {
      const bool said = is_in(bit, packet_t::decided) || is_in(bit, packet_t::verdict) || is_in(bit, packet_t::outcome);
      if (limited && said) continue;
      // A limited frame does not flood. It teaches only if it was no more than the network may send.
      const bool spreads = is_in(bit, packet_t::flood) || is_in(bit, packet_t::ports);
      if (limited && (spreads || (is_in(bit, packet_t::note) && !Storm))) {
        if (bench::bits(top_->packet_o, bit, 1) != 0) tests_.wrong("clock %llu: a limited packet leaves bit %u", (unsigned long long)now_, bit);
        continue;
      }
      if (bench::bits(top_->packet_o, bit, 1) != (packet.words[bit / 32] >> bit % 32 & 1)) {
        tests_.wrong("clock %llu: bit %u of a packet of network %u changed%s", (unsigned long long)now_, bit, packet.net,
                     said ? ": it was limited" : "");
        break;
      }
    }
  }

  bench::Tests& tests_;
  bench::Random random_;
  std::unique_ptr<Vtop> top_ = std::make_unique<Vtop>();
  std::vector<Meter> meters_;
  std::vector<uint64_t> times_;  // latest time of each network
  std::deque<Packet> inside_;
  enum { Row, Give, Read };
  Meter row_, noted_;  // the row that is written, the row that must be read
  unsigned row_net_ = 0, net_ = 0, what_ = Row, write_clocks_ = 0, stopped_ = 0;
  bool still_ = false;  // no packet of the network whose debts are read is inside
  uint64_t now_ = 0, moved_ = 0, passed_ = 0, limited_ = 0, spared_ = 0, given_ = 0, read_ = 0;
  bool writing_ = false, wait_ = false, answered_ = false, extreme_ = false;
};
}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  Bench bench(tests, seed);
  bench.run("one network, a packet a clock", 50000, 1, 0, 0, 10, false);
  bench.run("few networks, a packet a clock", 100000, 3, 0, 0, 20, false);
  bench.run("few networks, gaps and stalls", 100000, 4, 20, 30, 50, false);
  bench.run("rates, bursts and times of any size", 100000, HUE_NETS, 10, 20, 50, true);
  bench.end();
  return tests.result();
}
