// Bench of hue_opennic: the streams, registers and reset of OpenNIC's 250 MHz user box, with the whole card behind them.
#include "Vtop.h"
#include "board.h"

namespace {
constexpr unsigned Functions = HUE_NUM_PHYS_FUNC;

class OpenNic {
 public:
  static constexpr unsigned Macs = HUE_NUM_CMAC_PORT;
  static constexpr unsigned Streams = Macs + Functions;
  struct Place {
    unsigned stream, port, source;
  };
  static std::vector<Place> places() {
    std::vector<Place> all;
    for (unsigned i = 0; i < Macs; ++i) all.push_back({i, i, 1u << (6 + i)});
    for (unsigned f = 0; f < Functions; ++f) all.push_back({Macs + f, board::MacPorts + f, 1u << f});
    return all;
  }
  static unsigned stream_of(unsigned port) {
    return port < board::MacPorts ? port : Macs + (port - board::MacPorts) % Functions;
  }
  static unsigned code_of(unsigned port) {
    return port < board::MacPorts ? 1u << (6 + port) : 1u << (port - board::MacPorts) % Functions;
  }

  OpenNic() : top_(std::make_unique<Vtop>()) {
    top_->axis_aclk = top_->axil_aclk = 0;
    top_->mod_rstn = 1;
  }
  ~OpenNic() { top_->final(); }

  // Requests the reset for one clock of the register bus, as the shell does.
  void begin_reset() { asks_ = true; }
  void end_reset() {}
  bool ready() const { return !asks_ && top_->mod_rst_done; }

  void eval() {
    top_->mod_rstn = !asks_;
    top_->eval();
  }
  void edge(bool axis, bool axil) {
    top_->axis_aclk = axis;
    top_->axil_aclk = axil;
    top_->eval();
    if (axil) asks_ = false;
    top_->axis_aclk = top_->axil_aclk = 0;
    top_->eval();
  }

  void ask(bool valid, bool write, unsigned address, uint32_t data) {
    top_->s_axil_awvalid = top_->s_axil_wvalid = valid && write;
    top_->s_axil_arvalid = valid && !write;
    // The box has a window of its own; the card uses the low bits of the address.
    top_->s_axil_awaddr = top_->s_axil_araddr = address;
    top_->s_axil_wdata = data;
  }
  void take_answer(bool write, bool ready) {
    top_->s_axil_bready = ready && write;
    top_->s_axil_rready = ready && !write;
  }
  bool asked(bool write) const { return write ? top_->s_axil_awready && top_->s_axil_wready : top_->s_axil_arready; }
  bool answered(bool write) const { return write ? top_->s_axil_bvalid : top_->s_axil_rvalid; }
  unsigned response(bool write) const { return write ? top_->s_axil_bresp : top_->s_axil_rresp; }
  uint32_t data() const { return top_->s_axil_rdata; }

  void drive(unsigned s, const board::Beat& beat) {
    if (s < Macs) {
      put(top_->s_axis_adap_rx_250mhz_tdata, top_->s_axis_adap_rx_250mhz_tkeep, top_->s_axis_adap_rx_250mhz_tlast, s, beat);
      bench::set_bits(top_->s_axis_adap_rx_250mhz_tuser_size, 16 * s, 16, beat.size);
      bench::set_bits(top_->s_axis_adap_rx_250mhz_tuser_src, 16 * s, 16, beat.source);
      bench::set_bits(top_->s_axis_adap_rx_250mhz_tuser_dst, 16 * s, 16, 0);
    } else {
      s -= Macs;
      put(top_->s_axis_qdma_h2c_tdata, top_->s_axis_qdma_h2c_tkeep, top_->s_axis_qdma_h2c_tlast, s, beat);
      bench::set_bits(top_->s_axis_qdma_h2c_tuser_size, 16 * s, 16, beat.size);
      bench::set_bits(top_->s_axis_qdma_h2c_tuser_src, 16 * s, 16, beat.source);
      bench::set_bits(top_->s_axis_qdma_h2c_tuser_dst, 16 * s, 16, 0);
    }
  }
  void offer(unsigned s, bool valid) {
    if (s < Macs) bench::set_bits(top_->s_axis_adap_rx_250mhz_tvalid, s, 1, valid);
    else bench::set_bits(top_->s_axis_qdma_h2c_tvalid, s - Macs, 1, valid);
  }
  void take(unsigned s, bool ready) {
    if (s < Macs) bench::set_bits(top_->m_axis_adap_tx_250mhz_tready, s, 1, ready);
    else bench::set_bits(top_->m_axis_qdma_c2h_tready, s - Macs, 1, ready);
  }
  bool taken(unsigned s) const {
    return s < Macs ? top_->s_axis_adap_rx_250mhz_tready >> s & 1 : top_->s_axis_qdma_h2c_tready >> (s - Macs) & 1;
  }
  bool given(unsigned s) const {
    return s < Macs ? (top_->m_axis_adap_tx_250mhz_tvalid & top_->m_axis_adap_tx_250mhz_tready) >> s & 1
                    : (top_->m_axis_qdma_c2h_tvalid & top_->m_axis_qdma_c2h_tready) >> (s - Macs) & 1;
  }
  board::Beat beat(unsigned s) const {
    if (s < Macs) {
      board::Beat beat = get(top_->m_axis_adap_tx_250mhz_tdata, top_->m_axis_adap_tx_250mhz_tkeep,
                             top_->m_axis_adap_tx_250mhz_tlast, s);
      beat.size = bench::bits(top_->m_axis_adap_tx_250mhz_tuser_size, 16 * s, 16);
      beat.source = bench::bits(top_->m_axis_adap_tx_250mhz_tuser_src, 16 * s, 16);
      beat.destination = bench::bits(top_->m_axis_adap_tx_250mhz_tuser_dst, 16 * s, 16);
      return beat;
    }
    s -= Macs;
    board::Beat beat = get(top_->m_axis_qdma_c2h_tdata, top_->m_axis_qdma_c2h_tkeep, top_->m_axis_qdma_c2h_tlast, s);
    beat.size = bench::bits(top_->m_axis_qdma_c2h_tuser_size, 16 * s, 16);
    beat.source = bench::bits(top_->m_axis_qdma_c2h_tuser_src, 16 * s, 16);
    beat.destination = bench::bits(top_->m_axis_qdma_c2h_tuser_dst, 16 * s, 16);
    return beat;
  }

 private:
  template <typename Data, typename Keep, typename Last>
  static void put(Data& data, Keep& keep, Last& last, unsigned s, const board::Beat& beat) {
    for (unsigned b = 0; b < board::Width; ++b) {
      const bool counts = b < beat.bytes.size();
      bench::set_bits(data, 8 * (board::Width * s + b), 8, counts ? beat.bytes[b] : 0xee);
      bench::set_bits(keep, board::Width * s + b, 1, counts);
    }
    bench::set_bits(last, s, 1, beat.last);
  }
  template <typename Data, typename Keep, typename Last>
  static board::Beat get(const Data& data, const Keep& keep, const Last& last, unsigned s) {
    board::Beat beat;
    for (unsigned b = 0; b < board::Width; ++b) {
      if (bench::bits(keep, board::Width * s + b, 1)) beat.bytes.push_back(bench::bits(data, 8 * (board::Width * s + b), 8));
    }
    beat.last = last >> s & 1;
    return beat;
  }

  std::unique_ptr<Vtop> top_;
  bool asks_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  OpenNic shell;
  board::all(shell, "OpenNIC, " + std::to_string(OpenNic::Macs) + " MAC ports, " + std::to_string(Functions) + " functions",
             tests, random);
  return tests.result();
}
