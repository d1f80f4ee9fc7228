// Test bench of hue_dag36: reads writes and lookups of dag36_vectors from standard input and applies them with random gaps and
// stalls; writes come while lookups are in flight. Every answer is compared, in order. At the end each word of the first level is
// damaged.
//
// Arguments: seed, name of the test. Ends with a line `test NAME ... ok|FAILED` and 0 or 1.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#include "Vtop.h"

namespace {
struct Expected {
  uint32_t key;
  uint16_t hop;
  uint8_t tag;
};

uint64_t random_state;
uint32_t random_below(uint32_t end) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return static_cast<uint32_t>((random_state * 0x2545f4914f6cdd1dULL) >> 33) % end;
}

std::unique_ptr<Vtop> top;
std::deque<Expected> inside;
uint8_t next_tag;
uint64_t cycles, lookups, wrong, errors;
unsigned stall_percent;

bool waits;  // the host accesses the memories in this clock

// One clock, after the inputs have been set. Checks the outputs at its edge.
void tick() {
  top->en_i = !waits && random_below(100) >= stall_percent;
  top->eval();
  waits = top->wait_o;
  errors += top->en_i && top->error_o;
  if (top->en_i && top->valid_o) {
    if (inside.empty()) {
      std::printf("an answer that nobody asked for\n");
      ++wrong;
    } else {
      const Expected want = inside.front();
      inside.pop_front();
      if (top->hop_o != want.hop || top->tag_o != want.tag) {
        if (++wrong < 10)
          std::printf("key %08x: hop %u tag %u, expected %u tag %u\n", want.key, top->hop_o, top->tag_o, want.hop,
                      want.tag);
      }
    }
  }
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
  top->eval();
  ++cycles;
}

// A packet: a lookup of a key that starts at an item, or a packet without a lookup.
void send(uint64_t item, uint32_t key, uint16_t hop, bool ask) {
  inside.push_back({key, hop, next_tag});
  top->valid_i = 1;
  top->ask_i = ask;
  top->item_i = item;
  top->key_i = key;
  top->tag_i = next_tag++;
  do tick();
  while (!top->en_i);
  top->valid_i = 0;
}

void idle() {
  top->valid_i = 0;
  top->host_en_i = 0;
  tick();
}

// An access of the host, while packets may be inside. Returns the word read.
uint64_t host(bool write, unsigned level, uint32_t index, uint64_t data) {
  top->valid_i = 0;
  top->host_en_i = 1;
  top->host_write_i = write;
  top->host_level_i = level;
  top->host_index_i = index;
  top->host_data_i = data;
  for (int i = 0; i < 8; ++i) {
    tick();
    top->host_en_i = 0;
    top->eval();
    if (top->host_done_o) {
      const uint64_t read = top->host_data_o;
      tick();
      return read;
    }
  }
  std::printf("the host waits for ever\n");
  ++wrong;
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  random_state = (argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1) | 1;
  const char* name = argc > 2 ? argv[2] : "hue_dag36";
  top = std::make_unique<Vtop>();
  top->rst_ni = 0;
  for (int i = 0; i < 4; ++i) idle();
  top->rst_ni = 1;
  char line[128];
  bool bad = false;
  std::map<uint32_t, uint64_t> first_level;
  uint64_t node = 0;  // the latest root that is a node
  while (std::fgets(line, sizeof line, stdin)) {
    unsigned level;
    unsigned long long a, b, c;
    if (lookups % 512 == 0) stall_percent = random_below(3) * 30;
    if (std::sscanf(line, "w %u %llx %llx", &level, &a, &b) == 3) {
      if (level == 0) first_level[a] = b;
      host(true, level, a, b);
      // Sometimes the word is read back.
      const uint64_t read = random_below(16) == 0 ? host(false, level, a, 0) : b;
      if (read != b) {
        std::printf("level %u word %llx reads %llx, expected %llx\n", level, a, static_cast<unsigned long long>(read), b);
        ++wrong;
      }
    } else if (std::sscanf(line, "l %llx %llx %llx", &a, &b, &c) == 3) {
      while (random_below(4) == 0) idle();
      if (a >> 34 & 1) node = a;
      // Packets without a lookup pass between lookups, and get no route, whatever their key and item are.
      while (random_below(8) == 0) send(a, b, 0xffff, false);
      send(a, b, c, true);
      ++lookups;
    } else if (line[0] == 'f') {
      while (!inside.empty() && wrong < 10) idle();
    } else {
      std::printf("cannot read: %s", line);
      bad = true;
      break;
    }
    if (wrong >= 10) break;
  }
  for (int i = 0; i < 4096 && !inside.empty(); ++i) idle();
  if (!inside.empty()) {
    std::printf("%zu answers are missing\n", inside.size());
    bad = true;
  }
  if (errors) {
    std::printf("%llu errors of parity in sound words\n", static_cast<unsigned long long>(errors));
    bad = true;
  }
  // Flips a bit in every word of the first level: a lookup that starts there reports an error, and finds no route.
  for (const auto& [index, word] : first_level) {
    host(true, 0, index, word ^ (1ULL << random_below(36)));
  }
  send(node, 0, 0xffff, true);
  for (int i = 0; i < 4096 && !inside.empty(); ++i) idle();
  if (errors == 0) {
    std::printf("a damaged word goes unnoticed\n");
    bad = true;
  }
  top->final();
  top.reset();  // before the simulator's own globals go
  bad = bad || wrong || lookups == 0;
  std::printf("%llu lookups, %llu cycles\ntest %s ... %s\n", static_cast<unsigned long long>(lookups),
              static_cast<unsigned long long>(cycles), name, bad ? "FAILED" : "ok");
  return bad;
}
