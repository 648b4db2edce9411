#include "acceptance/machine_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "formats/io/error.h"
#include "unit/capture/shared_data.h"
#include "unit/kept_evidence.h"

namespace citcat::test {
namespace {

constexpr std::size_t kMostGivenBack = 12;

bool is_tiny(const std::string& name) { return name.ends_with("_tiny"); }

GoldenPaths golden_paths(const MachineCapture& capture) {
  const MachineData data = data_of(capture);
  const bool golden = has_golden_stream(capture);
  return {golden ? data.path("golden.bin.zst") : "", data.path("events.csv.zst"),
          data.path("hash.csv.zst"), golden ? data.meta("golden_instructions") : 0};
}

/// A capture in which one vector is never acknowledged.
class WithoutAcknowledges final : public CaptureReader {
 public:
  WithoutAcknowledges(std::unique_ptr<CaptureReader> capture, std::uint8_t vector)
      : capture_(std::move(capture)), vector_(vector) {}
  const CaptureInfo& info() const override { return capture_->info(); }
  bool next(BusTransaction& out) override {
    while (capture_->next(out)) {
      if (out.op != BusOp::interrupt_acknowledge || out.data[0] != vector_) return true;
    }
    return false;
  }
  bool next_segment() override { return capture_->next_segment(); }
  std::optional<CpuState> initial_state() const override { return capture_->initial_state(); }

