// What a slice says is tried out: a run is begun with another value in one place. Where the slice
// does not name the place, and the same instructions ran and stored to the same places, the value
// is the same; where it names it, the value is mostly another.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "capture/processors/machine_import.h"
#include "formats/io/hash.h"
#include "replay/slice/slicer.h"
#include "unit/replay/machine/random_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

namespace fs = std::filesystem;

/// What ran, and to where it stored; and which memory is not to be changed in an experiment.
class RunPath final : public Observer {
 public:
  Interest interest() const override { return Interest::everything(); }
  void instruction(const ExecutedInstruction& e, Position) override {
    add(e.linear.value);
    hash_ = hash64({e.info->bytes.data(), e.info->length}) ^ hash_ * 3;
  }
  void fetch(PhysAddr a, std::uint32_t size, Position) override { keep(a, size); }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) override {
    if (kind != AccessKind::data) keep(a, size);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position) override {
    add(a.value << 8 | bytes.size());
    if (kind == AccessKind::data && bytes.size() >= 4) stored_.push_back(a);
  }
  /// Dwords that were stored.
  const std::vector<PhysAddr>& stored() const { return stored_; }
  std::uint64_t hash() const { return hash_; }
  /// Code, page tables, descriptors: what a slice takes as given.
  bool given(PhysAddr a) const { return given_.contains(a.value); }

 private:
  void add(std::uint64_t value) {
    hash_ = hash64({reinterpret_cast<const std::uint8_t*>(&value), sizeof value}) ^ hash_ * 3;
  }
  void keep(PhysAddr a, std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; ++i) given_.insert(a.value + i);
  }
  std::uint64_t hash_ = 0;
  std::set<std::uint64_t> given_;
  std::vector<PhysAddr> stored_;
};

/// A value that is asked about, where it stands.
struct Asked {
  std::string name;
  PlaceSet places;
  std::optional<PhysAddr> memory;  ///< a dword
  std::function<std::uint64_t(const CpuState&)> value;
};

