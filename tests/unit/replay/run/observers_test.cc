// Observers know nothing of one another: in whatever order they are given to a run, with a judge or
// without, each is told the same; and what one keeps with a block no other one finds.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capture/import/import.h"
#include "replay/machine/executed_block.h"
#include "replay/session/digest_sink.h"
#include "replay/session/logging_observer.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/random_guest.h"
#include "unit/x86/golden_trace.h"

namespace citcat::test {
namespace {

namespace fs = std::filesystem;

class ObservedBytes final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> b) override {
    content.insert(content.end(), b.begin(), b.end());
  }
  void finish() override {}
  std::vector<std::uint8_t> content;
};

/// A trace, and what it came to.
struct Trace {
  explicit Trace(const KtOptions& options) : writer(bytes), sink(writer, options) {}
  ObservedBytes bytes;
  KtWriter writer;
  KtSink sink;
};

/// A log of everything that is told of some kinds.
struct Log {
  explicit Log(Interest interest)
      : observer(interest, [this](const std::string& line) { lines.push_back(line); }) {}
  std::vector<std::string> lines;
  LoggingObserver observer;
};

/// What each of the observers of one run was told.
struct Told {
  std::vector<std::uint8_t> linear, offsets;
  std::vector<std::string> events, instructions, accesses;
  std::vector<ReplayDigest> digests;
  std::uint64_t compared = 0;
  bool operator==(const Told&) const = default;
};

enum class Judged : std::uint8_t { no, plainly, fully };

/// `accesses`: somebody wants each of them, and no block runs.
Told run(const ImportedRecording& imported, Judged judged, bool accesses, unsigned order) {
  Trace linear({}), offsets({.offsets = true});
  Log events({}), instructions({.code = Detail::blocks}), all(Interest::everything());
  DigestSink digests;
  std::vector<Observer*> observers{&linear.sink, &offsets.sink, &events.observer,
                                   &instructions.observer};
  if (accesses) observers.insert(observers.end(), {&all.observer, &digests});
  std::mt19937 random(order);
  if (order != 0) std::shuffle(observers.begin(), observers.end(), random);
  Listeners listeners;
  for (Observer* const observer : observers) listeners.add(*observer);
  std::unique_ptr<Verifier> verifier;
  if (judged != Judged::no) {
    VerifierOptions options;
    options.plain = judged == Judged::plainly;
    verifier = std::make_unique<Verifier>(imported.recording, imported.read_evidence(), options);
    listeners.add(*verifier);
  }
  ReplayOptions options;
  options.evidence = [&imported] { return imported.read_evidence(); };
  Replayer replayer(imported.recording, listeners, std::move(options));
  const ReplayReport report = replayer.run();
  Told told;
  linear.writer.flush();
  offsets.writer.flush();
  told.linear = std::move(linear.bytes.content);
  told.offsets = std::move(offsets.bytes.content);
  told.events = std::move(events.lines);
  told.instructions = std::move(instructions.lines);
  told.accesses = std::move(all.lines);
  if (accesses) told.digests = digests.finish(report.instructions);
  if (verifier) told.compared = verifier->totals().evidence_bytes;
  return told;
}

void expect_order_changes_nothing(const ImportedRecording& imported) {
  for (const Judged judged : {Judged::no, Judged::plainly, Judged::fully}) {
    for (const bool accesses : {false, true}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(judged) << accesses);
      const Told first = run(imported, judged, accesses, 0);
      EXPECT_FALSE(first.linear.empty());
      EXPECT_FALSE(first.events.empty());
      EXPECT_EQ(first.accesses.empty(), !accesses);
      EXPECT_EQ(first.compared == 0, judged == Judged::no);
      for (const unsigned order : {1u, 2u, 3u}) {
        EXPECT_TRUE(run(imported, judged, accesses, order) == first) << order;
      }
    }
  }
}

