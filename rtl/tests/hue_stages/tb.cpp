// Bench of hue_stages: reads vectors of crates/soft/examples/stages_vectors.rs from standard input, feeds the records with and without
// gaps, takes the verdicts with and without stalls, and reads tables as the host meanwhile.
//
// Tests: the verdicts are those of the software; counters add up; accesses are answered in time, at any load; without gaps and stalls
// one verdict leaves each clock, the first after the stated latency.
#include <algorithm>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "Vtop.h"
#include "stream.h"

namespace {
using hue_pkg::hue_verdict_t, hue_pkg::sram_req_t, hue_pkg::tbl_rsp_t;
constexpr unsigned HeadWords = (hue_pkg::hue_head_t::Bits + 31) / 32;
constexpr bool Dir = HUE_LAYOUT == 4;
// A lookup of layout dir reads one word or two. The banks' latency is SramLatency.
constexpr unsigned Latency = HUE_LAYOUT == 1 ? 25 : Dir ? 35 : 68;
constexpr unsigned LatencyMost = Dir ? Latency + 7 : Latency;
constexpr unsigned AccessClocksMax = 96;

using Words = std::vector<uint32_t>;

// Hexadecimal text, lowest word first.
Words words_of(const std::string& text, unsigned count) {
  Words words(count, 0);
  unsigned at = 0;
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, ++at) {
    const unsigned value = *digit <= '9' ? *digit - '0' : *digit - 'a' + 10;
    words.at(at / 8) |= value << 4 * (at % 8);
  }
  return words;
}

struct Verdict {
  uint64_t verdict, outcome, net, vid, vport, in, out, len, edit, dst, src, ttl, checksum;
  std::string text() const {
    std::ostringstream out_text;
    out_text << std::hex << "verdict " << verdict << " outcome " << outcome << " net " << net << " vid " << vid << " vport "
             << vport << " in " << in << " out " << out << " len " << len << " edit " << edit << " dst " << dst
             << " src " << src << " ttl " << ttl << " sum " << checksum;
    return out_text.str();
  }
  bool operator==(const Verdict& other) const {
    return verdict == other.verdict && outcome == other.outcome && net == other.net && vid == other.vid &&
           vport == other.vport && in == other.in && len == other.len && edit == other.edit &&
           // The output port of a dropped packet has no meaning.
           (verdict == 0 || verdict == 3 || out == other.out) &&
           (!edit || (dst == other.dst && src == other.src && ttl == other.ttl && checksum == other.checksum));
  }
};

struct Access {
  bool write = false, clear = false, checked = false;
  bool drain = false;  // not an access, but a wait until the frames that have entered have left
  uint32_t poll = 0;   // read again until these bits are 0
  unsigned table = 0, row = 0, error = 0;
  Words data = Words(8, 0);
  uint64_t asked = 0;
};

#if HUE_LAYOUT == 4
// The two banks at their pins: read data comes four clocks after the access.
class Memories {
 public:
  void set_all(uint64_t word) {
    for (auto& bank : words_) bank.assign(1 << 19, word);
  }

  // One clock: takes the access before the edge. After the edge the pins get the read data.
  void take(Vtop& top) {
    for (unsigned i = 0; i < 2; ++i) {
      uint64_t& word = words_[i].at(bench::get(top.sram_req_o, sram_req_t::addr.part(19 * i, 19)));
      for (unsigned at = 3; at > 0; --at) read_[i][at] = read_[i][at - 1];
      if (!bench::get(top.sram_req_o, sram_req_t::en.part(i, 1))) continue;
      const bool write = bench::get(top.sram_req_o, sram_req_t::write.part(i, 1));
      if (write) word = bench::get(top.sram_req_o, sram_req_t::wdata.part(36 * i, 36));
      else read_[i][0] = word;
    }
  }
  void show(Vtop& top) {
    for (unsigned i = 0; i < 2; ++i) bench::set_bits(top.sram_rdata_i, 36 * i, 36, read_[i][3]);
  }

 private:
  std::vector<uint64_t> words_[2] = {std::vector<uint64_t>(1 << 19), std::vector<uint64_t>(1 << 19)};
  uint64_t read_[2][4] = {};
};
#endif

class Bench {
 public:
  Bench(uint64_t seed) : random_(seed), tests_(seed), top_(std::make_unique<Vtop>()) {}

