// Shared by benches of a single module: frames on a stream of `Width` bytes, and the structs in their side fields.
#ifndef HUE_STREAM_H
#define HUE_STREAM_H

#include <algorithm>

#include "bench.h"
#include "hue_layout.h"

namespace stream {

using bench::Bytes;

inline unsigned beats_of(size_t bytes, unsigned width) { return bytes == 0 ? 1 : (bytes + width - 1) / width; }
// Number of valid bytes in a beat.
inline unsigned bytes_of(size_t bytes, unsigned width, unsigned beat) {
  return std::min<size_t>(width, bytes - std::min<size_t>(bytes, size_t{beat} * width));
}

template <typename Signal>
void put_beat(Signal& signal, const Bytes& bytes, unsigned width, unsigned beat) {
  for (unsigned b = 0; b < width; ++b) {
    const size_t at = size_t{beat} * width + b;
    bench::set_bits(signal, 8 * b, 8, at < bytes.size() ? bytes[at] : 0xee);
  }
}
template <typename Signal>
void take_beat(const Signal& signal, Bytes& bytes, unsigned count) {
  for (unsigned b = 0; b < count; ++b) bytes.push_back(bench::bits(signal, 8 * b, 8));
}

// A packed struct is written from its lowest field up.
template <typename Signal>
class Put {
 public:
  explicit Put(Signal& signal) : signal_(signal) {}
  Put& put(unsigned width, uint64_t value) {
    bench::set_bits(signal_, at_, width, value);
    at_ += width;
    return *this;
  }

 private:
  Signal& signal_;
  unsigned at_ = 0;
};

struct Arrival {
  uint64_t time = 0;
  uint32_t tag = 0;
  unsigned len = 0, from_cpu = 0, copy = 0, net = 0, vport = 0, out = 0;
  bool operator==(const Arrival& other) const {
    return time == other.time && tag == other.tag && len == other.len && from_cpu == other.from_cpu && copy == other.copy &&
           net == other.net && vport == other.vport && out == other.out;
  }
};
template <typename Signal>
void put_arrival(Signal& signal, const Arrival& arrival) {
  using hue_pkg::hue_arrival_t;
  bench::set(signal, hue_arrival_t::time_ns, arrival.time);
  bench::set(signal, hue_arrival_t::tag, arrival.tag);
  bench::set(signal, hue_arrival_t::len, arrival.len);
  bench::set(signal, hue_arrival_t::from_cpu, arrival.from_cpu);
  bench::set(signal, hue_arrival_t::copy, arrival.copy);
  bench::set(signal, hue_arrival_t::net, arrival.net);
  bench::set(signal, hue_arrival_t::vport, arrival.vport);
  bench::set(signal, hue_arrival_t::cpu_out, arrival.out);
}
template <typename Signal>
Arrival arrival_of(const Signal& signal) {
  using hue_pkg::hue_arrival_t;
  Arrival arrival;
  arrival.time = bench::get(signal, hue_arrival_t::time_ns);
  arrival.tag = bench::get(signal, hue_arrival_t::tag);
  arrival.len = bench::get(signal, hue_arrival_t::len);
  arrival.from_cpu = bench::get(signal, hue_arrival_t::from_cpu);
  arrival.copy = bench::get(signal, hue_arrival_t::copy);
  arrival.net = bench::get(signal, hue_arrival_t::net);
  arrival.vport = bench::get(signal, hue_arrival_t::vport);
  arrival.out = bench::get(signal, hue_arrival_t::cpu_out);
  return arrival;
}
inline uint64_t departure_of(unsigned port, unsigned net, uint32_t tag, unsigned len) {
  using hue_pkg::hue_departure_t;
  uint64_t departure = 0;
  bench::set(departure, hue_departure_t::port, port);
  bench::set(departure, hue_departure_t::net, net);
  bench::set(departure, hue_departure_t::tag, tag);
  bench::set(departure, hue_departure_t::len, len);
  return departure;
}
// An access to a table, or none.
template <typename Signal>
void put_request(Signal& signal, bool valid, bool write, bool clear, unsigned table, unsigned index) {
  using hue_pkg::tbl_req_t;
  bench::set(signal, tbl_req_t::valid, valid);
  bench::set(signal, tbl_req_t::write, write);
  bench::set(signal, tbl_req_t::clear, clear);
  bench::set(signal, tbl_req_t::id, table);
  bench::set(signal, tbl_req_t::index, index);
}
// Word `at` of 32 bits of its data.
template <typename Signal>
void put_word(Signal& signal, unsigned at, uint32_t word) {
  bench::set(signal, hue_pkg::tbl_req_t::wdata.part(32 * at, 32), word);
}
template <typename Signal>
bool answered(const Signal& signal) {
  return bench::get(signal, hue_pkg::tbl_rsp_t::done);
}
inline Arrival random_arrival(bench::Random& random, uint32_t tag) {
  Arrival arrival;
  arrival.time = random.next();
  arrival.tag = tag;
  arrival.from_cpu = random.below(2);
  arrival.copy = random.below(2);
  arrival.net = random.below(256);
  arrival.vport = random.below(256);
  arrival.out = random.below(8);
  return arrival;
}

inline Bytes random_bytes(bench::Random& random, size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) byte = random.byte();
  return bytes;
}

// Random lengths: often near multiples of a beat, otherwise any.
inline unsigned random_length(bench::Random& random, unsigned width, unsigned max) {
  const unsigned sort = random.below(100);
  if (sort < 25) return random.between(1, 4) * width + random.below(3) - 1;
  return sort < 75 ? random.between(0, 130) : random.between(60, max);
}

struct Rates {
  unsigned idle, stall;
};
constexpr Rates Mixes[] = {{0, 0}, {50, 0}, {0, 50}, {40, 60}, {10, 90}, {90, 10}};
inline std::string text_of(const Rates& rates) {
  return "idle " + std::to_string(rates.idle) + " %, back-pressure " + std::to_string(rates.stall) + " %";
}

}  // namespace stream

#endif
