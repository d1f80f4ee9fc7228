// Bench of hue_gather: compares records of random frames, most of them nearly valid, with a model that reads whole frames.
#include <cstring>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "stream.h"

using bench::Bytes;

namespace {
constexpr unsigned Width = HUE_BUS_BYTES;

struct Frame {
  Bytes bytes;
  uint64_t time;
  uint32_t tag;
  unsigned port, copy, net, vport, cpu_out;
  bool from_cpu;
  unsigned len;  // as the input queue gives it: for a frame above 9216 bytes, 9217, with one beat in `bytes`
};

// ---- the model: reads whole frames

unsigned be16(const Bytes& f, size_t at) { return f[at] << 8 | f[at + 1]; }
uint32_t be32(const Bytes& f, size_t at) { return uint32_t{be16(f, at)} << 16 | be16(f, at + 2); }

// Offset of the IPv4 packet in the Ethernet frame at `at`, or 0.
size_t ipv4_of_frame(const Bytes& f, size_t at) {
  if (f.size() < at + 14 + 20 || be16(f, at + 12) != 0x0800 || f[at + 14] >> 4 != 4) return 0;
  return at + 14;
}

bool inner_of(const Bytes& f, uint32_t& found) {
  const size_t ip = ipv4_of_frame(f, 0);
  if (ip == 0) return false;
  const unsigned header = 4 * (f[ip] & 15);
  const bool later_fragment = (be16(f, ip + 6) & 0x1fff) != 0;
  const size_t payload = header >= 20 && ip + header <= f.size() ? ip + header : 0;
  size_t from = ip;
  if (f[ip + 9] == 4) {
    if (later_fragment || payload == 0 || f.size() < payload + 20 || f[payload] >> 4 != 4) return false;
    from = payload;
  } else if (f[ip + 9] == 17 && !later_fragment) {
    if (payload == 0 || f.size() < payload + 8) return false;
    if (be16(f, payload + 2) == 4789) {
      if (f.size() < payload + 16 || (f[payload + 8] & 8) == 0) return false;
      from = ipv4_of_frame(f, payload + 16);
      if (from == 0) return false;
    }
  }
  found = be32(f, from + 16);
  return true;
}

bool sum_holds(const Bytes& f, unsigned header) {
  uint32_t sum = 0;
  for (unsigned i = 0; i < header; i += 2) sum += be16(f, 14 + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

// ---- frames

void put16(Bytes& f, size_t at, unsigned value) {
  f[at] = value >> 8;
  f[at + 1] = value & 255;
}

void fix_sum(Bytes& f) {
  const unsigned header = 4 * (f[14] & 15);
  if (f.size() < 14 + header || header < 20) return;
  put16(f, 24, 0);
  uint32_t sum = 0;
  for (unsigned i = 0; i < header; i += 2) sum += be16(f, 14 + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  put16(f, 24, ~sum & 0xffff);
}

Bytes random_bytes(bench::Random& random, size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = random.byte();
  return bytes;
}

Frame random_frame(bench::Random& random, uint32_t number) {
  Frame frame{};
  frame.time = random.next();
  frame.tag = number;
  frame.port = random.below(8);
  frame.from_cpu = random.percent(20);
  frame.copy = random.below(2);
  frame.net = random.below(256);
  frame.vport = random.below(256);
  frame.cpu_out = random.below(8);
  const unsigned sort = random.below(100);
  unsigned len = sort < 3 ? random.below(15) : sort < 40 ? random.between(14, 150) : sort < 98 ? random.between(60, 300)
                                                                                              : random.between(1000, 9216);
  if (random.percent(5)) len = Width * random.between(1, 4);
  Bytes f = random_bytes(random, len < 200 ? 200 : len);
  if (!random.percent(10)) {
    f[12] = 8;
    f[13] = 0;
  }
  const unsigned words = random.percent(10) ? random.below(16) : random.percent(40) ? random.between(5, 15) : 5;
  f[14] = (random.percent(5) ? random.below(16) : 4) << 4 | words;
  if (!random.percent(25)) put16(f, 20, random.percent(50) ? 0x4000 : 0);
  const uint8_t protocols[] = {4, 17, 17, 6};
  f[23] = protocols[random.below(4)];
  const size_t behind = 14 + 4 * words;
  if (f[23] == 4 && !random.percent(15)) f[behind] = 0x45;
  if (f[23] == 17 && !random.percent(15)) {
    put16(f, behind + 2, 4789);
    if (!random.percent(15)) f[behind + 8] |= 8;
    if (!random.percent(15)) put16(f, behind + 16 + 12, 0x0800);
    if (!random.percent(15)) f[behind + 16 + 14] = 0x45;
  }
  f.resize(len);
  if (len >= 34 && random.percent(80)) fix_sum(f);
  if (len >= 34 && random.percent(3)) f[14 + random.below(20)] ^= 1 << random.below(8);
  frame.bytes = f;
  frame.len = len;
  if (sort == 99) {
    frame.bytes.resize(Width, 0x55);
    frame.len = 9217;
  }
  return frame;
}

// ---- the bench

std::unique_ptr<Vtop> top;
uint64_t cycle;

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
  ++cycle;
}

void reset() {
  top->rst_ni = 0;
  top->s_valid_i = 0;
  top->m_ready_i = 0;
  top->body_ready_i = 0;
  top->tag_ready_i = 0;
  for (int i = 0; i < 3; ++i) {
    top->eval();
    edge();
  }
  top->rst_ni = 1;
  top->eval();
}

void check(bench::Tests& tests, const Frame& frame) {
  using head = hue_pkg::hue_head_t;
  unsigned seen = 0;
  const Bytes& f = frame.bytes;
  auto expect = [&](const char* name, bench::Field field, uint64_t wanted) {
    const uint64_t found = bench::get(top->m_head_o, field);
    seen += field.bits;
    if (found != wanted)
      tests.wrong("frame %u of %u bytes: %s is %llx, expected %llx", frame.tag, frame.len, name,
                  (unsigned long long)found, (unsigned long long)wanted);
  };
  // Fields of a header that the frame does not contain are zero, and not those of an earlier frame or of later bytes on the bus.
  const bool whole = frame.len <= 9216;
  const bool ethernet = whole && f.size() >= 14, ipv4 = whole && f.size() >= 34;
  const unsigned words = ipv4 ? f[14] & 15 : 0;
  expect("time", head::time_ns, frame.time);
  expect("port", head::port, frame.port);
  expect("len", head::len, frame.len);
  expect("dst_mac", head::dst_mac, ethernet ? uint64_t{be16(f, 0)} << 32 | be32(f, 2) : 0);
  expect("ethertype", head::ethertype, ethernet ? be16(f, 12) : 0);
  expect("version", head::version, ipv4 ? f[14] >> 4 : 0);
  expect("ihl", head::ihl, words);
  expect("total", head::total, ipv4 ? be16(f, 16) : 0);
  expect("ttl", head::ttl, ipv4 ? f[22] : 0);
  expect("checksum", head::checksum, ipv4 ? be16(f, 24) : 0);
  expect("src", head::src, ipv4 ? f[26] : 0);
  expect("dst", head::dst, ipv4 ? be32(f, 30) : 0);
  expect("sum_ok", head::sum_ok, words >= 5 && f.size() >= 14 + 4 * words && sum_holds(f, 4 * words));
  uint32_t inner = 0;
  const bool valid = whole && inner_of(f, inner);
  expect("inner_valid", head::inner_valid, valid);
  expect("inner", head::inner, valid ? inner : 0);
  expect("from_cpu", head::from_cpu, frame.from_cpu);
  expect("copy", head::copy, frame.copy);
  expect("net", head::net, frame.net);
  expect("vport", head::vport, frame.vport);
  expect("cpu_out", head::cpu_out, frame.cpu_out);
  if (seen != head::Bits) tests.wrong("hue_head_t has fields that this bench does not check");
}

void drive(const Frame& frame, size_t beat, bool last) {
  // Other bytes after each frame's end, as if the frame continued.
  const uint8_t behind = 0x45 + 7 * frame.tag;
  for (unsigned b = 0; b < Width; ++b) {
    const size_t at = beat * Width + b;
    bench::set_bits(top->s_data_i, 8 * b, 8, at < frame.bytes.size() ? frame.bytes[at] : behind);
  }
  top->s_first_i = beat == 0;
  top->s_last_i = last;
  top->s_port_i = frame.port;
  stream::Arrival arrival;
  arrival.time = frame.time;
  arrival.tag = frame.tag;
  arrival.len = frame.len;
  arrival.from_cpu = frame.from_cpu;
  arrival.copy = frame.copy;
  arrival.net = frame.net;
  arrival.vport = frame.vport;
  arrival.out = frame.cpu_out;
  stream::put_arrival(top->s_arrival_i, arrival);
}

// Sends frames; idle and stall in percent. Returns the cycles between the first and the last record.
uint64_t run(bench::Tests& tests, bench::Random& random, std::deque<Frame> frames, unsigned idle, unsigned stall,
             bool check_bodies = true) {
  reset();
  std::deque<Frame> expected;
  Bytes body, body_wanted;
  size_t beat = 0;
  uint64_t first = 0, last = 0, quiet = 0;
  size_t records = 0, tags = 0, wanted = frames.size();
  bool offered = false;
  while ((records < wanted || !frames.empty()) && quiet < 2000) {
    ++quiet;
    // A beat that was offered and not taken stays.
    if (!offered) offered = !frames.empty() && !random.percent(idle);
    top->s_valid_i = offered;
    size_t beats = 0;
    if (offered) {
      beats = frames.front().bytes.empty() ? 1 : (frames.front().bytes.size() + Width - 1) / Width;
      drive(frames.front(), beat, beat + 1 == beats);
    }
    top->m_ready_i = !random.percent(stall);
    top->body_ready_i = !random.percent(stall);
    top->tag_ready_i = !random.percent(stall);
    top->eval();
    const bool taken = top->s_valid_i && top->s_ready_o;
    if (top->body_valid_o != taken) tests.wrong("body and beat differ");
    if (taken) {
      quiet = 0;
      if (beat == 0) {
        expected.push_back(frames.front());
        if (!top->tag_valid_o || top->tag_o != frames.front().tag) tests.wrong("tag of frame %u", frames.front().tag);
        ++tags;
      } else if (top->tag_valid_o) {
        tests.wrong("a tag in the middle of a frame");
      }
      if (check_bodies) {
        for (unsigned b = 0; b < Width; ++b) {
          const size_t at = beat * Width + b;
          if (at < frames.front().bytes.size() && bench::bits(top->body_data_o, 8 * b, 8) != frames.front().bytes[at])
            tests.wrong("body of frame %u", frames.front().tag);
        }
      }
      offered = false;
      if (++beat == beats) {
        beat = 0;
        frames.pop_front();
      }
    }
    if (top->m_valid_o && top->m_ready_i) {
      quiet = 0;
      if (expected.empty()) {
        tests.wrong("a record of no frame");
      } else {
        check(tests, expected.front());
        expected.pop_front();
        if (records == 0) first = cycle;
        last = cycle;
        ++records;
      }
    }
    edge();
  }
  if (records != wanted) tests.wrong("%zu records of %zu frames", records, wanted);
  top->s_valid_i = 0;
  for (int i = 0; i < 8; ++i) {
    top->eval();
    edge();
  }
  top->eval();
  if (!top->idle_o) tests.wrong("not idle at the end");
  return last - first;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  const std::string width = std::to_string(8 * Width);
  const unsigned shares[][2] = {{0, 0}, {30, 0}, {0, 30}, {50, 50}, {0, 85}};
  for (const auto& share : shares) {
    tests.begin("gather " + width + " bit, idle " + std::to_string(share[0]) + " %, back-pressure " +
                std::to_string(share[1]) + " %");
    std::deque<Frame> frames;
    for (uint32_t i = 0; i < 4000; ++i) frames.push_back(random_frame(random, i));
    run(tests, random, frames, share[0], share[1]);
    tests.end();
  }
  tests.begin("gather " + width + " bit, every length up to 200 bytes");
  {
    std::deque<Frame> frames;
    for (uint32_t i = 0; i < 200 * 8; ++i) {
      Frame frame = random_frame(random, i);
      frame.len = i / 8;
      frame.bytes.resize(frame.len, 0x31);
      if (frame.len >= 34) fix_sum(frame.bytes);
      frames.push_back(frame);
    }
    run(tests, random, frames, 0, 10);
  }
  tests.end();
  tests.begin("gather " + width + " bit, 64-byte frames at full rate");
  {
    std::deque<Frame> frames;
    const unsigned count = 2000;
    for (uint32_t i = 0; i < count; ++i) {
      Frame frame = random_frame(random, i);
      frame.len = 64;
      frame.bytes.resize(64, 0x77);
      frames.push_back(frame);
    }
    const uint64_t clocks = run(tests, random, frames, 0, 0);
    if (clocks != uint64_t{count - 1} * (64 / Width))
      tests.wrong("%u frames took %llu clocks", count, (unsigned long long)clocks);
  }
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
