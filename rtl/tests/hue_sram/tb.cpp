// Test bench of hue_sram_port and hue_sram_bank: compares random lookups and host accesses with a memory of the bench, in the order in
// which they were accepted, and measures the bounds of the arbitration and the latency.
//
// Bits are flipped inside the bank. Each must be detected, counted and reported with its address, and be gone after the word was
// written again.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "bench.h"

namespace {

constexpr unsigned kRspLatency = HUE_LATENCY + 2;
constexpr uint64_t kData = (uint64_t{1} << 35) - 1;

struct Answer {
  uint64_t due;  // clock of the answer
  uint64_t data;
  uint16_t tag;
  bool error;
  uint32_t addr;
};

class Bench {
 public:
  Bench(bench::Tests& tests, uint64_t seed) : tests_(tests), random_(seed), memory_(HUE_WORDS, 0) {
    top_->rst_ni = 0;
    for (int i = 0; i < 4; ++i) edge();
    top_->rst_ni = 1;
  }

  // Shares of clocks in which each side requests an access, in percent; before `upset_percent` of host accesses a bit is flipped.
  void traffic(unsigned clocks, unsigned read_percent, unsigned host_percent, unsigned write_percent,
               unsigned upset_percent) {
    wait_max = 0;
    reads = hosts = both = taken = 0;
    for (unsigned i = 0; i < clocks; ++i) {
      if (!top_->rd_valid_i && random_.percent(read_percent)) {
        top_->rd_valid_i = 1;
        top_->rd_addr_i = address();
        top_->rd_tag_i = tag_++;
      }
      if (!top_->host_valid_i && random_.percent(host_percent)) {
        top_->host_valid_i = 1;
        top_->host_write_i = random_.percent(write_percent);
        top_->host_addr_i = address();
        top_->host_data_i = random_.next() & kData;
      }
      if (random_.percent(upset_percent)) upset(address());
      top_->error_clear_i = random_.percent(5);
      tick();
    }
    top_->error_clear_i = 0;
    while (top_->rd_valid_i || top_->host_valid_i) tick();
    for (unsigned i = 0; i < kRspLatency + 2; ++i) tick();
    if (!lookups_.empty() || !reads_back_.empty()) tests_.wrong("answers are missing");
  }

  // Damages a word until it is written again.
  void upset(uint32_t addr) {
    // Not while an access to it is in progress: the model reads one clock after the controller accepts.
    if (top_->rootp->hue_sram__DOT__sram_en && top_->rootp->hue_sram__DOT__sram_addr == addr) return;
    const uint64_t flipped = uint64_t{1} << random_.below(36);
    top_->rootp->hue_sram__DOT__u_bank__DOT__words_q[addr] ^= flipped;
    memory_[addr] ^= flipped;
  }

  void repair_all() {
    for (uint32_t addr = 0; addr < HUE_WORDS; ++addr) {
      if (!__builtin_parityll(memory_[addr])) continue;
      write(addr, memory_[addr] & kData);
    }
  }

  void write(uint32_t addr, uint64_t data) {
    top_->host_valid_i = 1;
    top_->host_write_i = 1;
    top_->host_addr_i = addr;
    top_->host_data_i = data;
    while (top_->host_valid_i) tick();
  }

  void read(uint32_t addr) {
    top_->rd_valid_i = 1;
    top_->rd_addr_i = addr;
    top_->rd_tag_i = tag_++;
    while (top_->rd_valid_i) tick();
    for (unsigned i = 0; i < kRspLatency + 2; ++i) tick();
  }

  void clear_error() {
    top_->error_clear_i = 1;
    tick();
    top_->error_clear_i = 0;
  }

  Vtop& top() { return *top_; }
  uint32_t address() { return random_.below(random_.percent(50) ? std::min(HUE_WORDS, 8) : HUE_WORDS); }
  uint64_t errors() const { return errors_; }

  unsigned wait_max = 0;
  // Clocks with a lookup accepted, with a host access accepted, with both requested, and those of them that the host got.
  uint64_t reads = 0, hosts = 0, both = 0, taken = 0;

 private:
  void edge() {
    top_->clk_i = 1;
    top_->eval();
    top_->clk_i = 0;
    top_->eval();
  }

  void tick() {
    top_->eval();
    check_answers();
    const bool read = top_->rd_valid_i && top_->rd_ready_o, host = top_->host_valid_i && top_->host_ready_o;
    if (read && host) tests_.wrong("two accesses in a clock");
    reads += read;
    hosts += host;
    both += top_->rd_valid_i && top_->host_valid_i;
    if (top_->rd_valid_i && host) {
      ++taken;
      if (now_ - last_taken_ < HUE_HOST_SHARE) tests_.wrong("the host went before lookups twice in %d clocks", HUE_HOST_SHARE);
      last_taken_ = now_;
    }
    if (top_->host_valid_i && !host) wait_max = std::max(wait_max, ++waited_);
    else waited_ = 0;
    const uint64_t due = now_ + kRspLatency;
    // The bank performs an accepted access in the next clock; `upset` avoids that clock.
    if (read) lookups_.push_back(expected(due, top_->rd_addr_i, top_->rd_tag_i));
    if (host && !top_->host_write_i) reads_back_.push_back(expected(due, top_->host_addr_i, 0));
    if (host && top_->host_write_i) {
      const uint64_t data = top_->host_data_i;
      memory_[top_->host_addr_i] = data | uint64_t(__builtin_parityll(data)) << 35;
    }
    edge();
    if (read) top_->rd_valid_i = 0;
    if (host) top_->host_valid_i = 0;
    ++now_;
  }

