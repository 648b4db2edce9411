// Where `why` ends the search for bytes that another processor stored last, also where it stored
// the value that was there before: at the store that an independent simulator says, which has all
// accesses in one order.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/processors/machine_import.h"
#include "events/archive/machine_file.h"
#include "processors/shared_stream.h"
#include "replay/processors/foreign_read_search.h"
#include "replay/slice/slicer.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

/// A processor and its instruction.
struct Store {
  std::size_t by = 0;
  std::uint64_t at = 0;
  bool operator==(const Store&) const = default;
};

/// A read of an operand, and who had stored each byte last.
struct Load {
  std::size_t by = 0;
  std::uint64_t at = 0;
  std::uint32_t address = 0;
  std::vector<std::optional<Store>> stores;  ///< of each byte
  bool is_foreign() const {
    for (const auto& store : stores) {
      if (store && store->by != by) return true;
    }
    return false;
  }
};

/// Loads by instructions that store nothing, where nothing is stored by the next either: an
/// interrupt before that one has pushed its frame at the moment that is asked about.
std::vector<Load> loads_of_simulator(const std::string& path) {
  constexpr std::uint8_t kOperand = 0, kWalk = 1, kRead = 0, kWrite = 1;
  std::unordered_map<std::uint32_t, Store> memory;
  std::vector<Load> loads;
  std::set<std::pair<std::size_t, std::uint64_t>> storing;
  for (const SharedStreamRecord& r : read_shared_stream(path)) {
    if (!r.is_access() || (r.c != kOperand && r.c != kWalk)) continue;
    if (r.b == kWrite) {
      storing.emplace(r.processor(), r.instruction);
      for (std::uint32_t a = r.d; a < r.d + r.a; ++a) memory[a] = {r.processor(), r.instruction};
    } else if (r.b == kRead && r.c == kOperand) {
      Load load{r.processor(), r.instruction, r.d, {}};
      for (std::uint32_t a = r.d; a < r.d + r.a; ++a) {
        const auto its = memory.find(a);
        load.stores.push_back(its == memory.end() ? std::nullopt : std::optional(its->second));
      }
      loads.push_back(std::move(load));
    }
  }
  std::erase_if(loads, [&](const Load& load) {
    return storing.contains({load.by, load.at}) || storing.contains({load.by, load.at + 1});
  });
  return loads;
}

SliceQuery query_of(const Load& load) {
  SliceQuery query;
  query.at = {load.at + 1, 0};
  query.memory.push_back(
      {{}, PhysAddr{load.address}, static_cast<std::uint32_t>(load.stores.size())});
  query.addresses = false;
  query.limit = 1;
  return query;
}

/// Who stored a byte, as far as the slice says that it was another processor.
std::optional<Store> writer_in(const Slice& slice, std::uint32_t byte) {
  for (const SliceInput& input : slice.inputs) {
    const bool covers = input.address.value <= byte && byte < input.address.value + input.size;
    if (covers && input.kind == SliceInput::Kind::processor)
      return Store{input.writer->processor, input.writer->position->instruction};
  }
  return std::nullopt;
}

/// Whether a step of the slice is this store to the byte.
bool has_store(const Slice& slice, const Store& store, std::uint32_t byte) {
  for (const SliceStep& step : slice.steps) {
    if (step.position.instruction != store.at) continue;
    for (const SliceMemory& m : step.stores) {
      if (m.physical.value <= byte && byte < m.physical.value + m.size) return true;
    }
  }
  return false;
}

