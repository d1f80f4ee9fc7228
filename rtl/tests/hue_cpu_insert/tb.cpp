// Bench of hue_cpu_insert: sends frames that must get a header and frames that must not, and compares whole frames.
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned HeaderBytes = hue_pkg::hue_cpu_header_t::Bits / 8;

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes, header;  // header: the one expected in front of the frame
  bool to_cpu = false;
  unsigned port = 0, net = 0;
  uint32_t tag = 0;
  Bytes whole() const {
    Bytes all = to_cpu ? header : Bytes();
    all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
  }
  uint64_t departure(unsigned len) const { return stream::departure_of(port, net, tag, len); }
};

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
}

void drive(const Frame& frame, unsigned beat) {
  stream::put_beat(top->s_data_i, frame.bytes, Width, beat);
  top->s_bytes_i = stream::bytes_of(frame.bytes.size(), Width, beat);
  top->s_last_i = beat + 1 == stream::beats_of(frame.bytes.size(), Width);
  top->s_to_cpu_i = frame.to_cpu;
  top->s_departure_i = frame.departure(frame.bytes.size());
  for (unsigned b = 0; b < HeaderBytes; ++b) bench::set_bits(top->s_header_i, 8 * (HeaderBytes - 1 - b), 8, frame.header[b]);
}

// Sends the frames. Returns the number of clocks.
uint64_t run(bench::Tests& tests, bench::Random& random, std::deque<Frame> frames, const stream::Rates& rates) {
  top->rst_ni = 0;
  top->s_valid_i = top->m_ready_i = 0;
  for (int i = 0; i < 3; ++i) top->eval(), edge();
  top->rst_ni = 1;
  uint64_t clocks = 0;
  bool offered = false;
  unsigned beat = 0;
  Bytes coming;
  for (unsigned quiet = 0; !frames.empty() && quiet < 500; ++quiet, ++clocks) {
    if (!offered) offered = !random.percent(rates.idle);
    top->s_valid_i = offered;
    const Frame& frame = frames.front();
    drive(frame, beat);
    top->m_ready_i = !random.percent(rates.stall);
    top->eval();
    if (top->m_valid_o != offered) tests.wrong("a beat does not come out in the clock in which it comes in");
    bool left = false;
    if (top->m_valid_o && top->m_ready_i) {
      quiet = 0;
      const Bytes whole = frame.whole();
      const unsigned from = coming.size() / Width;
      if (top->m_departure_o != frame.departure(whole.size()))
        tests.wrong("frame %u: departure", frame.tag);
      if (top->m_bytes_o != stream::bytes_of(whole.size(), Width, from))
        tests.wrong("frame %u: %u bytes", frame.tag, top->m_bytes_o);
      stream::take_beat(top->m_data_o, coming, top->m_bytes_o);
      if (top->m_last_o != (coming.size() >= whole.size()))
        tests.wrong("frame %u of %zu bytes: last", frame.tag, whole.size());
      left = top->m_last_o;
      if (left && coming != whole) tests.wrong("frame %u of %zu bytes differs", frame.tag, whole.size());
    }
    const bool taken = offered && top->s_ready_o;
    const bool ends = taken && top->s_last_i;
    if (ends != left) tests.wrong("frame %u: its last beats in and out are not in the same clock", frame.tag);
    if (taken) {
      offered = false;
      ++beat;
    }
    if (ends || left) {
      beat = 0;
      offered = false;
      coming.clear();
      frames.pop_front();
    }
    edge();
  }
  if (!frames.empty()) tests.wrong("%zu frames do not leave", frames.size());
  return clocks;
}

Frame random_frame(bench::Random& random, uint32_t tag) {
  Frame frame;
  frame.bytes = stream::random_bytes(random, std::max(1u, stream::random_length(random, Width, 1600)));
  frame.header = stream::random_bytes(random, HeaderBytes);
  frame.to_cpu = random.below(2);
  frame.port = random.below(8);
  frame.net = random.below(256);
  frame.tag = tag;
  return frame;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  for (const auto& rates : stream::Mixes) {
    tests.begin("CPU header in " + std::to_string(8 * Width) + " bit, " + stream::text_of(rates));
    std::deque<Frame> frames;
    uint64_t beats = 0;
    for (uint32_t i = 0; i < 2000; ++i) {
      frames.push_back(random_frame(random, i));
      beats += stream::beats_of(frames.back().whole().size(), Width);
    }
    const uint64_t clocks = run(tests, random, frames, rates);
    // One clock for each beat of the frames with their headers.
    if (rates.idle == 0 && rates.stall == 0 && clocks != beats)
      tests.wrong("%llu clocks for %llu beats", (unsigned long long)clocks, (unsigned long long)beats);
    tests.end();
  }
  top->final();
  top.reset();
  return tests.result();
}