  Answer expected(uint64_t due, uint32_t addr, uint16_t tag) {
    const uint64_t data = memory_[addr];
    return {due, data, tag, bool(__builtin_parityll(data)), addr};
  }

  void check_answers() {
    bool error = false;
    uint32_t addr = 0;
    const auto check = [&](std::deque<Answer>& waiting, bool valid, uint64_t data, bool wrong, const char* who) {
      const bool due = !waiting.empty() && waiting.front().due == now_;
      if (valid != due) return tests_.wrong("clock %llu: %s answer %d, expected %d", (unsigned long long)now_, who, valid, due);
      if (!due) return;
      const Answer want = waiting.front();
      waiting.pop_front();
      if (data != (want.data & (&waiting == &lookups_ ? ~uint64_t{0} : kData)))
        tests_.wrong("%s word %u: %llx, expected %llx", who, want.addr, (unsigned long long)data, (unsigned long long)want.data);
      if (wrong != want.error) tests_.wrong("%s word %u: error %d, expected %d", who, want.addr, wrong, want.error);
      if (&waiting == &lookups_ && top_->rsp_tag_o != want.tag) tests_.wrong("tag %u, expected %u", top_->rsp_tag_o, want.tag);
      if (want.error) error = true, addr = want.addr;
    };
    if (top_->error_valid_o != error_valid_ || (error_valid_ && top_->error_addr_o != error_addr_))
      tests_.wrong("error %d at %u, expected %d at %u", top_->error_valid_o, top_->error_addr_o, error_valid_, error_addr_);
    if (top_->error_count_o != errors_) tests_.wrong("%u errors, expected %llu", top_->error_count_o, (unsigned long long)errors_);
    check(lookups_, top_->rsp_valid_o, top_->rsp_data_o, top_->rsp_error_o, "lookup's");
    check(reads_back_, top_->host_rsp_valid_o, top_->host_rsp_data_o, top_->host_rsp_error_o, "host's");
    if (error) ++errors_;
    if (error && (!error_valid_ || top_->error_clear_i)) error_addr_ = addr;
    error_valid_ = error || (error_valid_ && !top_->error_clear_i);
  }

  bench::Tests& tests_;
  bench::Random random_;
  std::unique_ptr<Vtop> top_ = std::make_unique<Vtop>();
  std::vector<uint64_t> memory_;
  std::deque<Answer> lookups_, reads_back_;
  uint64_t now_ = 1000, last_taken_ = 0, errors_ = 0;
  unsigned waited_ = 0;
  uint16_t tag_ = 0;
  bool error_valid_ = false;
  uint32_t error_addr_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  Bench bench(tests, seed);
  const unsigned wait_bound = std::max(HUE_HOST_WAIT, HUE_HOST_SHARE - 1);

  tests.begin("all words are 0 at first, with right parity");
  for (uint32_t addr : {0, 1, HUE_WORDS - 1}) bench.read(addr);
  tests.end();

  tests.begin("random traffic");
  for (unsigned read : {0, 30, 70, 100})
    for (unsigned host : {0, 10, 50, 100}) bench.traffic(20'000, read, host, 50, 0);
  tests.end();

  tests.begin("lookups and a host that both request every clock");
  bench.traffic(20'000, 100, 100, 70, 0);
  std::printf("  host: waits %u clocks at most, takes 1 of %.2f; lookups %.3f a clock\n", bench.wait_max,
              double(bench.both) / bench.taken, double(bench.reads) / (bench.reads + bench.hosts));
  if (bench.wait_max != wait_bound) tests.wrong("the host waited up to %u clocks, the bound is %u", bench.wait_max, wait_bound);
  tests.end();

  tests.begin("lookups alone take every clock");
  bench.traffic(10'000, 100, 0, 0, 0);
  if (bench.reads < 10'000) tests.wrong("%llu lookups in 10000 clocks", (unsigned long long)bench.reads);
  tests.end();

  tests.begin("one flipped bit: reported, counted, repaired");
  bench.clear_error();
  for (unsigned i = 0; i < 64 && !tests.failed(); ++i) {
    const uint32_t addr = bench.address();
    const uint64_t before = bench.errors();
    bench.write(addr, i * 0x123456789ULL & kData);
    for (int wait = 0; wait < 2; ++wait) bench.read(0);
    bench.upset(addr);
    bench.read(addr);
    bench.read(addr);
    if (!bench.top().error_valid_o || bench.top().error_addr_o != addr) tests.wrong("word %u is not reported", addr);
    if (bench.top().error_count_o != before + 2) tests.wrong("%u errors", bench.top().error_count_o);
    bench.write(addr, i * 0x123456789ULL & kData);
    bench.clear_error();
    bench.read(addr);
    if (bench.top().error_valid_o) tests.wrong("word %u is not repaired", addr);
  }
  tests.end();

  tests.begin("flipped bits under random traffic");
  bench.traffic(40'000, 60, 60, 30, 4);
  if (bench.errors() < 100) tests.wrong("%llu errors only", (unsigned long long)bench.errors());
  bench.repair_all();
  bench.clear_error();
  const uint64_t errors = bench.errors();
  bench.traffic(20'000, 100, 20, 20, 0);
  if (bench.errors() != errors) tests.wrong("errors after all words were written again");
  tests.end();

  bench.top().final();
  return tests.result();
}
