// Bench of hue_head beside hue_gather: when a frame's record leaves gather, the frame's vector is whole, and its sequence number is the
// number of records before it. Random frames, pauses and back-pressure; random bytes behind each frame's end.
#include <algorithm>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "bench.h"
#include "hue_layout.h"

using bench::Bytes;

namespace {
using hue_pkg::hue_head_bytes_t;
constexpr unsigned Width = HUE_BUS_BYTES, HeadBytes = 128, TooLong = 9217;

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes;
  unsigned len;
};

void edge() {
  top->clk_i = 0;
  top->eval();
  top->clk_i = 1;
  top->eval();
}

Frame random_frame(bench::Random& random, unsigned fixed) {
  const unsigned sort = random.below(100);
  unsigned len = sort < 5 ? random.below(20) : sort < 97 ? random.between(14, 300) : random.between(1000, 9216);
  if (sort == 99) len = TooLong;
  if (fixed != 0) len = fixed;
  Bytes bytes(len == TooLong ? Width : len);
  for (auto& byte : bytes) byte = random.byte();
  return {bytes, len};
}

void check(bench::Tests& tests, const Frame& frame) {
  const unsigned have = frame.len == TooLong ? 0 : std::min(frame.len, HeadBytes);
  for (unsigned i = 0; i < HeadBytes && !tests.failed(); ++i) {
    const uint8_t want = i < have ? frame.bytes[i] : 0;
    if (bench::get(top->head_o, hue_head_bytes_t::bytes.part(8 * i, 8)) != want ||
          bench::get(top->head_o, hue_head_bytes_t::mask.part(i, 1)) != (i < have)) {
      tests.wrong("byte %u of %u", i, frame.len);
    }
  }
}

// Sends frames; idle and back-pressure in percent. Returns the clocks.
uint64_t run(bench::Tests& tests, bench::Random& random, unsigned count, unsigned idle, unsigned stall, unsigned fixed) {
  top->rst_ni = 0;
  top->s_valid_i = top->m_ready_i = top->body_ready_i = 0;
  for (int i = 0; i < 4; ++i) edge();
  top->rst_ni = 1;
  std::deque<Frame> inside;
  Frame frame = random_frame(random, fixed), before;
  unsigned sent = 0, beat = 0, taken = 0;
  bool vector = false;
  uint64_t clocks = 0;
  for (; taken < count && clocks < 4000000; ++clocks) {
    const unsigned beats = std::max<unsigned>(1, (frame.bytes.size() + Width - 1) / Width);
    top->s_valid_i = sent < count && (top->s_valid_i || !random.percent(idle));
    top->s_first_i = beat == 0;
    top->s_last_i = beat + 1 == beats;
    top->s_len_i = frame.len;
    for (unsigned i = 0; i < Width; ++i) {
      const size_t at = beat * Width + i;
      bench::set_bits(top->s_data_i, 8 * i, 8, at < frame.bytes.size() ? frame.bytes[at] : random.byte());
    }
    top->body_ready_i = !random.percent(stall);
    top->m_ready_i = !random.percent(stall);
    top->eval();
    const bool fire = top->s_valid_i && top->s_ready_o, leaves = top->m_valid_o && top->m_ready_i;
    const unsigned len = top->m_len_o;
    if (vector) check(tests, before);
    edge();
    if (fire) {
      if (beat == 0) inside.push_back(frame);
      top->s_valid_i = 0;
      if (++beat == beats) {
        beat = 0;
        ++sent;
        frame = random_frame(random, fixed);
      }
    }
    vector = leaves;
    if (leaves) {
      if (inside.empty() || inside.front().len != len) {
        tests.wrong("a record of another frame");
        break;
      }
      before = inside.front();
      inside.pop_front();
      ++taken;
    }
  }
  if (vector) check(tests, before);
  if (taken != count) tests.wrong("%u records of %u frames", taken, count);
  return clocks;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  const std::string name = "head and gather " + std::to_string(8 * Width) + " bit, ";
  const unsigned shares[][2] = {{0, 0}, {40, 0}, {0, 40}, {50, 50}, {0, 90}};
  for (const auto& share : shares) {
    tests.begin(name + "idle " + std::to_string(share[0]) + " %, back-pressure " + std::to_string(share[1]) + " %");
    run(tests, random, 3000, share[0], share[1], 0);
    tests.end();
  }
  tests.begin(name + "64-byte frames at full rate");
  const uint64_t clocks = run(tests, random, 2000, 0, 0, 64);
  if (clocks > 2000 * std::max(1u, 64 / Width) + 30) tests.wrong("%llu clocks", (unsigned long long)clocks);
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