std::uint64_t gpr_of(const CpuState& state, unsigned number) {
  static constexpr const char* kNarrow[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
  static constexpr const char* kWide[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"};
  return get_register(state, state.long_mode ? kWide[number] : kNarrow[number]).value();
}
void set_gpr(CpuState& state, unsigned number, std::uint64_t value) {
  static constexpr const char* kNarrow[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
  static constexpr const char* kWide[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"};
  ASSERT_TRUE(set_register(state, state.long_mode ? kWide[number] : kNarrow[number], value));
}
Asked asked_gpr(unsigned number) {
  Asked asked{"gpr " + std::to_string(number), {}, {}, {}};
  for (unsigned i = 0; i < 8; ++i) asked.places.set(place::kGprs + 8 * number + i);
  asked.value = [number](const CpuState& s) { return gpr_of(s, number); };
  return asked;
}
Asked asked_flag(unsigned bit) {
  Asked asked{"flag " + std::to_string(bit), {}, {}, {}};
  asked.places.set(place::kFlags + bit);
  asked.value = [bit](const CpuState& s) -> std::uint64_t {
    return get_register(s, s.long_mode ? "rflags" : "eflags").value() >> bit & 1;
  };
  return asked;
}
/// A dword of XMM or x87 registers, as FXSAVE has them (SDM vol. 1, 10.5.1).
Asked asked_fx(unsigned number, bool vector) {
  Asked asked{(vector ? "xmm " : "st ") + std::to_string(number), {}, {}, {}};
  const PlaceRange range = vector ? place::vector(number, 0, 4) : place::stack(number, 4);
  for (unsigned i = 0; i < 4; ++i) asked.places.set(range.first + i);
  const unsigned offset = (vector ? 160 : 32) + 16 * number;
  asked.value = [offset](const CpuState& s) {
    std::uint32_t value = 0;
    std::memcpy(&value, &s.fx[offset], 4);
    return std::uint64_t{value};
  };
  return asked;
}
Asked asked_memory(PhysAddr a) {
  Asked asked{"memory " + std::to_string(a.value), {}, a, {}};
  return asked;
}

/// A run up to a moment, and the values there.
struct Outcome {
  bool reached = false;
  std::uint64_t path = 0;
  std::vector<std::uint64_t> values;  ///< of what was asked, in its order
};

Outcome run_to(const Recording& recording, Position to, const std::vector<Asked>& asked,
               RunPath& path) {
  Listeners listeners;
  listeners.add(path);
  Replayer replayer(recording, listeners, {});
  const ReplayReport report = replayer.run_to(to);
  Outcome outcome;
  outcome.reached =
      report.end != ReplayReport::End::diverged && replayer.machine().position() == to;
  outcome.path = path.hash();
  const CpuState state = replayer.machine().save();
  for (const Asked& a : asked) {
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; a.memory && i < 4; ++i) {
      value =
          value << 8 | replayer.machine().memory().defined_byte(a.memory->plus32(i)).value_or(0);
    }
    outcome.values.push_back(a.memory ? value : a.value(state));
  }
  return outcome;
}

/// Bytes and registers that a slice names.
struct Named {
  std::set<std::uint64_t> memory;
  std::vector<std::uint64_t> image;   ///< bytes of it
  std::vector<std::uint64_t> values;  ///< of these, what the value was made of
  std::set<std::string> registers;

  explicit Named(const Slice& slice) {
    for (const SliceInput& input : slice.inputs) {
      if (input.kind == SliceInput::Kind::reg) registers.insert(input.name);
      const bool is_image = input.kind == SliceInput::Kind::image;
      const bool bytes = is_image || input.kind == SliceInput::Kind::unknown ||
                         input.kind == SliceInput::Kind::code;
      for (std::uint32_t i = 0; bytes && i < input.size; ++i) {
        const std::uint64_t byte = input.address.value + i;
        memory.insert(byte);
        if (is_image) image.push_back(byte);
        if (is_image && input.way == SliceWay::value) values.push_back(byte);
      }
    }
  }
  bool names_gpr(unsigned number) const {
    PlaceSet whole;
    for (const std::string& name : registers) {
      const auto range = places_named(name.substr(0, name.find('[')));
      if (range && range->first / 8 == number) return true;
    }
    return false;
  }
};

/// A place at the start, and the run with another value there.
struct Change {
  std::optional<PhysAddr> byte;
  unsigned gpr = 0;  ///< else
  Recording recording;
  bool is_named_by(const Named& named) const {
    return byte ? named.memory.contains(byte->value) : named.names_gpr(gpr);
  }
  std::string place() const {
    return byte ? "byte " + std::to_string(byte->value) : "register " + std::to_string(gpr);
  }
};

struct Count {
  unsigned same_path = 0;  ///< values of runs on the same path
  unsigned missed = 0;     ///< of these, others although nothing named the place
  unsigned named = 0;      ///< places that are named and made a value
  unsigned changed = 0;    ///< of these, some other value changed it
  std::string first_missed = {};
  void add(const Count& other) {
    same_path += other.same_path;
    missed += other.missed;
    named += other.named;
    changed += other.changed;
    if (first_missed.empty()) first_missed = other.first_missed;
  }
};

struct Plan {
  std::uint64_t length = 0;  ///< of the run, in instructions
  unsigned moments = 0, trials = 0;
  std::uint64_t seed = 0;
  bool forgets = false;  ///< what the slice names of memory is taken for not named
};

/// Slices of values at random moments of one recording, each tried out.
class Experiment {
 public:
  Experiment(const std::string& archive, const Plan& plan)
      : plan_(plan), file_(RecordingFile::open(archive)), slicer_(file_, {}), random_(plan.seed) {
    for (const auto& [number, page] : recording().image.pages()) {
      for (std::uint32_t i = 0; i < kPageSize; ++i) {
        const PhysAddr a{std::uint64_t{number} * kPageSize + i};
        if (recording().image.byte(a)) image_.push_back(a);
      }
    }
  }
  Count run() {
    for (unsigned m = 0; m < plan_.moments; ++m) try_moment();
    return count_;
  }

 private:
  const Recording& recording() const { return file_.recording(); }

  void try_moment() {
    const std::uint64_t first = plan_.length / 8;
    at_ = {first + random_() % (plan_.length - first), 0};
    ask();
    for (unsigned t = 0; t < plan_.trials; ++t) {
      const Change change = draw_change();
      const bool given = change.byte && path_->given(*change.byte);
      if (!given) compare(change);
    }
    for (unsigned t = 0; t < plan_.trials / 4; ++t) try_named();
  }
  /// Draws what to ask about, and asks.
  void ask() {
    RunPath before;
    run_to(recording(), at_, {}, before);
    asked_.clear();
    for (unsigned r = 0; r < 8; ++r) asked_.push_back(asked_gpr(r));
    for (const unsigned bit : {0u, 2u, 6u, 7u, 11u}) asked_.push_back(asked_flag(bit));
    for (unsigned r = 0; r < 4; ++r) asked_.push_back(asked_fx(r, true));
    for (unsigned r = 0; r < 2; ++r) asked_.push_back(asked_fx(r, false));
    const std::vector<PhysAddr>& stored = before.stored();
    for (unsigned m = 0; m < 6 && !stored.empty(); ++m) {
      const PhysAddr a = stored[random_() % stored.size()];
      if (a.offset_in_page() <= kPageSize - 4) asked_.push_back(asked_memory(a));
    }
    path_.emplace();
    before_ = run_to(recording(), at_, asked_, *path_);
    ASSERT_TRUE(before_.reached);
    named_.clear();
    used_.clear();
    for (const Asked& a : asked_) {
      SliceQuery query;
      query.at = at_;
      query.limit = 0;
      query.stack_pointer = true;
      query.places = a.places;
      if (a.memory) query.memory.push_back({{}, PhysAddr{a.memory->value}, 4});
      Named named(slicer_.slice(query));
      used_.insert(used_.end(), named.image.begin(), named.image.end());
      if (plan_.forgets) named.memory.clear();
      named_.push_back(std::move(named));
    }
  }
  /// Mostly of a byte that something was made of.
  Change draw_change() {
    Change change{{}, 0, recording().clone()};
    const std::uint64_t kind = random_() % 8;
    if (kind < 2) {
      change.gpr = static_cast<unsigned>(random_() % 8);
      if (change.gpr == kEsp) change.gpr = kEax;
      CpuState& state = change.recording.initial;
      set_gpr(state, change.gpr, gpr_of(state, change.gpr) ^ std::uint64_t{1} << random_() % 32);
      return change;
    }
    change.byte = kind < 7 && !used_.empty() ? PhysAddr{used_[random_() % used_.size()]}
                                             : image_[random_() % image_.size()];
    flip(change.recording, *change.byte, static_cast<unsigned>(random_() % 8));
    return change;
  }
  static void flip(Recording& recording, PhysAddr a, unsigned bit) {
    recording.image.set(a, static_cast<std::uint8_t>(*recording.image.byte(a) ^ 1u << bit));
  }
  void compare(const Change& change) {
    RunPath path;
    const Outcome after = run_to(change.recording, at_, asked_, path);
    if (!after.reached || after.path != before_.path) return;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      ++count_.same_path;
      if (after.values[i] == before_.values[i] || change.is_named_by(named_[i])) continue;
      if (count_.missed++ != 0) continue;
      count_.first_missed = asked_[i].name + " at " + std::to_string(at_.instruction) + ", seed " +
                            std::to_string(plan_.seed) + ": " + change.place();
    }
  }
  /// Some other value of a byte that made a general register changes it, or what runs.
  void try_named() {
    const std::size_t i = random_() % 8;
    const Named& named = named_[i];
    if (named.values.empty()) return;
    const PhysAddr a{named.values[random_() % named.values.size()]};
    ++count_.named;
    for (unsigned bit = 0; bit < 8; ++bit) {
      Recording other = recording().clone();
      flip(other, a, bit);
      RunPath path;
      const Outcome after = run_to(other, at_, asked_, path);
      const bool differs =
          !after.reached || after.path != before_.path || after.values[i] != before_.values[i];
      if (!differs) continue;
      ++count_.changed;
      return;
    }
  }

  const Plan plan_;
  const RecordingFile file_;
  Slicer slicer_;
  std::mt19937_64 random_;
  std::vector<PhysAddr> image_;
  Position at_;
  std::vector<Asked> asked_;
  std::vector<Named> named_;         ///< by what was asked
  std::vector<std::uint64_t> used_;  ///< bytes of the image that any of it was made of
  std::optional<RunPath> path_;
  Outcome before_;
  Count count_;
};

class SliceExperiments : public TemporaryFolder {};

class SliceExperimentsOfMode : public SliceExperiments,
                               public testing::WithParamInterface<GuestMode> {
 protected:
  static constexpr std::uint64_t kLength = 1000;
  /// Until something is missed.
  Count try_out_programs(int programs, bool forgets) {
    Count all;
    std::uint64_t seed = 0;
    for (int p = 0; p < programs && all.missed == 0; ++p) {
      Recording recording = random_guest(GetParam(), ++seed, kLength, true);
      while (!reaches_its_end(recording)) {
        recording = random_guest(GetParam(), ++seed, kLength, true);
      }
      RecordingFileWriter(path("r.citcat")).finish(recording);
      all.add(Experiment(path("r.citcat"), {kLength - 1, 3, 16, seed, forgets}).run());
    }
    return all;
  }

 private:
  static bool reaches_its_end(const Recording& recording) {
    RunPath ran;
    return run_to(recording, {kLength - 1, 0}, {}, ran).reached;
  }
};

TEST_P(SliceExperimentsOfMode, WhatIsNotNamedDoesNotCount) {
  // As many random programs as CITCAT_RANDOM_PROGRAMS says, else one.
  const char* const wanted = std::getenv("CITCAT_RANDOM_PROGRAMS");
  const Count count = try_out_programs(wanted != nullptr ? std::atoi(wanted) : 1, false);
  EXPECT_GT(count.same_path, 100u);
  EXPECT_EQ(count.missed, 0u) << count.first_missed;
}

/// The experiments are such that they find what a slice leaves out.
TEST_P(SliceExperimentsOfMode, WhatIsForgottenIsFound) {
  EXPECT_GT(try_out_programs(12, true).missed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Modes, SliceExperimentsOfMode, testing::ValuesIn(kGuestModes),
                         [](const auto& tested) { return guest_mode_name(tested.param); });

TEST_F(SliceExperiments, OfARealPc) {
  const fs::path folder = fs::path(CITCAT_SOURCE_DIR) / "samples/ibm5150";
  ImportOptions options;
  options.capture.cpu = CpuModel::i8088;
  options.initial_state_path = folder / "state.json";
  options.start = parse_where("interrupt:0");
  import_capture({folder / "area5150.sr"}, options, path("r.citcat"));
  const Count count = Experiment(path("r.citcat"), {600, 4, 16, 5}).run();
  EXPECT_GT(count.same_path, 200u);
  EXPECT_EQ(count.missed, 0u) << count.first_missed;
}

TEST_F(SliceExperiments, OfLinux) {
  const fs::path folder = fs::path(CITCAT_SOURCE_DIR) / "samples/linux";
  ImportOptions options;
  options.capture.internal_path = folder / "start.side.csv";
  import_capture({folder / "start.bin.zst"}, options, path("r.citcat"));
  const Count count = Experiment(path("r.citcat"), {12'000, 4, 12, 7}).run();
  EXPECT_GT(count.same_path, 100u);
  EXPECT_EQ(count.missed, 0u) << count.first_missed;
  EXPECT_GT(count.named, 3u);
  EXPECT_GE(count.changed * 10, count.named * 8) << count.changed << " of " << count.named;
}

/// A capture of ../shared/data, and the recording of its that is tried out.
struct TriedCapture {
  const char* name;  ///< folder and form
  const char* of = "";
  unsigned processors = 1;
};

class SliceExperimentsOfCaptures : public SliceExperiments,
                                   public testing::WithParamInterface<TriedCapture> {};

// Real mode, protected mode, programs of 32 bits and their system calls, x87, DMA, SSE2, long mode,
// each of two processors.
TEST_P(SliceExperimentsOfCaptures, WhatIsNotNamedDoesNotCount) {
  const std::string name = GetParam().name;
  const fs::path bus = fs::path(CITCAT_SOURCE_DIR) / "../shared/data" / (name + ".bin.zst");
  if (!fs::exists(bus)) GTEST_SKIP() << "shared/data is not there";
  const fs::path folder = bus.parent_path();
  if (GetParam().processors == 1) {
    ImportOptions options;
    options.capture.internal_path = folder / "side.csv.zst";
    import_capture({bus}, options, path("r.citcat"));
  } else {
    MachineImportOptions options;
    for (unsigned p = 0; p < GetParam().processors; ++p) {
      options.internal_paths.push_back(folder / ("side." + std::to_string(p) + ".csv.zst"));
    }
    import_machine({bus}, options, path("r.citcat"));
  }
  // As many moments as CITCAT_EXPERIMENTS says, farther into the run; else one.
  const char* const wanted = std::getenv("CITCAT_EXPERIMENTS");
  Plan plan{1500, 1, 6, 11};
  if (wanted != nullptr) plan = {20'000, static_cast<unsigned>(std::atoi(wanted)), 16, 11};
  const std::string archive = path("r.citcat") + GetParam().of;
  const auto all = RecordingFile::open(archive).recording().instructions;
  plan.length = std::min(plan.length, all.value_or(1) - 1);
  const Count count = Experiment(archive, plan).run();
  EXPECT_EQ(count.missed, 0u) << count.first_missed;
  if (wanted == nullptr) return;
  std::printf("%u values on the same path, %u of %u named bytes change what they made\n",
              count.same_path, count.changed, count.named);
  EXPECT_GT(count.same_path, 100u);
}

/// All, or short ones where the run is an ordinary one.
std::vector<TriedCapture> tried_captures() {
  std::vector<TriedCapture> captures{{"machine/p3_post_tiny/busA"},
                                     {"machine/lin_user_tiny/busB"},
                                     {"machine64/k64_procs_tiny/busC"},
                                     {"smp/smp_spin32_tiny/busA", "@1", 2}};
  if (std::getenv("CITCAT_EXPERIMENTS") == nullptr) return captures;
  for (const char* const name :
       {"machine/bios486_small/busC", "machine/lin_procs_small/busC", "machine/lin_fpu_small/busC",
        "machine/lin_disk_small/busC", "machine/p4_user_tiny/busC", "machine64/k64_amd_small/busC",
        "machine64/k64_lme_tiny/busA", "machine64/k64_disk_small/busC"}) {
    captures.push_back({name});
  }
  for (const char* const of : {"@0", "@1"}) {
    captures.push_back({"smp/smp_lin64_threads/busA", of, 2});
    captures.push_back({"smp/smp_lin64_procs/busC", of, 2});
  }
  return captures;
}

INSTANTIATE_TEST_SUITE_P(Captures, SliceExperimentsOfCaptures, testing::ValuesIn(tried_captures()),
                         [](const auto& tested) {
                           std::string name = std::string(tested.param.name) + tested.param.of;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace citcat::test