  int run() {
    std::string line;
    unsigned scenario = 0;
    while (std::getline(std::cin, line)) {
      if (line == "R") {
        if (scenario > 0) end(scenario);
        ++scenario;
        begin(scenario);
      } else if (scenario == 0 || !step(line)) {
        std::printf("cannot read '%s'\n", line.c_str());
        return 1;
      }
      if (tests_.failed()) break;
    }
    if (scenario == 0) return 1;
    end(scenario);
    if (HUE_LAYOUT != 1) {
      tests_.begin(Dir ? "a packet sees either the old routes or the new ones" : "a change of routes is atomic for packets");
      std::printf("%llu packets met the routes of before a change, %llu those of after\n", (unsigned long long)met_before_,
                  (unsigned long long)met_after_);
      if (met_before_ == 0 || met_after_ == 0) tests_.wrong("never tried");
      tests_.end();
    }
    tests_.begin("a verdict a clock, latency as stated");
    if (fast_ == 0) tests_.wrong("never tried");
    tests_.end();
    top_->final();
    return tests_.result();
  }

 private:
  bench::Random random_;
  bench::Tests tests_;
  std::unique_ptr<Vtop> top_;
  uint64_t cycle_ = 0, verdicts_ = 0, fast_ = 0;
  // The right verdict after the latest change that was made beside frames, and the one before it if that differs.
  struct Expected {
    Verdict after, before;
    bool differ;
    uint64_t change;
  };
  std::deque<Expected> expected_;
  std::deque<Access> beside_;       // writes that remain to be done while frames move
  bool collects_ = false;           // the writes that follow are for `beside_`
  uint64_t change_ = 0, seen_ = 0;  // the latest change; the latest change that a packet has seen
#if HUE_LAYOUT == 4
  Memories memories_;
#endif
  uint64_t mark_ = ~uint64_t{0};  // frames that a drain waits for
  bool polls_ = false;            // the access is repeated
  bool last_beside_ = false;      // the last write beside frames has begun
  uint64_t frames_in_ = 0, frames_out_ = 0, epoch_ = 0, met_before_ = 0, met_after_ = 0;
  std::map<std::pair<unsigned, unsigned>, uint64_t> owed_;  // corrections of counters, because packets saw the old tables
  std::deque<Words> heads_;
  unsigned idle_percent_ = 0, stall_percent_ = 0, read_percent_ = 0;
  // Contents of the ternary rows, by table and row; number of heads that came while a row was written.
  std::map<std::pair<unsigned, unsigned>, Access> ternary_;
  uint64_t beside_ternary_ = 0;
  bool meanwhile_ = false;  // the host reads while frames run
  Access access_;
  enum { None, Asking, Settling } access_state_ = None;
  bool head_stands_ = false, blocked_ = false;
  std::set<unsigned> used_nets_;
  uint64_t first_in_ = 0, first_out_ = 0, last_out_ = 0, out_ = 0, accesses_ = 0;

  void begin(unsigned scenario) {
    static const char* const Names[] = {"as fast as can be", "gaps", "stalls", "gaps and stalls", "busy host"};
    const unsigned mode = (scenario - 1) % 5;
    std::printf("scenario %u, %s\n", scenario, Names[mode]);
    if (scenario == 1) tests_.begin("verdicts, counters and accesses");
    idle_percent_ = mode == 1 || mode == 3 ? 40 : 0;
    stall_percent_ = mode == 2 || mode == 3 ? 40 : 0;
    read_percent_ = mode == 0 ? 0 : mode == 4 ? 100 : 5;
    top_->rst_ni = 0;
    top_->head_valid_i = 0;
    top_->verdict_ready_i = 0;
    top_->gates_i = 0;
    top_->gated_to_cpu_i = 0;
    head_stands_ = false;
    used_nets_.clear();
    ternary_.clear();
    owed_.clear();
    frames_in_ = frames_out_ = epoch_ = 0;
#if HUE_LAYOUT == 4
    // The first scenario begins by setting all words to 0, whatever they were.
    memories_.set_all(scenario == 1 ? 0x123456789 : 0);
#endif
    access_state_ = None;
    set_request(Access{}, false);
    for (int i = 0; i < 3; ++i) tick(false);
    top_->rst_ni = 1;
    if (scenario % 2) settle();
  }

  void end(unsigned scenario) {
    drain();
    if (!top_->idle_o) tests_.wrong("not idle at the end");
    if (top_->memory_error_o) tests_.wrong("a memory error");
    static_cast<void>(scenario);
    if (std::cin.eof() || tests_.failed()) {
      std::printf("%llu verdicts, %llu accesses, %llu clocks, %llu heads while ternary rows were written\n",
                  (unsigned long long)verdicts_, (unsigned long long)accesses_, (unsigned long long)cycle_,
                  (unsigned long long)beside_ternary_);
      tests_.end();
    }
  }

