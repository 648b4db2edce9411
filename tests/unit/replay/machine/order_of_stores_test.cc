// In which order an instruction's words go over the bus, and what the comparison makes of
// another one. Expected orders: of the 80286 from the bus cycles of its single-step suite (forms
// 60, 9A, CD); of later processors as Bochs stores (docs/fidelity.md says what is assumed).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "capture/import/import.h"
#include "events/derive/recording_builder.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"
#include "unit/kept_evidence.h"

namespace citcat {
namespace {

constexpr std::uint32_t kStoringCode = 0x10000, kStoringStack = 0x20000, kStackTop = 0x100,
                        kFrameBase = 0x180;

struct StoreRow {
  const char* name;
  CpuModel model;
  std::vector<std::uint8_t> code;
  std::vector<std::uint32_t> offsets;  ///< of the words in the stack segment, as they are stored
  bool known;                          ///< from pins, and so held to by the comparison
};

std::vector<std::uint32_t> stack_words(std::uint32_t first, int step, std::size_t count) {
  std::vector<std::uint32_t> offsets;
  for (std::size_t i = 0; i < count; ++i, first += static_cast<std::uint32_t>(step))
    offsets.push_back(first);
  return offsets;
}

std::vector<StoreRow> store_rows() {
  const std::vector<std::uint8_t> pusha{0x60}, call{0x9a, 0, 1, 0, 0x10}, interrupt{0xcd, 0x21},
      enter{0xc8, 0, 0, 3};
  const auto down8 = stack_words(kStackTop - 2, -2, 8);
  std::vector<StoreRow> all{
      {"Pusha", CpuModel::i286, pusha, stack_words(kStackTop - 16, 2, 8), true},
      {"Enter", CpuModel::i286, enter, stack_words(kStackTop - 2, -2, 4), false},
      {"Call", CpuModel::i8088, call, stack_words(kStackTop - 2, -2, 2), true},
      {"Call", CpuModel::i286, call, stack_words(kStackTop - 2, -2, 2), true},
      {"Int", CpuModel::i8088, interrupt, stack_words(kStackTop - 2, -2, 3), true},
      {"Int", CpuModel::i286, interrupt, stack_words(kStackTop - 2, -2, 3), true},
  };
  for (const CpuModel later : {CpuModel::i386, CpuModel::i486, CpuModel::pentium, CpuModel::p6}) {
    all.push_back({"Pusha", later, pusha, down8, false});
    all.push_back({"Enter", later, enter, stack_words(kStackTop - 2, -2, 4), false});
    all.push_back({"Call", later, call, stack_words(kStackTop - 2, -2, 2), false});
    all.push_back({"Int", later, interrupt, stack_words(kStackTop - 2, -2, 3), false});
  }
  return all;
}

std::string store_row_name(const testing::TestParamInfo<StoreRow>& row) {
  return std::string(row.param.name) + "Of" + std::string(cpu_model_name(row.param.model));
}

class SeenStores final : public Observer {
 public:
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    all.push_back({a, {bytes.begin(), bytes.end()}});
  }
  struct Store {
    PhysAddr address;
    std::vector<std::uint8_t> bytes;
  };
  std::vector<Store> all;
};

class StoreOrder : public testing::TestWithParam<StoreRow> {
 protected:
  StoreOrder() {
    CpuState& s = recording_.initial;
    s.model = GetParam().model;
    set_register(s, "cs", kStoringCode >> 4);
    set_register(s, "ss", kStoringStack >> 4);
    set_register(s, "sp", kStackTop);
    set_register(s, "bp", kFrameBase);
    std::uint16_t value = 0x1111;
    for (const char* name : {"ax", "cx", "dx", "bx", "si", "di"}) {
      set_register(s, name, value);
      value = static_cast<std::uint16_t>(value + 0x1111);
    }
    put(kStoringCode, GetParam().code);
    put(kStoringCode + static_cast<std::uint32_t>(GetParam().code.size()), {0xf4});
    put(0x21 * 4, {0, 1, 0, 0x10});  // INT 21h goes to 1000:0100
    put(kStoringCode + 0x100, {0xf4});
    put(kStoringStack + kFrameBase - 8,
        {1, 2, 3, 4, 5, 6, 7, 8});  // frame pointers of outer levels
  }
  void put(std::uint32_t at, const std::vector<std::uint8_t>& bytes) {
    recording_.image.set(PhysAddr{at}, bytes);
  }
  std::vector<SeenStores::Store> stores() {
    SeenStores stores;
    Replayer replayer(recording_, &stores, {});
    EXPECT_NE(replayer.run().end, ReplayReport::End::diverged);
    return stores.all;
  }
  /// A comparison with a bus that shows these stores, of which nobody counted the instructions
  /// unless `counted`.
  ReplayReport compared_with(const std::vector<SeenStores::Store>& stores, bool counted) {
    RecordingBuilder builder({{CacheForm::none, 0, 2, 0xffffffff}}, &evidence_);
    for (const SeenStores::Store& store : stores) {
      BusTransaction t;
      t.op = BusOp::data_write;
      t.address = store.address;
      t.size = static_cast<std::uint8_t>(store.bytes.size());
      std::copy(store.bytes.begin(), store.bytes.end(), t.data.begin());
      t.index = index_++;
      if (counted) t.flags = kPositionKnown;
      builder.add(t);
    }
    BusTransaction halt;
    halt.op = BusOp::halt;
    halt.index = index_++;
    if (counted) {
      halt.flags = kPositionKnown;
      halt.position = {1, 0};
    }
    builder.add(halt);
    Recording built = builder.finish();
    built.initial = recording_.initial;
    built.image = std::move(recording_.image);
    imported_.recording = std::move(built);
    Verifier verifier(imported_.recording, imported_.read_evidence(), {});
    Replayer replayer(imported_.recording, &verifier, {});
    return verifier.finish(replayer.run());
  }

  Recording recording_;
  ImportedRecording imported_;
  test::KeptEvidence evidence_{imported_.evidence};
  std::uint64_t index_ = 0;
};

TEST_P(StoreOrder, IsTheProcessors) {
  std::vector<std::uint32_t> offsets;
  for (const SeenStores::Store& store : stores()) {
    EXPECT_EQ(store.bytes.size(), 2u);
    offsets.push_back(store.address.low32() - kStoringStack);
  }
  EXPECT_EQ(offsets, GetParam().offsets);
}

TEST_P(StoreOrder, AgreesWithABusThatShowsIt) {
  const auto all = stores();
  const ReplayReport report = compared_with(all, false);
  EXPECT_FALSE(report.divergence) << report.divergence->reason;
}

TEST_P(StoreOrder, IsHeldToWhereItIsKnown) {
  auto all = stores();
  std::swap(all[0], all[1]);
  const ReplayReport report = compared_with(all, false);
  ASSERT_EQ(report.divergence.has_value(), GetParam().known);
  if (!GetParam().known) return;
  EXPECT_EQ(report.divergence->reason,
            "the replay writes memory in another order than the processor did");
  EXPECT_EQ(report.divergence->transaction, 0u);
}

/// Who counts instructions is no pins, but another machine with an order of its own.
TEST_P(StoreOrder, IsFreeWhereAMonitorCounts) {
  auto all = stores();
  std::swap(all[0], all[1]);
  const ReplayReport report = compared_with(all, true);
  EXPECT_FALSE(report.divergence) << report.divergence->reason;
}

INSTANTIATE_TEST_SUITE_P(, StoreOrder, testing::ValuesIn(store_rows()), store_row_name);

}  // namespace
}  // namespace citcat
