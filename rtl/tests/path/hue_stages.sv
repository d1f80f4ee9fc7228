// Stages for tests of the path around them: a frame's destination MAC contains its verdict.
//
// Byte 0 bit 7: a forwarded frame is edited (MACs all ones and all twos, TTL 0x33, checksum 0x4454). Byte 1: verdict.
// Byte 2: output port. Byte 3: network. Byte 5: outcome. With kind l2 in the image, also byte 1 bit 2: a forwarded frame leaves by the MAC
// ports in byte 4; bit 3: it leaves a note. A copy of a group frame belongs to the network that comes with it, and leaves
// by port (byte 2 + its virtual port) mod 8. Runts and frames that are too long belong to no network. Frames from the CPU leave by the
// port in their CPU header.
// A verdict takes `Delay` clocks; the stages take one record a clock.

module hue_stages
  import hue_pkg::*;
#(
  parameter int unsigned Kinds = 2,
  parameter int unsigned Layout = 2,
  parameter int unsigned Planes = 1,
  parameter int unsigned Nets = 64,
  parameter int unsigned SelectRows = 256,
  parameter int unsigned MacRows = 0,
  parameter int unsigned StationRows = 0,
  parameter int unsigned PatternRows = 0,
  parameter int unsigned RouteRows = 0,
  parameter int unsigned LocalRows = 0,
  parameter int unsigned HopRows = 4096,
  parameter int unsigned Level0Words = 4096,
  parameter int unsigned Level1Words = 4096,
  parameter int unsigned Level2Words = 4096,
  parameter int unsigned Level3Words = 4096,
  parameter int unsigned SramWords = 0,
  parameter int unsigned SramLatency = 4,
  parameter bit          SramZero = 1'b1,
  parameter int unsigned CamRows = 0,
  parameter int unsigned SlotRows = 0,
  parameter int unsigned RangeRows = 0,
  parameter int unsigned PairRows = 0,
  parameter int unsigned RuleRows = 0,
  parameter bit          Tunnels = 1'b0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         head_valid_i,
  output logic         head_ready_o,
  input  hue_head_t    head_i,
  output logic         head_take_o,
  input  hue_head_bytes_t head_bytes_i,
  output logic         verdict_valid_o,
  input  logic         verdict_ready_i,
  output hue_verdict_t verdict_o,
  input  tbl_req_t     tbl_req_i,
  output tbl_rsp_t     tbl_rsp_o,
  input  logic [31:0]  gates_i,
  input  logic         gated_to_cpu_i,
  output logic         idle_o,
  output logic         memory_error_o,
  output sram_req_t        sram_req_o,
  input  logic [1:0][35:0] sram_rdata_i,
  input  logic             sram_fault_clear_i,
  output sram_state_t      sram_state_o
);

  localparam int unsigned Delay = 40;

  // A pipeline that moves as a whole.
  logic      [Delay-1:0] valid_q;
  hue_head_t [Delay-1:0] head_q;
  logic                  en, claimed;
  hue_head_t             head;

  assign head = head_q[Delay-1];
  assign claimed = head.len >= 14'(FrameBytesMin) && head.len != LenTooLong;
  assign en = !valid_q[Delay-1] || verdict_ready_i;
  assign head_ready_o = en;
  assign verdict_valid_o = valid_q[Delay-1];

  always_comb begin
    verdict_o = '0;
    verdict_o.port_in = head.port;
    verdict_o.len = head.len;
    if (!claimed) begin
      verdict_o.verdict = VerdictUnclaimed;
      verdict_o.outcome = head.len == LenTooLong ? 5'd2 : 5'd1;
    end else if (head.from_cpu) begin
      verdict_o.verdict = VerdictForward;
      verdict_o.net = head.net;
      verdict_o.port_out = head.cpu_out;
    end else begin
      verdict_o.verdict = head.dst_mac[33:32];
      verdict_o.outcome = head.dst_mac[4:0];
      verdict_o.net = head.copy ? head.net : head.dst_mac[23:16];
      verdict_o.vid = 12'h100 + 12'(verdict_o.net);
      verdict_o.vport = head.copy ? head.vport : '0;
      verdict_o.port_out = head.dst_mac[26:24] + verdict_o.vport[2:0];
      verdict_o.edit = head.dst_mac[47] ? EditIpv4 : EditNone;
      verdict_o.dst_mac = 48'h111111111111;
      verdict_o.src_mac = 48'h222222222222;
      verdict_o.ttl = 8'h33;
      verdict_o.checksum = 16'h4454;
      if (Kinds[hue_kinds_pkg::KIND_L2]) begin
        verdict_o.flood = head.dst_mac[34] && verdict_o.verdict == VerdictForward;
        verdict_o.ports = verdict_o.flood ? head.dst_mac[11:8] : '0;
        verdict_o.note = head.dst_mac[35] && verdict_o.verdict != VerdictUnclaimed;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (en) head_q <= {head_q[Delay-2:0], head_i};
    if (!rst_ni) valid_q <= '0;
    else if (en) valid_q <= {valid_q[Delay-2:0], head_valid_i};
  end

  assign idle_o = valid_q == '0;
  assign memory_error_o = 1'b0;
  assign head_take_o = head_valid_i && head_ready_o;
  assign tbl_rsp_o = '0;
  assign sram_req_o = '0;
  assign sram_state_o = '0;
  logic unused;
  assign unused = ^{head, tbl_req_i, gates_i, gated_to_cpu_i, head_bytes_i, Kinds, Layout, Planes, Nets, SelectRows, MacRows, StationRows, PatternRows, Tunnels, RouteRows, LocalRows,
                    HopRows, Level0Words, Level1Words, Level2Words, Level3Words, SramWords, SramLatency, SramZero, CamRows, SlotRows, RangeRows, PairRows, RuleRows,
                    sram_rdata_i, sram_fault_clear_i};

endmodule
