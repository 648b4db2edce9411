// Repeated strings compared with what the bus shows of them, many iterations at a time: of a
// processor without a write-back cache, or of one that does not cache what they store.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "replay/machine/string_iterations.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

constexpr std::uint32_t kRepeatFrom = 0x20100, kTo = 0x21200, kBehind = 0x22000, kRepeatLine = 16;
constexpr std::uint32_t kRepeats = 40;
constexpr std::uint64_t kRepeat = 4, kInstructions = kRepeat + 3;

/// The registers are loaded, a string instruction is repeated, a dword is stored.
PagedGuest guest_of(std::initializer_list<int> string, std::uint32_t from = kRepeatFrom,
                    std::uint32_t to = kTo) {
  PagedGuest guest;
  for (std::uint32_t i = 0; i < 4 * kRepeats; ++i) {
    guest.put(kRepeatFrom + i, {static_cast<int>(7 * i & 0xff)});
    guest.put(kTo + i, {0});
  }
  guest.add({0xbe}, {from});
  guest.add({0xbf}, {to});
  guest.add({0xb9}, {kRepeats});
  guest.add({0xb8}, {0x44332211});
  guest.add(string);
  guest.add({0xa3}, {kBehind});  // mov [kBehind],eax
  guest.add({0x90});
  guest.recording.instructions = kInstructions;
  return guest;
}

/// What a bus shows of a run.
class RepeatBus final : public Observer {
 public:
  RepeatBus(CacheForm form, std::vector<BusTransaction>& shown) : form_(form), shown_(shown) {}
  Interest interest() const override { return Interest::everything(); }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override {
    if (now.iteration == 0) show_read(BusOp::code_read, a, size, now);
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    if (kind == AccessKind::data) show_read(BusOp::data_read, a, size, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override {
    BusTransaction& t = show(BusOp::data_write, a, static_cast<std::uint32_t>(bytes.size()), now);
    std::copy(bytes.begin(), bytes.end(), t.data.begin());
  }

 private:
  BusTransaction& show(BusOp op, PhysAddr a, std::uint32_t size, Position now) {
    BusTransaction& t = shown_.emplace_back();
    t.index = shown_.size() - 1;
    t.op = op;
    t.address = a;
    t.size = static_cast<std::uint8_t>(size);
    t.position = now;
    t.flags = kPositionKnown;
    return t;
  }
  void show_read(BusOp op, PhysAddr a, std::uint32_t size, Position now) {
    if (form_ == CacheForm::none) {
      show(op, a, size, now);
      return;
    }
    for (std::uint32_t line = a.low32() / kRepeatLine; line <= (a.low32() + size - 1) / kRepeatLine;
         ++line) {
      if (lines_.insert(line).second) show(op, PhysAddr{line * kRepeatLine}, kRepeatLine, now);
    }
  }

  CacheForm form_;
  std::vector<BusTransaction>& shown_;
  std::set<std::uint32_t> lines_;  ///< in the cache
};

class RepeatComparison : public testing::TestWithParam<CacheForm> {
 protected:
  void show(PagedGuest guest) {
    guest_ = std::move(guest);
    Recording& recording = guest_.recording;
    recording.bus = {GetParam(), kRepeatLine, 4, 0xffffffff};
    bus_.evidence.clear();
    RepeatBus bus(GetParam(), bus_.evidence);
    ReplayOptions options;
    options.path = ExecutionPath::instructions;
    Replayer(recording, &bus, options).run();
    recording.totals.reads = bus_.evidence.size();
  }
  struct Verdict {
    std::string reason;  ///< empty where all agrees
    std::uint64_t writes = 0, reads = 0, bytes = 0, last = 0;
    bool operator==(const Verdict&) const = default;
  };
  Verdict compare(bool plain) {
    VerifierOptions verifying;
    verifying.plain = plain;
    Verifier verifier(guest_.recording, bus_.read_evidence(), verifying);
    ReplayOptions options;
    options.path = plain ? ExecutionPath::blocks : ExecutionPath::instructions;
    Replayer replayer(guest_.recording, &verifier, options);
    const ReplayReport report = verifier.finish(replayer.run());
    const VerifyTotals& t = verifier.totals();
    return {report.divergence ? report.divergence->reason : "", t.writes.equal, t.reads,
            t.evidence_bytes, verifier.last_agreed()};
  }
  /// The string instruction's transaction in the middle.
  std::size_t middle(BusOp op) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < bus_.evidence.size(); ++i) {
      const BusTransaction& t = bus_.evidence[i];
      if (t.op == op && t.position.instruction == kRepeat) found.push_back(i);
    }
    return found.at(found.size() / 2);
  }
  /// The plain comparison takes nothing that the careful one does not take.
  void expect_noticed(const char* what) {
    SCOPED_TRACE(what);
    EXPECT_NE(compare(false).reason, "");
    EXPECT_NE(compare(true).reason, "");
  }

