// Bench of hue_input_queue: compares frames of every length with a queue of whole frames, with and without drops.
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;
using stream::Arrival;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;
constexpr unsigned Beats = HUE_BEATS;
constexpr unsigned Frames = HUE_FRAMES;
constexpr unsigned LengthMax = 9216;
constexpr unsigned LongBytes = 2048;
constexpr unsigned Latency = 3;
// Words that the queue holds outside its memory: those read ahead.
constexpr unsigned Ahead = 4;

std::unique_ptr<Vtop> top;

struct Frame {
  Bytes bytes;
  Arrival arrival;
  unsigned port = 0;  // which of the ports that share the queue
  unsigned beats() const { return stream::beats_of(bytes.size(), Width); }
  // Beats that are kept: all, or only the first if the frame is too long.
  unsigned kept() const { return bytes.size() > LengthMax ? 1 : beats(); }
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random, bool offline) : tests_(tests), random_(random), offline_(offline) {
    top->rst_ni = 0;
    top->s_valid_i = top->m_ready_i = 0;
    top->offline_i = offline;
    for (int i = 0; i < 3; ++i) top->eval(), edge();
    top->rst_ni = 1;
  }

  void send(const Frame& frame) { waiting_.push_back(frame); }
  bool hungry() const { return waiting_.size() < 2; }
  uint64_t cycle = 1, first_in = 0, first_out = 0, last_out = 0;
  unsigned dropped = 0, came = 0;

  void clock(const stream::Rates& rates) {
    if (!offered_) offered_ = !waiting_.empty() && !random_.percent(rates.idle);
    top->s_valid_i = offered_;
    if (offered_) drive();
    top->m_ready_i = !random_.percent(rates.stall);
    top->eval();
    if (top->idle_o != (inside_.empty() && beat_ == 0)) tests_.wrong("idle is %u", top->idle_o);
    const bool taken = offered_ && top->s_ready_o;
    const bool ends = taken && beat_ + 1 == waiting_.front().beats();
    if ((top->taken_o || top->dropped_o) != ends || (top->taken_o && top->dropped_o)) tests_.wrong("a frame is not either taken or dropped");
    // If there is room for the whole frame and its descriptor, it must not be dropped.
    if (taken && beat_ == 0) had_room_ = words_ + waiting_.front().beats() < Beats && inside_.size() + 1 < Frames;
    if (top->m_valid_o && top->m_ready_i) take();
    if (taken) {
      offered_ = false;
      ++beat_;
    }
    if (ends) end();
    edge();
    ++cycle;
  }

  // Runs until every frame has come out or been dropped.
  void run(const stream::Rates& rates) {
    for (unsigned quiet = 0; (!waiting_.empty() || !inside_.empty()) && quiet < 20000; ++quiet) {
      const unsigned before = came + dropped;
      clock(rates);
      if (came + dropped != before) quiet = 0;
    }
    if (!waiting_.empty() || !inside_.empty()) tests_.wrong("%zu frames do not leave", waiting_.size() + inside_.size());
    clock({0, 0});
    top->eval();
    if (!top->idle_o) tests_.wrong("not idle at the end");
  }

 private:
  void edge() {
    top->clk_i = 1;
    top->eval();
    top->clk_i = 0;
  }

  void drive() {
    const Frame& frame = waiting_.front();
    stream::put_beat(top->s_data_i, frame.bytes, Width, beat_);
    top->s_bytes_i = stream::bytes_of(frame.bytes.size(), Width, beat_);
    top->s_last_i = beat_ + 1 == frame.beats();
    // Side fields of later beats are ignored.
    top->s_port_i = beat_ == 0 ? frame.port : random_.below(4);
    stream::put_arrival(top->s_arrival_i, beat_ == 0 ? frame.arrival : stream::random_arrival(random_, ~0u));
  }

  void end() {
    const Frame& frame = waiting_.front();
    if (top->taken_o) {
      if (top->taken_bytes_o != std::min<size_t>(frame.bytes.size(), 65535))
        tests_.wrong("taken bytes %u", top->taken_bytes_o);
      if (top->taken_port_o != frame.port) tests_.wrong("taken from port %u", top->taken_port_o);
      if (inside_.empty() && first_in == 0) first_in = cycle;
      words_ += frame.kept();
      inside_.push_back(frame);
    } else {
      ++dropped;
      if (offline_) tests_.wrong("dropped although held back");
      if (had_room_) tests_.wrong("a frame of %zu bytes was dropped, and there was room", frame.bytes.size());
    }
    waiting_.pop_front();
    beat_ = 0;
  }

  void take() {
    if (inside_.empty()) {
      tests_.wrong("a beat of no frame");
      return;
    }
    const Frame& frame = inside_.front();
    if (first_out == 0) first_out = cycle;
    last_out = cycle;
    Arrival wanted = frame.arrival;
    wanted.len = std::min<size_t>(frame.bytes.size(), LengthMax + 1);
    if (!(stream::arrival_of(top->m_arrival_o) == wanted) || top->m_port_o != frame.port) tests_.wrong("frame %u: what stands beside it", frame.arrival.tag);
    const bool fits = frame.bytes.size() <= LengthMax;
    const bool group = frame.bytes.size() >= 14 && fits && (frame.bytes[0] & 1) != 0;
    if (top->m_class_o != (group ? 2u : 0u) + (frame.bytes.size() >= LongBytes && fits)) tests_.wrong("frame %u: class %u", frame.arrival.tag, top->m_class_o);
    for (unsigned b = 0; b < stream::bytes_of(frame.bytes.size(), Width, out_); ++b) {
      if (bench::bits(top->m_data_o, 8 * b, 8) != frame.bytes[out_ * Width + b]) {
        tests_.wrong("frame %u of %zu bytes: byte %u", frame.arrival.tag, frame.bytes.size(), out_ * Width + b);
        break;
      }
    }
    ++out_;
    --words_;
    if (top->m_last_o != (out_ == frame.kept()))
      tests_.wrong("frame %u of %zu bytes: last", frame.arrival.tag, frame.bytes.size());
    if (out_ >= frame.kept()) {
      out_ = 0;
      ++came;
      inside_.pop_front();
    }
  }

  bench::Tests& tests_;
  bench::Random& random_;
  bool offline_, offered_ = false, had_room_ = false;
  std::deque<Frame> waiting_, inside_;
  unsigned beat_ = 0, out_ = 0;
  size_t words_ = 0;
};

