// Proof harness of hue_sram_port: bounds of the arbitration; no answer is lost, duplicated or given to the wrong requester; parity.
//
// Place: scripts/formal. Inputs are free, and so are the bank's answers. `mark_i` picks any one clock. The access that is accepted in
// it must be on the pins in the next clock and be answered `RspLatency` clocks later; if none is accepted, nothing must come.
module hue_sram_port_formal #(
    parameter int unsigned Latency   = 2,
    parameter int unsigned HostWait  = 2,
    parameter int unsigned HostShare = 4,
    localparam int unsigned Words = 2,
    localparam int unsigned TagBits = 1
) (
    input logic        clk_i,
    input logic        rst_ni,
    input logic        rd_valid_i,
    input logic        rd_addr_i,
    input logic        rd_tag_i,
    input logic        host_valid_i,
    input logic        host_write_i,
    input logic        host_addr_i,
    input logic [34:0] host_data_i,
    input logic        error_clear_i,
    input logic [35:0] sram_rdata_i,
    input logic        mark_i
);
  localparam int unsigned RspLatency = Latency + 2;
  localparam int unsigned WaitMax = HostWait > HostShare - 1 ? HostWait : HostShare - 1;

  logic rd_ready_o, rsp_valid_o, rsp_tag_o, rsp_error_o, host_ready_o, host_rsp_valid_o, host_rsp_error_o;
  logic error_valid_o, error_addr_o, sram_en_o, sram_write_o, sram_addr_o;
  logic [35:0] rsp_data_o, sram_wdata_o;
  logic [34:0] host_rsp_data_o;
  logic [31:0] error_count_o;
  hue_sram_port #(
    .Words(Words), .Latency(Latency), .TagBits(TagBits), .HostWait(HostWait), .HostShare(HostShare)
  ) u_dut (.*);

  logic begun_q, rd_go, host_go, host_waits_q;
  assign rd_go   = rd_valid_i && rd_ready_o;
  assign host_go = host_valid_i && host_ready_o;

  logic [3:0] waits_q;              // clocks for which the host has waited
  logic [HostShare-2:0] before_q;   // in the clocks before: the host was served although a lookup waited
  logic marked_q, rd_q, read_q, write_q, addr_q, tag_q;
  logic [3:0] age_q;                // clocks since the marked clock
  logic [34:0] data_q;
  logic [$clog2(RspLatency-1)-1:0] place_q;  // where the tag is stored
  logic [35:0] rdata_q;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    rdata_q <= sram_rdata_i;
    if (!rst_ni) begin
      waits_q <= '0;
      before_q <= '0;
      marked_q <= 1'b0;
      host_waits_q <= 1'b0;
    end else begin
      host_waits_q <= host_valid_i && !host_ready_o;
      waits_q <= host_valid_i && !host_ready_o ? waits_q + 1'b1 : '0;
      before_q <= (HostShare - 1)'({before_q, host_go && rd_valid_i});
      if (marked_q) begin
        age_q <= age_q + 1'b1;
        marked_q <= age_q != 4'(RspLatency);
      end else if (mark_i) begin
        marked_q <= 1'b1;
        age_q <= 4'd1;
        rd_q <= rd_go;
        read_q <= host_go && !host_write_i;
        write_q <= host_go && host_write_i;
        addr_q <= host_go ? host_addr_i : rd_addr_i;
        tag_q <= rd_tag_i;
        place_q <= u_dut.u_asked.at_q;
        data_q <= host_data_i;
      end
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) begin
      if (host_waits_q) assume (host_valid_i);
      assert (waits_q <= 4'(WaitMax));
      assert (!(host_go && rd_valid_i) || before_q == '0);
      assert (!(rd_go && host_go));
      // The host is accepted at once if no lookup is requested.
      assert (host_ready_o || rd_valid_i);
      if (marked_q && age_q == 4'd1) begin
        assert (sram_en_o == (rd_q || read_q || write_q));
        if (sram_en_o) assert (sram_write_o == write_q && sram_addr_o == addr_q);
        if (write_q) assert (sram_wdata_o[34:0] == data_q && ^sram_wdata_o == 1'b0);
      end
      if (marked_q && age_q == 4'(RspLatency)) begin
        assert (rsp_valid_o == rd_q && host_rsp_valid_o == read_q);
        if (rd_q) assert (rsp_tag_o == tag_q && rsp_data_o == rdata_q && rsp_error_o == ^rdata_q);
        if (read_q) assert (host_rsp_data_o == rdata_q[34:0] && host_rsp_error_o == ^rdata_q);
      end
      // Where the values of the marked clock are stored.
      assert (32'(u_dut.u_asked.at_q) < RspLatency - 1);
      if (marked_q) begin
        assert (age_q >= 4'd1 && age_q <= 4'(RspLatency));
        assert (u_dut.rd_q[2'(age_q-1'b1)] == rd_q && u_dut.host_q[2'(age_q-1'b1)] == read_q);
        assert (!(rd_q && (read_q || write_q)) && !(read_q && write_q));
        assert (32'(place_q) < RspLatency - 1);
        assert ((32'(place_q) + 32'(age_q)) % (RspLatency - 1) == 32'(u_dut.u_asked.at_q));
        if (age_q != 4'(RspLatency)) assert (u_dut.u_asked.words_q[place_q][1] == tag_q);
      end
      assert (rsp_data_o == rdata_q && u_dut.wrong == ^rdata_q);
    end
  end
endmodule
