// What the importer makes of captures of a whole machine, against what the machine did.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "capture/import/import.h"
#include "events/recording.h"
#include "formats/io/error.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kVideoBegin = 0xa0000, kVideoEnd = 0xc0000;

bool is_video(std::uint32_t address) { return address >= kVideoBegin && address < kVideoEnd; }

bool is_smi(const Interrupt& interrupt) { return interrupt.kind == Interrupt::Kind::smi; }

bool shows_smi(const Recording& recording) {
  return std::any_of(recording.interrupts.begin(), recording.interrupts.end(), is_smi);
}

class ImportMachine : public testing::TestWithParam<std::pair<std::string, char>> {
 protected:
  void SetUp() override {
    if (folder().empty()) GTEST_SKIP() << "shared/data/machine or machine64 is not there";
  }
  bool has_long_mode() const { return GetParam().first.starts_with("k64_"); }
  std::string folder() const { return has_long_mode() ? machine64_folder() : machine_folder(); }
  MachineData data() const { return MachineData(folder() + "/" + GetParam().first); }
  char form() const { return GetParam().second; }
  std::string bus() const { return data().path(std::string("bus") + form() + ".bin.zst"); }
};

class ImportNarrow : public ImportMachine {};    ///< processors without long mode
class ImportLongMode : public ImportMachine {};  ///< and with it

TEST_P(ImportMachine, FirstReadsAreTheMemoryAtTheStart) {
  const ImportedRecording imported = import_to_memory({bus()}, {});
  const auto pages = data().pages("initpages.bin.zst");
  std::uint64_t compared = 0, different = 0;
  for (const auto& [number, page] : imported.recording.image.pages()) {
    const auto address = static_cast<std::uint32_t>(number * kPageSize);
    const auto truth = pages.find(address);
    if (truth == pages.end() || is_video(address)) continue;
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      if (!page->valid[i]) continue;
      ++compared;
      if (page->data[i] != truth->second[i]) ++different;
    }
  }
  EXPECT_GT(compared, 0u);
  EXPECT_EQ(different, 0u);
}

TEST_P(ImportMachine, InterruptsStandWhereTheMachineTookThem) {
  const ImportedRecording imported = import_to_memory({bus()}, {});
  const auto truth = data().interrupts();
  // The machine's list has what comes through its interrupt controller, which no SMI does.
  auto found = imported.recording.interrupts;
  std::erase_if(found, is_smi);
  ASSERT_EQ(found.size(), truth.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].position_known);
    EXPECT_EQ(found[i].position, (Position{truth[i].icount, truth[i].rep})) << i;
    EXPECT_EQ(found[i].vector, truth[i].vector) << i;
    EXPECT_EQ(found[i].anchor.interrupts, i) << "acknowledges before it, which an SMI has none of";
  }
}

/// For each byte of each external write, the record before the showing one that touched it last.
std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> last_accesses(
    const std::vector<MonitorRecord>& records, const ExternalWrites& writes) {
  std::unordered_map<std::uint32_t, std::uint64_t> touched;  // only bytes somebody else wrote
  for (const ExternalWrite& w : writes) {
    for (std::uint32_t i = 0; i < w.data.size(); ++i) touched[w.address.low32() + i] = 0;
  }
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> last;
  auto write = writes.begin();
  for (std::uint64_t at = 0; at < records.size(); ++at) {
    for (; write != writes.end() && write->transaction == at; ++write) {
      for (std::uint32_t i = 0; i < write->data.size(); ++i) {
        last[{at, write->address.low32() + i}] = touched[write->address.low32() + i];
      }
    }
    const MonitorRecord& r = records[at];
    if (r.type < 1 || r.type > 3 || (r.flags & 16) != 0) continue;
    for (std::uint32_t i = 0; i < r.size; ++i) {
      const auto byte = touched.find(r.addr + i);
      if (byte != touched.end()) byte->second = at;
    }
  }
  return last;
}

