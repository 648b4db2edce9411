// The Linux sample in every format of others, each read by a reader of the test's own and held to
// the KT of the same run.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "golden/process.h"
#include "golden/samples.h"
#include "tools/export/exporter_list.h"
#include "unit/drmemtrace_reader.h"

namespace citcat::testing {
namespace {

using drmemtrace::DrInstruction;
using drmemtrace::DrTrace;
using drmemtrace::read_drmemtrace;

/// Linux has itself, and nothing else, from there on.
constexpr std::uint32_t kKernelHalf = 0xc0000000;

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(bytes.at(at + i))} << (8 * i);
  }
  return value;
}

/// An instruction record of KT.
struct Record {
  std::uint32_t eip = 0;
  std::string code;
  bool further = false;  ///< iteration of a REP
};

std::vector<Record> read_kt(const std::string& kt) {
  std::vector<Record> records;
  for (std::size_t at = 0; at < kt.size();) {
    const auto type = static_cast<unsigned>(number_at(kt, at + 4, 1));
    const std::size_t size = type & 15, addresses = type >> 4;
    Record r;
    r.eip = static_cast<std::uint32_t>(number_at(kt, at, 4));
    r.code = kt.substr(at + 5, size);
    const bool repeats = r.code[0] == '\xf3' || r.code[0] == '\xf2';
    r.further = repeats && addresses != 0 && !records.empty() && records.back().eip == r.eip;
    records.push_back(r);
    at += 5 + size + ((3 - size) & 3) + 4 * addresses;
  }
  return records;
}

class Export : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    good({"import", kLinuxStart, "--internal", kLinuxStartValues, "-o", "linux.citcat", "-q"});
    const auto replay = nlohmann::json::parse(
        good({"replay", "linux.citcat", "-o", "whole.kt", "--unchecked", "--json"}));
    instructions_ = replay.at("instructions");
    records_ = read_kt(load("whole.kt"));
    for (const Record& r : records_) {
      ++(r.further ? further_ : fetched_);
      if (!r.further && r.eip < kKernelHalf) ++user_;
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
    records_.clear();
    instructions_ = fetched_ = further_ = user_ = 0;
  }

  static std::string good(const std::vector<std::string>& arguments) {
    const ProcessResult result = run_citcat(arguments, folder_->path());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  static std::string load(const std::string& name) { return read_file(folder_->path() / name); }
  /// Writes the run as `name`, and returns what was written.
  static std::string exported(const std::string& name, const std::string& format = "",
                              const std::string& where = "") {
    std::vector<std::string> arguments{"replay", "linux.citcat", "-o", name, "--unchecked", "-q"};
    if (!format.empty()) arguments.insert(arguments.end(), {"--format", format});
    if (!where.empty()) arguments.insert(arguments.end(), {"--where", where});
    good(arguments);
    return load(name);
  }
  /// The output of a program that may not be here; empty then, with a message.
  static std::string consumer(const std::string& program, const std::string& script) {
    if (run_shell("command -v " + program, folder_->path()).exit_code != 0) {
      std::printf("%s is not installed: not checked with it\n", program.c_str());
      return "";
    }
    const ProcessResult result = run_shell(script, folder_->path());
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out;
  }

  static TemporaryFolder* folder_;
  static std::vector<Record> records_;
  static std::uint64_t instructions_, fetched_, further_, user_;
};

TemporaryFolder* Export::folder_ = nullptr;
std::vector<Record> Export::records_;
std::uint64_t Export::instructions_ = 0, Export::fetched_ = 0, Export::further_ = 0,
              Export::user_ = 0;

// ---- references --------------------------------------------------------------------------------

TEST_F(Export, DinHasEachFetchInItsOrder) {
  std::istringstream lines(exported("run.din"));
  std::vector<std::uint32_t> fetches;
  std::map<std::string, std::uint64_t> labels;
  std::string label;
  std::uint32_t address = 0;
  while (lines >> label >> std::hex >> address) {
    ++labels[label];
    if (label == "2") fetches.push_back(address);
  }
  std::vector<std::uint32_t> expected;
  for (const Record& r : records_) {
    if (!r.further) expected.push_back(r.eip);
  }
  EXPECT_TRUE(fetches == expected);
  EXPECT_GT(labels["0"], 1000U);
  EXPECT_GT(labels["1"], 1000U);
  EXPECT_EQ(labels.size(), 3U);
}

