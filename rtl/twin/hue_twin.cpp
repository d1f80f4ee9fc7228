// The twin: takes frames and register accesses, runs cycles of the verilated card, and returns frames. Its interface: hue_twin.h.
//
// A cycle: inputs are set with the clock low, outputs are sampled, then the clock rises; all transfers of the cycle happen at that
// edge. HUE_BUS_BYTES and HUE_IMAGE come from the image (scripts/images).
//
// The evaluation with the clock low is skipped if it changes no output that is sampled: all outputs come from registers, except the
// ready signals of CPU queues. So the outputs of the previous edge are valid while no CPU queue is offered a beat. HUE_CLOCK_BEFORE
// names the model's variable for the previous clock level, which makes the next evaluation an edge; without it the clock falls.

#include "hue_twin.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "Vtwin.h"
#ifdef HUE_CLOCK_BEFORE
#include "Vtwin___024root.h"
#endif
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

namespace {

constexpr unsigned kPorts = HUE_TWIN_PORTS;
constexpr unsigned kCpuPorts = 0xf0;
constexpr unsigned kBusBytes = HUE_BUS_BYTES;
constexpr unsigned kResetCycles = 16;
// After a reset the card clears its counters, a row a clock. Frames of a test, and accesses to those tables, come afterwards.
constexpr unsigned kClearCycles = 8192;
// A register answers in 2 cycles; this limit is far beyond.
constexpr unsigned kAnswerCyclesMax = 4096;
constexpr uint64_t kPicosecondsPerSecond = 1000000000000;
constexpr uint64_t kHalfPeriodPs = kPicosecondsPerSecond / (uint64_t{HUE_CLOCK_KHZ} * 1000) / 2;
constexpr uint64_t kAllKeep = kBusBytes >= 64 ? ~uint64_t{0} : (uint64_t{1} << (kBusBytes % 64)) - 1;

// The memory of a Verilator signal, whatever its width, as bytes: little endian words, bit 0 first.
template <typename T>
uint8_t *bytes_of(T &signal) {
  return reinterpret_cast<uint8_t *>(&signal);
}

struct Pushed {
  std::vector<uint8_t> bytes;
  uint64_t time_ns;
  uint64_t not_before;
  uint64_t order;
  uint32_t tag;
};

struct Left {
  std::vector<uint8_t> bytes;
  uint64_t first_cycle = 0;
  uint64_t last_cycle = 0;
  uint32_t tag = 0;
  uint32_t port = 0;
};

// The line behind a port. Times are in cycles times `per`, so that fractions of a cycle add up.
struct Line {
  uint64_t cycles = 0;  // For a byte, times `per`; 0: no line.
  uint64_t per = 1;
  unsigned __int128 free = 0;

  bool busy(uint64_t now) const { return free > static_cast<unsigned __int128>(now) * per; }
  void take(uint64_t first_cycle, size_t frame_bytes) {
    // A line that became free within this cycle keeps that time, so that fractions of a cycle are not lost.
    const unsigned __int128 latest = static_cast<unsigned __int128>(first_cycle) * per;
    if (free + per <= latest) free = latest;
    const size_t padded = frame_bytes < 60 ? 60 : frame_bytes;
    free += static_cast<unsigned __int128>(padded + 8 + 4 + 12) * cycles;
  }
};

// xorshift64*, so that a seed gives the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t byte() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1DULL) >> 56);
  }

 private:
  uint64_t state_;
};

#if HUE_SRAM_WORDS
// Two external memories at their pins: word i is in bank i mod 2. Read data comes HUE_SRAM_LATENCY cycles after the enable.
class Memories {
 public:
  Memories() : words_(HUE_SRAM_WORDS), read_(HUE_SRAM_LATENCY) {}

