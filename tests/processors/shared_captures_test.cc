// Captures of a machine with two processors, in every bus form: each processor must replay to
// exactly what an independent simulator says that it did, and what they took from each other must
// be what was written last before. Where the data is not there (set CITCAT_SHARED), nothing runs.
//
// The ordinary run takes the tiny ones; CITCAT_ACCEPTANCE=full (scripts/test-acceptance) all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/processors/machine_import.h"
#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "golden/process.h"
#include "processors/shared_stream.h"
#include "replay/run/replay_session.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/cache_check.h"
#include "replay/verify/verifier.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"
#include "unit/vector_sink.h"

namespace citcat::test {
namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 30;

std::vector<SharedStreamRecord> golden_instructions_of(const std::string& path,
                                                       std::size_t processor) {
  std::vector<SharedStreamRecord> its;
  for (const SharedStreamRecord& record : read_shared_stream(path)) {
    if (record.is_instruction() && record.processor() == processor) its.push_back(record);
  }
  return its;
}

bool is_full_run() {
  const char* const wanted = std::getenv("CITCAT_ACCEPTANCE");
  return wanted != nullptr && std::strcmp(wanted, "full") == 0;
}

struct SharedCapture {
  std::string name;
  char form = 'A';
};

std::vector<SharedCapture> shared_captures() {
  const std::string folder = shared_file("smp");
  std::vector<SharedCapture> captures;
  if (folder.empty()) return captures;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || (!is_full_run() && !name.ends_with("_tiny"))) continue;
    for (const char form : {'A', 'C'}) {
      if (MachineData(entry.path().string()).has(std::string("bus") + form + ".bin.zst"))
        captures.push_back({name, form});
    }
  }
  return captures;
}

CrossCheckResult checked(const MachineFile& machine, CrossCheck& check) {
  const std::vector<RecordingFile> files = open_processors(machine);
  SharedBus bus = shared_bus_of(machine, files);
  return check_shared_bus(bus, check);
}

CrossCheck check_for(const MachineFile& machine) {
  return cross_check_of(machine, open_processors(machine));
}

/// Each record of the trace is the golden instruction at its place; an instruction that faulted has
/// a golden record too, and none in the trace.
std::uint64_t compare_with_stream(const std::vector<std::uint8_t>& trace,
                                  const std::vector<SharedStreamRecord>& golden) {
  KtReader reader(trace, "trace.kt");
  KtCounter counter;
  KtRecord record;
  std::size_t at = 0;
  std::uint64_t compared = 0;
  while (reader.next(record)) {
    const KtInstruction& i = record.instruction;
    const std::uint64_t number =
        counter.next(i.eip, i.bytes(), i.address_count, i.bits == 64).instruction;
    while (at < golden.size() && golden[at].instruction < number) ++at;
    if (at == golden.size()) break;
    std::size_t found = at;
    while (found < golden.size() && golden[found].instruction == number &&
           golden[found].linear != i.wide_eip()) {
      ++found;
    }
    const bool same = found < golden.size() && golden[found].instruction == number &&
                      golden[found].a == i.size &&
                      std::memcmp(golden[found].x, i.code.data(), i.size) == 0;
    EXPECT_TRUE(same) << number << std::hex << " " << i.wide_eip();
    if (!same) break;
    ++compared;
  }
  return compared;
}

/// Registers of a row of hash.P.csv: icount, rip, cs, eflags, 16 registers, hashes.
void expect_registers(const std::vector<std::string>& row, const Engine& engine) {
  constexpr std::uint64_t kFlags = 0x3e7fd5;
  const auto number = [&](std::size_t i) { return std::stoull(row.at(i), nullptr, 16); };
  EXPECT_EQ(engine.rip(), number(1)) << row[0];
  EXPECT_EQ(engine.segment_selector(kCs), number(2)) << row[0];
  EXPECT_EQ(engine.eflags() & kFlags, number(3) & kFlags) << row[0];
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(engine.wide().gpr(i), number(4 + static_cast<std::size_t>(i))) << row[0] << " " << i;
  }
}

std::string stop_text(const ReplayReport& report) {
  if (!report.divergence) return "";
  const Divergence& d = *report.divergence;
  return std::to_string(d.position.instruction) + ": " + d.reason + "; expected " + d.expected +
         "; found " + d.found;
}

std::string contradiction_text(const CrossCheckResult& bus) {
  if (!bus.first) return "";
  return "processor " + std::to_string(bus.first->processor) + " transaction " +
         std::to_string(bus.first->t.index) + ": " + bus.first->reason + "; expected " +
         bus.first->expected + "; found " + bus.first->found;
}