TEST_F(Export, LackeyHasTheSizesOfInstructions) {
  std::istringstream lines(exported("run.lackey"));
  std::uint64_t fetches = 0, bytes = 0, others = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("I  ")) {
      ++fetches;
      bytes += std::stoull(line.substr(line.find(',') + 1));
    } else {
      ASSERT_TRUE(line.starts_with(" L ") || line.starts_with(" S ") || line.starts_with(" M "));
      ++others;
    }
  }
  std::uint64_t expected = 0;
  for (const Record& r : records_) expected += r.further ? 0 : r.code.size();
  EXPECT_EQ(fetches, fetched_);
  EXPECT_EQ(bytes, expected);
  EXPECT_GT(others, 0U);
}

// Blocks of ordinary code are written from what is known of their code, and their accesses follow
// from effective addresses. Unicorn runs each instruction alone, and each access is told.
TEST_F(Export, BlocksAreWrittenAsInstructionByInstruction) {
  for (const std::string format :
       {"din", "lackey", "champsim", "simpoint:interval=1000", "perfetto",
        "drmemtrace:files=plain,threads=together", "drmemtrace:files=plain,view=user"}) {
    const auto written = [&](const std::string& name, const std::vector<std::string>& options) {
      std::vector<std::string> arguments{"replay", "linux.citcat", "-o", name, "--format", format};
      arguments.insert(arguments.end(), options.begin(), options.end());
      std::string all = good(arguments);
      all.erase(0, all.find('\n'));  // has the time that it took
      std::set<std::filesystem::path> files{folder_->path() / name};
      if (std::filesystem::is_directory(*files.begin())) {
        files.clear();
        for (const auto& file :
             std::filesystem::recursive_directory_iterator(folder_->path() / name)) {
          if (file.is_regular_file()) files.insert(file.path());
        }
      }
      for (const auto& file : files) all += file.filename().string() + read_file(file);
      std::filesystem::remove_all(folder_->path() / name);
      return all;
    };
    const std::string alone = written("one", {"--unchecked", "--engine", "unicorn"});
    EXPECT_GT(alone.size(), 1000U) << format;
    EXPECT_TRUE(written("one", {"--unchecked"}) == alone) << format;
    EXPECT_TRUE(written("one", {}) == alone) << format << ", while it is compared with the bus";
    EXPECT_TRUE(written("one", {"--unchecked", "--jobs", "2"}) == alone) << format << " in parts";
  }
}

// A reader as Tenet's: the instruction pointer of a line is where the run stands behind it.
TEST_F(Export, TenetStandsBeforeEachRecordOfKt) {
  std::istringstream lines(exported("run.tenet"));
  std::size_t next = 0, others = 0, accesses = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("eip=0x");
    ASSERT_NE(at, std::string::npos) << line;
    // An instruction that faults completes later, and a delivery has a line of its own.
    if (next < records_.size() &&
        std::stoull(line.substr(at + 4), nullptr, 16) == records_[next].eip) {
      ++next;
    } else {
      ++others;
    }
    accesses += line.find(",mr=") != std::string::npos || line.find(",mw=") != std::string::npos;
  }
  EXPECT_EQ(next, records_.size());
  EXPECT_LT(others, 50U);
  EXPECT_GT(accesses, 1000U);
}

