// Bench of hue_exact: questions at random and at full rate, while the host writes, clears and moves rows. A model that keeps all rows
// says which answers are right: a question that is inside during an access may see the row before or after it. A key that moves to
// another bank must be found all the time. The same MAC address is in several tables, with an index of its own in each.
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "Vtop.h"
#include "bench.h"
#include "hue_layout.h"

namespace {
constexpr unsigned Banks = HUE_BANKS, BankRows = HUE_BANK_ROWS, TableBits = HUE_TABLE_BITS, SeqBits = HUE_SEQ_BITS;
constexpr unsigned KeyBits = 48, Tables = 6, Macs = 80, Latency = 4, None = 65536;
using hue_pkg::tbl_req_t, hue_pkg::tbl_rsp_t;

std::unique_ptr<Vtop> top;

struct Row {
  bool valid = false;
  unsigned table = 0, index = 0;
  uint64_t mac = 0;
};

struct Question {
  unsigned seq, table;
  uint64_t mac;
  std::set<unsigned> right;  // indices, or None
  uint64_t cycle;
};

// The row of a key in a bank: the remainder modulo the bank's polynomial.
unsigned polynomial_of(unsigned bank) {
  static const unsigned rows256[] = {0x11d, 0x177, 0x1f3, 0x169}, rows512[] = {0x211, 0x259, 0x331, 0x299};
  return (BankRows == 256 ? rows256 : rows512)[bank];
}

unsigned place(unsigned bank, unsigned table, uint64_t mac) {
  const unsigned polynomial = polynomial_of(bank), top_bit = BankRows;
  const uint64_t key = uint64_t{table} << KeyBits | mac;
  unsigned rest = 0;
  for (int bit = 63; bit >= 0; --bit) {
    rest = rest << 1 | (key >> bit & 1);
    if (rest & top_bit) rest ^= polynomial;
  }
  return bank * BankRows + rest;
}

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random), rows_(Banks * BankRows) {
    top->rst_ni = 0;
    top->valid_i = 0;
    for (unsigned bit = 0; bit < tbl_req_t::Bits; ++bit) bench::set_bits(top->tbl_req_i, bit, 1, 0);
    for (int i = 0; i < 4; ++i) edge();
    top->rst_ni = 1;
    for (auto& mac : macs_) mac = random_.next() & 0xffffffffffff;
    // The second of a pair differs from the first in one bit, or has the same place in one bank.
    for (unsigned i = 1; i < Macs; i += 2) {
      const uint64_t other = random_.below(2) ? 1 : polynomial_of(random_.below(Banks));
      macs_[i] = macs_[i - 1] ^ other << random_.below(38);
    }
    for (unsigned i = 0; i < Tables; ++i) tables_[i] = i < 4 ? i : random_.below(1 << TableBits);
    // The driver writes all rows of a card before it uses it.
    for (unsigned row = 0; row < rows_.size(); ++row) write(row, {}, 0, true);
  }

  // `host`: share of clocks, in percent, in which an access begins, while none is in progress; `ask`: share with a question.
  void run(unsigned clocks, unsigned ask, unsigned host) {
    asked = answered = 0;
    share_ = ask;
    for (unsigned i = 0; i < clocks && !tests_.failed(); ++i) {
      if (random_.percent(host)) change();
      else tick();
    }
    share_ = 0;
    for (unsigned i = 0; i < 40; ++i) tick();
    if (!inside_.empty()) tests_.wrong("%zu questions without an answer", inside_.size());
  }

  unsigned asked = 0, answered = 0, found = 0, lone = 0;

 private:
  unsigned model(unsigned table, uint64_t mac) const {
    for (unsigned bank = 0; bank < Banks; ++bank) {
      const Row& row = rows_[place(bank, table, mac)];
      if (row.valid && row.table == table && row.mac == mac) return row.index;
    }
    return None;
  }

  // One change as the driver makes it: a new row, a removed one, or a move to another bank.
  void change() {
    const unsigned table = tables_[random_.below(Tables)];
    const uint64_t mac = macs_[random_.below(Macs)];
    unsigned from = rows_.size(), to = rows_.size();
    for (unsigned bank = 0; bank < Banks; ++bank) {
      const unsigned at = place(bank, table, mac);
      const Row& row = rows_[at];
      if (row.valid && row.table == table && row.mac == mac) from = at;
      else if (!row.valid && (to == rows_.size() || random_.below(2))) to = at;
    }
    const Row fresh = {true, table, random_.below(65536), mac};
    if (from == rows_.size()) {
      if (to != rows_.size()) write(to, fresh, share_, false);
    } else if (to != rows_.size() && random_.percent(60)) {
      Row moved = rows_[from];
      write(to, moved, share_, false);
      write(from, {}, share_, false);
    } else {
      write(from, random_.below(2) ? Row{} : fresh, share_, false);
    }
    if (random_.percent(20)) check_row(random_.below(rows_.size()));
  }

  void request(bool valid, bool write, unsigned row, const Row& value) {
    bench::set(top->tbl_req_i, tbl_req_t::valid, valid);
    bench::set(top->tbl_req_i, tbl_req_t::write, write);
    bench::set(top->tbl_req_i, tbl_req_t::index, row);
    const bench::Field data = tbl_req_t::wdata;
    bench::set(top->tbl_req_i, data.part(0, 1), value.valid);
    bench::set(top->tbl_req_i, data.part(1, KeyBits), value.mac);
    bench::set(top->tbl_req_i, data.part(1 + KeyBits, TableBits), value.table);
    bench::set(top->tbl_req_i, data.part(1 + KeyBits + TableBits, 16), value.index);
  }

  bool done() const { return bench::get(top->tbl_rsp_o, tbl_rsp_t::done); }

  // Writes a row. While the access is in progress, both the old and the new state are right.
  void write(unsigned at, const Row& value, unsigned ask, bool quiet) {
    const unsigned share = share_;
    share_ = quiet ? 0 : ask;
    const Row old = rows_[at];
    busy_ = true;
    changed_ = at;
    rows_other_ = value;
    allow();
    request(true, true, at, value);
    for (unsigned i = 0; i < 100; ++i) {
      tick();
      top->eval();
      if (done()) break;
      if (i == 99) tests_.wrong("the write of row %u is not answered", at);
    }
    request(false, false, 0, {});
    rows_[at] = value;
    busy_ = false;
    tick();
    share_ = share;
  }

  void check_row(unsigned at) {
    request(true, false, at, {});
    for (unsigned i = 0; i < 100; ++i) {
      tick();
      top->eval();
      if (done()) break;
    }
    const Row& row = rows_[at];
    const bench::Field data = tbl_rsp_t::rdata;
    const bool valid = bench::get(top->tbl_rsp_o, data.part(0, 1));
    if (!done() || valid != row.valid || (valid && bench::get(top->tbl_rsp_o, data.part(1, KeyBits)) != row.mac) ||
        (valid && bench::get(top->tbl_rsp_o, data.part(1 + KeyBits + TableBits, 16)) != row.index)) {
      tests_.wrong("row %u is not read as it was written", at);
    }
    request(false, false, 0, {});
    tick();
  }

  // Adds what is right during the access in progress to all questions inside.
  void allow() {
    for (auto& question : inside_) allow(question);
  }
  void allow(Question& question) {
    if (!busy_) return;
    const Row old = rows_[changed_];
    rows_[changed_] = rows_other_;
    question.right.insert(model(question.table, question.mac));
    rows_[changed_] = old;
  }

  void tick() {
    if (!top->valid_i && random_.percent(share_)) {
      top->valid_i = 1;
      top->seq_i = asked_all_ % (1 << SeqBits);
      top->table_i = tables_[random_.below(Tables)];
      top->key_i = macs_[random_.below(Macs)];
    }
    top->eval();
    if (top->valid_o) answer();
    if (top->valid_i && top->ready_o) {
      Question question = {top->seq_i, top->table_i, top->key_i, {}, cycle_};
      question.right.insert(model(question.table, question.mac));
      allow(question);
      inside_.push_back(question);
      ++asked;
      ++asked_all_;
      edge();
      top->valid_i = 0;
    } else {
      edge();
    }
  }

  void answer() {
    ++answered;
    if (inside_.empty()) return tests_.wrong("an answer without a question");
    const Question question = inside_.front();
    inside_.pop_front();
    const unsigned got = top->found_o ? static_cast<unsigned>(top->index_o) : None;
    if (top->seq_o != question.seq) tests_.wrong("answer %u, expected %u", top->seq_o, question.seq);
    if (!question.right.count(got)) tests_.wrong("table %u, key %012llx: %u", question.table, (unsigned long long)question.mac, got);
    found += top->found_o;
    if (top->error_o) tests_.wrong("a parity error");
    if (cycle_ - question.cycle < Latency) tests_.wrong("an answer after %llu clocks", (unsigned long long)(cycle_ - question.cycle));
    lone += cycle_ - question.cycle == Latency;
  }

  void edge() {
    top->clk_i = 0;
    top->eval();
    top->clk_i = 1;
    top->eval();
    ++cycle_;
  }

  bench::Tests& tests_;
  bench::Random& random_;
  std::vector<Row> rows_;
  std::deque<Question> inside_;
  uint64_t macs_[Macs];
  unsigned tables_[Tables];
  unsigned share_ = 0, changed_ = 0, asked_all_ = 0;
  Row rows_other_;
  bool busy_ = false;
  uint64_t cycle_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  const unsigned shares[][2] = {{50, 3}, {100, 5}, {100, 40}, {20, 40}};
  for (const auto& share : shares) {
    tests.begin("exact: questions in " + std::to_string(share[0]) + " % of the clocks, changes begin in " + std::to_string(share[1]) + " %");
    Bench bench(tests, random);
    bench.run(1000, 0, 80);
    bench.run(20000, share[0], share[1]);
    if (bench.found < bench.answered / 10 || bench.answered < 1000) tests.wrong("%u of %u found", bench.found, bench.answered);
    tests.end();
  }
  tests.begin("exact: a question a clock, each answered after 4 clocks");
  {
    Bench bench(tests, random);
    bench.run(1000, 0, 80);
    bench.run(5000, 100, 0);
    if (bench.asked != 5000 || bench.lone != bench.answered) tests.wrong("%u asked, %u at once", bench.asked, bench.lone);
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
