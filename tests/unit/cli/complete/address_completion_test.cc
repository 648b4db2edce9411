// The real capture of an 8088 with some of its address lines taken away: completed by running the
// processor, every address is the one that the lines showed.

#include "cli/complete/address_completion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "events/machine/cpu_state.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

const std::string kCapture = CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr";
const std::string kState = CITCAT_SOURCE_DIR "/samples/ibm5150/state.json";
/// A19 never rises in this capture, and is not believed (sample_capture.cc).
constexpr std::uint32_t kShown = 0x7ffff;

struct Lines {
  const char* name;
  std::uint32_t missing;  ///< address lines
  bool queue_status = true;
};

class AddressCompletion : public test::TemporaryFolder, public testing::WithParamInterface<Lines> {
 protected:
  std::string write_map(const Lines& lines) const {
    const std::string path = (folder_ / "map.json").string();
    std::ofstream out(path);
    out << R"({"pins": {"INTR": null)";
    for (unsigned bit = 0; bit < 20; ++bit)
      if ((lines.missing >> bit & 1) != 0)
        out << ", \"" << (bit < 8 ? "AD" : "A") << bit << "\": null";
    if (!lines.queue_status) out << R"(, "QS0": null, "QS1": null)";
    out << "}}";
    return path;
  }

  static ImportOptions options(const std::string& map) {
    ImportOptions options;
    options.capture.channel_map_path = map;
    options.capture.cpu = CpuModel::i8088;
    options.start = Where{Where::Kind::interrupt, 0};
    options.initial_state_path = kState;
    return options;
  }

  static std::vector<BusTransaction> read(const ImportOptions& options, Completion how,
                                          CaptureInfo& info) {
    const auto reader =
        with_whole_addresses(open_capture({kCapture}, options.capture), options, how);
    WhereFinder start(options.start);
    bool started = false;
    std::vector<BusTransaction> all;
    for (BusTransaction t; reader->next(t);) {
      started = started || start.reached(t);
      if (started) all.push_back(t);
    }
    info = reader->info();
    return all;
  }
};

/// `completed` has every address of `whole`.
void expect_equal(const std::vector<BusTransaction>& completed,
                  const std::vector<BusTransaction>& whole, const CaptureInfo& info) {
  const std::string last = info.warnings.empty() ? "" : info.warnings.back();
  SCOPED_TRACE(last);
  EXPECT_EQ(info.address_mask, 0xfffffu);
  // The last instruction is cut, and nothing of it is known.
  ASSERT_GE(completed.size() + 8, whole.size());
  for (std::size_t i = 0; i < completed.size(); ++i) {
    const BusTransaction& a = completed[i];
    const BusTransaction& b = whole[i];
    const bool memory = b.is_memory() || b.op == BusOp::instruction_start;
    const std::uint32_t mask = memory ? kShown : 0xffff;
    ASSERT_TRUE(a.op == b.op && a.data == b.data && a.clock == b.clock && a.flags == b.flags &&
                a.position == b.position && a.index == b.index)
        << i;
    ASSERT_EQ(a.address.value & mask, b.address.value & mask) << i << " " << bus_op_name(a.op);
  }
}

TEST_P(AddressCompletion, EveryAddressIsTheOneThatTheLinesShow) {
  CaptureInfo info;
  const auto whole =
      read(options(write_map({"", 0, GetParam().queue_status})), Completion::never, info);
  const auto completed = read(options(write_map(GetParam())), Completion::always, info);
  expect_equal(completed, whole, info);
}

/// Transactions as a capture.
class ListedCapture final : public CaptureReader {
 public:
  explicit ListedCapture(std::vector<BusTransaction> all) : all_(std::move(all)) {
    info_.cpu = CpuModel::i8088;
    info_.address_mask = info_.bus.address_mask = 0xff;
    info_.bus.bus_bytes = 1;
  }
  const CaptureInfo& info() const override { return info_; }
  bool next(BusTransaction& out) override {
    if (next_ == all_.size()) return false;
    out = all_[next_++];
    return true;
  }

 private:
  std::vector<BusTransaction> all_;
  CaptureInfo info_;
  std::size_t next_ = 0;
};

BusTransaction cycle(BusOp op, std::uint32_t address, std::uint8_t data) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address & 0xff};
  t.size = 1;
  t.data[0] = data;
  return t;
}

std::vector<std::uint32_t> completed(std::vector<BusTransaction> all, CaptureInfo* info = nullptr,
                                     std::optional<Where> start = std::nullopt) {
  ImportOptions options;
  options.start = start;
  options.capture.cpu = CpuModel::i8088;
  options.initial_state = state_after_reset(CpuModel::i8088);
  const auto reader = with_whole_addresses(std::make_unique<ListedCapture>(std::move(all)), options,
                                           Completion::automatic);
  std::vector<std::uint32_t> addresses;
  for (BusTransaction t; reader->next(t);) addresses.push_back(t.address.u32());
  if (info != nullptr) *info = reader->info();
  return addresses;
}