TEST_F(Export, ChampsimHasARecordForEachOfKt) {
  const std::string file = exported("run.champsim");
  ASSERT_EQ(file.size(), 64 * records_.size());
  std::uint64_t interrupted = 0;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const std::size_t at = 64 * i;
    ASSERT_EQ(number_at(file, at, 8), records_[i].eip) << i;
    // A branch that is taken goes on elsewhere than behind it, and no other instruction does but
    // for what an interrupt does.
    const bool branch = file[at + 8] != 0, taken = file[at + 9] != 0;
    ASSERT_FALSE(taken && !branch);
    if (i + 1 == records_.size()) break;
    const bool behind = records_[i + 1].eip == records_[i].eip + records_[i].code.size();
    if (branch && !taken && !behind) ++interrupted;
    if (taken && behind) ++interrupted;
  }
  // What is behind a branch is another instruction where an interrupt or an exception comes first;
  // there are eleven of them (the sample's README).
  EXPECT_LE(interrupted, 11U);
}

/// Code that is to be relocated calls what is behind, and jumps there.
TEST_F(Export, ChampsimTakesAJumpToWhatIsBehindItAsTaken) {
  good({"import", kLinuxStart, "--internal", kLinuxStartValues, "-o", "linux.citcat"});
  const std::string record =
      good({"cat", "linux.citcat", "--format", "champsim", "--from", "10239", "--to", "10240"});
  ASSERT_EQ(record.size(), 64u);
  EXPECT_EQ(record[8], 1) << "jmp $+2 is a branch";
  EXPECT_EQ(record[9], 1);
}

/// The second processor of the sample enters protected mode by such a jump.
TEST_F(Export, ChampsimTakesAFarJumpToWhatIsBehindItAsTaken) {
  const std::string folder = CITCAT_SOURCE_DIR "/samples/two-processors/queue.";
  good({"import", folder + "bin.zst", "--internal", "0=" + folder + "side.0.csv", "--internal",
        "1=" + folder + "side.1.csv", "-o", "queue.citcat"});
  const std::string record =
      good({"cat", "queue.citcat@1", "--format", "champsim", "--from", "8", "--to", "9"});
  ASSERT_EQ(record.size(), 64u);
  EXPECT_EQ(record[8], 1);
  EXPECT_EQ(record[9], 1) << "jmp 8:8023h at 801Bh, of 8 bytes";
}

// ---- drmemtrace --------------------------------------------------------------------------------

/// The instructions of a trace, one by one those of KT. `interrupted`: targets that are not where
/// the trace goes on, because something was delivered there.
void expect_kt(const DrTrace& trace, const std::vector<Record>& records,
               std::uint64_t interrupted) {
  ASSERT_EQ(trace.instructions.size(), records.size());
  std::uint64_t targets = 0, wrong_targets = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const DrInstruction& found = trace.instructions[i];
    ASSERT_EQ(found.address, records[i].eip) << i;
    ASSERT_EQ(found.code, drmemtrace::encoded_for_dr(records[i].code)) << i;
    ASSERT_EQ(found.fetched(), !records[i].further) << i;
    if (found.target == 0 || i + 1 == records.size()) continue;
    ++targets;
    if (records[i + 1].eip != found.target) ++wrong_targets;
  }
  EXPECT_GT(targets, 20U);
  EXPECT_LE(wrong_targets, interrupted);
}

TEST_F(Export, DrmemtraceOfTheWholeHasEveryInstruction) {
  for (const std::size_t bits : {64U, 32U}) {
    for (const char* const threads : {"apart", "together"}) {
      SCOPED_TRACE(threads);
      const std::string name = std::string(threads) + std::to_string(bits) + ".drmemtrace";
      good({"replay", "linux.citcat", "-o", name, "--unchecked", "-q", "--format",
            "drmemtrace:bits=" + std::to_string(bits) + ",threads=" + threads});
      const DrTrace found = read_drmemtrace(folder_->path() / name, bits / 8);
      EXPECT_TRUE(found.problems.empty()) << found.problems.front();
      expect_kt(found, records_, 20);
      // What basic_counts counts.
      EXPECT_EQ(found.count(true, false), user_);
      EXPECT_EQ(found.count(true, true), fetched_ - user_);
      EXPECT_EQ(found.count(false, true), further_);
      std::set<std::string_view> type{"WHOLE_SYSTEM", "ENCODINGS", "ARCH_X86_32"};
      if (threads == std::string("together")) type.insert("CORE_SHARDED");
      EXPECT_EQ(found.file_type, type);
      for (const DrInstruction& i : found.instructions) {
        ASSERT_EQ(i.kernel, i.address >= kKernelHalf) << std::hex << i.address;
      }
    }
  }
}