  template <typename Top>
  void cycle(Top &top) {
    if (++at_ == read_.size()) at_ = 0;
    std::array<uint64_t, 2> &read = read_[at_];
    if (read[0] != on_pins_[0] || read[1] != on_pins_[1]) {
      on_pins_ = read;
      const uint32_t pins[3] = {static_cast<uint32_t>(read[0]), static_cast<uint32_t>(read[0] >> 32 | read[1] << 4),
                                static_cast<uint32_t>(read[1] >> 28)};
      std::memcpy(bytes_of(top.sram_rdata_i), pins, sizeof pins);
    }
    if (top.sram_en_o == 0) return;
    uint32_t data[3];
    std::memcpy(data, bytes_of(top.sram_wdata_o), sizeof data);
    const uint64_t in[2] = {data[0] | uint64_t{data[1] & 0xf} << 32, data[1] >> 4 | uint64_t{data[2]} << 28};
    for (unsigned bank = 0; bank < 2; ++bank) {
      if ((top.sram_en_o >> bank & 1) == 0) continue;
      uint64_t &word = words_[((top.sram_addr_o >> (19 * bank) & 0x7ffff) << 1 | bank) % HUE_SRAM_WORDS];
      if ((top.sram_write_o >> bank & 1) != 0) {
        word = in[bank];
      } else {
        read[bank] = word;
      }
    }
  }

  void flip(uint32_t index, uint64_t bits) { words_[index] ^= bits; }

 private:
  std::vector<uint64_t> words_;
  std::vector<std::array<uint64_t, 2>> read_;
  std::array<uint64_t, 2> on_pins_ = {};
  size_t at_ = 0;
};
#endif

#if HUE_QUEUE_BYTES
// The output queues' external memory at its pins, as in rtl/card/hue_dram.sv: an access a cycle, in order, unless it refreshes;
// read data comes HUE_QUEUE_LATENCY cycles later.
class QueueMemory {
 public:
  QueueMemory() : words_(HUE_QUEUE_BYTES / kWordBytes) {}

  template <typename Top>
  void cycle(Top &top) {
    const bool ready = cycle_ % kRefreshPeriod >= kRefreshCycles;
    const bool comes = !reads_.empty() && reads_.front().due == cycle_;
#if HUE_CHECK
    const bool turns = ready != (top.queue_ready_i != 0) || comes != (top.queue_rvalid_i != 0);
#endif
    top.queue_ready_i = ready;
    top.queue_rvalid_i = comes;
#if HUE_CHECK
    // Assertions sample signals that depend on inputs as they were last evaluated.
    if (turns) top.eval();
#endif
    if (comes) {
      std::memcpy(bytes_of(top.queue_rdata_i), reads_.front().word.data(), kWordBytes);
      reads_.pop_front();
    }
    if (ready && top.queue_valid_o) {
      Word &word = words_[top.queue_addr_o % words_.size()];
      if (top.queue_write_o) {
        std::memcpy(word.data(), bytes_of(top.queue_wdata_o), kWordBytes);
      } else {
        reads_.push_back({cycle_ + HUE_QUEUE_LATENCY, word});
      }
    }
    ++cycle_;
  }

 private:
  static constexpr size_t kWordBytes = 32;
  // 7.8 us and 350 ns, as chips of 8 Gbit require (JESD79-3).
  static constexpr uint64_t kRefreshPeriod = uint64_t{HUE_CLOCK_KHZ} * 78 / 10000;
  static constexpr uint64_t kRefreshCycles = (uint64_t{HUE_CLOCK_KHZ} * 35 + 99999) / 100000;
  using Word = std::array<uint8_t, kWordBytes>;
  struct Read {
    uint64_t due;
    Word word;
  };
  std::vector<Word> words_;
  std::deque<Read> reads_;
  uint64_t cycle_ = 0;
};
#endif

thread_local hue_twin *current = nullptr;

}  // namespace

struct hue_twin {
  hue_twin() : context(new VerilatedContext), top(new Vtwin(context.get(), "card")), random(0) {
    context->traceEverOn(VM_TRACE);
    for (unsigned i = 0; i < kResetCycles; ++i) cycle();
    top->rst_ni = 1;
    for (unsigned i = 0; i < kClearCycles; ++i) cycle();
    cycles = 0;
    still_since = 0;
  }

