#pragma once
// Compares a replay with the ground truth while it runs.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "acceptance/golden_groups.h"
#include "events/recording.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat::test {

struct GoldenCounts {
  std::uint64_t instructions = 0, starts = 0, bytes_written = 0, ports = 0, addresses = 0,
                registers = 0, events = 0, hashes = 0;
  std::uint64_t status_flags_differ = 0;  ///< undefined ones included; counted, no mismatch
};

/// What a capture is checked for.
struct GoldenPaths {
  std::string golden, events, hashes;
  std::uint64_t golden_instructions = 0;
};

class GoldenCheck final : public Observer {
 public:
  explicit GoldenCheck(const GoldenPaths& paths);
  /// Must be called before the replay starts.
  void watch(const Machine& machine) override { machine_ = &machine; }
  /// Values written by floating-point stores, and by anything after the first such difference, may
  /// differ (counted), and registers: results of every implementation's own, which a write-back
  /// cache shows late. Places may not, nor the instructions.
  void tolerate_floating_point() { tolerant_ = true; }
  /// Compares what is still open after the replay ended at `end`.
  void finish(Position end);

  Interest interest() const override { return Interest::everything(); }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void fetch(PhysAddr, std::uint32_t, Position now) override;
  void read(PhysAddr, std::uint32_t, AccessKind, Position now) override { at(now); }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void halted(Position now) override;
  void cache_flushed(bool write_back, Position now) override;

  const GoldenCounts& counts() const { return counts_; }
  /// The first disagreements, one line each.
  const std::vector<std::string>& mismatches() const { return mismatches_; }
  std::uint64_t mismatch_count() const { return mismatch_count_; }
  std::uint64_t tolerated() const { return tolerated_; }

 private:
  struct Address {
    std::uint32_t linear = 0;
    std::uint32_t iteration = 0;
    bool target = false;  ///< of a branch; else of data
  };

  void at(Position now);
  void next_starts_at(std::uint32_t eip, std::uint32_t linear, Position now);
  void close_group();
  void compare_written();
  void compare_addresses();
  void compare_registers();
  void mismatch(std::uint64_t icount, const std::string& text);
  void check_event(const std::string& kind, std::uint8_t vector, std::uint32_t error_code,
                   std::uint16_t cs, std::uint32_t eip, Position now);

  const Machine* machine_ = nullptr;
  GoldenGroups groups_;
  std::uint64_t golden_instructions_;
  std::vector<GoldenEvent> events_;
  std::vector<GoldenHash> hashes_;
  std::size_t next_event_ = 0, next_hash_ = 0;

  // What the replay did since `icount_` instructions were complete.
  std::uint64_t icount_ = 0;
  std::vector<GoldenStart> starts_;
  std::vector<GoldenByte> written_;
  std::vector<GoldenPort> ports_;
  std::vector<Address> addresses_;
  bool floating_point_ = false;
  bool switched_stack_ = false;  ///< by the software interrupt being delivered
  std::uint16_t cs_ = 0;

  // The instruction completed last, until it is known where execution goes on.
  bool completed_ = false;
  std::optional<GoldenRegisters> after_;
  std::optional<std::uint32_t> target_;

  RunningHash hash_;
  GoldenGroup golden_;
  GoldenCounts counts_;
  bool tolerant_ = false;
  std::uint64_t tolerated_ = 0, mismatch_count_ = 0;
  std::vector<std::string> mismatches_;
};

}  // namespace citcat::test
