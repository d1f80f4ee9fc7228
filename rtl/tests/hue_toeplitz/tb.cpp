// Bench of hue_toeplitz: the published examples, and random frames against a model that reads whole frames and sums the key bit by bit, from
// the definition. Bytes behind a frame's end are random here, although the card has zeros there. Every rule about ports is met at its
// boundary.
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "Vtop.h"
#include "bench.h"
#include "hue_layout.h"

using bench::Bytes;
using hue_pkg::hue_head_bytes_t;

namespace {
constexpr unsigned HeadBytes = 128, HashBits = 12;
constexpr uint8_t Key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                             0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

// ---- the model

uint32_t toeplitz(const Bytes& input) {
  uint32_t hash = 0;
  for (unsigned bit = 0; bit < 8 * input.size(); ++bit) {
    if (!(input[bit / 8] >> (7 - bit % 8) & 1)) continue;
    uint32_t window = 0;
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned at = (bit + i) % 320;
      window = window << 1 | (Key[at / 8] >> (7 - at % 8) & 1);
    }
    hash ^= window;
  }
  return hash;
}

unsigned be16(const Bytes& f, size_t at) { return f[at] << 8 | f[at + 1]; }
bool has_ports(unsigned protocol) { return protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 || protocol == 136; }

Bytes fields(const Bytes& f, size_t addresses, size_t length, size_t ports, bool counts, uint8_t protocol) {
  Bytes input(f.begin() + addresses, f.begin() + addresses + length);
  for (size_t i = 0; i < 4; ++i) input.push_back(counts ? f[ports + i] : 0);
  input.push_back(protocol);
  return input;
}

uint32_t ipv4(const Bytes& f) {
  const bool counts = has_ports(f[23]) && f[14] == 0x45 && !(be16(f, 20) & 0x3fff) && be16(f, 16) >= 24 && f.size() >= 38;
  return toeplitz(fields(f, 26, 8, 34, counts, f[23]));
}

uint32_t ipv6(const Bytes& f) {
  const bool counts = has_ports(f[20]) && be16(f, 18) >= 4 && f.size() >= 58;
  return toeplitz(fields(f, 22, 32, 54, counts, f[20]));
}

// ---- the module

std::unique_ptr<Vtop> top;

void edge() {
  top->clk_i = 1;
  top->eval();
  top->clk_i = 0;
  top->eval();
}

void give(bench::Random& random, const Bytes& f) {
  for (unsigned i = 0; i < HeadBytes; ++i) {
    const bool there = i < f.size();
    bench::set(top->head_i, hue_head_bytes_t::bytes.part(8 * i, 8), there ? f[i] : random.byte());
    bench::set(top->head_i, hue_head_bytes_t::mask.part(i, 1), there);
  }
}

void check(bench::Tests& tests, bench::Random& random, const Bytes& f, bool six, uint32_t want, const char* what) {
  give(random, f);
  top->en_i = 1;
  edge();
  // The result stays while the stages stand.
  top->en_i = 0;
  give(random, Bytes(60, random.byte()));
  edge();
  const uint32_t found = six ? top->ipv6_o : top->ipv4_o;
  const uint32_t mask = (1u << HashBits) - 1;
  if (found != (want & mask)) tests.wrong("%s, %zu bytes: %03x; expected %03x", what, f.size(), found, want & mask);
}

// ---- frames

void put16(Bytes& f, size_t at, unsigned value) {
  f[at] = value >> 8;
  f[at + 1] = value & 255;
}

// A frame of `len` bytes with all that makes ports count.
Bytes frame(bench::Random& random, bool six, size_t len) {
  static const uint8_t protocols[] = {6, 17, 33, 132, 136};
  Bytes f(len);
  for (auto& byte : f) byte = random.byte();
  const uint8_t protocol = protocols[random.below(5)];
  if (six) {
    f[20] = protocol;
    put16(f, 18, len - 54);
  } else {
    f[14] = 0x45;
    f[20] &= 0xc0;
    f[21] = 0;
    f[23] = protocol;
    put16(f, 16, len - 14);
  }
  return f;
}

Bytes random_frame(bench::Random& random, bool six) {
  const size_t header = six ? 54 : 34;
  Bytes f = frame(random, six, header + (random.percent(40) ? random.below(8) : random.below(120)));
  if (random.percent(25)) f[six ? 20 : 23] = random.byte();
  if (random.percent(15)) put16(f, six ? 18 : 16, (six ? 0 : 20) + random.below(8));
  if (!six && random.percent(10)) f[14] = 0x40 | random.between(5, 15);
  if (!six && random.percent(10)) put16(f, 20, 1u << random.below(16));
  return f;
}

struct Published {
  const char* from;
  unsigned from_port;
  const char* to;
  unsigned to_port;
  uint32_t with_ports;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Random random(seed);
  bench::Tests tests(seed);
  top = std::make_unique<Vtop>();
  top->clk_i = 0;
  top->eval();

  tests.begin("published examples");
  // Source, its port, destination, its port, hash of these, without the protocol.
  static const Published all[] = {
      {"\x42\x09\x95\xbb", 2794, "\xa1\x8e\x64\x50", 1766, 0x51ccc178},
      {"\xc7\x5c\x6f\x02", 14230, "\x41\x45\x8c\x53", 4739, 0xc626b0ea},
      {"\x18\x13\xc6\x5f", 12898, "\x0c\x16\xcf\xb8", 38024, 0x5c2b394a},
      {"\x26\x1b\xcd\x1e", 48228, "\xd1\x8e\xa3\x06", 2217, 0xafc7327f},
      {"\x99\x27\xa3\xbf", 44251, "\xca\xbc\x7f\x02", 1303, 0x10e828a2},
  };
  for (const auto& one : all) {
    Bytes f = frame(random, false, 60);
    for (int i = 0; i < 4; ++i) {
      f[26 + i] = one.from[i];
      f[30 + i] = one.to[i];
    }
    put16(f, 34, one.from_port);
    put16(f, 36, one.to_port);
    f[23] = 17;
    Bytes protocol(13);
    protocol[12] = 17;
    check(tests, random, f, false, one.with_ports ^ toeplitz(protocol), "an example");
  }
  tests.end();

  for (const bool six : {false, true}) {
    tests.begin(six ? "random frames, IPv6" : "random frames, IPv4");
    for (int i = 0; i < 20000 && !tests.failed(); ++i) {
      const Bytes f = random_frame(random, six);
      check(tests, random, f, six, six ? ipv6(f) : ipv4(f), "a frame");
    }
    tests.end();
    tests.begin(six ? "each bit counts, IPv6" : "each bit counts, IPv4");
    const Bytes f = frame(random, six, 90);
    for (unsigned bit = 8 * 14; bit < 8 * (six ? 58 : 38); ++bit) {
      Bytes other = f;
      other[bit / 8] ^= 0x80 >> bit % 8;
      check(tests, random, other, six, six ? ipv6(other) : ipv4(other), "a changed bit");
    }
    for (unsigned protocol = 0; protocol < 256; ++protocol) {
      Bytes other = f;
      other[six ? 20 : 23] = protocol;
      check(tests, random, other, six, six ? ipv6(other) : ipv4(other), "a protocol");
    }
    tests.end();
  }
  top->final();
  top.reset();
  return tests.result();
}