  PagedGuest guest_;
  ImportedRecording bus_;  ///< its evidence alone
};

const std::vector<std::pair<const char*, std::function<PagedGuest()>>> kGuests{
    {"movsd",
     [] {
       return guest_of({0xf3, 0xa5});
     }},
    {"movsb",
     [] {
       return guest_of({0xf3, 0xa4});
     }},
    {"movsw",
     [] {
       return guest_of({0x66, 0xf3, 0xa5}, kRepeatFrom + 1, kTo + 3);
     }},
    {"movsd up by 4",
     [] {
       return guest_of({0xf3, 0xa5}, kRepeatFrom, kRepeatFrom + 4);
     }},
    {"movsd up by 23",
     [] {
       return guest_of({0xf3, 0xa5}, kRepeatFrom, kRepeatFrom + 23);
     }},
    {"movsd down by 3",
     [] {
       return guest_of({0xf3, 0xa5}, kRepeatFrom + 3, kRepeatFrom);
     }},
    {"movsd over a page",
     [] {
       return guest_of({0xf3, 0xa5}, kRepeatFrom, 0x21fc4);
     }},
    {"stosd",
     [] {
       return guest_of({0xf3, 0xab});
     }},
    {"stosb",
     [] {
       return guest_of({0xf3, 0xaa});
     }},
    {"repe scasb",
     [] {
       return guest_of({0xf3, 0xae});
     }},
    {"repne scasd",
     [] {
       return guest_of({0xf2, 0xaf});
     }},
    {"repe cmpsb",
     [] {
       return guest_of({0xf3, 0xa6}, kTo, kTo + kRepeats);
     }},
};

TEST_P(RepeatComparison, CountsWhatTheCarefulOneCounts) {
  for (const auto& [what, guest] : kGuests) {
    SCOPED_TRACE(what);
    show(guest());
    const Verdict careful = compare(false);
    EXPECT_EQ(careful.reason, "");
    EXPECT_EQ(compare(true), careful);
  }
}

TEST_P(RepeatComparison, FindsAWriteThatDiffers) {
  for (const auto& [what, guest] : kGuests) {
    show(guest());
    const auto writes = [](const BusTransaction& t) {
      return t.op == BusOp::data_write && t.position.instruction == kRepeat;
    };
    if (std::none_of(bus_.evidence.begin(), bus_.evidence.end(), writes)) continue;
    SCOPED_TRACE(what);
    const std::size_t at = middle(BusOp::data_write);
    const std::vector<BusTransaction> good = bus_.evidence;
    bus_.evidence[at].data[bus_.evidence[at].size - 1] ^= 1;
    expect_noticed("value");
    bus_.evidence = good;
    bus_.evidence[at].address.value += 0x100;
    expect_noticed("address");
    bus_.evidence = good;
    bus_.evidence.erase(bus_.evidence.begin() + static_cast<std::ptrdiff_t>(at));
    // A write-back cache may keep any store to itself.
    if (GetParam() != CacheForm::write_back) expect_noticed("missing");
    bus_.evidence = good;
    bus_.evidence.insert(bus_.evidence.begin() + static_cast<std::ptrdiff_t>(at), good[at]);
    expect_noticed("twice");
  }
}