// Smaller than any real chunk, so that there are many.
TEST_F(Export, DrmemtraceOfArchivesHasItAllInChunks) {
  for (const char* const view : {"whole", "user", "simulator"}) {
    SCOPED_TRACE(view);
    const std::string name = std::string(view) + ".chunks.drmemtrace";
    good({"replay", "linux.citcat", "-o", name, "--unchecked", "-q", "--format",
          "drmemtrace:chunk=1000,physical=yes,view=" + std::string(view)});
    DrTrace found = read_drmemtrace(folder_->path() / name);
    EXPECT_TRUE(found.problems.empty()) << found.problems.front();
    EXPECT_GE(found.markers["CHUNK_FOOTER"], view == std::string("user") ? 0U : 20U);
    if (view != std::string("user")) {
      EXPECT_EQ(found.instructions.size(), records_.size());
    }
    // Linux has the memory of the machine at the beginning of its own half.
    std::size_t direct = 0;
    for (const auto& [page, frame] : found.pages) {
      if (page < kKernelHalf >> 12 || page >= (kKernelHalf + 0x4000000) >> 12) continue;
      EXPECT_EQ(frame, page - (kKernelHalf >> 12));
      ++direct;
    }
    EXPECT_EQ(direct > 0, view != std::string("user"));
  }
}

TEST_F(Export, DrmemtraceForSimulatorsIsOfNoSpecialKind) {
  for (const char* const form : {"threads=apart", "threads=together", "files=plain"}) {
    SCOPED_TRACE(form);
    const std::string name = std::string(form) + ".simulator.drmemtrace";
    good({"replay", "linux.citcat", "-o", name, "--unchecked", "-q", "--format",
          "drmemtrace:view=simulator," + std::string(form)});
    const DrTrace found = read_drmemtrace(folder_->path() / name);
    EXPECT_TRUE(found.problems.empty()) << found.problems.front();
    expect_kt(found, records_, 20);
    std::set<std::string_view> type{"ENCODINGS", "ARCH_X86_32"};
    if (form == std::string("threads=together")) type.insert("CORE_SHARDED");
    EXPECT_EQ(found.file_type, type);
    EXPECT_GT(found.markers.at("KERNEL_EVENT"), 10U);
    EXPECT_GT(found.markers.at("PHYSICAL_ADDRESS"), 50U);
  }
}

TEST_F(Export, DrmemtraceOfAUserHasWhatPrograms) {
  std::vector<Record> programs;
  for (const Record& r : records_) {
    if (r.eip < kKernelHalf) programs.push_back(r);
  }
  good({"replay", "linux.citcat", "-o", "user.drmemtrace", "--unchecked", "-q", "--format",
        "drmemtrace:view=user"});
  const DrTrace found = read_drmemtrace(folder_->path() / "user.drmemtrace");
  EXPECT_TRUE(found.problems.empty()) << found.problems.front();
  expect_kt(found, programs, 20);
  EXPECT_EQ(found.count(true, false), user_);
  EXPECT_GT(found.markers.at("SYSCALL"), 0U);
  EXPECT_EQ(found.file_type,
            (std::set<std::string_view>{"SYSCALL_NUMBERS", "ENCODINGS", "ARCH_X86_32"}));
}

TEST_F(Export, DrmemtraceTakesNoFolderThatIsThere) {
  std::filesystem::create_directory(folder_->path() / "there.drmemtrace");
  const ProcessResult result = run_citcat(
      {"replay", "linux.citcat", "-o", "there.drmemtrace", "--to", "100"}, folder_->path());
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("there.drmemtrace"), std::string::npos) << result.err;
  // A pipe is one stream.
  const DrTrace piped = [&] {
    std::ofstream(folder_->path() / "piped", std::ios::binary)
        << good({"cat", "linux.citcat", "--format", "drmemtrace", "--unchecked", "--to", "100"});
    return read_drmemtrace(folder_->path() / "piped");
  }();
  EXPECT_TRUE(piped.problems.empty()) << piped.problems.front();
  EXPECT_TRUE(piped.file_type.contains("CORE_SHARDED"));
}

