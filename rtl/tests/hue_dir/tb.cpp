// Test bench of hue_dir with its two SRAMs: reads changes and lookups of dir_vectors from standard input; lookups are in flight while
// words are written. Every answer is compared, in order, with the old answer and the new one. Then, with the final table: latency of
// single lookups, clocks for each lookup with and without a host that always accesses the banks, and flipped bits.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "bench.h"

namespace {

constexpr uint16_t kNoRoute = 0xffff;
constexpr unsigned kBankWords = 1 << 19;
// Parameters of the ports: HostWait, and the registers on either side of the pins.
constexpr unsigned kHostWait = 8, kPortClocks = 2;

struct Lookup {
  uint16_t vid;
  uint32_t key;
  uint16_t right[3];
  uint16_t tag;
  uint64_t accepted;
};

class Bench {
 public:
  Bench(bench::Tests& tests, uint64_t seed) : tests_(tests), random_(seed), words_{std::vector<uint64_t>(kBankWords), std::vector<uint64_t>(kBankWords)} {
    top_->rst_ni = 0;
    for (int i = 0; i < 4; ++i) edge();
    top_->rst_ni = 1;
  }

  void run(FILE* lines) {
    char line[128];
    bool burst = false;
    uint64_t begun = 0;
    while (std::fgets(line, sizeof line, lines) && !tests_.failed()) {
      unsigned long long a = 0, b = 0, c = 0, d = 0, e = 0;
      const int count = std::sscanf(line + 1, "%llx %llx %llx %llx %llx", &a, &b, &c, &d, &e);
      if ((line[0] == '1' || line[0] == '2') && count == 2) {
        write(line[0] - '1', a, b);
      } else if (line[0] == 'r' && count == 5) {
        row(a, true, b, c, d, e);
      } else if (line[0] == 'u' && count == 1) {
        row(a, false, 0, 0, 0, 0);
      } else if (line[0] == 'd') {
        drain();
      } else if ((line[0] == 'l' || line[0] == 'm') && count == 4) {
        const Lookup asked{uint16_t(a), uint32_t(b), {uint16_t(c), uint16_t(d), line[0] == 'm' ? kNoRoute : uint16_t(c)}};
        while (!burst && random_.below(4) == 0) tick();
        ask(asked);
        if (burst) last.push_back(asked);
      } else if (line[0] == 'b') {
        drain();
        burst = true;
        begun = now_;
      } else if (line[0] == 'e') {
        burst = false;
        finish();
        std::printf("  %llu words written, %llu lookups; %.3f clocks a lookup\n", (unsigned long long)writes_,
                    (unsigned long long)lookups_, double(now_ - begun) / last.size());
        if (now_ - begun > last.size() + 64) tests_.wrong("%llu clocks for %zu lookups", (unsigned long long)(now_ - begun), last.size());
      } else {
        tests_.wrong("cannot read: %s", line);
      }
    }
    finish();
    if (last.empty()) tests_.wrong("no lookups");
  }

  // Single lookups, one after the other: each takes the number of clocks in the module's head.
  void alone() {
    std::set<uint64_t> clocks;
    for (std::size_t i = 0; i < std::min<std::size_t>(last.size(), 2000); ++i) {
      ask(last[i]);
      finish();
      clocks.insert(took_);
    }
    const std::set<uint64_t> expected{HUE_BANK1_LATENCY + kPortClocks + 4, HUE_BANK1_LATENCY + HUE_BANK2_LATENCY + 2 * kPortClocks + 5};
    std::printf("  clocks:");
    for (uint64_t count : clocks) std::printf(" %llu", (unsigned long long)count);
    std::printf("\n");
    if (clocks != expected) tests_.wrong("expected %llu and %llu", (unsigned long long)*expected.begin(), (unsigned long long)*expected.rbegin());
  }

  // Lookups at full rate while the host reads both banks whenever it may.
  void contended() {
    took_max_ = 0;
    const uint64_t begun = now_;
    host_reads_ = true;
    for (const Lookup& asked : last) ask(asked);
    host_reads_ = false;
    finish();
    const double clocks = double(now_ - begun) / last.size();
    std::printf("  %.3f clocks a lookup, the slowest took %llu\n", clocks, (unsigned long long)took_max_);
    // Each bank may lose one clock in kHostWait + 1. The queues between the banks hide which bank lost it.
    if (clocks > 1.01 * (kHostWait + 1) / kHostWait) tests_.wrong("more than the host's share is lost");
  }

  void turned_over() {
    auto* banks = top_->rootp;
    for (unsigned i = 0; i < kBankWords; ++i) {
      if (words_[0][i]) banks->hue_dir_sram__DOT__g_bank__BRA__0__KET____DOT__u_bank__DOT__words_q[i] ^= uint64_t{1} << random_.below(36);
    }
    broken_ = true;
    errors_ = 0;
    for (const Lookup& asked : last) ask(asked);
    finish();
    broken_ = false;
    if (errors_ == 0 || !(top_->bank_error_o & 1)) tests_.wrong("nothing was detected");
    std::printf("  %llu lookups met a wrong word\n", (unsigned long long)errors_);
    for (unsigned i = 0; i < kBankWords; ++i)
      if (words_[0][i]) write(0, i, words_[0][i]);
    drain();
    for (const Lookup& asked : last) ask(asked);
    finish();
  }

