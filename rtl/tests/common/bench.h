// Shared by all test benches: a seeded random generator, bits of wide signals, names of tests and their results.
//
// A bench prints `test NAME ... ok` or `test NAME ... FAILED` for each test, and the seed if one fails. It exits with 0 or 1.
// Arguments: the seed, then the bench's own.
#ifndef HUE_BENCH_H
#define HUE_BENCH_H

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "verilated.h"

namespace bench {

using Bytes = std::vector<uint8_t>;

// xorshift64*
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL | 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dULL;
  }
  uint32_t below(uint32_t end) { return static_cast<uint32_t>((next() >> 33) % end); }
  uint32_t between(uint32_t first, uint32_t last) { return first + below(last - first + 1); }
  bool percent(unsigned share) { return below(100) < share; }
  uint8_t byte() { return static_cast<uint8_t>(next() >> 56); }

 private:
  uint64_t state_;
};

// Bits [lsb, lsb + width) of a signal, width at most 64.
template <std::size_t N>
uint64_t bits(const VlWide<N>& signal, unsigned lsb, unsigned width) {
  uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i) value |= uint64_t{(signal[(lsb + i) / 32] >> ((lsb + i) % 32)) & 1} << i;
  return value;
}
inline uint64_t bits(uint64_t signal, unsigned lsb, unsigned width) {
  return signal >> lsb & (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1);
}
template <std::size_t N>
void set_bits(VlWide<N>& signal, unsigned lsb, unsigned width, uint64_t value) {
  for (unsigned i = 0; i < width; ++i) {
    const unsigned at = lsb + i;
    signal[at / 32] = (signal[at / 32] & ~(1u << at % 32)) | static_cast<uint32_t>(value >> i & 1) << at % 32;
  }
}
template <typename T>
void set_bits(T& signal, unsigned lsb, unsigned width, uint64_t value) {
  const uint64_t mask = (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1) << lsb;
  signal = static_cast<T>((signal & ~mask) | (value << lsb & mask));
}

// The place of a field in a packed struct. hue_layout.h has those of all structs of the packages.
struct Field {
  unsigned lsb, bits;
  // The same field of a struct that is itself a field, and of element `index` of an array of structs of `size` bits.
  constexpr Field in(Field whole) const { return {whole.lsb + lsb, bits}; }
  constexpr Field of(unsigned index, unsigned size) const { return {index * size + lsb, bits}; }
  // Bits of the field, counted from its lowest one.
  constexpr Field part(unsigned from, unsigned count) const { return {lsb + from, count}; }
};

// A field of at most 64 bits.
template <typename Signal>
uint64_t get(const Signal& signal, Field field) {
  return bits(signal, field.lsb, field.bits);
}
// Higher bits of the value are left out.
template <typename Signal>
void set(Signal& signal, Field field, uint64_t value) {
  set_bits(signal, field.lsb, field.bits, value);
}

// Results of one test after another.
class Tests {
 public:
  explicit Tests(uint64_t seed) : seed_(seed) {}
  void begin(const std::string& name) {
    name_ = name;
    wrong_ = 0;
  }
  // Counts a fault, and prints the first few.
  __attribute__((format(printf, 2, 3))) void wrong(const char* format, ...) {
    if (++wrong_ > 8) return;
    va_list arguments;
    va_start(arguments, format);
    std::printf("  ");
    std::vprintf(format, arguments);
    std::printf("\n");
    va_end(arguments);
  }
  bool failed() const { return wrong_ != 0; }
  void end() {
    if (wrong_ != 0) std::printf("  seed %llu, %llu faults\n", (unsigned long long)seed_, (unsigned long long)wrong_);
    std::printf("test %s ... %s\n", name_.c_str(), wrong_ == 0 ? "ok" : "FAILED");
    std::fflush(stdout);
    any_ |= wrong_ != 0;
  }
  int result() const { return any_ ? 1 : 0; }

 private:
  uint64_t seed_;
  std::string name_;
  uint64_t wrong_ = 0;
  bool any_ = false;
};

inline uint64_t seed_of(int argc, char** argv) { return argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1; }

}  // namespace bench

#endif