// ---- profiles ----------------------------------------------------------------------------------

TEST_F(Export, SimpointWeighsEachFetch) {
  std::istringstream lines(exported("run.bb", "simpoint:interval=10000"));
  std::uint64_t sum = 0, intervals = 0;
  for (std::string line; std::getline(lines, line); ++intervals) {
    ASSERT_TRUE(line.starts_with("T:"));
    std::istringstream pairs(line.substr(1));
    for (std::string pair; pairs >> pair;) sum += std::stoull(pair.substr(pair.rfind(':') + 1));
  }
  EXPECT_EQ(sum, fetched_);
  EXPECT_GE(intervals, fetched_ / 11000);
}

TEST_F(Export, CallgrindAnnotateFindsAllInstructions) {
  const std::string file = exported("run.callgrind");
  EXPECT_NE(file.find("totals: " + std::to_string(instructions_) + "\n"), std::string::npos);
  std::uint64_t self = 0;
  std::istringstream lines(file);
  bool of_call = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0 ") && !of_call) self += std::stoull(line.substr(2));
    of_call = line.starts_with("calls=");
  }
  EXPECT_EQ(self, instructions_);
  const std::string out = consumer("callgrind_annotate", "callgrind_annotate run.callgrind");
  if (out.empty()) return;
  std::string total = std::to_string(instructions_);
  for (std::size_t at = total.size(); at > 3; at -= 3) total.insert(at - 3, ",");
  EXPECT_NE(out.find(total), std::string::npos) << out.substr(0, 2000);
  EXPECT_NE(out.find("PROGRAM TOTALS"), std::string::npos);
}

TEST_F(Export, FoldedStacksAddUpToTheInstructions) {
  std::istringstream lines(exported("run.folded"));
  std::uint64_t sum = 0;
  std::size_t deepest = 0;
  for (std::string line; std::getline(lines, line);) {
    sum += std::stoull(line.substr(line.rfind(' ') + 1));
    deepest = std::max<std::size_t>(
        deepest, static_cast<std::size_t>(std::count(line.begin(), line.end(), ';')));
  }
  EXPECT_EQ(sum, instructions_);
  EXPECT_GT(deepest, 5U);
}

TEST_F(Export, SpeedscopeHasSamplesOfItsFrames) {
  const auto json = nlohmann::json::parse(exported("run.speedscope.json"));
  EXPECT_EQ(json.at("$schema"), "https://www.speedscope.app/file-format-schema.json");
  const auto& profile = json.at("profiles").at(0);
  ASSERT_EQ(profile.at("samples").size(), profile.at("weights").size());
  std::uint64_t sum = 0;
  for (const auto& weight : profile.at("weights")) sum += weight.get<std::uint64_t>();
  EXPECT_EQ(sum, instructions_);
  EXPECT_EQ(profile.at("endValue"), instructions_);
  for (const auto& sample : profile.at("samples")) {
    for (const auto& frame : sample) {
      ASSERT_LT(frame.get<std::size_t>(), json.at("shared").at("frames").size());
    }
  }
}

/// Fields of a protocol buffer's message: number, and varint or bytes.
struct Field {
  std::uint64_t number = 0, value = 0;
  std::string bytes;
};

std::uint64_t varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.at(at++));
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

std::vector<Field> fields(const std::string& message) {
  std::vector<Field> found;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = varint(message, at);
    Field field;
    field.number = key >> 3;
    if ((key & 7) == 2) {
      const std::size_t size = varint(message, at);
      field.bytes = message.substr(at, size);
      at += size;
    } else {
      EXPECT_EQ(key & 7, 0U);
      field.value = varint(message, at);
    }
    found.push_back(field);
  }
  return found;
}