  ~hue_twin() {
    stop_wave();
    top->final();
    // The library removes the model's scopes from the context that this thread used last, which may have been freed with another
    // twin.
    Verilated::threadContextp(context.get());
    top.reset();
  }

  void cycle();
  bool idle() const { return pushed == 0 && !opened && top->idle_o; }
  void stop_wave();
  void fail(const char *file, int line, const char *instance) {
    if (failure.empty()) failure = std::string(file) + ":" + std::to_string(line) + " in " + instance;
  }

  std::unique_ptr<VerilatedContext> context;
  std::unique_ptr<Vtwin> top;
#if VM_TRACE
  std::unique_ptr<VerilatedFstC> wave;
#endif
#if HUE_SRAM_WORDS
  Memories memories;
#endif
#if HUE_QUEUE_BYTES
  QueueMemory queue_memory;
#endif
  std::deque<Pushed> in[kPorts];
  size_t offset[kPorts] = {};  // Offset of the beat on offer in the first frame of `in`.
  bool offering[kPorts] = {};
  Left out[kPorts];
  unsigned opened = 0;  // Bits of the ports whose frame has begun to leave.
  Line lines[kPorts];
  unsigned lined = 0;  // Bits of the ports that have a line.
  unsigned busy = 0;   // Bits of the ports whose line takes no frame in this cycle.
  std::deque<Left> left;
  Left popped;
  std::deque<hue_twin_ending> endings;
  bool keeps_endings = false;
  std::string failure;
  Random random;
  uint64_t cycles = 0;
  uint64_t still_since = 0;
  uint64_t order_pushed = 0;
  uint64_t order_done = 0;  // Frames that have moved in completely, in ordered mode.
  uint64_t pushed = 0;
  uint64_t wave_from = 0;
  uint64_t wave_to = 0;
  uint32_t idle_of_256 = 0;
  uint32_t stall_of_256 = 0;
  unsigned order_port = kPorts;
  bool order_group = false;  // The previous frame was a group frame, whose copies others may overtake.
  bool ordered = false;

 private:
  void offer();
  void offer_port(unsigned port);
  bool may_begin(unsigned port, const Pushed &frame) const;
  void taken(unsigned moved);
  void collect(unsigned moved);
  bool settled() const;
  void check_settled();
  void evaluate(bool clock);
};

bool hue_twin::may_begin(unsigned port, const Pushed &frame) const {
  if (frame.not_before > cycles) return false;
  if (!ordered) return true;
  return frame.order == order_done && ((port == order_port && !order_group) || top->ingress_idle_o);
}

void hue_twin::offer_port(unsigned port) {
  const Pushed &frame = in[port].front();
  const size_t at = offset[port];
  const size_t rest = frame.bytes.size() - at;
  const size_t here = rest < kBusBytes ? rest : kBusBytes;
  uint8_t *data = bytes_of(top->s_tdata_i) + port * kBusBytes;
  if (here > 0) std::memcpy(data, frame.bytes.data() + at, here);
  // Bytes beyond the frame are noise, as on a board.
  if (here < kBusBytes) std::memset(data + here, 0xa5, kBusBytes - here);
  const uint64_t keep = here == kBusBytes ? kAllKeep : (uint64_t{1} << here) - 1;
  std::memcpy(bytes_of(top->s_tkeep_i) + port * (kBusBytes / 8), &keep, kBusBytes / 8);
  std::memcpy(bytes_of(top->s_ttime_i) + port * 8, &frame.time_ns, 8);
  std::memcpy(bytes_of(top->s_ttag_i) + port * 4, &frame.tag, 4);
  const unsigned bit = 1U << port;
  top->s_tlast_i = static_cast<uint8_t>((top->s_tlast_i & ~bit) | (rest <= kBusBytes ? bit : 0));
  top->s_tvalid_i = static_cast<uint8_t>(top->s_tvalid_i | bit);
  offering[port] = true;
}

