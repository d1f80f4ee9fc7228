// Bench of hue_head: writes random frames with random pauses, and reads vectors of any sequence number in any clock. A model that keeps
// whole frames says what each read gives. Bytes behind a frame's end are random on the bus.
#include <deque>
#include <memory>

#include "Vtop.h"
#include "bench.h"
#include "hue_layout.h"

using bench::Bytes;

namespace {
using hue_pkg::hue_head_bytes_t;
constexpr unsigned Width = HUE_BUS_BYTES, Frames = HUE_FRAMES, HeadBytes = 128, TooLong = 9217;

std::unique_ptr<Vtop> top;

// A frame inside the module: its number, its first bytes, and the clock from which it can be read, once that is known.
struct Frame {
  unsigned seq;
  Bytes head;
  bool whole;
  uint64_t from;
};

class Bench {
 public:
  Bench(bench::Tests& tests, bench::Random& random) : tests_(tests), random_(random) {
    top->rst_ni = 0;
    top->write_i = top->read_i = top->release_i = 0;
    for (int i = 0; i < 4; ++i) edge();
    top->rst_ni = 1;
  }

  // Shares of clocks in percent: idle of the stream, with a read, with a release if there is something to release.
  void run(unsigned count, unsigned idle, unsigned reads, unsigned releases, unsigned len_fixed) {
    unsigned begun = 0, beat = 0, beats = 0;
    Bytes frame;
    unsigned len = 0;
    while (begun < count || beat != 0) {
      top->eval();
      if (beat == 0) {
        len = len_fixed != 0 ? len_fixed : random_len();
        beats = len == 0 || len == TooLong ? 1 : (len + Width - 1) / Width;
        frame.assign(beats * Width, 0);
        for (auto& byte : frame) byte = random_.byte();
      }
      const bool may = beat != 0 || (top->ready_o && begun < count);
      top->write_i = may && !random_.percent(idle);
      top->first_i = beat == 0;
      top->last_i = beat + 1 == beats;
      top->len_i = len;
      for (unsigned i = 0; i < Width; ++i) bench::set_bits(top->data_i, 8 * i, 8, frame[beat * Width + i]);
      if (top->write_i && beat == 0) {
        if (top->seq_o != next_) tests_.wrong("sequence number %u, expected %u", top->seq_o, next_);
        const unsigned have = len == TooLong ? 0 : std::min(len, HeadBytes);
        frames_.push_back({next_, Bytes(frame.begin(), frame.begin() + have), false, 0});
        next_ = (next_ + 1) % Frames;
        ++begun;
      }
      if (top->write_i) {
        if (!frames_.back().whole && (beat + 1 == beats || beat + 1 == HeadBytes / Width)) {
          frames_.back().whole = true;
          frames_.back().from = cycle_ + 2;
        }
        beat = beat + 1 == beats ? 0 : beat + 1;
      }
      side(reads, releases);
      tick();
    }
    top->write_i = 0;
    for (unsigned i = 0; i < 4 * Frames + 4; ++i) {
      side(reads, 100);
      tick();
    }
    if (!frames_.empty()) tests_.wrong("%zu frames were not released", frames_.size());
  }

  uint64_t cycle() const { return cycle_; }
  unsigned full() const { return full_; }
  unsigned found() const { return found_; }

 private:
  unsigned random_len() {
    const unsigned sort = random_.below(100);
    if (sort < 3) return random_.below(15);
    if (sort < 60) return random_.between(14, 140);
    if (sort < 97) return random_.between(60, 300);
    return sort == 97 ? TooLong : random_.between(1000, 9216);
  }

  bool readable(const Frame& frame) const { return frame.whole && cycle_ >= frame.from; }

  // A read and a release in this clock.
  void side(unsigned reads, unsigned releases) {
    if (top->read_i = random_.percent(reads)) {
      const bool inside = !frames_.empty() && random_.percent(50);
      top->seq_i = inside ? frames_[random_.below(frames_.size())].seq : random_.below(Frames);
      expected_.clear();
      for (const Frame& frame : frames_) {
        if (frame.seq == top->seq_i && readable(frame)) {
          expected_ = frame.head;
          ++found_;
        }
      }
      known_ = true;
    }
    top->release_i = !frames_.empty() && readable(frames_.front()) && random_.percent(releases);
    if (top->release_i) frames_.pop_front();
  }

  void tick() {
    top->eval();
    full_ += !top->ready_o;
    edge();
    if (!known_) return;
    for (unsigned i = 0; i < HeadBytes && !tests_.failed(); ++i) {
      const bool there = i < expected_.size();
      const uint8_t want = there ? expected_[i] : 0;
      if (bench::get(top->head_o, hue_head_bytes_t::bytes.part(8 * i, 8)) != want ||
          bench::get(top->head_o, hue_head_bytes_t::mask.part(i, 1)) != there) {
        tests_.wrong("number %u, byte %u of %zu", top->seq_i, i, expected_.size());
      }
    }
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
  std::deque<Frame> frames_;
  Bytes expected_;
  bool known_ = false;
  unsigned next_ = 0, full_ = 0, found_ = 0;
  uint64_t cycle_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  const std::string width = "head " + std::to_string(8 * Width) + " bit, ";
  const unsigned shares[][3] = {{0, 100, 100}, {50, 100, 30}, {0, 50, 3}, {90, 100, 100}, {20, 80, 50}};
  for (const auto& share : shares) {
    tests.begin(width + "idle " + std::to_string(share[0]) + " %, reads " + std::to_string(share[1]) + " %, releases " +
                std::to_string(share[2]) + " %");
    Bench bench(tests, random);
    bench.run(3000, share[0], share[1], share[2], 0);
    if (bench.found() < 100) tests.wrong("only %u reads of a frame", bench.found());
    if (share[2] == 3 && bench.full() < 100) tests.wrong("full for %u clocks only", bench.full());
    tests.end();
  }
  tests.begin(width + "every length up to 300 bytes");
  for (unsigned len = 1; len <= 300; ++len) {
    Bench bench(tests, random);
    bench.run(2 * Frames + 2, 0, 100, 50, len);
  }
  tests.end();
  tests.begin(width + "64-byte frames at full rate");
  {
    Bench bench(tests, random);
    const uint64_t before = bench.cycle();
    bench.run(2000, 0, 100, 100, 64);
    const uint64_t least = 2000 * ((64 + Width - 1) / Width);
    if (bench.cycle() - before > least + 4 * Frames + 8) tests.wrong("%llu clocks", (unsigned long long)(bench.cycle() - before));
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