  void end() { top_->final(); }

  // The lookups of the burst, whose answers no longer change.
  std::vector<Lookup> last;

 private:
  void edge() {
    top_->clk_i = 1;
    top_->eval();
    top_->clk_i = 0;
    top_->eval();
  }

  void tick() {
    if (host_reads_) {
      top_->host_valid_i = 3;
      top_->host_write_i = 0;
    }
    top_->eval();
    if (top_->valid_o) check();
    const bool accepted = top_->valid_i && top_->ready_o;
    const unsigned host = top_->host_valid_i & top_->host_ready_o;
    if (accepted) {
      asked_.accepted = now_;
      inside_.push_back(asked_);
      ++lookups_;
    }
    edge();
    if (accepted) top_->valid_i = 0;
    top_->host_valid_i &= ~host;
    top_->row_write_i = 0;
    top_->drain_i = 0;
    ++now_;
  }

  void check() {
    if (inside_.empty()) return tests_.wrong("an answer to no lookup");
    const Lookup want = inside_.front();
    inside_.pop_front();
    took_ = now_ - want.accepted;
    took_max_ = std::max(took_max_, took_);
    if (top_->tag_o != want.tag) tests_.wrong("tag %u, expected %u", top_->tag_o, want.tag);
    const bool error = top_->error_o;
    errors_ += error;
    const bool right = std::find(want.right, want.right + 3, top_->hop_o) != want.right + 3;
    // With flipped bits a lookup reports an error and no route, or rightly finds no route.
    const bool fine = error ? broken_ && top_->hop_o == kNoRoute : right && (!broken_ || top_->hop_o == kNoRoute);
    if (!fine)
      tests_.wrong("clock %llu: network %u key %08x: hop %u error %d, expected %u or %u", (unsigned long long)now_, want.vid,
                   want.key, top_->hop_o, error, want.right[0], want.right[1]);
  }

  // Offers a lookup while the host works, once the lookup before it has been taken.
  void ask(const Lookup& asked) {
    while (top_->valid_i) tick();
    asked_ = asked;
    asked_.tag = tag_++;
    top_->valid_i = 1;
    top_->vid_i = asked.vid;
    top_->key_i = asked.key;
    top_->tag_i = asked_.tag;
    tick();
  }

  void write(unsigned bank, uint32_t addr, uint64_t word) {
    while (top_->host_valid_i) tick();
    words_[bank][addr] = word;
    top_->host_valid_i = 1 << bank;
    top_->host_write_i = 1;
    top_->host_addr_i = addr;
    top_->host_data_i = word;
    ++writes_;
    tick();
  }

  void row(uint32_t row, bool used, uint16_t vid, uint32_t prefix, unsigned length, uint32_t index) {
    while (top_->host_valid_i) tick();
    top_->row_write_i = 1;
    top_->row_i = row;
    top_->row_used_i = used;
    top_->row_vid_i = vid;
    top_->row_prefix_i = prefix;
    top_->row_length_i = length;
    top_->row_index_i = index;
    tick();
  }

  // Drains as the host does, and checks that no lookup is inside then, because none came in meanwhile.
  void drain() {
    while (top_->valid_i || top_->host_valid_i) tick();
    top_->drain_i = 1;
    tick();
    for (unsigned i = 0; i < 1000 && !top_->drained_o; ++i) tick();
    if (!top_->drained_o) tests_.wrong("never drained");
    // The count falls with the answer, so every answer has come.
    if (!inside_.empty()) tests_.wrong("drained with %zu lookups inside", inside_.size());
  }

  void finish() {
    while (top_->valid_i || top_->host_valid_i) tick();
    for (unsigned i = 0; i < 1000 && !inside_.empty(); ++i) tick();
    if (!inside_.empty()) tests_.wrong("%zu answers are missing", inside_.size());
    inside_.clear();
  }

  bench::Tests& tests_;
  bench::Random random_;
  std::unique_ptr<Vtop> top_ = std::make_unique<Vtop>();
  std::vector<uint64_t> words_[2];
  std::deque<Lookup> inside_;
  Lookup asked_{};
  uint64_t now_ = 0, lookups_ = 0, writes_ = 0, errors_ = 0, took_ = 0, took_max_ = 0;
  uint16_t tag_ = 0;
  bool broken_ = false, host_reads_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  Bench bench(tests, seed);
  tests.begin("changes, lookups in flight");
  bench.run(stdin);
  tests.end();
  tests.begin("single lookups");
  bench.alone();
  tests.end();
  tests.begin("lookups while the host always accesses the banks");
  bench.contended();
  tests.end();
  tests.begin("flipped bits are detected and repaired");
  bench.turned_over();
  tests.end();
  bench.end();
  return tests.result();
}
