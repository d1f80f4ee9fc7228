// Bench of hue_regs: the access unit and its bursts, over AXI-Lite, with a table that answers after random times.
//
// Every access at the table must be the next one that was requested, unchanged. Rows from `Rows` on are beyond the table; table 9
// never answers.
#include <deque>
#include <memory>

#include "Vtop.h"
#include "bench.h"
#include "hue_layout.h"

namespace {
constexpr uint32_t TableId = 0x100, TableIndex = 0x104, TableCommand = 0x108, TableStatus = 0x10c, TableData = 0x120,
                   BurstPlace = 0x140, BurstStatus = 0x144, BurstWord = 0x180, InterruptStatus = 0x98;
constexpr uint32_t Sram = 19, Hop = 7, Nobody = 9;
constexpr uint32_t Rows = 1000;
constexpr unsigned NoTable = 1, Range = 2, Refused = 3;
constexpr unsigned FifoWords = 16;
constexpr uint64_t ClocksMax = 2000000;  // limit for one bench, ten times the usual number

std::unique_ptr<Vtop> top;

struct Access {
  uint32_t id, index;
  bool write;
  uint64_t word;  // the lowest 36 bits
  bool answered = true;
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random) {
    top->rst_ni = 0;
    for (int i = 0; i < 5; ++i) edge();
    top->rst_ni = 1;
  }

  // How often the master idles and the table answers late, in percent; the longest time of an answer, in clocks.
  unsigned idle = 0, stall = 0, slow = 0;
  uint64_t clocks = 0, words_done = 0;
  unsigned longest_wait = 0;

  void post(uint32_t address, uint32_t value) { writes_.push_back({address, value}); }
  void flush() {
    while (!writes_.empty() || pending_ > 0) clock();
  }
  uint32_t read(uint32_t address) {
    flush();
    return read_now(address);
  }
  uint32_t read_now(uint32_t address) {
    top->s_axil_araddr_i = address;
    top->s_axil_arvalid_i = 1;
    top->s_axil_rready_i = 1;
    for (unsigned i = 0; i < 100; ++i) {
      clock();
      if (read_taken_) top->s_axil_arvalid_i = 0;
      if (read_done_) return read_data_;
    }
    tests_.wrong("a read of %x is not answered", address);
    return 0;
  }
  void word(uint64_t value) { post(BurstWord + 4 * static_cast<uint32_t>(value >> 32 & 15), static_cast<uint32_t>(value)); }
  void expect(const Access& access) { expected_.push_back(access); }
  void idle_until_done() {
    flush();
    for (unsigned i = 0; i < 10000 && (read_now(BurstStatus) >> 26 & 1); ++i) {}
    while (read_now(TableStatus) & 1) {}
    if (!expected_.empty()) tests_.wrong("%zu accesses never came", expected_.size());
    expected_.clear();
  }
  // Writes a burst of random words to a table. If it causes errors, the first one must be reported.
  void burst(uint32_t id, uint32_t index, unsigned count) {
    post(BurstPlace, id << 24 | index);
    for (unsigned i = 0; i < count; ++i) {
      const uint64_t value = random_.next() & 0xfffffffff;
      word(value);
      const bool routes = id == Sram || id == Nobody;
      if (routes) expect({id, index + i, true, value, id != Nobody});
      const unsigned error = !routes ? Refused : id == Nobody ? NoTable : index + i >= Rows ? Range : 0;
      if (error != 0 && first_error == 0) first_error = error, first_row = index + i;
    }
  }
  void command(uint32_t id, uint32_t index, unsigned what) {
    const uint32_t value = static_cast<uint32_t>(random_.next());
    post(TableId, id);
    post(TableIndex, index);
    post(TableData, value);
    post(TableData + 4, 5);
    post(TableCommand, what);
    expect({id, index, what == 2, uint64_t{5} << 32 | value});
  }
  void command_done() {
    flush();
    while (read_now(TableStatus) & 1) {}
  }
  void check_errors() {
    const uint32_t status = read(BurstStatus);
    if ((status >> 24 & 3) != first_error) tests_.wrong("error %u, not %u", status >> 24 & 3, first_error);
    if (first_error != 0 && (status & 0xffffff) != first_row) tests_.wrong("of row %u, not %u", status & 0xffffff, first_row);
    if (first_error != 0 && !(read(InterruptStatus) & 1)) tests_.wrong("the error is not in the interrupt status");
    post(BurstStatus, 3u << 24);
    post(InterruptStatus, 15);
    flush();
    if (read(BurstStatus) >> 24 & 3) tests_.wrong("the error cannot be cleared");
    first_error = 0;
  }
  unsigned first_error = 0;
  uint32_t first_row = 0;
  unsigned refused = 0;