  bool step(const std::string& line) {
    std::istringstream in(line.substr(1));
    in >> std::hex;
    std::string data;
    uint64_t a, b;
    switch (line[0]) {
      case 'w':
      case 'r':
      case 'c': {
        Access access;
        access.write = line[0] == 'w';
        access.clear = line[0] == 'c';
        access.checked = true;
        if (!(in >> access.table >> access.row >> data)) return false;
        access.data = words_of(data, 8);
        if (access.table == 4) used_nets_.insert(access.row);
        if (access.clear && owed_.count({access.table, access.row})) {
          uint64_t value = access.data[0] | uint64_t{access.data[1]} << 32;
          value += owed_[{access.table, access.row}];
          access.data[0] = static_cast<uint32_t>(value);
          access.data[1] = static_cast<uint32_t>(value >> 32);
        }
        if (collects_) beside_.push_back(access);
        else run_access(access);
        return true;
      }
      case 'p': {
        Access access;
        if (!(in >> access.table >> access.row >> access.poll)) return false;
        if (collects_) beside_.push_back(access);
        else run_access(access);
        return true;
      }
      case 'd': {
        Access access;
        access.drain = true;
        if (!collects_) return false;
        beside_.push_back(access);
        return true;
      }
      case 'e': {
        Access access;
        if (!(in >> access.table >> access.row >> a >> access.error)) return false;
        access.write = a == 1;
        access.clear = a == 2;
        access.checked = true;
        run_access(access);
        return true;
      }
      case 'g':
        if (!(in >> a >> b)) return false;
        drain();
        top_->gates_i = a;
        top_->gated_to_cpu_i = b;
        tick(false);
        tick(false);
        return true;
      case 'f':
        drain();
        return true;
      case 'b':
        // All frames enter, and those that entered before the previous change leave; the last ones are still inside.
        while ((!heads_.empty() || !beside_.empty() || access_state_ != None || frames_out_ < epoch_) && !tests_.failed())
          tick(true);
        epoch_ = frames_in_;
        ++change_;
        collects_ = true;
        return true;
      case '.':
        collects_ = false;
        return true;
      case 'h': {
        if (!(in >> data)) return false;
        heads_.push_back(words_of(data, HeadWords));
        std::string text;
        if (!std::getline(std::cin, text)) return false;
        std::istringstream verdict(text.substr(1));
        verdict >> std::hex;
        Expected one{};
        if (text[0] != 'v' || !read(verdict, one.after)) return false;
        std::string bar;
        one.differ = static_cast<bool>(verdict >> bar);
        if (one.differ && !read(verdict, one.before)) return false;
        one.change = change_;
        expected_.push_back(one);
        return true;
      }
    }
    return false;
  }

  static bool read(std::istringstream& in, Verdict& v) {
    in >> v.verdict >> v.outcome >> v.net >> v.vid >> v.vport >> v.in >> v.out >> v.len >> v.edit >> v.dst >> v.src >>
        v.ttl >> v.checksum;
    return static_cast<bool>(in);
  }

  // Sends all frames and waits until all have left.
  void drain() {
    const bool fast = idle_percent_ == 0 && stall_percent_ == 0 && read_percent_ == 0 && expected_.size() > 60 &&
                      beside_.empty() && access_state_ == None && frames_in_ == frames_out_;
    const uint64_t wanted = expected_.size();
    first_in_ = first_out_ = last_out_ = out_ = 0;
    if (fast) settle();
    uint64_t waited = 0, before = verdicts_;
    if (!fast && heads_.size() > 60) block();
    while ((!heads_.empty() || !expected_.empty() || !beside_.empty() || access_state_ != None) && !tests_.failed()) {
      tick(true);
      waited = verdicts_ == before ? waited + 1 : 0;
      before = verdicts_;
      if (waited > 10000) tests_.wrong("%zu verdicts never come", expected_.size());
    }
    for (int i = 0; i < 200 && !top_->idle_o; ++i) tick(true);
    if (!top_->idle_o) tests_.wrong("not idle after the last verdict");
    if (fast && !tests_.failed()) {
      ++fast_;
      if (first_out_ - first_in_ < Latency || first_out_ - first_in_ > LatencyMost)
        tests_.wrong("latency %llu clocks, stated %u", (unsigned long long)(first_out_ - first_in_), Latency);
      // A lookup of two words is later than the one before it, and so are all after it.
      const uint64_t took = last_out_ - first_out_ + 1;
      if (took < wanted || took > wanted + LatencyMost - Latency)
        tests_.wrong("%llu verdicts in %llu clocks", (unsigned long long)wanted,
                     (unsigned long long)(last_out_ - first_out_ + 1));
    }
  }

