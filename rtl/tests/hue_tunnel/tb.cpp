// Bench of hue_tunnel: frames that enter tunnels of every type, and packets that come out of them or do not, most of them nearly
// sound, compared with what the software makes of them (crates/demux/examples/tunnel_vectors.rs). The host reads and writes rows meanwhile.
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;
using stream::Arrival;

namespace {
constexpr unsigned Width = 32;
constexpr unsigned Out = 1, In = 2;
constexpr unsigned TableTunnel = 31, TableNear = 32;

std::unique_ptr<Vtop> top;

struct Row {
  unsigned place, over, over_vport, vxlan, wide, vni, any_mac, net, vport, ttl, fixed, dscp;
  Bytes remote, local, mac, over_mac;
};
struct Frame {
  unsigned tunnel, net, vport, port;
  uint32_t tag;
  Bytes bytes;
  enum { Sent, Lost, Back } fate;
  unsigned to_net, to_vport;
  Bytes wanted;
};

Bytes unhex(const std::string& text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes.push_back(std::stoul(text.substr(i, 2), nullptr, 16));
  return bytes;
}
uint64_t number(const Bytes& bytes, size_t from, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[from + i];
  return value;
}

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
}

// Accesses a row, and waits for the answer.
void access(bench::Tests& tests, unsigned table, unsigned place, bool write, const VlWide<8>* data) {
  stream::put_request(top->tbl_req_i, true, write, false, table, place);
  for (unsigned i = 0; i < 8; ++i) stream::put_word(top->tbl_req_i, i, data ? (*data)[i] : 0);
  for (unsigned clock = 0; clock < 100; ++clock) {
    top->eval();
    const bool done = stream::answered(top->tbl_rsp_o);
    edge();
    if (done) {
      stream::put_request(top->tbl_req_i, false, false, false, 0, 0);
      top->eval();
      edge();
      return;
    }
  }
  tests.wrong("table %u does not answer", table);
}

// Fields in the order of spec/regs/tables.rdl.
void write(bench::Tests& tests, const Row& row) {
  VlWide<8> near, far;
  for (unsigned i = 0; i < 8; ++i) near[i] = far[i] = 0;
  stream::Put(near).put(64, number(row.local, 8, 8)).put(64, number(row.local, 0, 8)).put(48, number(row.mac, 0, 6))
      .put(48, number(row.over_mac, 0, 6)).put(8, row.net).put(8, row.vport).put(8, row.ttl).put(1, row.fixed).put(6, row.dscp);
  stream::Put(far).put(1, 1).put(8, row.over).put(8, row.over_vport).put(1, row.vxlan).put(1, row.wide).put(24, row.vni)
      .put(64, number(row.remote, 8, 8)).put(64, number(row.remote, 0, 8)).put(1, row.any_mac);
  access(tests, TableNear, row.place, true, &near);
  access(tests, TableTunnel, row.place, true, &far);
}

Arrival arrival_of(const Frame& frame) {
  Arrival arrival;
  arrival.tag = frame.tag;
  if (frame.fate == Frame::Back) {
    arrival.from_cpu = 1;
    arrival.out = 4 + frame.net % 4;
    arrival.net = frame.net;
    arrival.vport = frame.vport;
  } else {
    arrival.copy = 1;
    arrival.net = frame.to_net;
    arrival.vport = frame.to_vport;
  }
  return arrival;
}