  void clock() {
    // The master offers the next write, unless it idles; an address on offer stays.
    if (!offering_ && !writes_.empty() && !random_.percent(idle)) offering_ = true, waits_ = 0;
    top->s_axil_awvalid_i = top->s_axil_wvalid_i = offering_;
    if (offering_) {
      top->s_axil_awaddr_i = writes_.front().first;
      top->s_axil_wdata_i = writes_.front().second;
      top->s_axil_wstrb_i = 15;
    }
    top->s_axil_bready_i = !random_.percent(stall);
    table();
    top->eval();
    const bool taken = offering_ && top->s_axil_awready_o;
    if (offering_ && !taken && ++waits_ > longest_wait) longest_wait = waits_;
    if (top->s_axil_bvalid_o && top->s_axil_bready_i) {
      --pending_;
      if (top->s_axil_bresp_o != 0) ++refused;
    }
    read_taken_ = top->s_axil_arvalid_i && top->s_axil_arready_o;
    read_done_ = top->s_axil_rvalid_o && top->s_axil_rready_i;
    if (read_done_) read_data_ = top->s_axil_rdata_o;
    edge();
    if (taken) {
      writes_.pop_front();
      offering_ = false;
      ++pending_;
    }
    if (++clocks > ClocksMax) {
      tests_.wrong("no end after %llu clocks", (unsigned long long)clocks);
      tests_.end();
      std::exit(1);
    }
  }
  size_t unsent() const { return writes_.size(); }

 private:
  void edge() {
    top->clk_i = 0;
    top->eval();
    top->clk_i = 1;
    top->eval();
  }

  // The tables' side, from the request since the latest edge.
  void table() {
    const auto& req = top->tbl_req_o;
    using hue_pkg::tbl_req_t, hue_pkg::tbl_rsp_t;
    const bool valid = bench::get(req, tbl_req_t::valid);
    bench::set(top->tbl_rsp_i, tbl_rsp_t::rdata.part(0, 64), 0);
    bench::set(top->tbl_rsp_i, tbl_rsp_t::error, 0);
    bench::set(top->tbl_rsp_i, tbl_rsp_t::done, 0);
    if (!valid) {
      running_ = false;
      return;
    }
    const Access seen{static_cast<uint32_t>(bench::get(req, tbl_req_t::id)), static_cast<uint32_t>(bench::get(req, tbl_req_t::index)),
                      bench::get(req, tbl_req_t::write) != 0, bench::get(req, tbl_req_t::wdata.part(0, 36))};
    if (!running_) {
      running_ = true;
      if (expected_.empty()) {
        tests_.wrong("an access to row %u of table %u that was not requested", seen.index, seen.id);
        now_ = seen;
      } else {
        now_ = expected_.front();
        expected_.pop_front();
      }
      // An answer takes at least one clock, because an owner answers from a register.
      left_ = 1 + random_.below(slow + 1);
    }
    if (seen.id != now_.id || seen.index != now_.index || seen.write != now_.write || (seen.write && seen.word != now_.word))
      tests_.wrong("row %u of table %u, word %llx: not row %u of table %u, word %llx", seen.index, seen.id,
                   (unsigned long long)seen.word, now_.index, now_.id, (unsigned long long)now_.word);
    if (!now_.answered) return;
    if (left_-- > 0) return;
    const bool beyond = now_.index >= Rows;
    bench::set(top->tbl_rsp_i, tbl_rsp_t::done, 1);
    bench::set(top->tbl_rsp_i, tbl_rsp_t::error, beyond ? Range : 0);
    ++words_done;
  }

  bench::Tests& tests_;
  bench::Random& random_;
  std::deque<std::pair<uint32_t, uint32_t>> writes_;
  std::deque<Access> expected_;
  Access now_{};
  unsigned left_ = 0, waits_ = 0;
  int pending_ = 0;
  bool offering_ = false, running_ = false, read_taken_ = false, read_done_ = false;
  uint32_t read_data_ = 0;
};

