// Bench of nf_datapath: the streams and register windows of NetFPGA-PLUS, with the whole card behind them.
#include "Vtop.h"
#include "board.h"

namespace {

class NetFpga {
 public:
  static constexpr unsigned Macs = 2;
  static constexpr unsigned Streams = 3;
  static constexpr unsigned Dma = 2;
  struct Place {
    unsigned stream, port, source;
  };
  // tuser's codes: MAC ports 1 and 4, functions 2 and 8.
  static std::vector<Place> places() { return {{0, 0, 1}, {1, 1, 4}, {Dma, 4, 2}, {Dma, 5, 8}}; }
  static unsigned stream_of(unsigned port) { return port < board::MacPorts ? port : Dma; }
  static unsigned code_of(unsigned port) { return port < board::MacPorts ? 1u << 2 * port : port % 2 != 0 ? 8 : 2; }

  NetFpga() : top_(std::make_unique<Vtop>()) {
    top_->axis_aclk = top_->axi_aclk = 0;
    top_->S1_AXI_AWVALID = top_->S1_AXI_WVALID = top_->S1_AXI_ARVALID = 0;
    top_->S2_AXI_AWVALID = top_->S2_AXI_WVALID = top_->S2_AXI_ARVALID = 0;
  }
  ~NetFpga() { top_->final(); }

  // Each of the two resets alone resets both sides.
  void begin_reset() { top_->axis_resetn = resets_++ % 2, top_->axi_resetn = !top_->axis_resetn; }
  void end_reset() { top_->axis_resetn = top_->axi_resetn = 1; }
  bool ready() const { return true; }

  void eval() { top_->eval(); }
  void edge(bool axis, bool axil) {
    top_->axis_aclk = axis;
    top_->axi_aclk = axil;
    top_->eval();
    top_->axis_aclk = top_->axi_aclk = 0;
    top_->eval();
  }

  void ask(bool valid, bool write, unsigned address, uint32_t data) {
    top_->S0_AXI_AWVALID = top_->S0_AXI_WVALID = valid && write;
    top_->S0_AXI_ARVALID = valid && !write;
    top_->S0_AXI_AWADDR = top_->S0_AXI_ARADDR = address;
    top_->S0_AXI_WDATA = data;
    top_->S0_AXI_WSTRB = 15;
  }
  void take_answer(bool write, bool ready) {
    top_->S0_AXI_BREADY = ready && write;
    top_->S0_AXI_RREADY = ready && !write;
  }
  bool asked(bool write) const { return write ? top_->S0_AXI_AWREADY && top_->S0_AXI_WREADY : top_->S0_AXI_ARREADY; }
  bool answered(bool write) const { return write ? top_->S0_AXI_BVALID : top_->S0_AXI_RVALID; }
  unsigned response(bool write) const { return write ? top_->S0_AXI_BRESP : top_->S0_AXI_RRESP; }
  uint32_t data() const { return top_->S0_AXI_RDATA; }

