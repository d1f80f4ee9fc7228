// Bench of hue_axil_cross: reads and writes across two clock domains, with waits on every channel, compared with a memory.
#include <map>
#include <memory>

#include "Vtop.h"
#include "bench.h"

namespace {
constexpr unsigned Stages = 2;
constexpr unsigned Places = 16;
constexpr unsigned ErrorAt = 12;  // words from this one on answer with an error

std::unique_ptr<Vtop> top;

// The slave behind the bridge: a memory with random wait states.
class Slave {
 public:
  explicit Slave(bench::Random& random) : random_(random) {}
  void drive(unsigned stall) {
    top->m_axil_awready_i = top->m_axil_wready_i = !writes_ && !random_.percent(stall) && top->m_axil_awvalid_o && top->m_axil_wvalid_o;
    top->m_axil_arready_i = !reads_ && !random_.percent(stall);
    if (writes_ && !top->m_axil_bvalid_i) top->m_axil_bvalid_i = !random_.percent(stall);
    if (reads_ && !top->m_axil_rvalid_i) top->m_axil_rvalid_i = !random_.percent(stall);
    top->m_axil_bresp_i = at_ / 4 >= ErrorAt ? 2 : 0;
    top->m_axil_rresp_i = top->m_axil_bresp_i;
    // Read data is meaningful only while it is valid.
    top->m_axil_rdata_i = top->m_axil_rvalid_i ? memory_[at_] : random_.next();
  }
  void sample(bench::Tests& tests) {
    if (top->m_axil_awvalid_o && top->m_axil_awready_i) {
      if (reads_ || writes_) tests.wrong("a second access");
      writes_ = true;
      at_ = top->m_axil_awaddr_o;
      if (at_ / 4 < ErrorAt) memory_[at_] = top->m_axil_wdata_o ^ (top->m_axil_wstrb_o != 15 ? ~0u : 0);
      ++accesses;
    }
    if (top->m_axil_arvalid_o && top->m_axil_arready_i) {
      if (reads_ || writes_) tests.wrong("a second access");
      reads_ = true;
      at_ = top->m_axil_araddr_o;
      ++accesses;
    }
    if (top->m_axil_bvalid_i && top->m_axil_bready_o) done_ = true;
    if (top->m_axil_rvalid_i && top->m_axil_rready_o) done_ = true;
  }
  void after() {
    if (done_) top->m_axil_bvalid_i = top->m_axil_rvalid_i = 0, reads_ = writes_ = false;
    done_ = false;
  }
  unsigned accesses = 0;

 private:
  bench::Random& random_;
  std::map<unsigned, uint32_t> memory_;
  unsigned at_ = 0;
  bool reads_ = false, writes_ = false, done_ = false;
};

void run(bench::Tests& tests, bench::Random& random, uint64_t s_ps, uint64_t m_ps, uint64_t phase_ps, unsigned stall) {
  tests.begin("registers from " + std::to_string(s_ps) + " ps to " + std::to_string(m_ps) + " ps, " +
              std::to_string(phase_ps) + " ps apart, waits in " + std::to_string(stall) + " %");
  Slave slave(random);
  std::map<unsigned, uint32_t> memory;
  uint64_t next_s = s_ps, next_m = s_ps + phase_ps, clocks = 0, worst = 0;
  top->s_rst_ni = top->m_rst_ni = 0;
  top->s_axil_awvalid_i = top->s_axil_wvalid_i = top->s_axil_arvalid_i = 0;
  top->m_axil_bvalid_i = top->m_axil_rvalid_i = 0;
  // The access in progress on each channel; at times both channels have one.
  struct Side {
    bool asks = false, waits = false;
    unsigned address = 0;
    uint32_t data = 0;
    uint64_t since = 0;
  } write, read;
  unsigned done = 0, reset = 20;
  uint64_t quiet = 0;
  while (done < 3000 && quiet < 4000) {
    const uint64_t now = std::min(next_s, next_m);
    const bool s = now == next_s, m = now == next_m;
    if (reset > 0 && --reset == 0) top->s_rst_ni = top->m_rst_ni = 1;
    if (s && reset == 0) {
      for (Side* side : {&write, &read}) {
        if (side->asks || side->waits || random.percent(stall)) continue;
        *side = {true, false, 4 * random.below(Places), static_cast<uint32_t>(random.next()), clocks};
      }
      top->s_axil_awvalid_i = top->s_axil_wvalid_i = write.asks;
      top->s_axil_awaddr_i = write.address;
      top->s_axil_wdata_i = write.data;
      top->s_axil_wstrb_i = 15;
      top->s_axil_arvalid_i = read.asks;
      top->s_axil_araddr_i = read.address;
      top->s_axil_bready_i = !random.percent(stall);
      top->s_axil_rready_i = !random.percent(stall);
    }
    if (m) slave.drive(stall);
    top->eval();
    if (s && reset == 0) {
      ++clocks;
      ++quiet;
      if (write.asks && top->s_axil_awready_o) write.asks = false, write.waits = true;
      if (read.asks && top->s_axil_arready_o) read.asks = false, read.waits = true;
      const bool b = top->s_axil_bvalid_o && top->s_axil_bready_i, r = top->s_axil_rvalid_o && top->s_axil_rready_i;
      if (b && !write.waits) tests.wrong("an answer to no write");
      if (r && !read.waits) tests.wrong("an answer to no read");
      if (b) {
        const bool bad = write.address / 4 >= ErrorAt;
        if (top->s_axil_bresp_o != (bad ? 2 : 0)) tests.wrong("write of %x: answer %u", write.address, top->s_axil_bresp_o);
        if (!bad) memory[write.address] = write.data;
        write.waits = false;
      }
      if (r) {
        const bool bad = read.address / 4 >= ErrorAt;
        if (top->s_axil_rresp_o != (bad ? 2 : 0)) tests.wrong("read of %x: answer %u", read.address, top->s_axil_rresp_o);
        if (!bad && top->s_axil_rdata_o != memory[read.address])
          tests.wrong("read of %x: %x, expected %x", read.address, top->s_axil_rdata_o, memory[read.address]);
        read.waits = false;
      }
      if (b || r) {
        worst = std::max(worst, clocks - (b ? write.since : read.since));
        ++done;
        quiet = 0;
      }
    }
    if (m) slave.sample(tests);
    top->s_clk_i = s;
    top->m_clk_i = m;
    top->eval();
    if (m) slave.after();
    top->s_clk_i = top->m_clk_i = 0;
    top->eval();
    if (s) next_s += s_ps;
    if (m) next_m += m_ps;
  }
  if (done < 3000) tests.wrong("no answer after %u accesses", done);
  // The bound: the synchroniser stages of both sides, there and back, the slave's own clock, and one more because the clocks are not
  // aligned. A read and a write that come together wait for each other.
  const uint64_t one = 2 + (Stages + 1) + ((Stages + 4) * m_ps + s_ps - 1) / s_ps;
  if (stall == 0 && worst > 2 * one) tests.wrong("an access took %llu clocks, expected %llu", (unsigned long long)worst,
                                                 (unsigned long long)(2 * one));
  tests.end();
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->s_clk_i = top->m_clk_i = 0;
  const uint64_t clocks[][3] = {{8000, 4000, 0}, {4000, 4000, 0}, {4000, 4000, 1300}, {11300, 4000, 700},
                                {2700, 4000, 1900}, {3999, 4000, 10}, {1000, 9700, 0}};
  for (const auto& c : clocks) {
    for (const unsigned stall : {0u, 50u}) run(tests, random, c[0], c[1], c[2], stall);
  }
  top->final();
  top.reset();
  return tests.result();
}