class SharedBusCaptures : public TemporaryFolder,
                          public ::testing::WithParamInterface<SharedCapture> {
 protected:
  /// The capture as an archive.
  MachineFile imported(const std::string& capture) const {
    MachineImportOptions options;
    options.internal_paths = {data().path("side.0.csv.zst"), data().path("side.1.csv.zst")};
    (void)::citcat::import_machine({capture}, options, path("rec.citcat"));
    return *MachineFile::find(path("rec.citcat"));
  }
  MachineData data() const { return MachineData(shared_file("smp") + "/" + GetParam().name); }
  /// The capture of this form goes on to the end: of some, form A is of a beginning only.
  bool covers_window() const {
    const auto bytes = read_whole_file(data().path("meta.json"), kMostFileBytes);
    const auto meta = nlohmann::json::parse(bytes.begin(), bytes.end());
    return GetParam().form == 'C' ||
           meta.at("formA_instructions") == meta.at("instructions_per_processor");
  }
  std::string capture() const {
    return data().path(std::string("bus") + GetParam().form + ".bin.zst");
  }
};

TEST_P(SharedBusCaptures, EachProcessorIsTheGroundTruth) {
  const MachineFile machine = imported(capture());
  ASSERT_EQ(machine.processors(), 2u);
  CrossCheck check = check_for(machine);
  const CrossCheckResult bus = checked(machine, check);
  EXPECT_TRUE(bus.clean()) << contradiction_text(bus);
  EXPECT_EQ(bus.unexplained, 0u);
  std::map<std::uint32_t, std::vector<std::uint8_t>> pages = data().pages("finalpages.bin.zst");
  std::uint64_t in_memory = 0, in_caches = 0;
  const std::vector<RecordingFile> files = open_processors(machine);
  for (std::size_t p = 0; p < files.size(); ++p) {
    VectorSink out;
    KtWriter writer(out, KtForm::wide);
    KtSink trace(writer, {});
    ReplaySession session(files[p], &trace, {});
    std::uint64_t rows = 0;
    for (const auto& row : csv_rows(data().path("hash." + std::to_string(p) + ".csv.zst"))) {
      const std::uint64_t position = std::stoull(row.at(0));
      (void)session.run_to(position);
      if (session.position().instruction < position) break;  // behind the last transaction
      expect_registers(row, session.machine().engine());
      ++rows;
    }
    const ReplayReport report = session.end(session.run_to(~std::uint64_t{0}));
    EXPECT_EQ(report.end, ReplayReport::End::complete)
        << "processor " << p << ": " << stop_text(report);
    EXPECT_GT(rows, 0u);
    EXPECT_EQ(session.verifier()->totals().adopted, 0u);
    writer.flush();
    const auto golden = golden_instructions_of(data().path("golden.bin.zst"), p);
    const std::uint64_t compared = compare_with_stream(out.all, golden);
    EXPECT_GT(compared, 1000u);
    std::printf("  processor %zu: %llu instructions, %llu rows of registers, %llu of the stream\n",
                p, static_cast<unsigned long long>(report.instructions),
                static_cast<unsigned long long>(rows), static_cast<unsigned long long>(compared));
    if (!covers_window()) continue;
    // What a processor holds in its cache is in no other place.
    MemoryImage own;
    for (const auto& [base, bytes] : pages) {
      for (std::uint32_t i = 0; i < bytes.size(); ++i) {
        const PhysAddr a{base + i};
        if (check.owner(a) == p) own.set(a, bytes[i]);
        const auto now = check.byte(a);
        if (p != 0 || check.owner(a) || !now) continue;
        ++in_memory;
        EXPECT_EQ(*now, bytes[i]) << std::hex << a.low32();
      }
    }
    if (own.empty()) continue;
    const FinalMemory held = session.compare_final(&own);
    EXPECT_EQ(held.different, 0u) << "processor " << p << " of " << held.bytes;
    in_caches += held.bytes;
  }
  std::printf("  final memory: %llu bytes as the bus left them, %llu in caches\n",
              static_cast<unsigned long long>(in_memory),
              static_cast<unsigned long long>(in_caches));
  std::printf("  %llu reads compared, %llu changes by the other processor, %llu by devices\n",
              static_cast<unsigned long long>(bus.reads),
              static_cast<unsigned long long>(bus.from_others),
              static_cast<unsigned long long>(bus.from_devices));
  if (covers_window()) {
    EXPECT_GT(in_memory, 1000u);
  }
}