  void drive(unsigned s, const board::Beat& beat) {
    // Later beats of the DMA name another function: only that of the first beat is valid.
    const unsigned source = s == Dma && !beat.first ? beat.source ^ 10 : beat.source;
    const uint64_t user = beat.size | uint64_t{source} << 16;
    if (s == 0) put(top_->s_axis_0_tdata, top_->s_axis_0_tkeep, top_->s_axis_0_tlast, top_->s_axis_0_tuser, beat, user);
    if (s == 1) put(top_->s_axis_1_tdata, top_->s_axis_1_tkeep, top_->s_axis_1_tlast, top_->s_axis_1_tuser, beat, user);
    if (s == 2) put(top_->s_axis_2_tdata, top_->s_axis_2_tkeep, top_->s_axis_2_tlast, top_->s_axis_2_tuser, beat, user);
  }
  void offer(unsigned s, bool valid) {
    (s == 0 ? top_->s_axis_0_tvalid : s == 1 ? top_->s_axis_1_tvalid : top_->s_axis_2_tvalid) = valid;
  }
  void take(unsigned s, bool ready) {
    (s == 0 ? top_->m_axis_0_tready : s == 1 ? top_->m_axis_1_tready : top_->m_axis_2_tready) = ready;
  }
  bool taken(unsigned s) const {
    return s == 0 ? top_->s_axis_0_tready : s == 1 ? top_->s_axis_1_tready : top_->s_axis_2_tready;
  }
  bool given(unsigned s) const {
    return s == 0   ? top_->m_axis_0_tvalid && top_->m_axis_0_tready
           : s == 1 ? top_->m_axis_1_tvalid && top_->m_axis_1_tready
                    : top_->m_axis_2_tvalid && top_->m_axis_2_tready;
  }
  board::Beat beat(unsigned s) const {
    if (s == 0) return get(top_->m_axis_0_tdata, top_->m_axis_0_tkeep, top_->m_axis_0_tlast, top_->m_axis_0_tuser);
    if (s == 1) return get(top_->m_axis_1_tdata, top_->m_axis_1_tkeep, top_->m_axis_1_tlast, top_->m_axis_1_tuser);
    return get(top_->m_axis_2_tdata, top_->m_axis_2_tkeep, top_->m_axis_2_tlast, top_->m_axis_2_tuser);
  }

  // A read of window S1 and a write of S2: the responses, or 9 without an answer.
  std::pair<unsigned, unsigned> other_windows(board::Bench<NetFpga>& bench) {
    unsigned read = 9, written = 9;
    top_->S1_AXI_ARVALID = top_->S2_AXI_AWVALID = top_->S2_AXI_WVALID = 1;
    top_->S1_AXI_RREADY = top_->S2_AXI_BREADY = 1;
    for (unsigned i = 0; i < 40; ++i) {
      top_->eval();
      if (top_->S1_AXI_RVALID) read = top_->S1_AXI_RRESP, top_->S1_AXI_ARVALID = 0;
      if (top_->S2_AXI_BVALID) written = top_->S2_AXI_BRESP, top_->S2_AXI_AWVALID = top_->S2_AXI_WVALID = 0;
      bench.step();
    }
    return {read, written};
  }

 private:
  template <typename Data, typename Keep, typename Last, typename User>
  static void put(Data& data, Keep& keep, Last& last, User& tuser, const board::Beat& beat, uint64_t user) {
    for (unsigned b = 0; b < board::Width; ++b) {
      bench::set_bits(data, 8 * b, 8, b < beat.bytes.size() ? beat.bytes[b] : 0xee);
      bench::set_bits(keep, b, 1, b < beat.bytes.size());
    }
    last = beat.last;
    bench::set_bits(tuser, 0, 64, user);
    bench::set_bits(tuser, 64, 64, 0);
  }
  template <typename Data, typename Keep, typename Last, typename User>
  static board::Beat get(const Data& data, const Keep& keep, const Last& last, const User& tuser) {
    board::Beat beat;
    for (unsigned b = 0; b < board::Width; ++b) {
      if (bench::bits(keep, b, 1)) beat.bytes.push_back(bench::bits(data, 8 * b, 8));
    }
    beat.last = last;
    beat.size = bench::bits(tuser, 0, 16);
    beat.source = bench::bits(tuser, 16, 8);
    // The bits above the destination must be zero.
    beat.destination = bench::bits(tuser, 24, 32) | (bench::bits(tuser, 56, 64) != 0 ? 0x80000000 : 0);
    return beat;
  }

  std::unique_ptr<Vtop> top_;
  unsigned resets_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  NetFpga shell;
  board::all(shell, "NetFPGA-PLUS", tests, random);
  tests.begin("NetFPGA-PLUS, the other register windows answer");
  board::Bench<NetFpga> bench(shell, tests, random);
  bench.reset();
  const auto [read, written] = shell.other_windows(bench);
  if (read != 2 || written != 2) tests.wrong("answers %u and %u, expected 2 and 2", read, written);
  tests.end();
  return tests.result();
}
