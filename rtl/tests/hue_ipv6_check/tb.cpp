// Bench of hue_ipv6_check: compares its result for random frames, most of them nearly valid, with those of the software's plane
// (crates/planes/examples/ipv6_vectors.rs) and with a model that reads whole frames, and checks each outcome at its boundary by hand. The
// bytes behind a frame's end are random, although the card has zeros there.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "Vtop.h"
#include "bench.h"
#include "hue_layout.h"

using bench::Bytes;

namespace {
constexpr unsigned HeadBytes = 128;

enum Outcome {
  None = 0, Ethertype = 3, Truncated = 4, Version = 5, PayloadLength = 6, Local = 7, L2Group = 8, MartianSource = 9,
  MartianDestination = 10, HopLimit = 11, Scope = 12, Options = 13, Count = 14,
};

struct Result {
  bool asks;
  Outcome outcome;
};

// ---- the model, in the terms of ADR 0047

using Address = std::array<uint8_t, 16>;

unsigned be16(const Bytes& f, size_t at) { return f[at] << 8 | f[at + 1]; }

Address address(const Bytes& f, size_t at) {
  Address found;
  std::copy_n(f.begin() + at, 16, found.begin());
  return found;
}

// Whether an address begins with the first `bits` bits of a prefix.
bool in(const Address& addr, const Address& prefix, unsigned bits) {
  for (unsigned i = 0; i < bits; ++i) {
    if ((addr[i / 8] ^ prefix[i / 8]) >> (7 - i % 8) & 1) return false;
  }
  return true;
}

const Address Unspecified = {}, Loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
const Address Multicast = {0xff}, LinkLocal = {0xfe, 0x80};

Result expected(const Bytes& f) {
  const size_t present = f.size() - 14;
  if (be16(f, 12) != 0x86dd) return {false, Ethertype};
  if (present < 40) return {false, Truncated};
  if (f[14] >> 4 != 6) return {false, Version};
  if (40 + be16(f, 18) > present) return {false, PayloadLength};
  const Address src = address(f, 22), dst = address(f, 38);
  if (in(dst, Multicast, 8) || in(dst, LinkLocal, 10)) return {false, Local};
  if (f[0] & 1) return {true, L2Group};
  if (src == Unspecified || src == Loopback || in(src, Multicast, 8)) return {true, MartianSource};
  if (dst == Unspecified || dst == Loopback) return {true, MartianDestination};
  if (f[21] < 2) return {true, HopLimit};
  if (in(src, LinkLocal, 10)) return {true, Scope};
  if (f[20] == 0) return {true, Options};
  return {true, None};
}

// ---- the module

std::unique_ptr<Vtop> top;

using hue_pkg::hue_head_bytes_t;
using hue_stages_pkg::ipv6_t;

void check(bench::Tests& tests, bench::Random& random, const Bytes& f, Result want, const char* what) {
  for (unsigned i = 0; i < HeadBytes; ++i) {
    const bool there = i < f.size();
    bench::set(top->head_i, hue_head_bytes_t::bytes.part(8 * i, 8), there ? f[i] : random.byte());
    bench::set(top->head_i, hue_head_bytes_t::mask.part(i, 1), there);
  }
  top->len_i = f.size();
  top->eval();
  const auto& result = top->ipv6_o;
  const bool asks = bench::get(result, ipv6_t::asks);
  const unsigned outcome = bench::get(result, ipv6_t::outcome);
  if (asks != want.asks || outcome != want.outcome) {
    tests.wrong("%s, %zu bytes: asks %d, outcome %u; expected %d, %u", what, f.size(), asks, outcome, want.asks, want.outcome);
  }
  if (!want.asks) return;
  const unsigned total = bench::get(result, ipv6_t::total), hop_limit = bench::get(result, ipv6_t::hop_limit);
  if (total != 40 + be16(f, 18) || hop_limit != f[21]) tests.wrong("%s: total %u, hop limit %u", what, total, hop_limit);
  for (unsigned i = 0; i < 16; ++i) {
    if (bench::get(result, ipv6_t::dst.part(8 * (15 - i), 8)) != f[38 + i]) tests.wrong("%s: byte %u of the destination", what, i);
  }
}

// ---- frames

void put16(Bytes& f, size_t at, unsigned value) {
  f[at] = value >> 8;
  f[at + 1] = value & 255;
}

void put(Bytes& f, size_t at, const Address& addr) { std::copy(addr.begin(), addr.end(), f.begin() + at); }

// A frame of `len` bytes that is forwarded if it has at least 54.
Bytes valid(bench::Random& random, size_t len) {
  Bytes f(std::max<size_t>(len, 54));
  for (auto& byte : f) byte = random.byte();
  f[0] &= 0xfe;
  put16(f, 12, 0x86dd);
  f[14] = 0x60 | (f[14] & 15);
  put16(f, 18, f.size() - 54);
  f[20] = random.between(1, 255);
  f[21] = random.between(2, 255);
  f[22] = f[38] = 0x20;
  f.resize(len);
  return f;
}

// An address near the ones that are special, or one of them.
Address special(bench::Random& random) {
  static const Address special[] = {Unspecified, Loopback, {0xff, 0x02}, {0xfe, 0x80}, {0xfe, 0xbf}, {0xfe, 0xc0}, {0xfe, 0x7f},
                                    {0xfc}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, {0x20, 0x01, 0x0d, 0xb8}};
  Address addr = special[random.below(10)];
  if (random.percent(30)) addr[15] ^= random.byte();
  if (random.percent(20)) addr[random.below(16)] ^= 1 << random.below(8);
  return addr;
}

Bytes random_frame(bench::Random& random) {
  Bytes f = valid(random, random.percent(95) ? random.between(54, 200) : random.between(1000, 9216));
  if (random.percent(10)) f[0] |= 1;
  if (random.percent(10)) put(f, 22, special(random));
  if (random.percent(10)) put(f, 38, special(random));
  if (random.percent(10)) f[20] = random.below(2);
  if (random.percent(10)) f[21] = random.below(4);
  if (random.percent(10)) put16(f, 18, be16(f, 18) + random.below(5) - 2);
  if (random.percent(5)) put16(f, 18, random.below(65536));
  if (random.percent(3)) f[14] = random.byte();
  if (random.percent(3)) put16(f, 12, random.percent(50) ? 0x0806 : 0x86dd ^ 1 << random.below(16));
  if (random.percent(5)) f.resize(random.between(14, 60));
  return f;
}

// ---- each outcome at its boundary

void boundaries(bench::Tests& tests, bench::Random& random) {
  const auto one = [&](const char* what, Result want, auto change) {
    Bytes f = valid(random, 100);
    change(f);
    check(tests, random, f, want, what);
  };
  const auto with_src = [](const Address& addr) { return [addr](Bytes& f) { put(f, 22, addr); }; };
  const auto with_dst = [](const Address& addr) { return [addr](Bytes& f) { put(f, 38, addr); }; };
  one("a packet to forward", {true, None}, [](Bytes&) {});
  one("ARP", {false, Ethertype}, [](Bytes& f) { put16(f, 12, 0x0806); });
  one("IPv4", {false, Ethertype}, [](Bytes& f) { put16(f, 12, 0x0800); });
  one("a VLAN tag", {false, Ethertype}, [](Bytes& f) { put16(f, 12, 0x8100); });
  one("39 bytes of header", {false, Truncated}, [](Bytes& f) { f.resize(53); });
  one("an Ethernet header alone", {false, Truncated}, [](Bytes& f) { f.resize(14); });
  one("a header alone", {true, None}, [](Bytes& f) { f.resize(54); put16(f, 18, 0); });
  one("version 4", {false, Version}, [](Bytes& f) { f[14] = 0x45; });
  one("a payload one byte too long", {false, PayloadLength}, [](Bytes& f) { put16(f, 18, 47); });
  one("a payload that fills the frame", {true, None}, [](Bytes& f) { put16(f, 18, 46); });
  one("padding", {true, None}, [](Bytes& f) { put16(f, 18, 1); });
  one("the longest payload length", {false, PayloadLength}, [](Bytes& f) { put16(f, 18, 65535); });
  one("all nodes", {false, Local}, with_dst({0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  one("link-local destination", {false, Local}, with_dst({0xfe, 0x80}));
  one("the last link-local destination", {false, Local}, with_dst({0xfe, 0xbf, 0xff}));
  one("former site-local destination", {true, None}, with_dst({0xfe, 0xc0}));
  one("unique local destination", {true, None}, with_dst({0xfd, 0x12}));
  one("duplicate address detection", {false, Local}, [](Bytes& f) { f[0] = 0x33; put(f, 22, Unspecified); put(f, 38, {0xff, 2}); });
  one("unicast in a group frame", {true, L2Group}, [](Bytes& f) { f[0] = 0x33; });
  one("source ::", {true, MartianSource}, with_src(Unspecified));
  one("source ::1", {true, MartianSource}, with_src(Loopback));
  one("source ::2", {true, None}, with_src({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  one("multicast source", {true, MartianSource}, with_src({0xff, 0x0e}));
  one("source feff::", {true, None}, with_src({0xfe, 0xff}));
  one("destination ::", {true, MartianDestination}, with_dst(Unspecified));
  one("destination ::1", {true, MartianDestination}, with_dst(Loopback));
  one("destination 100::", {true, None}, with_dst({1}));
  one("hop limit 0", {true, HopLimit}, [](Bytes& f) { f[21] = 0; });
  one("hop limit 1", {true, HopLimit}, [](Bytes& f) { f[21] = 1; });
  one("hop limit 2", {true, None}, [](Bytes& f) { f[21] = 2; });
  one("link-local source", {true, Scope}, with_src({0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1}));
  one("link-local source, hop limit 1", {true, HopLimit}, [](Bytes& f) { put(f, 22, LinkLocal); f[21] = 1; });
  one("hop-by-hop options", {true, Options}, [](Bytes& f) { f[20] = 0; });
  one("a jumbogram", {true, Options}, [](Bytes& f) { f[20] = 0; put16(f, 18, 0); });
  one("options, hop limit 1", {true, HopLimit}, [](Bytes& f) { f[20] = 0; f[21] = 1; });
  one("a routing header", {true, None}, [](Bytes& f) { f[20] = 43; });
}

// ---- frames of the software's plane, a line each: bytes, asks, outcome, length of the packet, hop limit

bool read_line(std::FILE* from, std::string& line) {
  line.clear();
  for (int c; (c = std::getc(from)) != EOF;) {
    if (c == '\n') return true;
    line += static_cast<char>(c);
  }
  return !line.empty();
}

void vectors(bench::Tests& tests, bench::Random& random, std::FILE* from) {
  unsigned counts[Count] = {}, frames = 0;
  for (std::string line; !tests.failed() && read_line(from, line); ++frames) {
    const size_t end = line.find(' ');
    unsigned asks, outcome, total, hop_limit;
    if (end == std::string::npos ||
        std::sscanf(line.c_str() + end, "%x %x %x %x", &asks, &outcome, &total, &hop_limit) != 4 || outcome >= Count) {
      return tests.wrong("vector %u: %s", frames, line.c_str());
    }
    Bytes f(end / 2);
    for (size_t i = 0; i < f.size(); ++i) f[i] = std::stoul(line.substr(2 * i, 2), nullptr, 16);
    if (asks && (total != 40 + be16(f, 18) || hop_limit != f[21])) return tests.wrong("vector %u: total %u", frames, total);
    ++counts[outcome];
    check(tests, random, f, {asks == 1, static_cast<Outcome>(outcome)}, "a frame of the software's plane");
  }
  for (unsigned outcome = Ethertype; outcome < Count; ++outcome) {
    if (counts[outcome] < frames / 500 + 1 && !tests.failed()) tests.wrong("outcome %u occurred %u times", outcome, counts[outcome]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = bench::seed_of(argc, argv);
  bench::Tests tests(seed);
  bench::Random random(seed);
  top = std::make_unique<Vtop>();

  tests.begin("ipv6: each outcome at its boundary");
  boundaries(tests, random);
  tests.end();

  tests.begin("ipv6: every length up to 9216 bytes");
  for (size_t len = 14; len <= 9216; len += len < 300 ? 1 : 37) {
    const Bytes f = valid(random, len);
    check(tests, random, f, {len >= 54, len >= 54 ? None : Truncated}, "a valid frame");
  }
  tests.end();

  tests.begin("ipv6: random frames");
  unsigned counts[Count] = {};
  for (unsigned i = 0; i < 200000 && !tests.failed(); ++i) {
    const Bytes f = random_frame(random);
    const Result want = expected(f);
    ++counts[want.outcome];
    check(tests, random, f, want, "a random frame");
  }
  for (unsigned outcome = Ethertype; outcome < Count; ++outcome) {
    if (counts[outcome] < 100 && !tests.failed()) tests.wrong("outcome %u occurred %u times", outcome, counts[outcome]);
  }
  tests.end();
  tests.begin("ipv6: frames of the software's plane");
  vectors(tests, random, stdin);
  tests.end();
  top->final();
  top.reset();
  return tests.result();
}