  // No verdict is taken: the stages fill up, and the host is answered as before.
  void block() {
    for (int i = 0; i < 5000 && !top_->head_ready_o; ++i) tick(true);
    blocked_ = true;
    for (int i = 0; i < 400 && !tests_.failed(); ++i) {
      if (access_state_ == None && i % 100 == 50 && used_nets_.size() < HUE_NETS) {
        Access access;
        access.write = true;
        access.table = 5;
        while (used_nets_.count(access.row)) access.row = random_.below(HUE_NETS);
        for (uint32_t& word : access.data) word = static_cast<uint32_t>(random_.next());
        start(access);
      } else if (access_state_ == None) {
        read_something();
      }
      tick(true);
    }
    if (!tests_.failed() && top_->head_ready_o) tests_.wrong("takes frames although no verdict is taken");
    blocked_ = false;
  }

  // Waits until the counters are cleared: the stages take nothing before that.
  void settle() {
    top_->head_valid_i = 0;
    for (int i = 0; i < 20000; ++i) {
      top_->eval();
      if (top_->head_ready_o) return;
      tick(false);
    }
    tests_.wrong("not ready long after reset");
  }

  void run_access(Access access) {
    // The verdicts of earlier frames must not depend on this access.
    if (access.write || access.clear) drain();
    if (access.write && access.error == 0 && is_ternary(access)) ternary_[{access.table, access.row}] = access;
    start(access);
    while (access_state_ != None && !tests_.failed()) tick(true);
  }

  void start(const Access& access) {
    access_ = access;
    access_.asked = cycle_;
    access_state_ = Asking;
    ++accesses_;
  }

  void set_request(const Access& access, bool valid) {
    for (unsigned i = 0; i < 8; ++i) stream::put_word(top_->tbl_req_i, i, access.data[i]);
    stream::put_request(top_->tbl_req_i, valid, access.write, access.clear, access.table, access.row);
  }

  static bool is_ternary(const Access& access) { return access.table == 1 || access.table == 6 || access.table == 18; }

  // Rewrites a ternary row with its contents: this must not affect or delay any frame.
  void rewrite_something() {
    auto one = ternary_.begin();
    std::advance(one, random_.below(ternary_.size()));
    start(one->second);
  }

  // Reads of tables that change nothing.
  void read_something() {
    static const unsigned Tables[] = {1, 4, 5, 7, 12, 12, 13, 13, 15, HUE_LAYOUT == 1 ? 1 : 20};
    Access access;
    access.table = Tables[random_.below(sizeof Tables / sizeof *Tables)];
    access.row = random_.below(access.table == 15 ? 4 : 16);
    start(access);
  }

