#pragma once
// The ground truth of a machine capture, one completed instruction at a time (format:
// data/machine/FORMAT.md, section 5, of the shared data). Reads the files with none of the
// importer's code: what is checked against must not come from it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/input.h"

namespace citcat::test {

/// An instruction that started and did something: completed, or left between two iterations.
struct GoldenStart {
  std::uint16_t cs = 0;
  std::uint32_t eip = 0, linear = 0, physical = 0;
  std::vector<std::uint8_t> bytes;
  bool operator==(const GoldenStart&) const = default;
};

struct GoldenByte {
  std::uint32_t physical = 0;
  std::uint8_t value = 0;
  auto operator<=>(const GoldenByte&) const = default;
};

struct GoldenPort {
  std::uint16_t port = 0;
  std::uint8_t size = 0;
  bool write = false;
  std::uint32_t value = 0;
  bool operator==(const GoldenPort&) const = default;
};

/// A data access as the program named it.
struct GoldenReference {
  std::uint32_t linear = 0;
  std::uint32_t repetition = 0;
  auto operator<=>(const GoldenReference&) const = default;
};

struct GoldenRegisters {
  std::array<std::uint32_t, 8> gpr{};
  std::uint32_t eflags = 0;
};

/// Everything that carries one instruction count: faults and deliveries before the instruction that
/// completes, and that instruction.
struct GoldenGroup {
  std::uint64_t icount = 0;
  std::vector<GoldenStart> starts;  ///< without those left by a fault before they did anything
  std::vector<GoldenByte> written;  ///< memory, in order
  std::vector<GoldenPort> ports;    ///< in order
  std::vector<GoldenReference> references;
  std::optional<GoldenRegisters> after;
};

class GoldenGroups {
 public:
  /// Without a path there is nothing to compare with.
  explicit GoldenGroups(const std::string& path) {
    if (!path.empty()) input_.emplace(path);
  }
  /// False at the end of the file. `group` is overwritten.
  bool next(GoldenGroup& group);

 private:
  using Record = std::array<std::uint8_t, 40>;
  bool read_record();
  void take(GoldenGroup& group);
  void take_access(GoldenGroup& group);

  std::optional<InputStream> input_;
  Record record_{};
  bool have_record_ = false;
  bool start_open_ = false;  ///< the newest start has neither faulted nor ended
};

/// A row of events.csv.
struct GoldenEvent {
  std::uint64_t icount = 0;
  std::uint32_t rep = 0;
  std::string kind;
  std::uint8_t vector = 0;
  std::uint32_t error_code = 0, eip = 0, cr2 = 0, eflags = 0;
  std::uint16_t cs = 0;
};
std::vector<GoldenEvent> load_golden_events(const std::string& path);

/// A row of hash.csv: state and running hashes after `icount` instructions.
struct GoldenHash {
  std::uint64_t icount = 0;
  std::uint32_t eip = 0;
  std::uint64_t eip_hash = 0, gpr_hash = 0, system_hash = 0, all_hash = 0;
};
std::vector<GoldenHash> load_golden_hashes(const std::string& path);

/// The hashes, recomputed as FORMAT.md section 5 defines them.
class RunningHash {
 public:
  void add(const GoldenRegisters& after, std::uint32_t next_eip);
  std::uint64_t eip = kStart, gpr = kStart, system = kStart, all = kStart;

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325;
};

}  // namespace citcat::test
