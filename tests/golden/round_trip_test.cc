// Every case again, from its bus: what the run reads, fetches, writes and acknowledges becomes a
// capture of an uncached processor; a recording is derived from it, replayed and verified.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "events/derive/recording_builder.h"
#include "golden/case_file.h"
#include "golden/golden_files.h"
#include "golden/process.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"

namespace citcat::testing {
namespace {

/// Makes bus transactions of what a replay tells, as a bus four bytes wide would show it.
class BusRecorder final : public Observer {
 public:
  /// Tells of branches as a processor with branch tracing does.
  void trace_branches() { traces_ = true; }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void instruction(const ExecutedInstruction& e, Position now) override {
    if (traces_ && !e.info->is_repeated() && e.linear != next_linear_) {
      BusTransaction& t = add(BusOp::instruction_start, PhysAddr{e.linear.value}, now);
      t.flags |= kBranchTarget;
      t.size = 1;
    }
    next_linear_ = e.linear.plus32(e.info->length);
  }
  Interest interest() const override { return Interest::everything(); }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override {
    add_memory(BusOp::code_read, a, memory_bytes(a, size), now);
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind, Position now) override {
    add_memory(BusOp::data_read, a, memory_bytes(a, size), now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override {
    add_memory(BusOp::data_write, a, {bytes.begin(), bytes.end()}, now);
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override {
    add_port(BusOp::io_read, port, size, value, now);
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                Position now) override {
    add_port(BusOp::io_write, port, size, value, now);
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    if (event.kind == DeliveredEvent::Kind::external)
      add_port(BusOp::interrupt_acknowledge, 0, 1, event.vector, now);
  }
  void halted(Position now) override { add_port(BusOp::halt, 0, 0, 0, now); }
  void shutdown(Position now) override { add_port(BusOp::shutdown, 0, 0, 0, now); }

  const std::vector<BusTransaction>& transactions() const { return transactions_; }

 private:
  std::vector<std::uint8_t> memory_bytes(PhysAddr a, std::uint32_t size) const {
    const std::uint8_t* host = machine_->memory().host(a);
    return {host, host + size};
  }
  BusTransaction& add(BusOp op, PhysAddr at, Position now) {
    BusTransaction t;
    t.index = transactions_.size();
    t.op = op;
    t.address = at;
    t.position = now;
    t.flags = kPositionKnown;
    return transactions_.emplace_back(t);
  }
  void add_memory(BusOp op, PhysAddr a, const std::vector<std::uint8_t>& bytes, Position now) {
    for (std::uint32_t i = 0; i < bytes.size();) {
      const PhysAddr at = a.plus32(i);
      const std::uint32_t n =
          std::min(4 - at.offset_in(4), static_cast<std::uint32_t>(bytes.size()) - i);
      BusTransaction& t = add(op, at, now);
      t.size = static_cast<std::uint8_t>(n);
      std::copy_n(bytes.begin() + i, n, t.data.begin());
      i += n;
    }
  }
  void add_port(BusOp op, std::uint16_t port, std::uint32_t size, std::uint32_t value,
                Position now) {
    BusTransaction& t = add(op, PhysAddr{port}, now);
    t.size = static_cast<std::uint8_t>(size);
    for (std::uint32_t i = 0; i < size; ++i)
      t.data[i] = static_cast<std::uint8_t>(value >> (8 * i));
  }

  const Machine* machine_ = nullptr;
  bool traces_ = false;
  LinearAddr next_linear_;
  std::vector<BusTransaction> transactions_;
};

class Collector final : public EvidenceWriter {
 public:
  void write(const BusTransaction& t) override { transactions.push_back(t); }
  std::vector<BusTransaction> transactions;
};

class Reader final : public EvidenceReader {
 public:
  explicit Reader(const std::vector<BusTransaction>& transactions) : transactions_(transactions) {}
  bool next(BusTransaction& out) override {
    if (at_ == transactions_.size()) return false;
    out = transactions_[at_++];
    return true;
  }

 private:
  const std::vector<BusTransaction>& transactions_;
  std::size_t at_ = 0;
};

class RoundTrip : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  Recording derive(const CaseFile& file, const std::vector<BusTransaction>& bus,
                   std::uint64_t instructions, EvidenceWriter& evidence) {
    BuilderOptions options;
    options.bus = file.recording.bus;
    RecordingBuilder builder(options, &evidence);
    for (const BusTransaction& t : bus) builder.add(t);
    Recording recording = builder.finish();
    recording.initial = file.recording.initial;
    recording.instructions = instructions;
    return recording;
  }
};

/// The same with branch trace messages, and with one of them sent elsewhere.
TEST_P(RoundTrip, MatchesItsBranchTraceMessagesAndNoOthers) {
  const CaseFile file = load_case(GetParam());
  if (file.recording.initial.long_mode) GTEST_SKIP() << "this bus is one of 32 bits";
  BusRecorder bus;
  bus.trace_branches();
  Replayer first(file.recording, &bus, {});
  const ReplayReport made = first.run();
  if (made.end != ReplayReport::End::complete) GTEST_SKIP() << "the case ends in a divergence";

  std::vector<BusTransaction> transactions = bus.transactions();
  std::size_t messages = 0, last = 0;
  for (std::size_t i = 0; i < transactions.size(); ++i) {
    if (!transactions[i].has(kBranchTarget)) continue;
    ++messages;
    last = i;
  }
  const auto verify = [&](std::uint64_t& checked) {
    Collector evidence;
    const Recording recording = derive(file, transactions, made.instructions, evidence);
    Verifier verifier(recording, std::make_unique<Reader>(evidence.transactions), {});
    Replayer second(recording, &verifier, {});
    const ReplayReport report = second.run();
    if (report.end != ReplayReport::End::complete) return false;
    try {
      verifier.finish(second.machine().position());
    } catch (const ReplayStopped&) {
      return false;
    }
    checked = verifier.totals().instructions.equal;
    return true;
  };
  std::uint64_t checked = 0;
  EXPECT_TRUE(verify(checked));
  EXPECT_EQ(checked, messages);
  if (messages == 0) return;
  transactions[last].address.value ^= 0x40000000;
  EXPECT_FALSE(verify(checked));
}

TEST_P(RoundTrip, MatchesTheBusItMade) {
  const CaseFile file = load_case(GetParam());
  if (file.recording.initial.long_mode) GTEST_SKIP() << "this bus is one of 32 bits";
  BusRecorder bus;
  Replayer first(file.recording, &bus, {});
  const ReplayReport made = first.run();
  if (made.end != ReplayReport::End::complete) GTEST_SKIP() << "the case ends in a divergence";

  Collector evidence;
  const Recording recording = derive(file, bus.transactions(), made.instructions, evidence);
  ASSERT_EQ(recording.interrupts.size(), file.recording.interrupts.size());

  Verifier verifier(recording, std::make_unique<Reader>(evidence.transactions), {});
  Replayer second(recording, &verifier, {});
  const ReplayReport report = second.run();
  ASSERT_EQ(report.end, ReplayReport::End::complete)
      << report.divergence->position.instruction << ": " << report.divergence->reason
      << ": expected " << report.divergence->expected << ", found " << report.divergence->found;
  EXPECT_NO_THROW(verifier.finish(second.machine().position()));
  EXPECT_EQ(report.instructions, made.instructions);
  EXPECT_EQ(report.exceptions, made.exceptions);
  const CpuState a = first.machine().save(), b = second.machine().save();
  EXPECT_EQ(a.gpr, b.gpr);
  EXPECT_EQ(a.segment, b.segment);
  EXPECT_EQ(a.eip, b.eip);
}

INSTANTIATE_TEST_SUITE_P(Golden, RoundTrip, ::testing::ValuesIn(golden_files("cases", ".case")),
                         golden_test_name);

}  // namespace
}  // namespace citcat::testing