// Sends frames. Returns the number of clocks.
uint64_t run(bench::Tests& tests, bench::Random& random, const std::vector<Frame>& frames, const stream::Rates& rates, unsigned rows,
             bool host) {
  uint64_t clocks = 0;
  size_t in = 0, out = 0, counted = 0;
  unsigned beat = 0;
  bool offered = false, asking = false;
  Bytes coming;
  unsigned asked = 0;
  // What is behind the packet in the last frame may come when the packet has left.
  for (unsigned quiet = 0; (out < frames.size() || in < frames.size()) && quiet < 1000; ++quiet, ++clocks) {
    // Lost frames give nothing.
    while (out < frames.size() && out < in && frames[out].fate == Frame::Lost) ++out;
    if (!offered) offered = in < frames.size() && !random.percent(rates.idle);
    top->s_valid_i = offered;
    if (offered) {
      const Frame& frame = frames[in];
      using item = hue_pkg::hue_loop_t;
      stream::put_beat(top->s_data_i, frame.bytes, Width, beat);
      top->s_last_i = beat + 1 == stream::beats_of(frame.bytes.size(), Width);
      bench::set(top->s_item_i, item::tunnel, frame.tunnel);
      bench::set(top->s_item_i, item::net, frame.net);
      bench::set(top->s_item_i, item::vport, frame.vport);
      bench::set(top->s_item_i, item::port_in, frame.port);
      bench::set(top->s_item_i, item::tag, frame.tag);
      bench::set(top->s_item_i, item::len, frame.bytes.size());
    }
    if (host && !asking && random.percent(5)) {
      asking = true;
      asked = random.below(2) ? TableTunnel : TableNear;
      stream::put_request(top->tbl_req_i, true, false, false, asked, random.below(rows));
    }
    top->m_ready_i = !random.percent(rates.stall);
    top->eval();
    const bool done = asking && stream::answered(top->tbl_rsp_o);
    if (top->event_o) {
      quiet = 0;
      while (counted < frames.size() && frames[counted].fate == Frame::Back) ++counted;
      if (counted == frames.size()) {
        tests.wrong("an event of no frame");
      } else {
        const Frame& frame = frames[counted++];
        const unsigned row = frame.fate == Frame::Lost ? 3 : frame.tunnel == Out ? 0 : 1;
        if (top->event_row_o != row || top->event_net_o != frame.net)
          tests.wrong("frame %u: counted in row %u of network %u, expected %u of %u", frame.tag, top->event_row_o, top->event_net_o, row, frame.net);
      }
    }
    if (top->m_valid_o && top->m_ready_i) {
      quiet = 0;
      while (out < frames.size() && frames[out].fate == Frame::Lost) ++out;
      if (out == frames.size()) {
        tests.wrong("a beat of no frame");
        break;
      }
      const Frame& frame = frames[out];
      const Bytes& wanted = frame.fate == Frame::Back ? frame.bytes : frame.wanted;
      const Arrival found = stream::arrival_of(top->m_arrival_o);
      if (!(found == arrival_of(frame)) || top->m_port_o != frame.port)
        tests.wrong("frame %u: arrival: net %u vport %u from_cpu %u copy %u, expected fate %d net %u", frame.tag, found.net, found.vport,
                    found.from_cpu, found.copy, frame.fate, frame.to_net);
      stream::take_beat(top->m_data_o, coming, top->m_bytes_o);
      if (top->m_last_o != (coming.size() >= wanted.size()))
        tests.wrong("frame %u of %zu bytes: last after %zu", frame.tag, wanted.size(), coming.size());
      if (top->m_last_o) {
        if (coming != wanted) {
          size_t at = 0;
          while (at < coming.size() && at < wanted.size() && coming[at] == wanted[at]) ++at;
          tests.wrong("frame %u (%s, fate %d): %zu bytes, expected %zu; byte %zu differs: %02x, expected %02x", frame.tag,
                      frame.tunnel == Out ? "out" : "in", frame.fate, coming.size(), wanted.size(), at, at < coming.size() ? coming[at] : 0,
                      at < wanted.size() ? wanted[at] : 0);
        }
        coming.clear();
        ++out;
      }
    }
    if (offered && top->s_ready_o) {
      quiet = 0;
      offered = false;
      if (++beat == stream::beats_of(frames[in].bytes.size(), Width)) {
        beat = 0;
        ++in;
      }
    }
    edge();
    if (done) {
      asking = false;
      stream::put_request(top->tbl_req_i, false, false, false, 0, 0);
    }
  }
  top->s_valid_i = 0;
  for (unsigned i = 0; i < 200; ++i) {
    top->eval();
    if (asking && stream::answered(top->tbl_rsp_o)) asking = false, stream::put_request(top->tbl_req_i, false, false, false, 0, 0);
    if (top->event_o) ++counted;
    edge();
  }
  while (counted < frames.size() && frames[counted].fate == Frame::Back) ++counted;
  if (out != frames.size() || counted != frames.size()) tests.wrong("%zu of %zu frames left, %zu counted", out, frames.size(), counted);
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
  top->rst_ni = 0;
  for (int i = 0; i < 3; ++i) top->eval(), edge();
  top->rst_ni = 1;
  std::vector<Row> rows;
  std::vector<Frame> frames;
  std::string line;
  size_t fates[3] = {0, 0, 0};
  while (std::getline(std::cin, line)) {
    std::istringstream text(line);
    std::string what, bytes, fate;
    text >> what >> std::hex;
    if (what == "row") {
      Row row;
      std::string remote, local, mac, over_mac;
      text >> row.place >> row.over >> row.over_vport >> row.vxlan >> row.wide >> row.vni >> remote >> local >> row.any_mac >> mac >>
          over_mac >> row.net >> row.vport >> row.ttl >> row.fixed >> row.dscp;
      row.remote = unhex(remote), row.local = unhex(local), row.mac = unhex(mac), row.over_mac = unhex(over_mac);
      rows.push_back(row);
      continue;
    }
    Frame frame;
    frame.tunnel = what == "out" ? Out : In;
    frame.port = random.below(8);
    frame.tag = frames.size();
    text >> frame.net >> frame.vport >> bytes >> fate;
    frame.bytes = unhex(bytes);
    frame.fate = fate == "sent" ? Frame::Sent : fate == "lost" ? Frame::Lost : Frame::Back;
    ++fates[frame.fate];
    if (frame.fate == Frame::Sent) {
      text >> frame.to_net >> frame.to_vport >> bytes;
      frame.wanted = unhex(bytes);
    }
    frames.push_back(frame);
  }
  tests.begin("tunnels, rows");
  for (const Row& row : rows) write(tests, row);
  if (rows.empty() || fates[0] < frames.size() / 3 || fates[1] < 20 || fates[2] < 20)
    tests.wrong("%zu rows, frames: %zu sent, %zu lost, %zu back", rows.size(), fates[0], fates[1], fates[2]);
  tests.end();
  for (const auto& rates : stream::Mixes) {
    for (const bool host : {false, true}) {
      tests.begin("tunnels, " + stream::text_of(rates) + (host ? ", with the host at the rows" : ""));
      run(tests, random, frames, rates, HUE_ROWS, host);
      tests.end();
      if (tests.failed()) return tests.result();
    }
  }
  // Short frames.
  for (const unsigned tunnel : {Out, In}) {
    tests.begin(tunnel == Out ? "clocks of a short frame, out" : "clocks of a short frame, in");
    std::vector<Frame> few;
    for (const Frame& frame : frames) {
      const size_t bytes = tunnel == Out ? frame.bytes.size() : frame.wanted.size();
      if (frame.tunnel == tunnel && frame.fate == Frame::Sent && bytes <= 110) few.push_back(frame);
    }
    if (few.empty()) {  // few rows, few packets
      tests.end();
      continue;
    }
    const uint64_t clocks = run(tests, random, few, {0, 0}, HUE_ROWS, false);
    std::printf("  %zu frames, %.1f clocks a frame\n", few.size(), double(clocks) / few.size());
    // Four lines of 1 Gbit/s bring a frame of 64 bytes every 21 clocks of 8 ns; a search takes 3 for each further row.
    if (clocks > (tunnel == Out ? 18 : 21) * few.size()) tests.wrong("%llu clocks", (unsigned long long)clocks);
    tests.end();
  }
  top->final();
  top.reset();
  return tests.result();
}
