#pragma once
// The calls, interrupts, exceptions and system calls that are open after each step of an exported
// stretch, for the question `calls`: which of them close and which open, step by step.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "formats/io/byte_writer.h"
#include "view/model/nest_lines.h"
#include "view/model/run_view.h"

namespace citcat::view {

class ExportedCalls {
 public:
  /// The number of instructions before the stretch that are searched for calls open there.
  static constexpr std::uint64_t kReach = 200'000;

  explicit ExportedCalls(RunView& view) : view_(view), scan_(view.machine()) {}

  /// The observer of the run.
  CallScan& scan() { return scan_; }
  /// The machine is where the stretch begins.
  void begin();
  /// The machine is after step number `number`, from 0 on.
  void take(const RecordedStep& step, std::uint64_t number);
  /// The open calls and events that no step of the stretch tells.
  const Json& lines() const { return lines_; }
  /// For each change: steps since the last one, how many close, how many open, and those that open,
  /// the outer ones first: 2 n for the call of the n-th step before, 2 n + 1 for lines()[n].
  std::span<const std::uint8_t> column() const { return column_.view(); }

 private:
  /// A call of a step, or a line.
  struct Item {
    bool is_call = false;
    std::uint64_t number = 0;
    bool operator==(const Item&) const = default;
  };
  /// What identifies the call that a step made.
  struct Made {
    std::uint64_t step = 0;
    LinearAddr slot, target;
  };
  using LineKey = std::tuple<Position, LinearAddr, unsigned, unsigned>;

  bool may_have_changed(const RecordedStep& step) const;
  void note_call(const RecordedStep& step, std::uint64_t number);
  void look();
  Item item_of(const NestLine& line);
  std::size_t line_number(const LineKey& key, const NestLine& line);

  RunView& view_;
  CallScan scan_;
  std::map<std::uint64_t, Made> made_;  ///< by instruction
  std::map<LineKey, std::size_t> numbers_;
  Json lines_ = Json::array();
  ByteWriter column_;
  std::vector<Item> open_;  ///< the outer ones first
  struct Slot {
    PhysAddr at;
    std::uint32_t bytes = 0;
  };
  std::vector<Slot> slots_;  ///< of the calls that are open
  std::uint64_t changes_ = 0, steps_ = 0, told_at_ = 0;
  LinearAddr stack_;
};

}  // namespace citcat::view