TEST_P(RepeatComparison, FindsAReadThatDiffers) {
  for (const auto& [what, guest] : kGuests) {
    show(guest());
    const auto reads = [](const BusTransaction& t) {
      return t.op == BusOp::data_read && t.position.instruction == kRepeat;
    };
    if (std::count_if(bus_.evidence.begin(), bus_.evidence.end(), reads) < 2) continue;
    SCOPED_TRACE(what);
    bus_.evidence[middle(BusOp::data_read)].address.value += 0x2000;
    expect_noticed("address");
  }
}

/// Another bus master has changed it, as the fill shows, and the recording has the replay hear of
/// that too late.
TEST_P(RepeatComparison, FindsALineThatHoldsSomethingElse) {
  if (GetParam() == CacheForm::none) GTEST_SKIP() << "reads are compared by their addresses";
  show(guest_of({0xf3, 0xa5}));
  const BusTransaction& fill = bus_.evidence[middle(BusOp::data_read)];
  ExternalWrite w;
  w.address = fill.address.plus32(4);
  w.data = {0x5a, 0x5a};
  w.transaction = fill.index;
  w.position_known = true;
  w.position = {kRepeat + 2, 0};
  guest_.recording.external_writes.push_back(w);
  expect_noticed("line");
}

INSTANTIATE_TEST_SUITE_P(Forms, RepeatComparison,
                         testing::Values(CacheForm::none, CacheForm::write_through,
                                         CacheForm::write_back),
                         [](const auto& form) {
                           return form.param == CacheForm::none            ? "NoCache"
                                  : form.param == CacheForm::write_through ? "WriteThrough"
                                                                           : "WriteBack";
                         });

/// Takes so many iterations at a time for what they are going to do.
class Taker final : public BlockJudge {
 public:
  explicit Taker(std::uint32_t most) : most_(most) {}
  Interest interest() const override { return Interest::everything(); }
  void judges(Machine&) override {}
  bool judges_blocks() const override { return true; }
  bool may_run_block(Position, std::uint32_t) override { return false; }
  std::uint32_t agreed_iterations(const StringIterations& run, Position first) override {
    const std::uint32_t count = std::min(run.count, most_);
    EXPECT_EQ(first.instruction, kRepeat);
    EXPECT_EQ(first.iteration, iterations_);
    for (std::uint32_t i = 0; i < count * run.size && !run.stored.empty(); ++i) {
      stores.push_back({run.to.value + i, run.stored[i]});
    }
    iterations_ += count;
    asked += count;
    return count;
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    if (kind != AccessKind::data || now.instruction != kRepeat) return;
    std::uint32_t at = a.low32();
    for (const std::uint8_t byte : bytes) stores.push_back({at++, byte});
  }
  void instruction(const ExecutedInstruction&, Position now) override {
    if (now.instruction == kRepeat) ++iterations_;
  }

  std::vector<std::pair<std::uint32_t, std::uint8_t>> stores;
  std::uint32_t asked = 0;

 private:
  const std::uint32_t most_;
  std::uint32_t iterations_ = 0;
};

TEST(StringIterations, AreForetoldAsTheyAreMade) {
  for (const auto& [what, guest] : kGuests) {
    SCOPED_TRACE(what);
    std::vector<std::pair<std::uint32_t, std::uint8_t>> expected;
    for (const std::uint32_t most : {0u, 1u, 3u, kRepeats}) {
      PagedGuest each = guest();
      Taker taker(most);
      Replayer(each.recording, &taker, ReplayOptions{}).run();
      if (most == 0) expected = taker.stores;
      EXPECT_EQ(taker.stores, expected) << most;
      EXPECT_TRUE(most < kRepeats || expected.empty() || taker.asked > kRepeats / 2);
    }
  }
}

}  // namespace
}  // namespace citcat
