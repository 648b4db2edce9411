// Positions from the queue-status pins: random programs are run by a small model of the bus
// interface and queue of an 8088 or 8086, which counts instructions by itself; the tracker must
// find the same.

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <tuple>

#include "capture/bus/channel_map.h"
#include "capture/bus/early_instructions.h"
#include "capture/bus/execution_tracker.h"
#include "tests/unit/capture/bus/wave.h"

namespace citcat::test {
namespace {

enum Status : unsigned {
  kInta = 0,
  kIoRead = 1,
  kIoWrite = 2,
  kHalt = 3,
  kCode = 4,
  kRead = 5,
  kWrite = 6,
  kPassive = 7
};
enum Queue : unsigned { kNone = 0, kFirst = 1, kEmptied = 2, kNext = 3 };

/// What the tracker has to say.
struct Expected {
  BusOp op;
  std::uint32_t address;
  std::vector<std::uint8_t> bytes;
  bool prefix;
  Position position;
};

/// A processor and what of it matters to its bus.
struct QueueCase {
  CpuModel cpu;
  bool words;             ///< has a bus of 16 bits
  bool keeps_one_prefix;  ///< of an interrupted REP the last one
};

/// A processor that runs made-up instructions.
class QueueModel {
 public:
  QueueModel(Random& random, const QueueCase& processor)
      : random_(random), words_(processor.words), keeps_one_prefix_(processor.keeps_one_prefix) {
    const bool words = words_;
    std::vector<std::string> names;
    add_names(names, "AD", 0, words ? 15 : 7);
    add_names(names, "A", words ? 16 : 8, 19);
    for (const char* name : {"CLK", "S0", "S1", "S2", "QS0", "QS1"}) names.push_back(name);
    if (words) names.push_back("BHE");
    wave_ = std::make_unique<Wave>(names, "CLK", false, random);
    if (words) high_byte_ = wave_->channel("BHE");
    status_ = wave_->channel("S0");
    queue_status_ = wave_->channel("QS0");
  }

  void run(unsigned instructions) {
    clock(kPassive);
    jump();
    for (unsigned i = 0; i < instructions; ++i) {
      instruction();
      if (draw(random_, 6) == 0) interrupt(ip_);
    }
  }

  Wave& wave() { return *wave_; }
  const std::vector<Expected>& expected() const { return expected_; }

 private:
  static constexpr std::uint8_t kRetFar = 0xcb;

  // ---- bus

  void clock(unsigned status, unsigned queue = kNone) {
    wave_->set(status_, 3, status);
    wave_->set(queue_status_, 2, queue);
    wave_->tick();
  }

  /// What floats, and BHE# behind T1, are as it happens.
  void cycle(unsigned status, std::uint32_t address, std::uint16_t data, unsigned bytes = 1) {
    for (unsigned idle = draw(random_, 2); idle != 0; --idle) clock(kPassive);
    const bool odd = (address & 1) != 0;
    wave_->set(0, 20, address);
    if (words_) wave_->set(high_byte_, 1, odd || bytes == 2 ? 0 : 1);
    clock(status);
    wave_->set(0, 20, random_());
    if (words_) wave_->set(high_byte_, 1, random_());
    clock(status);
    for (unsigned waits = draw(random_, 2); waits != 0; --waits) clock(status);
    wave_->set(0, 20, random_());
    const bool upper = words_ && odd;
    wave_->set(upper ? 8 : 0, bytes == 2 ? 16 : 8, data);
    clock(kPassive);
    clock(kPassive);
  }
  /// Transfers of an operand: in words where they are aligned (8086 Family User's Manual, 4-1).
  void transfer(unsigned status, std::uint32_t address, std::vector<std::uint8_t> data) {
    for (std::size_t i = 0; i < data.size();) {
      const auto at = static_cast<std::uint32_t>(address + i) & 0xfffff;
      const bool word = words_ && at % 2 == 0 && i + 1 < data.size();
      const unsigned upper = word ? data[i + 1] : 0;
      cycle(status, at, static_cast<std::uint16_t>(data[i] | upper << 8), word ? 2 : 1);
      i += word ? 2 : 1;
    }
  }
  void transfer(unsigned status, unsigned count) {
    std::vector<std::uint8_t> data;
    for (unsigned i = 0; i < count; ++i) data.push_back(static_cast<std::uint8_t>(random_()));
    transfer(status, static_cast<std::uint32_t>(random_() & 0xfffff), data);
  }
  void read(unsigned count = 1) { transfer(kRead, count); }
  void write(unsigned count = 1) { transfer(kWrite, count); }

  // ---- queue

  std::uint32_t linear(std::uint16_t ip) const { return (cs_ * 16u + ip) & 0xfffff; }