TEST_P(ImportMachine, ExternalWritesAreDmaAndDevicesAlone) {
  const ImportedRecording imported = import_to_memory({bus()}, {});
  const auto records = data().records(form());
  const auto dma = data().dma_writes();
  const auto last = last_accesses(records, imported.recording.external_writes);
  std::uint64_t by_dma = 0, unexplained = 0;
  for (const ExternalWrite& w : imported.recording.external_writes) {
    if (is_video(w.address.low32())) continue;
    for (std::uint32_t i = 0; i < w.data.size(); ++i) {
      const std::uint32_t address = w.address.low32() + i;
      const std::uint64_t seen = last.at({w.transaction, address});
      const auto& shown = records[w.transaction];
      const bool explained = std::any_of(dma.begin(), dma.end(), [&](const MonitorDma& d) {
        return address - d.address < d.data.size() && d.data[address - d.address] == w.data[i] &&
               d.icount >= records[seen].icount && d.icount <= shown.icount;
      });
      ++(explained ? by_dma : unexplained);
      if (!explained && unexplained < 5) {
        ADD_FAILURE() << "external write at " << std::hex << address << std::dec << " shown by "
                      << w.transaction << " at " << w.position.instruction;
      }
    }
    ASSERT_TRUE(w.position_known);
    EXPECT_EQ(w.position.instruction, records[w.transaction].icount);
  }
  EXPECT_EQ(unexplained, 0u);
  if (dma.empty()) {
    EXPECT_EQ(by_dma, 0u);
  } else {
    EXPECT_GT(by_dma, 10000u);
  }
}

/// Registers of 64 bits by the names of the dump's words, without _lo and _hi.
std::uint64_t whole(const std::map<std::string, std::uint32_t>& words, const std::string& name) {
  return words.at(name + "_lo") | std::uint64_t{words.at(name + "_hi")} << 32;
}

void expect_wide_state(const CpuState& s, const std::map<std::string, std::uint32_t>& truth) {
  ASSERT_EQ(s.model, CpuModel::x86_64);
  std::size_t compared = 0;
  for (const std::string& name : register_names(CpuModel::x86_64)) {
    const std::string segment = name.substr(0, name.find('.'));
    std::string word = name;
    if (name.ends_with(".base")) word = segment + "_base";
    if (name.ends_with(".limit")) word = segment + "_limit";
    if (name.ends_with(".attributes")) word = segment + "_attr";
    if (truth.contains(word + "_sel")) word += "_sel";
    const bool is_whole = truth.contains(word + "_lo");
    if (!is_whole && !truth.contains(word)) continue;
    const std::uint64_t mask = name.ends_with(".attributes") ? 0xffff : ~std::uint64_t{0};
    EXPECT_EQ(get_register(s, name), (is_whole ? whole(truth, word) : truth.at(word)) & mask)
        << name;
    ++compared;
  }
  EXPECT_EQ(compared, 69u) << "all but DR4, DR5, SMBASE and the FXSAVE image";
  for (std::uint32_t i = 0; i < s.fx.size(); ++i) {
    ASSERT_EQ(s.fx[i], truth.at(fmt::format("fxsave+{:03x}", i & ~3u)) >> 8 * (i & 3) & 0xff) << i;
  }
}

TEST_P(ImportLongMode, StateIsTheDumpedOne) {
  const Recording r = import_to_memory({bus()}, {}).recording;
  const auto truth = data().initial_state();
  expect_wide_state(r.initial, truth);
  EXPECT_EQ(r.initial.ldtr.unusable, (truth.at("ldtr_attr") & 0x10000) != 0);
  EXPECT_EQ(r.initial.cpuid.size(), truth.at("n_cpuid"));
  EXPECT_EQ(r.initial.msrs.size(), truth.at("n_msr"));
}

TEST_P(ImportLongMode, IsNotTakenForAnotherProcessor) {
  ImportOptions options;
  options.capture.cpu = CpuModel::p6;
  EXPECT_THROW(import_to_memory({bus()}, options), FormatError);
  options.capture.cpu = CpuModel::x86_64;
  EXPECT_EQ(import_to_memory({bus()}, options).recording.initial.model, CpuModel::x86_64);
}

TEST_P(ImportLongMode, ValuesThatCrossNoBusAreTheMonitors) {
  ImportOptions options;
  options.capture.internal_path = data().path("side.csv.zst");
  const Recording r = import_to_memory({bus()}, options).recording;
  const auto rows = csv_rows(data().path("side.csv.zst"));
  ASSERT_EQ(r.internal_reads.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const InternalRead& read = r.internal_reads[i];
    EXPECT_EQ(read.position.instruction, std::stoull(rows[i].at(0))) << i;
    EXPECT_EQ(internal_read_name(read.op), rows[i].at(1)) << i;
    EXPECT_EQ(read.ip, std::stoull(rows[i].at(2), nullptr, 16)) << i;
    EXPECT_EQ(read.eax, std::stoul(rows[i].at(3), nullptr, 16)) << i;
    EXPECT_EQ(read.edx, std::stoul(rows[i].at(6), nullptr, 16)) << i;
  }
}