 private:
  std::unique_ptr<CaptureReader> capture_;
  std::uint8_t vector_;
};

std::uint32_t dword(const std::array<std::uint8_t, 512>& fx, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{fx[at + i]} << (8 * i);
  return value;
}

ImportedRecording import_from(const MachineData& data, char form, IgnoreCounts counts) {
  ImportOptions options;
  options.ignore_counts = counts;
  options.capture.internal_path = data.path("side.csv.zst");
  return import_to_memory({data.path(std::string("bus") + form + ".bin.zst")}, options);
}

}  // namespace

std::string capture_text(const MachineCapture& capture) {
  return capture.name + "_" + capture.form;
}

MachineData data_of(const MachineCapture& capture) {
  return MachineData(machine_folder() + "/" + capture.name);
}

bool is_full_run() {
  const char* value = std::getenv("CITCAT_ACCEPTANCE");
  return value != nullptr && std::strcmp(value, "full") == 0;
}

std::vector<MachineCapture> acceptance_captures(bool fast) {
  std::vector<MachineCapture> captures;
  for (const auto& [name, form] : machine_captures()) {
    const bool often = is_tiny(name) || (name == "lin_procs_small" && form == 'B');
    if (often || !fast) captures.push_back({name, form});
  }
  std::stable_sort(captures.begin(), captures.end(),
                   [](const MachineCapture& a, const MachineCapture& b) {
                     return is_tiny(a.name) > is_tiny(b.name);
                   });
  return captures;
}

bool has_specific_results(const MachineCapture& capture) {
  return capture.name == "lin_fpu_small" || capture.name == "lin_rcp_tiny";
}

bool has_golden_stream(const MachineCapture& capture) {
  return data_of(capture).has("golden.bin.zst");
}

ImportedRecording import_machine(const MachineCapture& capture, IgnoreCounts counts) {
  return import_from(data_of(capture), capture.form, counts);
}

ImportedRecording import_machine64(const MachineCapture& capture, IgnoreCounts counts) {
  return import_from(MachineData(machine64_folder() + "/" + capture.name), capture.form, counts);
}

ImportedRecording import_with_hidden_timer(const MachineCapture& capture) {
  // IRQ 0 of the first 8259: vector 8 where the BIOS set it up, with a command that ends whatever
  // is in service; vector 30h under Linux, with one that names IRQ 0 (Intel 8259A data sheet,
  // OCW2).
  const bool bios = capture.name.starts_with("bios");
  const MachineData data = data_of(capture);
  ImportOptions options;
  options.ignore_counts = IgnoreCounts::all;
  options.capture.internal_path = data.path("side.csv.zst");
  options.on_chip = {parse_on_chip_marker(bios ? "08=io-write:20:20" : "30=io-write:20:60")};
  WithoutAcknowledges reader(
      open_capture({data.path(std::string("bus") + capture.form + ".bin.zst")}, options.capture),
      options.on_chip.front().vector);
  ImportedRecording imported;
  KeptEvidence evidence(imported.evidence);
  imported.recording = import_from(reader, options, &evidence);
  return imported;
}

MachineRun::MachineRun(const MachineCapture& capture, const ImportedRecording& imported,
                       const VerifierOptions& options)
    : window_(declared_instructions(capture)),
      golden_(golden_paths(capture)),
      verifier_(imported.recording, imported.read_evidence(), options) {
  // The verifier first: what it adopts from the bus is what the run goes on with.
  listeners_.add(verifier_);
  listeners_.add(golden_);
  ReplayOptions replay;
  replay.evidence = [&imported] { return imported.read_evidence(); };
  replayer_ = std::make_unique<Replayer>(imported.recording, listeners_, std::move(replay));
}

void MachineRun::run() { report_ = verifier_.finish(replayer_->run()); }

bool MachineRun::run_to_end_of_window() {
  verifier_.go_beyond();
  while (machine().position().instruction < window_ && replayer_->step_beyond()) {
  }
  return machine().position() == Position{window_, 0};
}

CacheTotals cache_totals(const ImportedRecording& imported) {
  const CacheDescriptor* cache = declared_cache(imported.recording.bus);
  if (cache == nullptr) throw InternalError("there is no model of the declared cache");
  Verifier verifier(imported.recording, imported.read_evidence(), {});
  CacheCheck check(imported.recording, imported.read_evidence(), *cache);
  Listeners listeners;
  listeners.add(verifier);
  listeners.add(check);
  ReplayOptions options;
  options.evidence = [&imported] { return imported.read_evidence(); };
  Replayer replayer(imported.recording, listeners, std::move(options));
  replayer.machine().set_walk_policy(cache->walks);
  replayer.run();
  check.finish();
  return check.totals();
}

std::uint64_t declared_count(const MachineCapture& capture, const std::string& name) {
  return data_of(capture).meta(capture.form, name);
}

std::uint64_t declared_instructions(const MachineCapture& capture) {
  return data_of(capture).meta("instructions");
}

std::vector<std::string> final_memory_differences(const MachineCapture& capture,
                                                  const Machine& machine, const Memory& memory,
                                                  std::uint64_t& compared) {
  constexpr std::uint32_t kVideoBegin = 0xa0000, kVideoEnd = 0xc0000;
  const MachineData data = data_of(capture);
  const auto dma = data.dma_writes();
  std::vector<std::string> lines;
  for (const auto& [base, bytes] : data.pages("finalpages.bin.zst")) {
    if (base >= kVideoBegin && base < kVideoEnd) continue;
    for (std::uint32_t i = 0; i < bytes.size(); ++i) {
      const PhysAddr at{base + i};
      const auto byte = memory.defined_byte(at);
      if (!byte) continue;
      ++compared;
      if (*byte == bytes[i]) continue;
      // A device wrote it and the processor has not looked since: nothing shows it on the bus.
      const bool by_dma = std::any_of(dma.begin(), dma.end(), [&](const MonitorDma& d) {
        return at.value - d.address < d.data.size() && d.data[at.value - d.address] == bytes[i];
      });
      if (by_dma || lines.size() >= kMostGivenBack) continue;
      lines.push_back(fmt::format("{:08x} expected {:02x}, found {:02x}, at instruction {}",
                                  at.value, bytes[i], *byte, machine.position().instruction));
    }
  }
  return lines;
}

std::vector<std::string> final_register_differences(const MachineCapture& capture,
                                                    const CpuState& state, bool with_fpu) {
  constexpr std::uint32_t kSystemFlags = 0x003e7700;
  constexpr std::uint32_t kUnusable = 0x10000;
  std::map<std::string, std::uint32_t> truth;
  for (const auto& f : csv_rows(data_of(capture).path("final_state.csv"))) {
    truth[f.at(1)] = static_cast<std::uint32_t>(std::stoul(f.at(2), nullptr, 16));
  }
  std::vector<std::string> lines;
  const auto check = [&](const std::string& name, std::uint32_t found,
                         std::uint32_t mask = 0xffffffff) {
    const std::uint32_t expected = truth.at(name);
    if (((expected ^ found) & mask) == 0) return;
    lines.push_back(fmt::format("{} expected {:08x}, found {:08x}", name, expected, found));
  };
  constexpr std::array<const char*, 8> kGprs{"eax", "ecx", "edx", "ebx",
                                             "esp", "ebp", "esi", "edi"};
  for (std::size_t i = 0; i < kGprs.size(); ++i) check(kGprs[i], state.gpr[i]);
  check("eip", state.eip);
  check("eflags", state.eflags, kSystemFlags);
  constexpr std::array<const char*, 6> kSegments{"es", "cs", "ss", "ds", "fs", "gs"};
  const auto check_segment = [&](const std::string& name, const Segment& s) {
    check(name + "_sel", s.selector, 0xffff);
    if ((truth.at(name + "_attr") & kUnusable) != 0) return;
    check(name + "_base", s.base);
    check(name + "_limit", s.limit);
  };
  for (std::size_t i = 0; i < kSegments.size(); ++i) check_segment(kSegments[i], state.segment[i]);
  check_segment("ldtr", state.ldtr);
  check_segment("tr", state.tr);
  check("gdtr_base", state.gdtr.base);
  check("gdtr_limit", state.gdtr.limit);
  check("idtr_base", state.idtr.base);
  check("idtr_limit", state.idtr.limit);
  check("cr0", state.cr0);
  check("cr2", state.cr2);
  check("cr3", state.cr3);
  check("cr4", state.cr4);
  for (const std::size_t i : {0u, 1u, 2u, 3u, 6u, 7u}) check(fmt::format("dr{}", i), state.dr[i]);
  if (!with_fpu) return lines;
  // FXSAVE without the last instruction's addresses: control, status and tag words, MXCSR, the
  // eight x87 registers (10 of 16 bytes each) and the eight of SSE.
  check("fxsave+000", dword(state.fx, 0));
  check("fxsave+004", dword(state.fx, 4), 0x00ff);
  for (std::size_t at = 0x18; at < 0x120; at += 4) {
    if (at == 0x1c || (at >= 0x20 && at < 0xa0 && at % 16 == 12)) continue;
    check(fmt::format("fxsave+{:03x}", at), dword(state.fx, at),
          at < 0xa0 && at >= 0x20 && at % 16 == 8 ? 0xffff : 0xffffffff);
  }
  return lines;
}

}  // namespace citcat::test