TEST_F(Export, PprofHasSamplesOfItsLocations) {
  const std::string file = exported("run.pprof");
  std::set<std::uint64_t> locations, used;
  std::uint64_t sum = 0, texts = 0;
  for (const Field& f : fields(file)) {
    if (f.number == 6) ++texts;
    if (f.number == 4) locations.insert(fields(f.bytes).at(0).value);
    if (f.number != 2) continue;
    for (const Field& of_sample : fields(f.bytes)) {
      for (std::size_t at = 0; at < of_sample.bytes.size();) {
        const std::uint64_t value = varint(of_sample.bytes, at);
        if (of_sample.number == 1) used.insert(value);
        if (of_sample.number == 2) sum += value;
      }
    }
  }
  EXPECT_EQ(sum, instructions_);
  EXPECT_EQ(locations, used);
  EXPECT_GE(texts, locations.size());
  consumer("protoc", "protoc --decode_raw < run.pprof");
}

TEST_F(Export, PerfettoEndsWhatItBegins) {
  const std::string file = exported("run.perfetto-trace");
  std::map<std::uint64_t, int> open, slices;
  std::uint64_t last = 0;
  std::set<std::uint64_t> tracks;
  for (const Field& packet : fields(file)) {
    ASSERT_EQ(packet.number, 1U);
    std::uint64_t time = 0;
    for (const Field& f : fields(packet.bytes)) {
      if (f.number == 8) time = f.value;
      if (f.number == 60) tracks.insert(fields(f.bytes).at(0).value);
      if (f.number != 11) continue;
      std::uint64_t type = 0, track = 0;
      for (const Field& e : fields(f.bytes)) {
        if (e.number == 9) type = e.value;
        if (e.number == 11) track = e.value;
      }
      ASSERT_TRUE(tracks.contains(track));
      if (type == 1) {
        ++open[track];
        ++slices[track];
      }
      if (type == 2) {
        ASSERT_GE(--open[track], 0);
      }
    }
    ASSERT_GE(time, last);
    last = time;
  }
  for (const auto& [track, count] : open) EXPECT_EQ(count, 0) << track;
  // Two interrupts and nine exceptions (the sample's README), and system calls.
  EXPECT_GE(slices[3], 11);
  consumer("protoc", "protoc --decode_raw < run.perfetto-trace");
}

// ---- coverage ----------------------------------------------------------------------------------

TEST_F(Export, DrcovHasEachByteThatRan) {
  const std::string file = exported("run.drcov");
  const std::string head = "BB Table: ";
  const std::size_t table = file.find(head);
  ASSERT_NE(table, std::string::npos);
  const std::uint64_t count = std::stoull(file.substr(table + head.size()));
  const std::size_t begin = file.find('\n', table) + 1;
  ASSERT_EQ(file.size() - begin, 8 * count);
  std::set<std::uint32_t> covered, expected;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto start = static_cast<std::uint32_t>(number_at(file, begin + 8 * i, 4));
    const auto size = static_cast<std::uint32_t>(number_at(file, begin + 8 * i + 4, 2));
    EXPECT_EQ(number_at(file, begin + 8 * i + 6, 2), 0U);
    for (std::uint32_t b = 0; b < size; ++b) covered.insert(start + b);
  }
  for (const Record& r : records_) {
    for (std::uint32_t b = 0; b < r.code.size(); ++b) expected.insert(r.eip + b);
  }
  EXPECT_TRUE(covered == expected);
}

TEST_F(Export, LcovCountsEachFetch) {
  std::istringstream lines(exported("run.info"));
  std::uint64_t sum = 0, last = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("DA:")) continue;
    last = std::stoull(line.substr(3));
    sum += std::stoull(line.substr(line.find(',') + 1));
  }
  EXPECT_EQ(sum, fetched_);
  const std::string listing = load("run.info.asm");
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(listing.begin(), listing.end(), '\n')), last);
  consumer("genhtml", "genhtml -q run.info -o html");
}

// ---- all ---------------------------------------------------------------------------------------