  std::uint8_t& memory(std::uint16_t ip) {
    // Wherever nothing was laid down there is a RETF, so that what was fetched ahead can be
    // executed.
    return code_.emplace(linear(ip), kRetFar).first->second;
  }

  void fetch() {
    std::vector<std::uint8_t> bytes{memory(fetch_ip_)};
    if (words_ && fetch_ip_ % 2 == 0)
      bytes.push_back(memory(static_cast<std::uint16_t>(fetch_ip_ + 1)));
    transfer(kCode, linear(fetch_ip_), bytes);
    queue_.insert(queue_.end(), bytes.begin(), bytes.end());
    fetch_ip_ = static_cast<std::uint16_t>(fetch_ip_ + bytes.size());
  }
  bool has_room() const { return words_ ? queue_.size() + 2 <= 6 : queue_.size() < 4; }

  void take(unsigned how) {
    while (queue_.empty() || (has_room() && draw(random_, 4) == 0)) fetch();
    queue_.pop_front();
    ++ip_;
    clock(kPassive, how);
  }

  void flush(std::uint16_t cs, std::uint16_t ip) {
    queue_.clear();
    clock(kPassive, kEmptied);
    cs_ = cs;
    ip_ = fetch_ip_ = ip;
    for (unsigned idle = 2; idle != 0; --idle) clock(kPassive);
  }
  /// Somewhere nothing was executed before, away from the ends of the segment.
  std::pair<std::uint16_t, std::uint16_t> far() {
    block_ += 64;
    const auto ip = static_cast<std::uint16_t>(16 * (16 + draw(random_, 3800)));
    const auto cs = static_cast<std::uint16_t>(((0x100000 + block_ - ip) & 0xfffff) / 16);
    return {cs, static_cast<std::uint16_t>(ip + draw(random_, 2))};  // even and odd
  }
  void jump() {
    const auto [cs, ip] = far();
    flush(cs, ip);
  }

  // ---- instructions

  /// Lays down the bytes at IP, before anything was fetched from there.
  void lay(const std::vector<std::uint8_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      code_[linear(static_cast<std::uint16_t>(ip_ + i))] = bytes[i];
  }

  void start(const std::vector<std::uint8_t>& bytes, bool prefix) {
    expected_.push_back({BusOp::instruction_start, linear(ip_), bytes, prefix, {completed_, 0}});
    take(kFirst);
    for (std::size_t i = 1; i < bytes.size(); ++i) take(kNext);
  }

  void instruction() {
    // New code is laid down where the queue has not been yet.
    while (!queue_.empty()) return_far();
    switch (draw(random_, 9)) {
      case 0:
        simple({0x90});
        break;
      case 1:
        simple({0xb8, 0x34, 0x12});
        break;
      case 2:
        simple({0x50});
        write(2);
        break;
      case 3:
        lay({0x2e, 0x8b, 0x87, 0x10, 0x20});
        start({0x2e}, true);
        start({0x8b, 0x87, 0x10, 0x20}, false);
        read(2);
        break;
      case 4:
        simple({0xec});
        cycle(kIoRead, 0x60, 0xff);
        break;
      case 5:
        simple({0xf4});
        cycle(kHalt, 0, 0);
        // Only an interrupt wakes it.
        ++completed_;
        interrupt(ip_);
        return;
      case 6:
        simple({0xaa});
        write();
        break;
      default:
        string_instruction();
        return;
    }
    ++completed_;
  }

  void return_far() {
    start({kRetFar}, false);
    read(4);
    jump();
    ++completed_;
  }

  void simple(const std::vector<std::uint8_t>& bytes) {
    lay(bytes);
    start(bytes, false);
  }
  void string_instruction() {
    struct Form {
      std::uint8_t opcode;
      unsigned reads, writes;
    };
    static constexpr Form kForms[] = {{0xa4, 1, 1}, {0xa5, 1, 1}, {0xa6, 2, 0}, {0xa7, 2, 0},
                                      {0xaa, 0, 1}, {0xab, 0, 1}, {0xac, 1, 0}, {0xad, 1, 0},
                                      {0xae, 1, 0}, {0xaf, 1, 0}};
    const Form form = kForms[draw(random_, 10)];
    static const std::vector<std::vector<std::uint8_t>> kPrefixes = {
        {0xf3}, {0xf2}, {0x26, 0xf3}, {0xf3, 0x2e}, {0xf0, 0xf3}, {0x3e}};
    std::vector<std::uint8_t> bytes = kPrefixes[draw(random_, 6)];
    const std::size_t opcode_at = bytes.size();
    bytes.push_back(form.opcode);
    lay(bytes);
    std::size_t from = 0;  // the prefix it is (re)started at
    for (;;) {
      const std::uint16_t begin = ip_;
      bool repeats = false;
      for (std::size_t i = from; i < opcode_at; ++i) {
        repeats = repeats || bytes[i] == 0xf2 || bytes[i] == 0xf3;
        start({bytes[i]}, true);
      }
      start({bytes[opcode_at]}, false);
      const std::uint16_t after = ip_;
      const unsigned iterations = repeats ? draw(random_, 6) : 1;
      const bool broken = repeats && draw(random_, 2) == 0;
      for (unsigned n = 0; n < iterations; ++n) iterate(form.opcode, form.reads, form.writes);
      if (!broken) {
        ++completed_;
        ip_ = after;
        return;
      }
      // Back to the prefix just before the opcode, and to no earlier one; or to the first.
      const auto back =
          keeps_one_prefix_ ? static_cast<std::uint16_t>(begin + (opcode_at - from) - 1) : begin;
      queue_.clear();
      clock(kPassive, kEmptied);
      interrupt(back, iterations);
      if (keeps_one_prefix_) from = opcode_at - 1;
    }
  }