constexpr BusOp kFetch = BusOp::code_read, kRead = BusOp::data_read, kWrite = BusOp::data_write;

/// From reset: JMP F000:E05B; MOV AX,4000h; MOV SS,AX; MOV SP,0100h; JMP $+2; CALL $+3; LODSB, with
/// two bytes fetched for nothing behind the first jump.
std::vector<BusTransaction> boot() {
  std::vector<BusTransaction> all;
  const auto fetch = [&](std::uint32_t from, std::vector<std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) all.push_back(cycle(kFetch, from++, byte));
  };
  fetch(0xffff0, {0xea, 0x5b, 0xe0, 0x00, 0xf0, 0x31, 0x30});
  fetch(0xfe05b, {0xb8, 0x00, 0x40, 0x8e, 0xd0, 0xbc, 0x00, 0x01, 0xeb, 0x00, 0xe8, 0x00});
  fetch(0xfe065, {0xe8, 0x00, 0x00, 0xac});
  all.push_back(cycle(kWrite, 0x400fe, 0x68));
  all.push_back(cycle(kWrite, 0x400ff, 0xe0));
  fetch(0xfe068, {0xac, 0x90, 0x90});
  all.push_back(cycle(kRead, 0x00000, 0x12));
  fetch(0xfe06b, {0x90, 0x90});
  return all;
}

TEST(CompletionFromReset, FollowsJumpsThatGoOnWhereTheQueueEnds) {
  const std::vector<std::uint32_t> addresses = completed(boot());
  ASSERT_GE(addresses.size(), 25u);
  EXPECT_EQ(addresses[0], 0xffff0u);
  EXPECT_EQ(addresses[6], 0xffff6u);
  EXPECT_EQ(addresses[7], 0xfe05bu);
  EXPECT_EQ(addresses[19], 0xfe065u) << "fetched again behind JMP $+2";
  EXPECT_EQ(addresses[23], 0x400feu);
  EXPECT_EQ(addresses[24], 0x400ffu);
}

TEST(CompletionFromReset, FindsTheResetBehindWhatWasCapturedBefore) {
  std::vector<BusTransaction> all;
  // Fetches that end in F0, too, and are no reset.
  for (const std::uint8_t byte : std::vector<std::uint8_t>{0x90, 0xf4, 0xea, 0x00})
    all.push_back(cycle(kFetch, 0xf0, byte));
  all.push_back(cycle(kRead, 0x33, 0x44));
  const auto rest = boot();
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(completed(all), completed(rest));
}

TEST(CompletionFromReset, EndsAtAContradictionAndSaysSo) {
  auto all = boot();
  all[23].data[0] ^= 1;  // the return address of the CALL
  CaptureInfo info;
  const auto addresses = completed(all, &info, Where{Where::Kind::transaction, 0});
  EXPECT_LT(addresses.size(), 24u);
  ASSERT_FALSE(info.warnings.empty());
  EXPECT_NE(info.warnings.back().find("expected 68 to be written at 400fe, found 69"),
            std::string::npos)
      << info.warnings.back();
}

TEST(CompletionFromReset, RefusesAStateThatLeadsNowhere) {
  EXPECT_THROW(completed({cycle(kFetch, 0x12, 0x90), cycle(kRead, 0x33, 0x44)}), FormatError);
}

/// One of A8 to A18 alone, and any of them.
std::vector<Lines> some_lines() {
  std::vector<Lines> some;
  std::mt19937 random(5);
  for (unsigned bit = 8; bit < 19; ++bit) some.push_back({"", 1u << bit, bit % 2 == 0});
  for (int i = 0; i < 5; ++i)
    some.push_back({"", static_cast<std::uint32_t>(random() & 0x7ff00), i % 2 == 0});
  return some;
}

std::string lines_name(const testing::TestParamInfo<Lines>& lines) {
  return fmt::format("without_{:05x}{}", lines.param.missing,
                     lines.param.queue_status ? "" : "_and_queue");
}

INSTANTIATE_TEST_SUITE_P(Some, AddressCompletion, testing::ValuesIn(some_lines()), lines_name);
INSTANTIATE_TEST_SUITE_P(Lines, AddressCompletion,
                         testing::Values(Lines{"fourteen_probes", 0xfff00},
                                         Lines{"twelve_probes", 0xfff00, false},
                                         Lines{"without_the_upper_four", 0xf0000},
                                         Lines{"without_one", 0x00400},
                                         Lines{"without_the_middle", 0x0f000, false}),
                         [](const auto& lines) { return std::string(lines.param.name); });

}  // namespace
}  // namespace citcat