TEST(Observers, AreToldTheSameInAnyOrderOfTheSample) {
  const fs::path sample = fs::path(CITCAT_SOURCE_DIR) / "samples/ibm5150";
  ImportOptions options;
  options.capture.cpu = CpuModel::i8088;
  options.initial_state_path = sample / "state.json";
  options.start = parse_where("interrupt:0");
  expect_order_changes_nothing(import_to_memory({sample / "area5150.sr"}, options));
}

TEST(Observers, AreToldTheSameInAnyOrderOfAnOperatingSystem) {
  const fs::path capture = fs::path(shared_data_folder()) / "data/machine/lin_user_tiny";
  if (!fs::exists(capture)) GTEST_SKIP() << capture << " is absent";
  ImportOptions options;
  options.capture.internal_path = capture / "side.csv.zst";
  expect_order_changes_nothing(import_to_memory({capture / "busC.bin.zst"}, options));
}

// ---- Counts -------------------------------------------------------------------------------------

/// Only wants to know how often blocks run.
class Counting final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::counts}; }
  void instruction(const ExecutedInstruction& e, Position) override {
    instructions += e.info->is_repeated() ? 0 : 1;
  }
  void ran(std::span<const ExecutedBlock>, Position, std::uint32_t count) override {
    instructions += count;
  }
  void counted(const ExecutedBlock& block, std::uint64_t executions) override {
    instructions += executions * block.count();
    ++tellings;
  }
  std::uint64_t instructions = 0;  ///< but for repeated strings
  std::uint64_t tellings = 0;
};

TEST(Observers, AreToldAllCountsWhenTheRunEndsHoweverItDoes) {
  constexpr std::uint64_t kInstructions = 20'000;
  Recording recording = random_guest(GuestMode::flat, 1, kInstructions, false);
  const auto counts = [&recording](ReplayReport::End end) {
    Counting counting;
    Listeners listeners;
    listeners.add(counting);
    Replayer replayer(recording, listeners, {});
    EXPECT_EQ(replayer.run().end, end);
    EXPECT_NE(counting.tellings, 0U);
    return counting.instructions;
  };
  const std::uint64_t complete = counts(ReplayReport::End::complete);
  // One that no processor takes: the replay stops there.
  Interrupt never;
  never.vector = 0x20;
  never.position = {kInstructions - 1, 1};
  never.position_known = true;
  recording.interrupts.push_back(never);
  const std::uint64_t stopped = counts(ReplayReport::End::diverged);
  EXPECT_LE(stopped, complete);
  EXPECT_GE(stopped + 2, complete);
}

// ---- Batches ------------------------------------------------------------------------------------

/// Writes down each instruction with what it read and stored, whether it ran in a block or alone.
class Accesses final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::references}; }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override {
    const std::uint64_t end = first.instruction + count;
    for (const ExecutedBlock& b : blocks) {
      write(b, first);
      first.instruction += b.count();
    }
    EXPECT_EQ(first.instruction, end);
    most = std::max(most, blocks.size());
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    for (const DataReference& r : e.references) add(r);
    add(e.linear, now);
    ++alone;
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) override {
    (kind == AccessKind::walk ? walks_ : accesses_) += text("r", a, size, kind);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position) override {
    accesses_ += text("w", a, bytes.size(), kind);
  }
  std::vector<std::string> lines;
  std::size_t most = 0;     ///< blocks in one call
  std::uint64_t alone = 0;  ///< instructions and iterations that ran outside blocks

 private:
  void write(const ExecutedBlock& block, Position first) {
    auto r = block.references().begin();
    for (std::uint32_t i = 0; i < block.count(); ++i, ++first.instruction) {
      for (; r != block.references().end() && r->instruction == i; ++r) {
        add(*r);
      }
      add(block.linear(i), first);
    }
    EXPECT_TRUE(r == block.references().end());
  }
  void add(const DataReference& r) {
    (r.kind == AccessKind::walk ? walks_ : accesses_) +=
        text(r.write ? "w" : "r", r.physical, r.size, r.kind);
  }
  void add(LinearAddr at, Position now) {
    lines.push_back(std::to_string(now.instruction) + "." + std::to_string(now.iteration) + " " +
                    std::to_string(at.value) + std::exchange(accesses_, {}) +
                    std::exchange(walks_, {}));
  }
  static std::string text(const char* what, PhysAddr a, std::size_t size, AccessKind kind) {
    return " " + (what + std::to_string(static_cast<int>(kind))) + " " + std::to_string(a.value) +
           " " + std::to_string(size);
  }

  // What the next instruction accesses. Walks of a string are reported before all that.
  std::string accesses_, walks_;
};