class ForeignReadsOfCaptures : public TemporaryFolder, public ::testing::WithParamInterface<char> {
 protected:
  void SetUp() override {
    if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
    const MachineData data(shared_file("smp") + "/smp_spin64_tiny");
    MachineImportOptions options;
    options.internal_paths = {data.path("side.0.csv.zst"), data.path("side.1.csv.zst")};
    (void)::citcat::import_machine({data.path(std::string("bus") + GetParam() + ".bin.zst")},
                                   options, path("rec.citcat"));
    machine_ = MachineFile::find(path("rec.citcat"));
    ASSERT_TRUE(machine_ && shows_order_of_stores(*machine_));
    for (const RecordingFile& file : open_processors(*machine_))
      instructions_.push_back(file.recording().instructions.value_or(0));
    loads_ = loads_of_simulator(data.path("golden.bin.zst"));
    std::erase_if(loads_, [&](const Load& load) { return load.at >= instructions_.at(load.by); });
  }
  /// So many of them, from all of the run.
  static std::vector<Load> some(std::vector<Load> loads, std::size_t count) {
    std::vector<Load> chosen;
    for (std::size_t i = 0; i < count && !loads.empty(); ++i)
      chosen.push_back(loads[i * loads.size() / count]);
    return chosen;
  }
  void expect_right(const std::vector<Load>& loads, std::size_t most) const {
    for (std::size_t p = 0; p < instructions_.size(); ++p) {
      const RecordingFile file = machine_->open(p);
      ForeignReadSearch search(*machine_, static_cast<std::uint8_t>(p), {most, {}});
      (void)search.before({instructions_[p], 0});
      Slicer slicer(file, {}, &search);
      for (const Load& load : loads) {
        if (load.by != p) continue;
        const Slice slice = slicer.slice(query_of(load));
        for (std::uint32_t i = 0; i < load.stores.size(); ++i) {
          const std::uint32_t byte = load.address + i;
          const std::optional<Store>& store = load.stores[i];
          const bool own = store && store->by == p;
          const bool right = own ? has_store(slice, *store, byte) : writer_in(slice, byte) == store;
          EXPECT_TRUE(right) << p << ":" << load.at << std::hex << " " << byte;
        }
      }
      EXPECT_TRUE(search.stopped().empty());
    }
  }

  std::optional<MachineFile> machine_;
  std::vector<std::uint64_t> instructions_;
  std::vector<Load> loads_;
};

TEST_P(ForeignReadsOfCaptures, EndAtTheLastStoreInTheOrderOfTheBus) {
  constexpr std::size_t kAll = 1'000'000, kAsked = 60;
  std::vector<Load> foreign = loads_, others = loads_;
  std::erase_if(foreign, [](const Load& load) { return !load.is_foreign(); });
  std::erase_if(others, [](const Load& load) { return load.is_foreign(); });
  ASSERT_GT(foreign.size(), 1000u);
  expect_right(some(foreign, kAsked), kAll);
  expect_right(some(others, kAsked), kAll);
}

/// Memory for a few reads is enough: the processors are replayed again for those before.
TEST_P(ForeignReadsOfCaptures, ComeInWindowsOfAFew) {
  constexpr std::size_t kAll = 1'000'000, kFew = 16, kReads = 100, kLine = 32;
  ForeignReadSearch all(*machine_, 1, {kAll, {}}), few(*machine_, 1, {kFew, {}});
  const auto whole = all.before({instructions_[1], 0});
  ASSERT_GT(whole.reads.size(), kReads);
  EXPECT_EQ(whole.from, Position{});
  const Position to = whole.reads[kReads].at;
  std::vector<ForeignRead> backwards;
  for (Position before = to; before != Position{};) {
    const auto window = few.before(before);
    EXPECT_LE(window.reads.size(), kFew + kLine) << "those of one transaction stay together";
    ASSERT_LT(window.from, before);
    backwards.insert(backwards.end(), window.reads.rbegin(), window.reads.rend());
    before = window.from;
  }
  const auto expected = all.before(to).reads;
  ASSERT_EQ(backwards.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const ForeignRead &a = backwards[i], &b = expected[expected.size() - 1 - i];
    EXPECT_EQ(a.at, b.at);
    EXPECT_EQ(a.address, b.address);
    EXPECT_EQ(a.size, b.size);
    EXPECT_EQ(a.writer, b.writer);
    EXPECT_EQ(a.stored_at, b.stored_at);
  }
  expect_right(some(loads_, 6), kFew);
}

INSTANTIATE_TEST_SUITE_P(Forms, ForeignReadsOfCaptures, ::testing::Values('A', 'C'));

}  // namespace
}  // namespace citcat::test
