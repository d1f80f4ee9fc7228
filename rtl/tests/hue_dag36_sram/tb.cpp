// Test bench of hue_dag36_sram: reads writes and lookups of dag36_vectors from standard input and applies them with random gaps and
// stalls; the host writes while lookups are in flight. Every answer is compared, in order. The bench models the banks. Sometimes a
// bit of a word flips: lookups that read the word find no route, the fault is reported with its address, and the word is correct
// again once the host has rewritten it. A single lookup takes the stated number of clocks.
//
// Keys have 32 or 128 bits (parameter KeyBits). With parameter Twice, half of the lookups have their first answer held; of these, half are
// looked up with an earlier lookup's key first, and then again with their own.
//
// Arguments: seed, name of the test, and optionally `rate`: lookups come as fast as they are taken, nothing stalls and no bit flips.
// Then the last line but one gives the rate of the lookups behind the last write. Ends with a line `test NAME ... ok|FAILED` and exit code 0 or 1.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "bench.h"

#ifndef HUE_LATENCY
#define HUE_LATENCY 4
#endif
#ifndef HUE_KEY_BITS
#define HUE_KEY_BITS 32
#endif

namespace {
const std::string KeyLine = "l %llx %" + std::to_string(HUE_KEY_BITS / 4) + "[0-9a-f] %llx";
constexpr unsigned WordClocks = HUE_LATENCY + 2 + 4;  // clocks in which hue_dag36_walk reads a word, when nothing stalls

#ifndef HUE_TWICE
#define HUE_TWICE 0
#endif

struct Expected {
  uint64_t entered;
  std::string key;  // hexadecimal
  uint16_t hop;
  uint8_t tag;
};

// Lookups whose first answer is held.
struct Held {
  unsigned slot;
  bool again;
  std::string key;
  uint16_t hop;
};

uint64_t random_state;
uint32_t random_below(uint32_t end) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return static_cast<uint32_t>((random_state * 0x2545f4914f6cdd1dULL) >> 33) % end;
}

std::unique_ptr<Vtop> top;
std::vector<uint64_t> bank[2];
std::vector<uint64_t> copies;  // the host's copy of the memory
std::deque<uint64_t> pipeline[2];
std::deque<Expected> inside;
std::vector<Held> held;
uint64_t cycles, lookups, wrong, reads, faulty, latest, stood, again;
uint64_t latency_sum, latency_max, latency_last;
unsigned stall_percent;
bool may_fail;  // a word is damaged
bool rate;

template <typename Signal>
void set_key(Signal& signal, const std::string& hexadecimal) {
  for (unsigned digit = 0; digit < HUE_KEY_BITS / 4; ++digit) {
    const char letter = digit < hexadecimal.size() ? hexadecimal[hexadecimal.size() - 1 - digit] : '0';
    bench::set_bits(signal, 4 * digit, 4, std::strtoul(std::string(1, letter).c_str(), nullptr, 16));
  }
}

// One of the held answers is judged, if it is there.
void judge() {
  top->judged_i = 0;
  top->eval();
  if (held.empty() || random_below(4) == 0) return;
  const unsigned which = random_below(held.size());
  const Held lookup = held[which];
  top->ask_slot_i = lookup.slot;
  top->eval();
  if (!top->ask_ended_o) return;
  top->judged_i = 1;
  top->judged_slot_i = lookup.slot;
  // A lookup that read a damaged word stays without an answer.
  top->again_i = lookup.again && !top->ask_error_o;
  set_key(top->again_key_i, lookup.key);
  if (!lookup.again && !top->ask_error_o && top->ask_hop_o != lookup.hop && ++wrong < 10) {
    std::printf("slot %u: held answer %u, expected %u\n", lookup.slot, top->ask_hop_o, lookup.hop);
  }
  top->eval();
  if (!top->judged_ready_o) return;
  (lookup.again ? again : stood) += 1;
  held.erase(held.begin() + which);
}

