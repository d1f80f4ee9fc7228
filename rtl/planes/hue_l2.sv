// Kind `l2`, second half: where the destination of a frame is, and whether the table agrees where its sender is.
//
// Place: hue_network → **here** → hue_meter, for images with this kind; packets of other kinds pass unchanged. In Rust: `decide` in
// crates/planes/src/l2.rs; all its outcomes but `storm`, which a meter behind this gives. The front (hue_l2_check) has given the question.
// Stations: rows of table STATION, a network and a MAC address each. Only the driver writes them. Both addresses of a frame are looked up
// in the same clock, in two copies of the rows.
// Notes: if the sender has no row, has one that names another port, or one that the driver has marked as old, the frame is marked with
// `note`: the driver gets a copy, and writes the row. A sender that may not be there (`wrong_port`) teaches nothing.
// Isolation: the network is a part of a row's key, so a frame reads the rows of its own network only, and leaves by its own ports only.
//
// Latency: 4 clocks in which `en_i` is 1. Throughput: one packet a clock. A write or read of a row stops it for two.
// Source: IEEE 802.1Q §8.6 to §8.8.
module hue_l2
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned StationRows = 2048
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  tbl_req_t    tbl_req_i,
    output tbl_rsp_t    tbl_rsp_o,
    output logic        error_o,
    output logic        wait_o,     // `en_i` must be 0 in the next clock
    input  logic        en_i,
    input  logic        valid_i,
    input  packet_t     packet_i,
    input  logic [63:0] time_ns_i,
    output logic        valid_o,
    output packet_t     packet_o,
    output logic [63:0] time_ns_o
);
  localparam int unsigned Banks = 4;
  localparam int unsigned Latency = 4;

  // Key and result as in row_station_t.
  typedef struct packed {
    logic [7:0]  net;
    logic [47:0] mac;
  } key_t;
  typedef struct packed {
    logic       old;
    logic       fixed;
    logic [2:0] port;
  } station_t;
  if ($bits(row_station_t) != $bits(station_t) + $bits(key_t) + 1) begin : gen_check
    $fatal(1, "hue_l2: a row of STATION has %0d bits", $bits(row_station_t));
  end

  // ---- 1 to 3: both stations
  logic asks;
  key_t [1:0] keys;             // 0: destination, 1: source
  logic [1:0] ask, hits, waits, errors;
  logic [1:0] hit_q;
  station_t [1:0] stations;
  tbl_rsp_t [1:0] rsps;
  assign asks    = valid_i && !packet_i.decided && packet_i.kind == 5'(KIND_L2) && packet_i.question.asks;
`ifdef HUE_PLANT_L2_NETWORK
  assign keys[0] = '{net: packet_i.net & 8'hfe, mac: packet_i.question.key[127:80]};  // for scripts/rtl-test and scripts/formal
`else
  assign keys[0] = '{net: packet_i.net, mac: packet_i.question.key[127:80]};
`endif
  assign keys[1] = '{net: packet_i.net, mac: packet_i.question.key[79:32]};
  assign ask     = {asks, asks && !keys[0].mac[40]};  // a group address is no station
  for (genvar i = 0; i < 2; i++) begin : gen_copy
    hue_exact_table #(
      .Id(TABLE_STATION), .Banks(Banks), .BankRows(StationRows / Banks), .KeyBits($bits(key_t)), .ResultBits($bits(station_t))
    ) u_stations (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[i]), .wait_o(waits[i]),
      .en_i, .valid_i(ask[i]), .key_i(keys[i]), .hit_o(hits[i]), .result_o(stations[i]), .error_o(errors[i])
    );
  end
  // Both copies answer the host in the same clock, and have the same rows.
  assign tbl_rsp_o = rsps[0];
  assign wait_o    = waits[0];
  always_ff @(posedge clk_i) if (en_i) hit_q <= hits;

  typedef struct packed {
    logic        asks;
    packet_t     packet;
    logic [63:0] time_ns;
  } entry_t;
  entry_t [Latency-1:1] entry_q;
  entry_t at;
  logic [Latency:1] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else if (en_i) valid_q <= {valid_q[Latency-1:1], valid_i};
  end
  always_ff @(posedge clk_i) begin
    if (en_i) entry_q <= {entry_q[Latency-2:1], {asks, packet_i, time_ns_i}};
  end
  assign at = entry_q[Latency-1];

  // ---- 4: the outcome
  l2_settings_t settings;
  logic known, elsewhere, unused;
  assign settings  = l2_settings_t'(at.packet.root);
  assign known     = hit_q[0];
  assign elsewhere = hit_q[1] && stations[1].port != at.packet.port_in;
  assign unused    = &{1'b0, settings.gap, rsps[1], waits[1], stations[0].old, stations[0].fixed};
  logic wrong;
`ifdef HUE_PLANT_L2_STICKY
  assign wrong = elsewhere && stations[1].fixed;
`else
  assign wrong = elsewhere && (stations[1].fixed || settings.sticky);
`endif
  packet_t decided;
  always_comb begin
    decided       = at.packet;
    decided.flood = 1'b0;
    decided.ports = '0;
    decided.note  = 1'b0;
    if (at.asks) begin
      decided.question.asks = 1'b0;
      decided.note = settings.learns && !wrong && (!hit_q[1] || elsewhere || stations[1].old);
      if (wrong) decided.question.outcome = L2_WRONG_PORT;
      else if (known && stations[0].port == at.packet.port_in) decided.question.outcome = L2_SAME_PORT;
      else if (at.packet.question.total > 16'(settings.mtu)) decided.question.outcome = L2_MTU;
      else if (known) begin
        decided.question.outcome = L2_FORWARD;
        decided.port_out = stations[0].port;
      end else begin
        decided.question.outcome = L2_FLOOD;
        decided.flood = 1'b1;
`ifdef HUE_PLANT_L2_ARRIVAL
        decided.ports = settings.ports;
`else
        decided.ports = settings.ports & ~(MacPorts'(1) << at.packet.port_in);
`endif
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_o  <= decided;
      time_ns_o <= at.time_ns;
    end
  end
  assign valid_o = valid_q[Latency];
  assign error_o = en_i && valid_q[Latency-1] && at.asks && errors != '0;

`ifndef SYNTHESIS
  hue_latency #(.Clocks(Latency)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (rsps[0] == rsps[1] && waits[0] == waits[1]) else $error("hue_l2: the copies of the rows have come apart");
      if (en_i && valid_q[Latency-1]) assert (at.asks || hit_q == '0) else $error("hue_l2: a station for what asked none");
    end
  end
`endif
endmodule