  void iterate(std::uint8_t opcode, unsigned reads, unsigned writes) {
    const unsigned width = (opcode & 1) != 0 ? 2 : 1;
    for (unsigned i = 0; i < reads; ++i) read(width);
    for (unsigned i = 0; i < writes; ++i) write(width);
    if (has_room() && draw(random_, 3) == 0) fetch();
  }

  /// Acknowledge, vector, pushes, a handler of a few instructions, and the way back.
  void interrupt(std::uint16_t back, unsigned iterations = 0) {
    const auto vector = static_cast<std::uint8_t>(random_());
    const std::uint16_t return_cs = cs_;
    expected_.push_back(
        {BusOp::interrupt_acknowledge, 0, {vector}, false, {completed_, iterations}});
    cycle(kInta, static_cast<std::uint32_t>(random_() & 0xffffe), 0xee);
    cycle(kInta, static_cast<std::uint32_t>(random_() & 0xffffe), vector);
    std::vector<std::uint8_t> pointer(4);
    for (std::uint8_t& byte : pointer) byte = static_cast<std::uint8_t>(random_());
    transfer(kRead, vector * 4u, pointer);
    const std::array<std::uint16_t, 3> pushed = {static_cast<std::uint16_t>(random_()), cs_, back};
    const auto stack = static_cast<std::uint32_t>(random_() & 0xffff1);
    for (unsigned i = 0; i < 3; ++i) {
      if (i == 2) {
        queue_.clear();
        clock(kPassive, kEmptied);
      }
      transfer(kWrite, stack - 2 * i,
               {static_cast<std::uint8_t>(pushed[i]), static_cast<std::uint8_t>(pushed[i] >> 8)});
    }
    std::tie(cs_, ip_) = far();
    fetch_ip_ = ip_;
    lay({0x90, 0x50, 0xcf});
    start({0x90}, false);
    ++completed_;
    start({0x50}, false);
    write(2);
    ++completed_;
    start({0xcf}, false);
    read(6);
    flush(return_cs, back);
    ++completed_;
  }