TEST_F(Export, TotalsAreTheSameInEachFormat) {
  for (const char* const format : {"drmemtrace", "champsim", "din", "lackey", "tenet", "simpoint",
                                   "callgrind", "folded", "speedscope", "pprof", "perfetto"}) {
    const auto json =
        nlohmann::json::parse(good({"analyze", "linux.citcat", "--unchecked", "--json", "--tool",
                                    std::string(format) + ":to=/dev/null"}));
    const auto& totals = json.at("tools").at(format);
    EXPECT_EQ(totals.at("instructions"), instructions_) << format;
    EXPECT_EQ(totals.at("fetched"), fetched_) << format;
    EXPECT_EQ(totals.at("not_fetched"), further_) << format;
    EXPECT_EQ(totals.at("user"), user_) << format;
  }
}

/// The files of a folder and those below it, by name.
std::map<std::string, std::string> files_below(const std::filesystem::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    all[std::filesystem::relative(file.path(), folder)] = read_file(file.path());
  }
  return all;
}

// Every exporter, and every kind of file that IDtrace has: one job and three give the same files
// and say the same.
TEST_F(Export, PartsPutTogetherAreTheWhole) {
  good({"checkpoint", "linux.citcat", "--every", "20000", "-q"});
  const std::map<std::string, std::vector<std::string>> others{
      {"kt", {"kt"}},
      {"idtrace",
       {"idtrace:content=execution", "idtrace:content=branch", "idtrace:content=cache",
        "idtrace:content=profile"}},
      {"drmemtrace", {"drmemtrace:chunk=1000"}}};
  const std::set<std::string> serial{"callgrind", "folded", "speedscope", "pprof"};
  std::size_t count = 0;
  for (const tools::ExporterRow& row : tools::exporter_list()) {
    const std::string name = row.tool->name;
    const auto other = others.find(name);
    const auto formats = other != others.end() ? other->second : std::vector<std::string>{name};
    for (const std::string& format : formats) {
      std::map<std::string, std::string> files[2];
      nlohmann::json said[2];
      for (const int parts : {0, 1}) {
        const auto folder = folder_->path() / fmt::format("matrix{}.{}", count, parts);
        std::filesystem::create_directory(folder);
        const bool is_profile = format.ends_with("profile");
        const ProcessResult run = run_citcat(
            {"replay", "../linux.citcat", "-o", is_profile ? "run.cnt" : "run", "--format", format,
             "--unchecked", "--json", "--to", "45000", "--jobs", parts == 1 ? "3" : "1"},
            folder);
        ASSERT_EQ(run.exit_code, 0) << format << run.err;
        const bool is_alone = run.err.find("one process") != std::string::npos;
        EXPECT_EQ(is_alone, parts == 1 && serial.count(name) != 0) << format << run.err;
        files[parts] = files_below(folder);
        said[parts] = nlohmann::json::parse(run.out);
        for (const char* const time : {"seconds", "mips", "opening"}) said[parts].erase(time);
        std::filesystem::remove_all(folder);
      }
      EXPECT_FALSE(files[0].empty()) << format;
      EXPECT_TRUE(files[0] == files[1]) << format;
      EXPECT_EQ(said[0], said[1]) << format;
      ++count;
    }
  }
  EXPECT_EQ(count, tools::exporter_list().size() + 3);
}

TEST_F(Export, CatWritesWhatReplayDoes) {
  const std::string file = exported("run.din");
  EXPECT_TRUE(good({"cat", "linux.citcat", "--format", "din", "--unchecked"}) == file);
}

TEST_F(Export, WhereNarrowsIt) {
  std::istringstream lines(exported("user.din", "din", "level=3"));
  std::uint64_t fetches = 0;
  for (std::string line; std::getline(lines, line);) fetches += line.starts_with("2 ") ? 1 : 0;
  EXPECT_EQ(fetches, user_);
}

TEST_F(Export, UnknownFormatsAreNamed) {
  const ProcessResult result =
      run_citcat({"replay", "linux.citcat", "-o", "x", "--format", "gem5"}, folder_->path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--format: expected kt, idtrace, drmemtrace"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace citcat::testing