void rates(bench::Tests& tests, bench::Random& random) {
  Bench bench(tests, random);
  tests.begin("a word every 3 clocks");
  const unsigned count = 900;
  const uint64_t before = bench.clocks;
  bench.burst(Sram, 0, count);
  bench.flush();
  const uint64_t taken = bench.clocks - before;
  bench.idle_until_done();
  if (taken > 3 * count + 10) tests.wrong("%llu clocks for %u words", (unsigned long long)taken, count);
  bench.check_errors();
  tests.end();

  tests.begin("a register write every clock while there is room");
  const uint64_t start = bench.clocks;
  bench.burst(Sram, 0, FifoWords);
  bench.flush();
  if (bench.clocks - start > FifoWords + 4) tests.wrong("%llu clocks", (unsigned long long)(bench.clocks - start));
  bench.idle_until_done();
  tests.end();

  tests.begin("reads pass a word that waits, and each wait ends");
  bench.burst(Nobody, 7, FifoWords + 8);
  bench.first_error = NoTable, bench.first_row = 7;
  for (unsigned i = 0; i < FifoWords + 60; ++i) bench.clock();
  if (bench.unsent() == 0) tests.wrong("no word waits");
  if (bench.read_now(0) != 0x48554543) tests.wrong("a read does not pass");
  bench.flush();
  bench.idle_until_done();
  bench.check_errors();
  // A word waits for one access, a command for all words before it.
  if (bench.longest_wait > 110) tests.wrong("a write waits %u clocks", bench.longest_wait);
  bench.burst(Nobody, 7, FifoWords);
  bench.command(Hop, 1, 2);
  bench.burst(Sram, 7, 2);
  bench.idle_until_done();
  if (bench.longest_wait > (FifoWords + 1) * 105) tests.wrong("a write waits %u clocks", bench.longest_wait);
  bench.check_errors();
  if (bench.refused != 0) tests.wrong("%u writes are refused", bench.refused);
  tests.end();

  tests.begin("invalid accesses are refused");
  bench.burst(Hop, 3, 5);
  bench.idle_until_done();
  bench.check_errors();
  bench.burst(Sram, Rows - 2, 5);
  bench.burst(Hop, 3, 1);
  bench.idle_until_done();
  bench.check_errors();
  bench.post(BurstStatus + 4, 1);
  bench.post(BurstWord + 64, 1);
  bench.flush();
  if (bench.refused != 2) tests.wrong("%u writes refused, not 2", bench.refused);
  bench.read(BurstWord);
  if (!(bench.read(InterruptStatus) & 2)) tests.wrong("a word can be read");
  tests.end();
}

void mixed(bench::Tests& tests, bench::Random& random, unsigned idle, unsigned stall, unsigned slow) {
  Bench bench(tests, random);
  bench.idle = idle, bench.stall = stall, bench.slow = slow;
  tests.begin("in order: master idle in " + std::to_string(idle) + " %, answers late in " + std::to_string(stall) +
              " %, table up to " + std::to_string(slow) + " clocks");
  for (unsigned step = 0; step < 600; ++step) {
    switch (random.below(8)) {
      case 0:
      case 1:
        bench.command(random.percent(50) ? Hop : Sram, random.below(Rows), 1 + random.below(3));
        // Words follow at once, before the command's end is polled.
        if (random.percent(60)) bench.burst(Sram, random.below(Rows - 50), random.below(30));
        bench.command_done();
        break;
      case 2:
        bench.burst(random.percent(30) ? Nobody : Hop, random.below(Rows), 1 + random.below(3));
        break;
      case 3:
        bench.burst(Sram, Rows - random.below(3), 1 + random.below(5));
        break;
      case 4:
        bench.idle_until_done();
        bench.check_errors();
        break;
      default:
        bench.burst(Sram, random.below(Rows - 50), random.below(40));
    }
  }
  bench.idle_until_done();
  bench.check_errors();
  if (bench.refused != 0) tests.wrong("%u writes are refused", bench.refused);
  tests.end();
}
}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  Verilated::assertOn(true);
  top = std::make_unique<Vtop>();
  rates(tests, random);
  for (unsigned idle : {0u, 50u})
    for (unsigned stall : {0u, 60u})
      for (unsigned slow : {0u, 12u}) mixed(tests, random, idle, stall, slow);
  top->final();
  top.reset();
  return tests.result();
}
