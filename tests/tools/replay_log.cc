// Prints what a replay has come to at every K-th instruction, so that two builds, or two paths of
// one build, can be compared line by line (scripts/first-difference).
//
//   replay_log [--path blocks|instructions] [--from N] [--to N] [--every K] [--registers] RECORDING
//
// A line is "N TRACE REGISTERS": after N instructions, the hash of the trace from the beginning and
// that of the registers there. With --registers these stand below it, a line each, behind the
// instructions executed since the line before. The last line says how the run ended. The replay is
// compared with nothing.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/machine/cpu_state.h"
#include "formats/io/byte_sink.h"
#include "formats/io/hash.h"
#include "formats/kt/kt.h"
#include "replay/infer/places/event_placer.h"
#include "replay/run/replay_session.h"
#include "replay/trace/kt_sink.h"
#include "x86/disassembler.h"

namespace citcat {
namespace {

constexpr std::uint32_t kDefaultSize32 = 0x4000;  ///< D of a code segment's attributes

struct LogOptions {
  std::string recording, path = "blocks";
  std::uint64_t from = 0, to = std::numeric_limits<std::uint64_t>::max(), every = 1'000'000;
  bool registers = false;
};

/// Hashes a trace, and keeps what came since it was asked last.
class TraceHash final : public ByteSink {
 public:
  explicit TraceHash(bool keeps) : keeps_(keeps) {}
  void write(std::span<const std::uint8_t> bytes) override {
    hasher_.update(bytes);
    if (keeps_) kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  }
  void finish() override {}
  std::string hash() const { return hasher_.value().hex(); }
  std::vector<std::uint8_t> take() { return std::exchange(kept_, {}); }

 private:
  bool keeps_;
  Hasher128 hasher_;
  std::vector<std::uint8_t> kept_;
};

/// "eax 12", a line for each register that the processor has.
std::string register_text(const CpuState& state) {
  std::string text;
  for (const std::string& name : register_names(state.model)) {
    if (const auto value = get_register(state, name))
      text += fmt::format("{} {:x}\n", name, *value);
  }
  Hasher128 fx;
  fx.update(state.fx);
  text += fmt::format("fx {}\nhalted {}\n", fx.value().hex(), state.halted ? 1 : 0);
  for (const auto& msr : state.msrs) text += fmt::format("msr {:x} {:x}\n", msr.index, msr.value);
  return text;
}

std::string hash_of(const std::string& text) {
  Hasher128 hasher;
  hasher.update({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return hasher.value().hex();
}

/// "ran 000f0100 add byte [ebx], al @00001234", a line for each instruction and iteration.
std::string trace_text(const std::vector<std::uint8_t>& records, int bits) {
  KtReader reader(records, "trace");
  Disassembler disassembler(bits);
  std::string text;
  for (KtRecord record; reader.next(record);) {
    const KtInstruction& e = record.instruction;
    text += fmt::format("ran {:08x} {}", e.eip, disassembler.text(e.bytes(), e.eip));
    for (unsigned i = 0; i < e.address_count; ++i) text += fmt::format(" @{:08x}", e.address[i]);
    text += "\n";
  }
  return text;
}

void log_replay(const LogOptions& options) {
  RecordingFile file = RecordingFile::open(options.recording);
  place_events(file, {});
  TraceHash hash(options.registers);
  KtWriter writer(hash);
  KtSink trace(writer, {});
  SessionOptions session_options;
  session_options.check = false;
  session_options.path =
      options.path == "blocks" ? ExecutionPath::blocks : ExecutionPath::instructions;
  ReplaySession session(file, &trace, session_options);
  ReplayReport report;
  for (std::uint64_t at = options.from; report.end != ReplayReport::End::diverged;) {
    report = session.run_to(std::min(at, options.to));
    writer.flush();
    const CpuState state = session.registers();
    const std::string registers = register_text(state);
    const int bits = (state.segment[kCs].attributes & kDefaultSize32) != 0 ? 32 : 16;
    fmt::print("{} {} {}\n", report.instructions, hash.hash(), hash_of(registers));
    if (options.registers) fmt::print("{}{}", trace_text(hash.take(), bits), registers);
    if (report.instructions < at || at >= options.to) break;
    at += options.every;
  }
  fmt::print("{}\n", report.divergence ? report.divergence->reason : "no more");
}

int run(int argc, char** argv) {
  LogOptions options;
  CLI::App app("replay_log: what a replay has come to, line by line");
  app.add_option("RECORDING", options.recording)->required();
  app.add_option("--path", options.path)->check(CLI::IsMember({"blocks", "instructions"}));
  app.add_option("--from", options.from);
  app.add_option("--to", options.to);
  app.add_option("--every", options.every)->check(CLI::PositiveNumber);
  app.add_flag("--registers", options.registers);
  CLI11_PARSE(app, argc, argv);
  log_replay(options);
  return 0;
}

}  // namespace
}  // namespace citcat

int main(int argc, char** argv) try {
  return citcat::run(argc, argv);
} catch (const std::exception& error) {
  fmt::print(stderr, "replay_log: error: {}\n", error.what());
  return 3;
}