TEST(Observers, ReceiveSeveralBlocksAtATimeInTheOrderInWhichTheyRan) {
  const Recording recording = random_guest(GuestMode::flat, 3, 30'000, false);
  Accesses one, other;
  Listeners listeners;
  listeners.add(one);
  listeners.add(other);
  Replayer(recording, listeners, {}).run();
  EXPECT_GT(one.most, 1u);
  EXPECT_TRUE(other.lines == one.lines);
}

/// The first line in which they differ.
std::string first_difference(const std::vector<std::string>& one,
                             const std::vector<std::string>& other) {
  const auto [a, b] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return (a == one.end() ? "end" : *a) + "\n" + (b == other.end() ? "end" : *b);
}

TEST(Observers, ReceiveTheSameAccessesWhetherOrNotTheRunIsJudged) {
  const fs::path linux_run = fs::path(CITCAT_SOURCE_DIR) / "samples/linux";
  ImportOptions import;
  import.capture.internal_path = linux_run / "start.side.csv";
  const ImportedRecording imported = import_to_memory({linux_run / "start.bin.zst"}, import);
  const auto run = [&](bool judged, Accesses& accesses) {
    Listeners listeners;
    listeners.add(accesses);
    std::optional<Verifier> verifier;
    if (judged) {
      VerifierOptions plainly;
      plainly.plain = true;
      verifier.emplace(imported.recording, imported.read_evidence(), plainly);
      listeners.add(*verifier);
    }
    ReplayOptions options;
    options.evidence = [&imported] { return imported.read_evidence(); };
    Replayer(imported.recording, listeners, std::move(options)).run();
    EXPECT_GT(accesses.most, 1u);
  };
  Accesses unjudged, judged;
  run(false, unjudged);
  run(true, judged);
  EXPECT_TRUE(judged.lines == unjudged.lines) << first_difference(judged.lines, unjudged.lines);
  // A judge has some instructions run alone, and blocks end before them.
  EXPECT_GT(judged.alone, unjudged.alone);
}

// ---- Digests ------------------------------------------------------------------------------------

/// Has each access told, and keeps nothing.
class Listening final : public Observer {
 public:
  Interest interest() const override { return Interest::everything(); }
};

/// `accesses`: somebody else wants each of them, and no block runs.
std::vector<ReplayDigest> digests_of(const ImportedRecording& imported, bool judged,
                                     bool accesses) {
  DigestSink digests;
  Listening everything;
  Listeners listeners;
  listeners.add(digests);
  if (accesses) listeners.add(everything);
  std::unique_ptr<Verifier> verifier;
  if (judged) {
    VerifierOptions options;
    options.plain = true;
    verifier = std::make_unique<Verifier>(imported.recording, imported.read_evidence(), options);
    listeners.add(*verifier);
  }
  ReplayOptions options;
  options.evidence = [&imported] { return imported.read_evidence(); };
  Replayer replayer(imported.recording, listeners, std::move(options));
  return digests.finish(replayer.run().instructions);
}

void expect_same_digests(const ImportedRecording& imported) {
  const std::vector<ReplayDigest> expected = digests_of(imported, false, true);
  EXPECT_FALSE(expected.empty());
  for (const bool judged : {false, true}) {
    EXPECT_EQ(digests_of(imported, judged, false), expected) << judged;
  }
}

TEST(Digests, AreTheSameByBlocksAndByAccesses) {
  const fs::path linux_run = fs::path(CITCAT_SOURCE_DIR) / "samples/linux";
  ImportOptions options;
  options.capture.internal_path = linux_run / "start.side.csv";
  expect_same_digests(import_to_memory({linux_run / "start.bin.zst"}, options));
}

TEST(Digests, AreTheSameByBlocksAndByAccessesOfAnOperatingSystem) {
  for (const char* machine : {"lin_user_tiny", "bios486_tiny"}) {
    const fs::path capture = fs::path(shared_data_folder()) / "data/machine" / machine;
    if (!fs::exists(capture)) GTEST_SKIP() << capture << " is absent";
    ImportOptions options;
    options.capture.internal_path = capture / "side.csv.zst";
    expect_same_digests(import_to_memory({capture / "busC.bin.zst"}, options));
  }
}

// ---- What is kept with blocks -------------------------------------------------------------------

/// Keeps a note with each block, and counts how often it makes and finds one.
class Caching final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::blocks}; }
  void ran(std::span<const ExecutedBlock> blocks, Position, std::uint32_t) override {
    for (const ExecutedBlock& block : blocks) look_at(block);
  }
  void look_at(const ExecutedBlock& block) {
    if (block.note() == nullptr) return;
    if (*block.note() == nullptr) {
      *block.note() = std::make_unique<Note>(this, block.linear(0), block.count());
      ++made;
      return;
    }
    const auto& note = static_cast<const Note&>(**block.note());
    EXPECT_EQ(note.owner, this);
    EXPECT_EQ(note.linear, block.linear(0));
    EXPECT_EQ(note.count, block.count());
    ++found;
  }
  std::uint64_t made = 0, found = 0;

 private:
  struct Note final : BlockNote {
    Note(const Caching* o, LinearAddr l, std::uint32_t c) : owner(o), linear(l), count(c) {}
    const Caching* owner;
    LinearAddr linear;
    std::uint32_t count;
  };
};