// One clock, after the inputs have been set. True if the offered lookup was taken.
bool tick() {
  top->ready_i = rate || random_below(100) >= stall_percent;
  const uint64_t even = pipeline[0].front(), odd = pipeline[1].front();
  top->sram_rdata_i[0] = static_cast<uint32_t>(even);
  top->sram_rdata_i[1] = static_cast<uint32_t>(even >> 32 | odd << 4);
  top->sram_rdata_i[2] = static_cast<uint32_t>(odd >> 28);
  top->eval();
  const bool taken = top->valid_i && top->ready_o;
  if (HUE_TWICE) judge();
  reads += (top->read_o & 1) + (top->read_o >> 1);
  if (top->valid_o && top->ready_i) {
    if (inside.empty()) {
      std::printf("an answer that nobody asked for\n");
      ++wrong;
    } else {
      const Expected want = inside.front();
      inside.pop_front();
      const uint64_t latency = cycles - want.entered;
      latency_sum += latency;
      latency_last = latency;
      if (latency > latency_max) latency_max = latency;
      const bool failed = may_fail && top->error_o && top->hop_o == 0xffff;
      faulty += failed;
      if (top->tag_o != want.tag || (!failed && (top->error_o || top->hop_o != want.hop))) {
        if (++wrong < 10)
          std::printf("key %s: hop %u tag %u error %u, expected %u tag %u\n", want.key.c_str(), top->hop_o, top->tag_o,
                      top->error_o, want.hop, want.tag);
      }
    }
  }
  // The pins at this edge.
  for (int i = 0; i < 2; ++i) {
    pipeline[i].pop_front();
    uint64_t read = pipeline[i].empty() ? 0 : pipeline[i].back();
    if (top->sram_en_o >> i & 1) {
      const uint64_t both = top->sram_addr_o;
      const uint32_t addr = static_cast<uint32_t>(both >> (19 * i)) & 0x7ffff;
      if (top->sram_write_o >> i & 1) {
        uint64_t data = i == 0 ? (top->sram_wdata_o[0] | static_cast<uint64_t>(top->sram_wdata_o[1] & 0xf) << 32)
                               : (top->sram_wdata_o[1] >> 4 | static_cast<uint64_t>(top->sram_wdata_o[2]) << 28);
        bank[i][addr] = data & 0xfffffffffULL;
      } else {
        read = bank[i][addr];
      }
    }
    pipeline[i].push_back(read);
  }
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
  top->eval();
  ++cycles;
  return taken;
}

void idle() {
  top->valid_i = 0;
  tick();
}

// An access of the host, while lookups may be inside.
uint64_t host(bool write, uint32_t index, uint64_t data) {
  top->valid_i = 0;
  top->host_valid_i = 1;
  top->host_write_i = write;
  top->host_index_i = index;
  top->host_data_i = data;
  for (int i = 0; i < 1000; ++i) {
    top->eval();
    const bool done = top->host_done_o;
    const uint64_t read = top->host_data_o;
    tick();
    if (done) {
      top->host_valid_i = 0;
      return read;
    }
  }
  std::printf("the host waits for ever\n");
  ++wrong;
  top->host_valid_i = 0;
  return 0;
}

// The lookups measured begin here, when the last write is done.
uint64_t settled_cycles, settled_lookups, settled_reads;
void settle() {
  latency_sum = latency_max = 0;
  settled_cycles = cycles;
  settled_lookups = lookups;
  settled_reads = reads;
}

void empty() {
  for (int i = 0; i < 100000 && !inside.empty() && wrong < 10; ++i) idle();
}
// The damaged word is correct again, and no lookup inside has read it.
void clear() {
  may_fail = false;
  top->fault_clear_i = 1;
  idle();
  top->fault_clear_i = 0;
}
}  // namespace