  void check_answer() {
    uint32_t answer[8];
    for (unsigned i = 0; i < 8; ++i) answer[i] = bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(32 * i, 32));
    const unsigned error = bench::get(top_->tbl_rsp_o, tbl_rsp_t::error);
    if (error != access_.error)
      tests_.wrong("table %u row %u: error %u, expected %u", access_.table, access_.row, error, access_.error);
    if (!access_.checked || access_.error != 0) return;
    for (unsigned i = 0; i < 8; ++i) {
      const uint32_t want = access_.write ? 0 : access_.data[i];
      if (answer[i] != want)
        tests_.wrong("table %u row %x: word %u is %x, expected %x", access_.table, access_.row, i, answer[i], want);
    }
  }

  void check_verdict() {
    Verdict v{};
    for (auto [value, field] : std::initializer_list<std::pair<uint64_t*, bench::Field>>{
             {&v.verdict, hue_verdict_t::verdict}, {&v.outcome, hue_verdict_t::outcome}, {&v.net, hue_verdict_t::net},
             {&v.vid, hue_verdict_t::vid}, {&v.vport, hue_verdict_t::vport}, {&v.in, hue_verdict_t::port_in},
             {&v.out, hue_verdict_t::port_out}, {&v.len, hue_verdict_t::len}, {&v.edit, hue_verdict_t::edit},
             {&v.dst, hue_verdict_t::dst_mac}, {&v.src, hue_verdict_t::src_mac}, {&v.ttl, hue_verdict_t::ttl},
             {&v.checksum, hue_verdict_t::checksum}})
      *value = bench::get(top_->verdict_o, field);
    ++verdicts_;
    if (out_++ == 0) first_out_ = cycle_;
    last_out_ = cycle_;
    if (expected_.empty()) {
      tests_.wrong("a verdict too many: %s", v.text().c_str());
      return;
    }
    const Expected one = expected_.front();
    expected_.pop_front();
    ++frames_out_;
    if (v == one.after) {
      if (one.differ) seen_ = one.change;
      met_after_ += one.differ;
    } else if (one.differ && (Dir || seen_ != one.change) && v == one.before) {
      ++met_before_;
      owe(one.after, -1);
      owe(one.before, 1);
    } else {
      tests_.wrong("verdict %llu\n    is       %s\n    expected %s%s%s", (unsigned long long)verdicts_, v.text().c_str(),
                   one.after.text().c_str(), one.differ ? "\n    before   " : "",
                   one.differ ? one.before.text().c_str() : "");
    }
  }

  void owe(const Verdict& v, int64_t packets) {
    owed_[{12, v.net * 32 + v.outcome}] += packets;
    if (v.verdict == 1) owed_[{13, v.net * 2 + 1}] += packets * static_cast<int64_t>(v.len);
  }

  // One clock. `live`: frames go in and verdicts are taken.
  void tick(bool live) {
    // Keeps back some frames, so that some see the new tables.
    const bool late = !beside_.empty() && (heads_.size() < 40 || random_.percent(80));
    if (live && !head_stands_ && !heads_.empty() && !late && !random_.percent(idle_percent_)) {
      head_stands_ = true;
      for (unsigned i = 0; i < HeadWords; ++i) top_->head_i[i] = heads_.front()[i];
    }
    top_->head_valid_i = live && head_stands_;
    top_->verdict_ready_i = live && !blocked_ && !random_.percent(stall_percent_);
    // The write that switches the tables waits until the earlier frames have left, because their expected verdicts are of the old
    // tables only.
    if (Dir) {
      // In this layout any write may be the one that switches.
      if (live && access_state_ == None && !beside_.empty() && frames_out_ >= epoch_) {
        if (!beside_.front().drain) {
          start(beside_.front());
          beside_.pop_front();
        } else if (mark_ == ~uint64_t{0}) {
          mark_ = frames_in_;
        } else if (frames_out_ >= mark_) {
          mark_ = ~uint64_t{0};
          beside_.pop_front();
        }
        if (beside_.empty()) last_beside_ = true;
      }
      if (last_beside_ && access_state_ == None) {
        last_beside_ = false;
        epoch_ = frames_in_;
      }
    } else if (live && access_state_ == None && !beside_.empty() && (beside_.front().table != 4 || frames_out_ >= epoch_)) {
      if (beside_.front().table == 4) epoch_ = ~uint64_t{0};
      start(beside_.front());
      beside_.pop_front();
    }
    if (live && access_state_ == None && !heads_.empty() && random_.percent(read_percent_)) read_something();
    if (live && access_state_ == None && !heads_.empty() && !ternary_.empty() && random_.percent(20)) rewrite_something();
    set_request(access_, access_state_ == Asking);
    top_->eval();
    if (top_->rst_ni) {
      if (top_->head_valid_i && top_->head_ready_o) {
        if (first_in_ == 0) first_in_ = cycle_;
        ++frames_in_;
        heads_.pop_front();
        head_stands_ = false;
      }
      if (top_->verdict_valid_o && top_->verdict_ready_i) check_verdict();
      if (is_ternary(access_) && access_.write && access_state_ != None && live && top_->head_valid_i && top_->head_ready_o)
        ++beside_ternary_;
      if (top_->memory_error_o) tests_.wrong("a memory error");
      const bool done = stream::answered(top_->tbl_rsp_o);
      if (access_state_ == Settling) {
        if (done) tests_.wrong("two answers");
        access_state_ = None;
        if (polls_) start(access_);
        polls_ = false;
      } else if (access_state_ == Asking) {
        if (done) {
          check_answer();
          polls_ = (bench::get(top_->tbl_rsp_o, tbl_rsp_t::rdata.part(0, 32)) & access_.poll) != 0;
          if (access_.table == 4 && epoch_ == ~uint64_t{0}) epoch_ = frames_in_;
          access_state_ = Settling;
        } else if (cycle_ - access_.asked > AccessClocksMax) {
          tests_.wrong("table %u row %u: no answer", access_.table, access_.row);
        }
      } else if (done) {
        tests_.wrong("an answer to nothing");
      }
    }
#if HUE_LAYOUT == 4
    memories_.take(*top_);
#endif
    top_->clk_i = 1;
    top_->eval();
#if HUE_LAYOUT == 4
    memories_.show(*top_);
#endif
    top_->clk_i = 0;
    top_->eval();
    ++cycle_;
  }
};
}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  return Bench(bench::seed_of(argc, argv)).run();
}