TEST_P(ImportNarrow, StateIsTheDumpedOne) {
  const ImportedRecording imported = import_to_memory({bus()}, {});
  const auto truth = data().initial_state();
  const CpuState& s = imported.recording.initial;
  EXPECT_EQ(s.gpr[kEax], truth.at("eax"));
  EXPECT_EQ(s.gpr[kEdi], truth.at("edi"));
  EXPECT_EQ(s.eip, truth.at("eip"));
  EXPECT_EQ(s.eflags, truth.at("eflags"));
  EXPECT_EQ(s.segment[kCs].selector, truth.at("cs_sel"));
  EXPECT_EQ(s.segment[kGs].base, truth.at("gs_base"));
  EXPECT_EQ(s.segment[kSs].limit, truth.at("ss_limit"));
  EXPECT_EQ(s.ldtr.unusable, (truth.at("ldtr_attr") & 0x10000) != 0);
  EXPECT_EQ(s.tr.base, truth.at("tr_base"));
  EXPECT_EQ(s.idtr.limit, truth.at("idtr_limit"));
  EXPECT_EQ(s.cr3, truth.at("cr3"));
  EXPECT_EQ(s.dr[6], truth.at("dr6"));
  EXPECT_EQ(s.ram_bytes, data().meta("ram_bytes"));
  EXPECT_EQ(s.ignore_cr0_cd, data().meta("ignore_cr0_cd") != 0);
  EXPECT_EQ(s.tsc, truth.at("tsc_lo") | std::uint64_t{truth.at("tsc_hi")} << 32);
  EXPECT_EQ(s.fx[24], truth.at("fxsave+018") & 0xff);
  EXPECT_EQ(s.cpuid.size(), truth.at("n_cpuid"));
  EXPECT_EQ(s.msrs.size(), truth.at("n_msr"));
  // Nothing but an SMI shows SMBASE.
  const std::vector<std::string> unknown(shows_smi(imported.recording) ? 0 : 1, "smbase");
  EXPECT_EQ(s.unknown, unknown);
  EXPECT_EQ(s.model, GetParam().first.starts_with("bios486") ? CpuModel::i486 : CpuModel::p6);
}

TEST_P(ImportMachine, TotalsAndInstructionsAreTheMonitors) {
  const ImportedRecording imported = import_to_memory({bus()}, {});
  const Recording& r = imported.recording;
  std::uint64_t io_reads = 0, last = 0, kept = 0;
  for (const MonitorRecord& record : data().records(form())) {
    if ((record.flags & 16) != 0) continue;
    ++kept;
    if (record.type == 4) ++io_reads;
    if (record.type != 6) last = record.icount;
  }
  EXPECT_EQ(r.io_reads.size(), io_reads);
  EXPECT_EQ(r.totals.transactions, kept);
  EXPECT_EQ(imported.evidence.size(), kept);
  EXPECT_EQ(r.instructions, last + 1);
  EXPECT_LE(*r.instructions, data().meta("instructions"));
  EXPECT_TRUE(r.warnings.empty()) << r.warnings.front();
}

TEST_P(ImportMachine, CacheIsInferredFromTheTraffic) {
  const Recording r = import_to_memory({bus()}, {}).recording;
  const CacheForm expected = form() == 'A'   ? CacheForm::none
                             : form() == 'B' ? CacheForm::write_through
                                             : CacheForm::write_back;
  EXPECT_EQ(r.bus.form, expected);
  EXPECT_EQ(r.bus.line_bytes, form() == 'A' ? 0u : form() == 'B' ? 16u : 32u);
  EXPECT_EQ(r.bus.bus_bytes, 4u);
}

std::string parameter_name(const testing::TestParamInfo<std::pair<std::string, char>>& info) {
  return info.param.first + "_" + info.param.second;
}
std::vector<std::pair<std::string, char>> all_captures() {
  auto all = machine_captures();
  const auto wide = tiny_machine64_captures();
  all.insert(all.end(), wide.begin(), wide.end());
  return all;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ImportMachine);
INSTANTIATE_TEST_SUITE_P(, ImportMachine, testing::ValuesIn(all_captures()), parameter_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ImportNarrow);
INSTANTIATE_TEST_SUITE_P(, ImportNarrow, testing::ValuesIn(machine_captures()), parameter_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ImportLongMode);
INSTANTIATE_TEST_SUITE_P(, ImportLongMode, testing::ValuesIn(tiny_machine64_captures()),
                         parameter_name);

}  // namespace
}  // namespace citcat::test