int main(int argc, char** argv) {
  random_state = (argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1) | 1;
  const char* name = argc > 2 ? argv[2] : "hue_dag36_sram";
  rate = argc > 3 && std::string(argv[3]) == "rate";
  top = std::make_unique<Vtop>();
  copies.assign(1 << 20, 0);
  for (int i = 0; i < 2; ++i) {
    bank[i].assign(1 << 19, 0);
    pipeline[i].assign(HUE_LATENCY, 0);
  }
  top->rst_ni = 0;
  for (int i = 0; i < 16; ++i) idle();
  top->rst_ni = 1;
  char line[128];
  uint8_t tag = 0;
  bool bad = false;
  uint64_t flips = 0, found = 0;
  std::vector<uint32_t> written;
  std::string former = "0";
  while (wrong < 10 && std::fgets(line, sizeof line, stdin)) {
    unsigned level;
    unsigned long long a, b, c;
    char key[HUE_KEY_BITS / 4 + 1];
    if (lookups % 512 == 0) stall_percent = random_below(3) * 30;
    if (std::sscanf(line, "w %u %llx %llx", &level, &a, &b) == 3) {
      host(true, a, b);
      if (rate) settle();
      if (may_fail && a == latest) {
        // This write corrected the word; earlier lookups may have read it.
        empty();
        clear();
        --flips;
      }
      copies[a] = b;
      written.push_back(a);
      if (!rate && random_below(16) == 0 && host(false, a, 0) != b) {
        std::printf("word %llx does not read %llx\n", a, b);
        ++wrong;
      }
    } else if (std::sscanf(line, KeyLine.c_str(), &a, key, &c) == 3) {
      while (!rate && random_below(4) == 0) idle();
      const bool holds = HUE_TWICE && random_below(2) == 0, again = holds && random_below(2) == 0;
      const bool lone = !rate && !holds && random_below(8) == 0;
      const uint64_t before = lone ? (empty(), reads) : 0;
      inside.push_back({0, key, static_cast<uint16_t>(c), tag});
      top->valid_i = 1;
      top->item_i = a;
      set_key(top->key_i, again ? former : key);
      former = key;
      top->tag_i = tag++;
      top->holds_i = holds;
      top->eval();
      unsigned slot = top->slot_o;
      while (!tick()) top->eval(), slot = top->slot_o;
      if (holds) held.push_back({slot, again, key, static_cast<uint16_t>(c)});
      inside.back().entered = cycles - 1;
      top->valid_i = 0;
      ++lookups;
      if (lone) {
        const unsigned percent = stall_percent;
        stall_percent = 0;
        empty();
        stall_percent = percent;
        const uint64_t expected = (reads - before) * WordClocks + 4;
        if (latency_last != expected && ++wrong < 10)
          std::printf("a lone lookup of %llu words takes %llu clocks, expected %llu\n",
                      static_cast<unsigned long long>(reads - before), static_cast<unsigned long long>(latency_last),
                      static_cast<unsigned long long>(expected));
      }
      // A bit flips in a word that was written. Lookups read it, or the host.
      if (rate) continue;
      if (!may_fail && !written.empty() && random_below(256) == 0) {
        latest = written[random_below(written.size())];
        bank[latest & 1][latest >> 1] ^= 1ULL << random_below(36);
        may_fail = true;
        ++flips;
      } else if (may_fail && random_below(64) == 0) {
        host(false, latest, 0);
        empty();
        if (!top->fault_o || top->fault_index_o != latest || top->fault_count_o == 0) {
          std::printf("a flipped bit in word %llx is not told: %u %x\n", static_cast<unsigned long long>(latest),
                      top->fault_o, top->fault_index_o);
          ++wrong;
        } else {
          ++found;
        }
        host(true, latest, copies[latest]);
        clear();
      }
    } else if (line[0] == 'f') {
      empty();
    } else {
      std::printf("cannot read: %s", line);
      bad = true;
      break;
    }
  }
  empty();
  if (!inside.empty()) {
    std::printf("%zu answers are missing\n", inside.size());
    bad = true;
  }
  top->final();
  top.reset();  // before the simulator's own globals go
  if (HUE_TWICE) {
    std::printf("%llu answers stood, %llu lookups were made again\n", static_cast<unsigned long long>(stood), static_cast<unsigned long long>(again));
    bad = bad || stood < 100 || again < 100;
  }
  bad = bad || wrong || lookups == 0 || (!rate && (flips < 5 || found + 1 < flips));
  std::printf("%llu lookups, %llu cycles, %llu words read; %llu bits flipped, %llu found, %llu lookups without an answer\n",
              static_cast<unsigned long long>(lookups), static_cast<unsigned long long>(cycles),
              static_cast<unsigned long long>(reads), static_cast<unsigned long long>(flips),
              static_cast<unsigned long long>(found), static_cast<unsigned long long>(faulty));
  if (rate) {
    const double count = static_cast<double>(lookups - settled_lookups);
    std::printf("rate: %.0f lookups, %.4f clocks each, %.4f words each, latency %.2f clocks, at most %llu; %zu words written\n", count,
                (cycles - settled_cycles) / count, (reads - settled_reads) / count, latency_sum / count,
                static_cast<unsigned long long>(latency_max), written.size());
  }
  std::printf("test %s ... %s\n", name, bad ? "FAILED" : "ok");
  return bad;
}