Frame frame_of(bench::Random& random, uint32_t tag, unsigned len) {
  return {stream::random_bytes(random, len), stream::random_arrival(random, tag), random.below(4)};
}
unsigned length(bench::Random& random) {
  if (random.percent(4)) return LengthMax - 2 + random.below(5);
  if (random.percent(2)) return random.between(LengthMax, 12000);
  return stream::random_length(random, Width, 1600);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string name = "input queue " + std::to_string(8 * Width) + " bit, ";

  for (const bool offline : {true, false}) {
    for (const auto& rates : stream::Mixes) {
      tests.begin(name + (offline ? "held back, " : "dropping, ") + stream::text_of(rates));
      Bench bench(tests, random, offline);
      for (uint32_t i = 0; i < 600; ++i) bench.send(frame_of(random, i, length(random)));
      bench.run(rates);
      if (!offline && rates.stall > rates.idle && rates.stall == 90 && bench.dropped == 0)
        tests.wrong("the test is too weak: nothing was dropped");
      tests.end();
    }
  }

  tests.begin(name + "a burst of more frames than there are descriptors");
  {
    Bench bench(tests, random, false);
    const unsigned count = 3 * Frames;
    for (uint32_t i = 0; i < count; ++i) bench.send(frame_of(random, i, random.below(Width + 1)));
    while (!bench.hungry()) bench.clock({0, 100});
    bench.run({0, 0});
    if (bench.came < Frames || bench.came > Frames + Ahead) tests.wrong("%u frames came of %u", bench.came, count);
  }
  tests.end();

  tests.begin(name + "latency " + std::to_string(Latency) + " clocks, a beat a clock");
  {
    Bench bench(tests, random, true);
    const unsigned count = 400, len = std::max(64u, Width);
    for (uint32_t i = 0; i < count; ++i) bench.send(frame_of(random, i, len));
    bench.run({0, 0});
    if (bench.first_out - bench.first_in != Latency)
      tests.wrong("first beat after %llu clocks", (unsigned long long)(bench.first_out - bench.first_in));
    if (bench.last_out - bench.first_out != count * (len / Width) - 1)
      tests.wrong("%llu clocks for %u frames", (unsigned long long)(bench.last_out - bench.first_out), count);
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