TEST(BlockNotes, OfSeveralObserversDoNotEvictEachOther) {
  for (const GuestMode mode : {GuestMode::kernel, GuestMode::user, GuestMode::flat}) {
    const Recording recording = random_guest(mode, 7, 60'000, true);
    Caching alone;
    Replayer(recording, &alone, {}).run();
    EXPECT_GT(alone.found, 100u);
    Caching one, another, third;
    Listeners listeners;
    for (Caching* const c : {&one, &another, &third}) listeners.add(*c);
    Replayer(recording, listeners, {}).run();
    for (const Caching* const c : {&one, &another, &third}) {
      EXPECT_EQ(c->made, alone.made);
      EXPECT_EQ(c->found, alone.found);
    }
  }
}

TEST(BlockNotes, ServeTwoTracesOfOneRunAsTheyServeEachAlone) {
  const Recording recording = random_guest(GuestMode::kernel, 11, 60'000, true);
  const auto bytes_of = [&](std::vector<Trace*> traces) {
    Listeners listeners;
    for (Trace* const t : traces) listeners.add(t->sink);
    Replayer(recording, listeners, {}).run();
    for (Trace* const t : traces) t->writer.flush();
  };
  Trace linear({}), offsets({.offsets = true}), linear_alone({}), offsets_alone({.offsets = true});
  bytes_of({&linear, &offsets});
  bytes_of({&linear_alone});
  bytes_of({&offsets_alone});
  EXPECT_FALSE(linear.bytes.content.empty());
  EXPECT_TRUE(linear.bytes.content == linear_alone.bytes.content);
  EXPECT_TRUE(offsets.bytes.content == offsets_alone.bytes.content);
}

}  // namespace
}  // namespace citcat::test