  Random& random_;
  bool words_, keeps_one_prefix_;
  std::unique_ptr<Wave> wave_;
  std::size_t status_ = 0, queue_status_ = 0, high_byte_ = 0;
  std::map<std::uint32_t, std::uint8_t> code_;
  std::deque<std::uint8_t> queue_;
  std::uint32_t block_ = 0;
  std::uint16_t cs_ = 0, ip_ = 0, fetch_ip_ = 0;
  std::uint64_t completed_ = 0;
  std::vector<Expected> expected_;
};

std::vector<BusTransaction> decode(Wave& wave, CpuModel cpu) {
  const BusMatch match = choose_bus(wave.info(), {}, cpu);
  EXPECT_EQ(match.cpu, cpu);
  const PinAssignment assignment = assign_pins(match, {});
  const auto decoder = match.bus->make(wave.info(), {*match.bus, assignment});
  std::vector<BusTransaction> all;
  SampleBlock block;
  BusTransaction t;
  while (wave.next(block)) decoder->decode(block);
  decoder->finish();
  while (decoder->take(t)) all.push_back(t);
  return all;
}

class ExecutionOf : public testing::TestWithParam<QueueCase> {};

INSTANTIATE_TEST_SUITE_P(
    EachProcessor, ExecutionOf,
    testing::Values(QueueCase{CpuModel::i8088, false, true}, QueueCase{CpuModel::i8086, true, true},
                    QueueCase{CpuModel::i80188, false, false},
                    QueueCase{CpuModel::i80186, true, false},
                    QueueCase{CpuModel::v20, false, false}, QueueCase{CpuModel::v30, true, false}),
    [](const auto& tested) { return "The" + std::string(cpu_model_name(tested.param.cpu)); });

TEST_P(ExecutionOf, IsFoundWithItsPositions) {
  std::uint64_t in_rep = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    QueueModel model(random, GetParam());
    model.run(12);
    std::vector<BusTransaction> found;
    try {
      found = decode(model.wave(), GetParam().cpu);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what();
    }
    std::size_t n = 0;
    for (const BusTransaction& t : found) {
      if (t.op != BusOp::instruction_start && t.op != BusOp::interrupt_acknowledge) continue;
      ASSERT_LT(n, model.expected().size()) << "seed " << seed;
      const Expected& e = model.expected()[n];
      const std::string where = "seed " + std::to_string(seed) + " number " + std::to_string(n);
      ASSERT_EQ(t.op, e.op) << where;
      ASSERT_EQ(t.address.value, e.address) << where;
      ASSERT_EQ(std::vector<std::uint8_t>(t.bytes().begin(), t.bytes().end()), e.bytes) << where;
      ASSERT_EQ(t.has(kPrefix), e.prefix) << where;
      ASSERT_TRUE(t.has(kPositionKnown)) << where;
      ASSERT_EQ(t.position.instruction, e.position.instruction) << where;
      ASSERT_EQ(t.position.iteration, e.position.iteration) << where;
      if (t.position.iteration != 0) ++in_rep;
      ++n;
    }
    ASSERT_EQ(n, model.expected().size()) << "seed " << seed;
  }
  EXPECT_GT(in_rep, 80u);
}

/// The length of the instruction that these bytes and zeros are; 0 where it is known too early or
/// not even then.
std::size_t early_length(CpuModel cpu, std::vector<std::uint8_t> bytes) {
  bytes.resize(bytes.size() + 6);
  const std::size_t length = early_instruction_length(bytes, cpu).value_or(0);
  for (std::size_t size = 0; size < length; ++size) {
    if (early_instruction_length(std::span(bytes).first(size), cpu)) return 0;
  }
  return length;
}

TEST(ExecutionTracker, KnowsTheLengthOfInstructions) {
  const auto length = [](std::vector<std::uint8_t> bytes) {
    return early_length(CpuModel::i8086, std::move(bytes));
  };
  EXPECT_EQ(length({0x90}), 1u);
  EXPECT_EQ(length({0x8b, 0xc3}), 2u);
  EXPECT_EQ(length({0x8b, 0x06}), 4u);  // [disp16]
  EXPECT_EQ(length({0x8b, 0x46}), 3u);  // [bp+disp8]
  EXPECT_EQ(length({0xc7, 0x86}), 6u);  // mov [bp+disp16], imm16
  EXPECT_EQ(length({0xf7, 0x06}), 6u);  // test [disp16], imm16
  EXPECT_EQ(length({0xf7, 0x26}), 4u);  // mul [disp16]
  EXPECT_EQ(length({0xf6, 0xc8}), 3u);  // test al, imm8: /1 is decoded as /0
  EXPECT_EQ(length({0x9a}), 5u);
  EXPECT_EQ(length({0x62}), 2u);        // decoded as 72, JB
  EXPECT_EQ(length({0xc0}), 3u);        // decoded as C2, RET n
  EXPECT_EQ(length({0xd9, 0x06}), 4u);  // ESC
  EXPECT_EQ(length({0xa1}), 3u);
}

TEST(ExecutionTracker, KnowsTheLengthOfWhatThe186AndTheV20Have) {
  const auto length = early_length;
  for (const CpuModel cpu : {CpuModel::i80186, CpuModel::v20}) {
    EXPECT_EQ(length(cpu, {0x60}), 1u);
    EXPECT_EQ(length(cpu, {0x62, 0x06}), 4u);
    EXPECT_EQ(length(cpu, {0x68}), 3u);
    EXPECT_EQ(length(cpu, {0x69, 0x46}), 5u);
    EXPECT_EQ(length(cpu, {0x6b, 0xc3}), 3u);
    EXPECT_EQ(length(cpu, {0x6d}), 1u);
    EXPECT_EQ(length(cpu, {0xc1, 0xe0}), 3u);
    EXPECT_EQ(length(cpu, {0xc8}), 4u);
    EXPECT_EQ(length(cpu, {0xc9}), 1u);
    EXPECT_EQ(length(cpu, {0xcb}), 1u);
  }
  EXPECT_EQ(length(CpuModel::v20, {0x0f, 0x20}), 2u);
  EXPECT_EQ(length(CpuModel::v20, {0x0f, 0x10, 0xc0}), 3u);
  EXPECT_EQ(length(CpuModel::v20, {0x0f, 0x1c, 0x06}), 6u);
  EXPECT_EQ(length(CpuModel::v20, {0x0f, 0x3b, 0xc1}), 4u);
  EXPECT_EQ(length(CpuModel::v20, {0x0f, 0xff}), 3u);
  EXPECT_EQ(length(CpuModel::v20, {0x66, 0x06}), 4u);
}

}  // namespace
}  // namespace citcat::test
