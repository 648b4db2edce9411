#pragma once
// Registers that were worked out at an interrupt, against those that an independent simulator had.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "acceptance/verified_replay.h"
#include "capture/import/import.h"
#include "replay/infer/registers/state_recovery.h"

namespace citcat::test {

/// Compares what is certain with `truth`, as far as that has it, and prints where each register
/// comes from. Returns how many were compared.
inline std::uint64_t expect_registers(const RecoveredState& recovered,
                                      const std::map<std::string, std::uint64_t>& truth,
                                      std::size_t interrupt) {
  std::uint64_t compared = 0;
  std::string sources;
  for (const RecoveredRegister& r : recovered.registers) {
    sources += r.name + " " + register_source_name(r.source) + ", ";
    const bool certain = r.source != RegisterSource::free && r.source != RegisterSource::assumed;
    const auto it = truth.find(r.name);
    if (!certain || it == truth.end()) continue;
    constexpr std::uint64_t kResume = 1u << 16;  // the interrupt's frame has it, the register not
    const std::uint64_t ignored = r.name == "eflags" || r.name == "rflags" ? kResume : 0;
    EXPECT_EQ(r.value | ignored, it->second | ignored) << r.name << " at " << interrupt;
    ++compared;
  }
  std::printf("  interrupt %zu: %s%zu page-table entries assumed, %llu replays\n", interrupt,
              sources.c_str(), recovered.memory.size(),
              static_cast<unsigned long long>(recovered.replays));
  return compared;
}

/// A replay from the state that `imported` has now agrees with all of its evidence.
inline void expect_agreement(const ImportedRecording& imported) {
  const VerifiedReplay run(imported);
  EXPECT_GT(run.totals().writes.checked, 0u);
  EXPECT_EQ(run.report().interrupts, imported.recording.interrupts.size());
}

}  // namespace citcat::test