void hue_twin::offer() {
  for (unsigned port = 0; port < kPorts; ++port) {
    if (in[port].empty() || offering[port]) continue;
    if (idle_of_256 != 0 && random.byte() < idle_of_256) continue;
    if (offset[port] == 0 && !may_begin(port, in[port].front())) continue;
    if (offset[port] == 0) {
      const Pushed &frame = in[port].front();
      order_port = port;
      order_group = !frame.bytes.empty() && (frame.bytes[0] & 1) != 0;
    }
    offer_port(port);
  }
  unsigned ready = 0xff;
  if (stall_of_256 != 0) {
    for (unsigned port = 0; port < kPorts; ++port) {
      if (random.byte() < stall_of_256) ready &= ~(1U << port);
    }
  }
  busy = 0;
  for (unsigned waiting = lined & ~opened; waiting != 0; waiting &= waiting - 1) {
    const unsigned port = static_cast<unsigned>(__builtin_ctz(waiting));
    if (lines[port].busy(cycles)) busy |= 1U << port;
  }
  top->m_tready_i = static_cast<uint8_t>(ready & ~busy);
}

void hue_twin::taken(unsigned moved) {
  top->s_tvalid_i = static_cast<uint8_t>(top->s_tvalid_i & ~moved);
  for (unsigned port = 0; port < kPorts; ++port) {
    if ((moved >> port & 1) == 0) continue;
    offering[port] = false;
    offset[port] += kBusBytes;
    if (offset[port] < in[port].front().bytes.size()) continue;
    in[port].pop_front();
    offset[port] = 0;
    --pushed;
    ++order_done;
  }
}

void hue_twin::collect(unsigned moved) {
  for (unsigned port = 0; port < kPorts; ++port) {
    if ((moved >> port & 1) == 0) continue;
    Left &frame = out[port];
    const unsigned bit = 1U << port;
    if ((opened & bit) == 0) {
      opened |= bit;
      frame = Left();
      frame.port = port;
      frame.first_cycle = cycles;
      std::memcpy(&frame.tag, bytes_of(top->m_ttag_o) + port * 4, 4);
    }
    uint64_t keep = 0;
    std::memcpy(&keep, bytes_of(top->m_tkeep_o) + port * (kBusBytes / 8), kBusBytes / 8);
    const uint8_t *data = bytes_of(top->m_tdata_o) + port * kBusBytes;
    const unsigned here = static_cast<unsigned>(__builtin_popcountll(keep));
    frame.bytes.insert(frame.bytes.end(), data, data + here);
    const bool last = (top->m_tlast_o & bit) != 0;
    const bool dense = keep == (here == kBusBytes ? kAllKeep : (uint64_t{1} << here) - 1);
    if (!dense || (!last && here != kBusBytes)) fail("stream", static_cast<int>(port), "m_tkeep_o has gaps");
    if (!last) continue;
    opened &= ~bit;
    frame.last_cycle = cycles;
    if ((lined & bit) != 0) lines[port].take(frame.first_cycle, frame.bytes.size());
    left.push_back(std::move(frame));
  }
}

void hue_twin::evaluate(bool clock) {
#ifdef HUE_CLOCK_BEFORE
  if (clock) top->rootp->HUE_CLOCK_BEFORE = 0;
#endif
  top->clk_i = clock;
  top->eval();
#if VM_TRACE
  if (wave && cycles >= wave_from && cycles < wave_to) wave->dump((cycles * 2 + clock) * kHalfPeriodPs);
#endif
}

bool hue_twin::settled() const {
#if !defined(HUE_CLOCK_BEFORE)
  return false;
#elif VM_TRACE
  return !wave && (top->s_tvalid_i & kCpuPorts) == 0;
#else
  return (top->s_tvalid_i & kCpuPorts) == 0;
#endif
}

// With assertions: evaluates the present inputs, because properties sample signals when the evaluation of the clock's edge begins.
// Checks that the sampled outputs are the same after that.
void hue_twin::check_settled() {
#if HUE_CHECK
  const unsigned before[] = {top->s_tready_o & ~kCpuPorts, top->m_tvalid_o, top->m_tlast_o};
  top->eval();
  const unsigned after[] = {top->s_tready_o & ~kCpuPorts, top->m_tvalid_o, top->m_tlast_o};
  if (std::memcmp(before, after, sizeof before) != 0) fail("hue_card", 0, "an output depends on an input within a cycle");
#endif
}