/// The model knows which lines the other processor takes away: it moves each as the bus shows it.
TEST_P(SharedBusCaptures, EachCacheMovesItsLinesAsItsModelDoes) {
  if (GetParam().form != 'C') GTEST_SKIP() << "without a cache";
  for (const RecordingFile& file : open_processors(imported(capture()))) {
    SessionOptions options;
    options.cache = declared_cache(file.recording().bus);
    ReplaySession session(file, nullptr, options);
    (void)session.run();
    ASSERT_NE(session.cache(), nullptr);
    const CacheTotals& totals = session.cache()->totals();
    EXPECT_FALSE(totals.first) << cache_disagreement_text(*totals.first);
    EXPECT_GT(totals.fills.agree, 1000u);
    EXPECT_EQ(totals.fills.agree, totals.fills.captured);
    EXPECT_EQ(totals.write_backs.agree, totals.write_backs.captured);
  }
}

INSTANTIATE_TEST_SUITE_P(, SharedBusCaptures, ::testing::ValuesIn(shared_captures()),
                         [](const auto& capture) {
                           return capture.param.name + "_" + capture.param.form;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedBusCaptures);

/// Beginnings of captures, with the values of the whole run beside them.
class CutCaptures : public TemporaryFolder {
 protected:
  static constexpr std::uint8_t kStartup = 19;  ///< type of a record: SIPI

  void SetUp() override {
    TemporaryFolder::SetUp();
    if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
  }
  static MachineData data(const std::string& capture) {
    return MachineData(shared_file("smp") + "/" + capture);
  }
  MachineFile imported(const MachineData& data, std::span<const MonitorRecord> records) const {
    std::string bytes(records.size_bytes(), '\0');
    std::memcpy(bytes.data(), records.data(), bytes.size());
    store("bus.bin", bytes);
    MachineImportOptions options;
    options.internal_paths = {data.path("side.0.csv.zst"), data.path("side.1.csv.zst")};
    (void)::citcat::import_machine({path("bus.bin")}, options, path("rec.citcat"));
    return *MachineFile::find(path("rec.citcat"));
  }
  /// Both agree with the ground truth as far as the capture goes; returns their instructions.
  static std::vector<std::uint64_t> agreed(const MachineFile& machine, const MachineData& data) {
    CrossCheck check = check_for(machine);
    const CrossCheckResult bus = checked(machine, check);
    EXPECT_TRUE(bus.clean()) << contradiction_text(bus);
    std::vector<std::uint64_t> instructions;
    for (const RecordingFile& file : open_processors(machine)) {
      ReplaySession session(file, nullptr, {});
      const std::string rows = data.path("hash." + std::to_string(file.number()) + ".csv.zst");
      for (const auto& row : csv_rows(rows)) {
        const std::uint64_t position = std::stoull(row.at(0));
        (void)session.run_to(position);
        if (session.position().instruction < position) break;
        expect_registers(row, session.machine().engine());
      }
      const ReplayReport report = session.end(session.run_to(~std::uint64_t{0}));
      EXPECT_EQ(report.end, ReplayReport::End::complete)
          << "processor " << file.number() << ": " << stop_text(report);
      instructions.push_back(report.instructions);
    }
    return instructions;
  }
};

TEST_F(CutCaptures, LinuxStartsItsSecondProcessor) {
  const MachineData apboot = data("smp_lin64_apboot");
  const std::vector<MonitorRecord> all = apboot.records('C');
  const auto sipi =
      std::find_if(all.begin(), all.end(), [](const auto& r) { return r.type == kStartup; });
  ASSERT_LT(sipi - all.begin() + 2000, static_cast<std::ptrdiff_t>(all.size()));
  const auto cut = static_cast<std::size_t>(sipi - all.begin()) + 2000;
  const MachineFile machine = imported(apboot, std::span(all).first(cut));
  const CpuState started = machine.open(1).recording().initial;
  EXPECT_EQ(started.segment[kCs].selector, sipi->data[0] << 8);
  EXPECT_EQ(started.segment[kCs].base, std::uint32_t{sipi->data[0]} << 12);
  EXPECT_EQ(started.eip, 0u);
  const auto instructions = agreed(machine, apboot);
  EXPECT_GT(instructions.at(0), 100'000u);
  // Through real and protected mode into the kernel.
  EXPECT_GT(instructions.at(1), 10'000u);
}

/// Processor 0 works within its caches where the capture is cut; values of the run behind that do
/// not tell how far it came.
TEST_F(CutCaptures, WhatIsCutOffIsNotReached) {
  const MachineData threads = data("smp_lin64_threads");
  const std::vector<MonitorRecord> all = threads.records('C');
  const std::size_t cut = all.size() / 20;
  std::uint64_t last = 0;
  for (const MonitorRecord& r : std::span(all).first(cut))
    if (r.burst >> 4 == 0) last = r.icount;
  const auto instructions = agreed(imported(threads, std::span(all).first(cut)), threads);
  EXPECT_LE(instructions.at(0), last + 1);
}

TEST_F(CutCaptures, ALineOfWhichHalfIsMissingIsRefused) {
  constexpr std::uint8_t kLineRecord = 1, kFromDriver = 16, kLast = 3;
  const MachineData spin = data("smp_spin32_tiny");
  const std::vector<MonitorRecord> all = spin.records('C');
  std::map<std::pair<unsigned, unsigned>, unsigned> tried;  // by type and half
  for (std::size_t i = all.size() / 2; i < all.size() - 1; ++i) {
    const MonitorRecord& r = all[i];
    const bool line = (r.flags & kLineRecord) != 0 && (r.flags & kFromDriver) == 0;
    if (!line || r.type > kLast || tried[{r.type, r.burst & 15U}]++ != 0) continue;
    std::vector<MonitorRecord> less = all;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    try {
      (void)imported(spin, less);
      ADD_FAILURE() << "record " << i;
    } catch (const FormatError& e) {
      EXPECT_NE(std::string(e.what()).find("whose other half is missing"), std::string::npos)
          << e.what();
    }
  }
  EXPECT_EQ(tried.size(), 6u);
}

/// Records of one write-back, or two, and what the processor writes it back for comes behind the
/// cut: another one that asks for the line while this one waits in HLT, or its own line that it
/// lacks then.
TEST_F(CutCaptures, BetweenAWriteBackAndWhatItIsFor) {
  constexpr std::uint8_t kRead = 2, kStored = 3, kWriteBackFlag = 2, kDriverFlag = 16, kStore = 32;
  const MachineData threads = data("smp_lin64_threads");
  const std::vector<MonitorRecord> all = threads.records('C');
  std::size_t places = 0;
  for (std::size_t i = 19'000; i < all.size() && places < 3; ++i) {
    const MonitorRecord &back = all[i], &fill = all[i + 2];
    const bool is_back = back.type == kStored && (back.flags & kWriteBackFlag) != 0 &&
                         (back.flags & kDriverFlag) == 0 && (back.burst & 15) == 0;
    if (!is_back || fill.type > kRead || (fill.flags & kStore) != 0) continue;
    ++places;
    for (std::size_t cut = i + 1; cut <= i + 3; ++cut) {
      SCOPED_TRACE(cut);
      const auto instructions = agreed(imported(threads, std::span(all).first(cut)), threads);
      const std::size_t p = fill.burst >> 4;
      EXPECT_GE(instructions.at(p), all[i].burst >> 4 == p ? back.icount : 0);
      EXPECT_LE(instructions.at(p), fill.icount + 1);
    }
  }
  EXPECT_EQ(places, 3u);
}

/// The same of one processor, and where nothing is cached: a string instruction, and one that
/// reads.
TEST_F(CutCaptures, WithinAnInstructionOfOneProcessor) {
  using citcat::testing::run_citcat;
  const std::string folder = shared_file("machine");
  if (folder.empty()) GTEST_SKIP() << "without the shared captures";
  const MachineData linux(folder + "/lin_user_tiny");
  const std::map<char, std::vector<std::size_t>> cuts{{'A', {3105, 3106, 3107}}, {'C', {3145}}};
  for (const auto& [form, at] : cuts) {
    const std::vector<MonitorRecord> all = linux.records(form);
    for (const std::size_t cut : at) {
      SCOPED_TRACE(cut);
      std::string bytes(cut * sizeof(MonitorRecord), '\0');
      std::memcpy(bytes.data(), all.data(), bytes.size());
      store("bus.bin", bytes);
      (void)run_citcat({"import", path("bus.bin"), "--internal", linux.path("side.csv.zst"), "-o",
                        path("rec.citcat"), "-q"});
      const auto verified = run_citcat({"verify", path("rec.citcat"), "--json"});
      const auto json = nlohmann::json::parse(verified.out);
      EXPECT_EQ(json.at("verdict"), "match") << verified.out;
      EXPECT_EQ(json.at("instructions"), all[cut - 1].icount);
      EXPECT_EQ(run_citcat({"replay", path("rec.citcat"), "-o", path("rec.kt"), "-q"}).exit_code,
                0);
    }
  }
}

}  // namespace
}  // namespace citcat::test
