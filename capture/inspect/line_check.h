#pragma once
// Checks that the lines of a bus move as those of a running machine do. It judges a line only if
// the line had to move: address lines below the size of a transfer carry nothing, and neither does
// a byte lane that nobody used.

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/bus/source.h"

namespace citcat {

/// How sure it is that something is wrong with the capture, rather than unusual in the machine.
enum class FindingConfidence : std::uint8_t { possible, likely, certain };

/// Memory: as MemoryImage, with the pages touched.
class LineCheck {
 public:
  /// The next memory transaction. `has_data`: its bytes were captured.
  void add(const BusTransaction& t, bool has_data);
  /// What follows is not connected with what was before.
  void begin_segment() { last_fetch_.reset(); }

  struct Finding {
    const char* check = "";  ///< "stuck-line", "stuck-data-line", "line-order"
    FindingConfidence confidence = FindingConfidence::possible;
    std::string text;
  };
  std::vector<Finding> findings(const BusModel& bus) const;

 private:
  static constexpr std::size_t kSizes = 6;  ///< transfers of 1, 2, 4 ... 32 bytes
  static constexpr std::size_t kLanes = 8;  ///< of the widest bus
  static constexpr std::uint32_t kPageBytes = 4096;
  /// Where transfers of each size began.
  using Starts = std::array<std::bitset<kPageBytes>, kSizes>;
  /// At which levels an address line was seen, and in how many surroundings: settings of the lines
  /// above it.
  struct Levels {
    bool low = false, high = false;
    std::size_t surroundings = 0, pages = 0;
    bool moves() const { return low && high; }
  };
  struct Lane {
    std::uint64_t bytes = 0;
    std::bitset<256> values;
  };

  /// Whether a line that was at one level only is stuck: nothing when that is not known.
  static std::optional<FindingConfidence> judge(unsigned line, const Levels& levels,
                                                std::uint32_t mask);
  static std::size_t size_class(const BusTransaction& t);
  Starts& starts_of(FrameNumber page);
  void follow_fetches(const BusTransaction& t, std::size_t size);
  Levels levels_within_page(unsigned line) const;
  Levels levels_above_page(unsigned line) const;
  void find_stuck_address_lines(std::uint32_t mask, std::vector<Finding>& out) const;
  void find_stuck_data_lines(std::uint32_t bus_bytes, std::vector<Finding>& out) const;
  void find_disorder(std::uint32_t mask, std::vector<Finding>& out) const;

  std::unordered_map<FrameNumber, Starts> pages_;
  Starts* last_page_ = nullptr;
  FrameNumber last_page_number_ = 0;
  std::array<Lane, kLanes> lanes_{};    ///< by the lowest bits of addresses
  std::optional<PhysAddr> last_fetch_;  ///< where the last fetch ended
  /// Fetches that go on where the last one ended, by their size and the highest line that changed.
  std::array<std::array<std::uint64_t, 32>, kSizes> steps_{};
};

}  // namespace citcat