void hue_twin::cycle() {
  current = this;
  if (top->rst_ni) {
    offer();
  } else {
    top->m_tready_i = 0;
  }
  if (settled()) {
    check_settled();
  } else {
    evaluate(false);
  }
#if HUE_SRAM_WORDS
  memories.cycle(*top);
#endif
#if HUE_QUEUE_BYTES
  queue_memory.cycle(*top);
#endif
  const unsigned moved_in = top->s_tvalid_i & top->s_tready_o;
  const unsigned moved_out = top->m_tvalid_o & top->m_tready_i;
  if (moved_out != 0 && top->rst_ni) collect(moved_out);
  evaluate(true);
  if (moved_in != 0) taken(moved_in);
  ++cycles;
  if ((moved_in | moved_out | (top->m_tvalid_o & busy)) != 0 || top->moves_o) still_since = cycles;
#if VM_TRACE
  if (wave && cycles >= wave_to) stop_wave();
#endif
  current = nullptr;
}

void hue_twin::stop_wave() {
#if VM_TRACE
  if (wave) wave->close();
  wave.reset();
#endif
}

// Verilator calls this if an assertion fails, or the card calls $error or $fatal: it is recorded, not fatal.
void vl_stop(const char *file, int line, const char *instance) {
  if (current != nullptr) current->fail(file, line, instance);
}

void vl_fatal(const char *file, int line, const char *instance, const char *) {
  if (current != nullptr) current->fail(file, line, instance);
}

void vl_finish(const char *file, int line, const char *instance) {
  if (current != nullptr) current->fail(file, line, instance);
}

// The card calls this when a frame ends inside it (hue_pkg.sv).
extern "C" void hue_card_ended(int tag, int net, int cause) {
  if (current == nullptr || !current->keeps_endings || tag == 0) return;
  current->endings.push_back({static_cast<uint32_t>(tag), static_cast<uint32_t>(net), static_cast<uint32_t>(cause)});
}

// Discards the output of a failing assertion; hue_twin_failure has its location.
extern "C" int hue_twin_print(const char *, ...) { return 0; }

