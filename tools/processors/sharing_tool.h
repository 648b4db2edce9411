#pragma once
// The communication of a machine's processors through memory: lines, bytes, from whom to whom, and
// lines that go to and fro although no processor reads what another one wrote.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/names/symbols.h"
#include "replay/processors/machine_session.h"
#include "tools/host/report.h"

namespace citcat::tools {

/// Bytes that another processor wrote, where a processor reads them for the first time since: those
/// that one access reads from one line and that one instruction wrote.
struct Communication {
  ProcessorAccess read;
  PhysAddr first;                ///< of the bytes
  std::uint64_t bytes = 0;       ///< how many; others may lie between them
  std::uint8_t writer = 0;       ///< processor
  LinearAddr written_by;         ///< as ProcessorAccess::instruction
  std::uint64_t written_at = 0;  ///< position of the last store to any of them
};

class SharingTool final : public MachineListener {
 public:
  /// `line_bytes`: of a cache line, kMostLineBytes at most. `clock`: that of the bus, to be asked
  /// while the session runs. `top`: rows of a table. `symbols`, which must outlive this, name code.
  SharingTool(std::size_t processors, std::uint32_t line_bytes,
              std::function<std::uint64_t()> clock, std::size_t top, const Symbols& symbols);

  /// Calls f for each Communication, in the order of the bus.
  void report_each(std::function<void(const Communication&)> f) { report_each_ = std::move(f); }

  void access(const ProcessorAccess& access) override;
  void report(Report& out) const;

 private:
  static constexpr std::uint32_t kMostLineBytes = 64;
  static constexpr std::uint8_t kNobody = 255;

  struct Line {
    std::array<std::uint8_t, kMostLineBytes> writer;      ///< of each byte
    std::array<std::uint16_t, kMostLineBytes> seen{};     ///< by which processors since
    std::array<std::uint64_t, kMostLineBytes> written{};  ///< by which instruction
    std::array<std::uint64_t, kMostLineBytes> at{};       ///< at which position
    std::uint16_t touched = 0, wrote = 0;                 ///< processors
    std::uint8_t last = kNobody;                          ///< that had the line as its own
    std::uint64_t moves = 0, bytes = 0, locked = 0;
    Line() { writer.fill(kNobody); }
  };
  /// Instructions between which bytes went.
  struct Pair {
    std::uint8_t from = 0, to = 0;
    std::uint64_t writer = 0, reader = 0;
    auto operator<=>(const Pair&) const = default;
  };
  /// A place that locked instructions use, and who waits there.
  struct Lock {
    std::vector<std::uint64_t> locked, handed, waited, waits;  ///< by processor
    std::vector<std::uint64_t> since;                          ///< clock at which it began to read
    std::uint8_t holder = kNobody;
  };

  void read(Line& line, const ProcessorAccess& access, PhysAddr at, std::uint32_t size);
  void follow_lock(const ProcessorAccess& access);
  void report_lines(Report& out) const;
  void report_pairs(Report& out) const;
  void report_locks(Report& out) const;

  std::size_t processors_;
  std::uint32_t line_bytes_;
  std::function<std::uint64_t()> clock_;
  std::size_t top_;
  const Symbols& symbols_;
  std::function<void(const Communication&)> report_each_;
  std::unordered_map<std::uint64_t, Line> lines_;
  std::map<Pair, std::pair<std::uint64_t, std::uint64_t>> pairs_;  ///< times, bytes
  std::unordered_map<std::uint64_t, Lock> locks_;                  ///< by dword
  std::vector<std::uint64_t> bytes_;                               ///< from * processors + to
};

}  // namespace citcat::tools
