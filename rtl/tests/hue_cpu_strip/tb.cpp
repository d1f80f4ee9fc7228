// Bench of hue_cpu_strip: sends frames of every length with a header in front, and compares whole frames.
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;
using stream::Arrival;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned HeaderBytes = 16;

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes;
  uint64_t time = 0;
  uint32_t tag = 0;
  unsigned port = 0;
  // Shorter than the header: it becomes an empty frame without header fields.
  bool is_short() const { return bytes.size() < HeaderBytes; }
  Bytes stripped() const { return is_short() ? Bytes() : Bytes(bytes.begin() + HeaderBytes, bytes.end()); }
  Arrival arrival() const {
    Arrival arrival;
    arrival.time = time;
    arrival.tag = tag;
    if (!is_short()) {
      arrival.net = bytes[2];
      arrival.out = bytes[6] & 7;
      arrival.from_cpu = bytes[7] & 1;
    }
    return arrival;
  }
  // Clocks that it needs when nothing stalls.
  unsigned clocks() const {
    const unsigned beats = stream::beats_of(bytes.size(), Width);
    const unsigned rest = stream::bytes_of(bytes.size(), Width, beats - 1);
    return beats + (Width > HeaderBytes && beats > 1 && rest > HeaderBytes);
  }
};

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
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
  std::deque<Frame> inside;
  for (unsigned quiet = 0; (!frames.empty() || !inside.empty()) && quiet < 500; ++quiet, ++clocks) {
    if (!offered) offered = !frames.empty() && !random.percent(rates.idle);
    top->s_valid_i = offered;
    if (offered) {
      const Frame& frame = frames.front();
      if (beat == 0 && (inside.empty() || inside.back().tag != frame.tag)) inside.push_back(frame);
      stream::put_beat(top->s_data_i, frame.bytes, Width, beat);
      top->s_bytes_i = stream::bytes_of(frame.bytes.size(), Width, beat);
      top->s_last_i = beat + 1 == stream::beats_of(frame.bytes.size(), Width);
      // Time and tag are sampled with the first beat.
      top->s_time_i = beat == 0 ? frame.time : random.next();
      top->s_tag_i = beat == 0 ? frame.tag : ~frame.tag;
      top->s_port_i = beat == 0 ? frame.port : random.below(4);
    }
    top->m_ready_i = !random.percent(rates.stall);
    top->eval();
    if (top->m_valid_o && top->m_ready_i) {
      quiet = 0;
      if (inside.empty()) {
        tests.wrong("a beat of no frame");
        break;
      }
      const Frame& frame = inside.front();
      const Bytes wanted = frame.stripped();
      Arrival found = stream::arrival_of(top->m_arrival_o);
      if (coming.empty() && (!(found == frame.arrival()) || top->m_port_o != frame.port))
        tests.wrong("frame %u of %zu bytes: port or arrival record", frame.tag, frame.bytes.size());
      if (top->m_bytes_o != stream::bytes_of(wanted.size(), Width, coming.size() / Width))
        tests.wrong("frame %u of %zu bytes: a beat of %u", frame.tag, frame.bytes.size(), top->m_bytes_o);
      stream::take_beat(top->m_data_o, coming, top->m_bytes_o);
      if (top->m_last_o != (coming.size() >= wanted.size()))
        tests.wrong("frame %u of %zu bytes: last after %zu", frame.tag, frame.bytes.size(), coming.size());
      if (top->m_last_o) {
        if (coming != wanted) tests.wrong("frame %u of %zu bytes differs", frame.tag, frame.bytes.size());
        coming.clear();
        inside.pop_front();
      }
    }
    if (offered && top->s_ready_o) {
      quiet = 0;
      offered = false;
      if (++beat == stream::beats_of(frames.front().bytes.size(), Width)) {
        beat = 0;
        frames.pop_front();
      }
    }
    edge();
  }
  if (!frames.empty() || !inside.empty()) tests.wrong("%zu frames do not leave", frames.size() + inside.size());
  top->s_valid_i = 0;
  top->eval();
  if (!top->idle_o) tests.wrong("not idle at the end");
  return clocks;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "CPU header off " + std::to_string(8 * Width) + " bit, ";
  for (const auto& rates : stream::Mixes) {
    tests.begin(name + stream::text_of(rates));
    std::deque<Frame> frames;
    uint64_t clocks = 0;
    for (uint32_t i = 0; i < 2000; ++i) {
      frames.push_back({stream::random_bytes(random, stream::random_length(random, Width, 1600)), random.next(), i, random.below(4)});
      clocks += frames.back().clocks();
    }
    const uint64_t took = run(tests, random, frames, rates);
    if (rates.idle == 0 && rates.stall == 0 && took != clocks)
      tests.wrong("%llu clocks, expected %llu", (unsigned long long)took, (unsigned long long)clocks);
    tests.end();
  }
  tests.begin(name + "every length up to 200 bytes");
  {
    std::deque<Frame> frames;
    for (uint32_t i = 0; i < 4 * 201; ++i) frames.push_back({stream::random_bytes(random, i / 4), random.next(), i, random.below(4)});
    run(tests, random, frames, {20, 20});
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