extern "C" {

uint32_t hue_twin_abi(void) { return HUE_TWIN_ABI; }

const char *hue_twin_image(void) { return HUE_IMAGE; }

hue_twin *hue_twin_new(void) {
  try {
    return new hue_twin();
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

void hue_twin_free(hue_twin *twin) { delete twin; }

int hue_twin_push(hue_twin *twin, uint32_t port, uint64_t time_ns, uint32_t tag, uint64_t not_before,
                  const uint8_t *bytes, size_t len) {
  if (port >= kPorts || len > HUE_TWIN_FRAME_BYTES_MAX) return HUE_TWIN_ARGUMENT;
  Pushed frame{{}, time_ns, not_before, twin->order_pushed++, tag};
  if (len > 0) frame.bytes.assign(bytes, bytes + len);
  twin->in[port].push_back(std::move(frame));
  ++twin->pushed;
  return HUE_TWIN_OK;
}

int hue_twin_pop(hue_twin *twin, hue_twin_frame *frame) {
  if (twin->left.empty()) return HUE_TWIN_NOTHING;
  twin->popped = std::move(twin->left.front());
  twin->left.pop_front();
  const Left &left = twin->popped;
  *frame = {left.bytes.data(),  static_cast<uint32_t>(left.bytes.size()), left.tag, left.port,
            left.first_cycle, left.last_cycle};
  return HUE_TWIN_OK;
}

void hue_twin_keep_endings(hue_twin *twin, int on) {
  twin->keeps_endings = on != 0;
  if (on == 0) twin->endings.clear();
}

int hue_twin_ended(hue_twin *twin, hue_twin_ending *ending) {
  if (twin->endings.empty()) return HUE_TWIN_NOTHING;
  *ending = twin->endings.front();
  twin->endings.pop_front();
  return HUE_TWIN_OK;
}

uint64_t hue_twin_waiting(const hue_twin *twin, uint32_t port) { return port < kPorts ? twin->in[port].size() : 0; }

int hue_twin_line(hue_twin *twin, uint32_t port, uint64_t cycles, uint64_t per) {
  if (port >= kPorts || per == 0) return HUE_TWIN_ARGUMENT;
  const unsigned bit = 1U << port;
  twin->lined = cycles == 0 ? twin->lined & ~bit : twin->lined | bit;
  twin->lines[port].cycles = cycles;
  twin->lines[port].per = per;
  twin->lines[port].free = 0;
  return HUE_TWIN_OK;
}

int hue_twin_damage(hue_twin *twin, uint32_t word, uint64_t bits) {
#if HUE_SRAM_WORDS
  if (word >= HUE_SRAM_WORDS || bits >> 36 != 0) return HUE_TWIN_ARGUMENT;
  twin->memories.flip(word, bits);
  return HUE_TWIN_OK;
#else
  (void)twin, (void)word, (void)bits;
  return HUE_TWIN_ARGUMENT;
#endif
}

int hue_twin_read(hue_twin *twin, uint32_t address, uint32_t *value) {
  if (address >> 24 != 0) return HUE_TWIN_ARGUMENT;
  Vtwin &top = *twin->top;
  top.s_axil_araddr_i = address;
  top.s_axil_arvalid_i = 1;
  top.s_axil_rready_i = 1;
  int result = HUE_TWIN_NO_ANSWER;
  for (unsigned i = 0; i < kAnswerCyclesMax; ++i) {
    // Settled by the latest edge and by the request: neither depends on what the streams offer.
    top.eval();
    const bool taken = top.s_axil_arvalid_i && top.s_axil_arready_o;
    const bool answered = top.s_axil_rvalid_o;
    if (answered) {
      *value = top.s_axil_rdata_o;
      result = top.s_axil_rresp_o == 0 ? HUE_TWIN_OK : HUE_TWIN_REFUSED;
    }
    twin->cycle();
    if (taken) top.s_axil_arvalid_i = 0;
    if (answered) break;
  }
  top.s_axil_arvalid_i = 0;
  top.s_axil_rready_i = 0;
  return result;
}

int hue_twin_write(hue_twin *twin, uint32_t address, uint32_t value) {
  if (address >> 24 != 0) return HUE_TWIN_ARGUMENT;
  Vtwin &top = *twin->top;
  top.s_axil_awaddr_i = address;
  top.s_axil_wdata_i = value;
  top.s_axil_wstrb_i = 0xf;
  top.s_axil_awvalid_i = 1;
  top.s_axil_wvalid_i = 1;
  top.s_axil_bready_i = 1;
  int result = HUE_TWIN_NO_ANSWER;
  for (unsigned i = 0; i < kAnswerCyclesMax; ++i) {
    top.eval();
    const bool address_taken = top.s_axil_awvalid_i && top.s_axil_awready_o;
    const bool data_taken = top.s_axil_wvalid_i && top.s_axil_wready_o;
    const bool answered = top.s_axil_bvalid_o;
    if (answered) result = top.s_axil_bresp_o == 0 ? HUE_TWIN_OK : HUE_TWIN_REFUSED;
    twin->cycle();
    if (address_taken) top.s_axil_awvalid_i = 0;
    if (data_taken) top.s_axil_wvalid_i = 0;
    if (answered) break;
  }
  top.s_axil_awvalid_i = 0;
  top.s_axil_wvalid_i = 0;
  top.s_axil_bready_i = 0;
  return result;
}

int hue_twin_write_all(hue_twin *twin, const hue_twin_register *writes, size_t count, size_t *bad) {
  Vtwin &top = *twin->top;
  size_t end = 0;  // Writes that can be offered.
  while (end < count && writes[end].address >> 24 == 0) ++end;
  int result = end < count ? HUE_TWIN_ARGUMENT : HUE_TWIN_OK;
  *bad = end;
  size_t offered = 0, answered = 0;
  bool address_taken = false, data_taken = false;
  top.s_axil_wstrb_i = 0xf;
  top.s_axil_bready_i = 1;
  for (unsigned still = 0; answered < end; ++still) {
    if (still >= kAnswerCyclesMax) {
      *bad = answered;
      result = HUE_TWIN_NO_ANSWER;
      break;
    }
    const bool offer = offered < end;
    if (offer) {
      top.s_axil_awaddr_i = writes[offered].address;
      top.s_axil_wdata_i = writes[offered].value;
    }
    top.s_axil_awvalid_i = offer && !address_taken;
    top.s_axil_wvalid_i = offer && !data_taken;
    top.eval();
    address_taken |= top.s_axil_awvalid_i && top.s_axil_awready_o;
    data_taken |= top.s_axil_wvalid_i && top.s_axil_wready_o;
    const bool answer = top.s_axil_bvalid_o;
    const bool refused = answer && top.s_axil_bresp_o != 0;
    twin->cycle();
    const bool taken = address_taken && data_taken;
    if (taken) {
      ++offered;
      address_taken = data_taken = false;
      still = 0;
    }
    if (refused && result != HUE_TWIN_REFUSED) {
      *bad = answered;
      result = HUE_TWIN_REFUSED;
      // A write that is on offer stays until it is taken.
      end = offer && !taken ? offered + 1 : offered;
    }
    if (answer) {
      ++answered;
      still = 0;
    }
  }
  top.s_axil_awvalid_i = 0;
  top.s_axil_wvalid_i = 0;
  top.s_axil_bready_i = 0;
  return result;
}

uint64_t hue_twin_run(hue_twin *twin, uint64_t cycles) {
  uint64_t ran = 0;
  while (ran < cycles && !twin->idle()) {
    twin->cycle();
    ++ran;
  }
  return ran;
}

void hue_twin_run_exactly(hue_twin *twin, uint64_t cycles) {
  for (uint64_t ran = 0; ran < cycles; ++ran) twin->cycle();
}

uint64_t hue_twin_cycles(const hue_twin *twin) { return twin->cycles; }

int hue_twin_idle(const hue_twin *twin) { return twin->idle(); }

uint64_t hue_twin_still_cycles(const hue_twin *twin) { return twin->cycles - twin->still_since; }

int hue_twin_interrupt(const hue_twin *twin) { return twin->top->irq_o; }

void hue_twin_ordered(hue_twin *twin, int on) { twin->ordered = on != 0; }

int hue_twin_stress(hue_twin *twin, uint64_t seed, uint32_t idle, uint32_t stall) {
  if (idle > 256 || stall > 256) return HUE_TWIN_ARGUMENT;
  twin->random = Random(seed);
  twin->idle_of_256 = idle;
  twin->stall_of_256 = stall;
  return HUE_TWIN_OK;
}

int hue_twin_wave(hue_twin *twin, const char *path, uint64_t from_cycle, uint64_t to_cycle) {
#if VM_TRACE
  twin->stop_wave();
  FILE *file = std::fopen(path, "wb");
  if (file == nullptr) return HUE_TWIN_FILE;
  std::fclose(file);
  twin->wave.reset(new VerilatedFstC);
  twin->top->trace(twin->wave.get(), 99);
  twin->wave->open(path);
  twin->wave_from = from_cycle;
  twin->wave_to = to_cycle;
  return twin->wave->isOpen() ? HUE_TWIN_OK : HUE_TWIN_FILE;
#else
  (void)twin;
  (void)path;
  (void)from_cycle;
  (void)to_cycle;
  return HUE_TWIN_FILE;
#endif
}

void hue_twin_wave_end(hue_twin *twin) { twin->stop_wave(); }

const char *hue_twin_failure(const hue_twin *twin) { return twin->failure.empty() ? nullptr : twin->failure.c_str(); }

}  // extern "C"
