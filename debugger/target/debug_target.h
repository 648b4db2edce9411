#pragma once
// The recorded machine as a debugger sees it: moved by its timeline, read at linear addresses, and
// stopped where its user asks. The replay itself cannot be changed; a branch of it can, and is
// discarded later (fork()).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "debugger/target/page_tables.h"
#include "debugger/target/register_file.h"
#include "events/archive/recording_file.h"
#include "replay/run/replay_timeline.h"
#include "replay/session/known_registers.h"

namespace citcat {

/// Kinds of stops, numbered as in gdb's packet Z.
enum class StopKind : std::uint8_t {
  software_breakpoint,
  hardware_breakpoint,
  write_watchpoint,
  read_watchpoint,
  access_watchpoint,
};

/// How a move ended.
struct MoveEnd {
  enum class Why : std::uint8_t {
    moved,  ///< as far as was asked for
    breakpoint,
    watchpoint,
    end,        ///< there is nothing further
    beginning,  ///< nor before
    interrupted,
  } why = Why::moved;
  StopKind kind = StopKind::software_breakpoint;  ///< of what was met
  LinearAddr watched{};                           ///< the watchpoint's address
};

class DebugTarget {
 public:
  using Interrupt = ReplayTimeline::Interrupt;
  /// `file` and the observer, which may be null, must outlive the object. `check`: see
  /// TimelineOptions.
  DebugTarget(const RecordingFile& file, ComparisonPolicy policy, bool check,
              Observer* observer = nullptr);

  const RecordingFile& file() const { return file_; }
  ReplayTimeline& timeline() { return timeline_; }
  const ReplayTimeline& timeline() const { return timeline_; }
  const Machine& machine() const { return timeline_.machine(); }
  const RegisterFile& register_file() const { return register_file_; }

  RegisterView registers() const;
  /// Bytes from `address` on, up to the first one that is not known or not mapped.
  std::vector<std::uint8_t> read(LinearAddr address, std::size_t size) const;
  /// The size of the code that runs here: 16, 32 or 64.
  int code_bits() const;
  /// The address that a number of gdb's stands for: 32 bits of it, of processors with long mode
  /// all.
  LinearAddr address(std::uint64_t number) const {
    return has_long_mode_ ? LinearAddr{number} : LinearAddr{static_cast<std::uint32_t>(number)};
  }
  LinearAddr next_instruction() const { return machine().next_linear(); }

  /// For a breakpoint `size` has no meaning. A watchpoint watches the memory that lies at the
  /// address now, for all accesses by any address. If nothing is mapped there, a move looks for the
  /// store to the page tables that changes this, and then for accesses.
  void insert(StopKind kind, LinearAddr address, std::uint32_t size);
  void remove(StopKind kind, LinearAddr address, std::uint32_t size);
  void remove_all() { inserted_.clear(); }
  /// Says which accesses by other bus masters to watched memory end no move; may be empty.
  void leave_out(std::function<bool(const StopHit&)> is_left_out) {
    is_left_out_ = std::move(is_left_out);
  }
  bool has_stops() const { return !inserted_.empty(); }
  /// Whether something is mapped now at all of these addresses.
  bool is_mapped(LinearAddr address, std::size_t size) const;
  /// The addresses of watchpoints for which is_mapped() is false.
  std::vector<LinearAddr> unmapped_watchpoints() const;
  /// The breakpoint at the instruction that is to run next.
  std::optional<MoveEnd> breakpoint_here() const;

  // A move ends with a watchpoint after the instruction that meets it, a move back before it. An
  // answer names one address. Where an instruction meets watchpoints that have none in common,
  // the next move in the same direction ends at once, with the next of them.
  MoveEnd step();
  MoveEnd step_back();
  /// Steps at least once, until the next instruction lies outside [first, first + size).
  MoveEnd step_in_range(LinearAddr first, std::uint32_t size, const Interrupt& interrupt);
  MoveEnd go_on(const Interrupt& interrupt);
  MoveEnd go_back(const Interrupt& interrupt);

  /// From here on registers and memory may be changed, and the machine goes on with them as long as
  /// what was recorded of its surroundings fits; not back.
  void fork();
  /// Throws the branch away: the machine is where it was when it began.
  void join();
  bool forked() const { return timeline_.in_branch(); }
  /// Works on a branch only. False where the register cannot be set, or nothing is mapped.
  bool set_register(std::size_t number, std::span<const std::uint8_t> value);
  bool write(LinearAddr address, std::span<const std::uint8_t> bytes);

 private:
  struct Inserted {
    StopKind kind;
    LinearAddr address;
    std::uint32_t size;
    bool operator==(const Inserted&) const = default;
  };
  enum class Direction : std::uint8_t { on, back };
  /// What a move looks for, and to which watchpoint each piece of watched memory belongs: nullopt
  /// if the piece is the entry of a page table that maps nothing at the watchpoint's address yet.
  struct Lookout {
    explicit Lookout(const CpuState& cpu) : tables(cpu) {}
    StopSet stops;
    std::vector<std::optional<Inserted>> watchpoints;
    PageTables tables;
    struct Unmapped {
      std::size_t number = 0;  ///< of its piece
      LinearAddr address;
      std::uint32_t size = 0;
      Inserted watchpoint;
    };
    std::vector<Unmapped> unmapped;
  };
  /// Watchpoints that were met here and not yet reported.
  struct Untold {
    Moment at;
    Direction direction = Direction::on;
    std::vector<Inserted> watchpoints;
  };
  template <class F>
  void for_each_page(LinearAddr address, std::size_t size, F&& visit) const;
  Lookout lookout() const;
  void look_up_unmapped(Lookout& lookout) const;
  MoveEnd run(Direction direction, const Interrupt& interrupt);
  std::optional<MoveEnd> end_of(const ReplayTimeline::Stop& stop, const Lookout& lookout,
                                Direction direction);
  std::vector<Inserted> watchpoints_met(const std::vector<StopHit>& met,
                                        const Lookout& lookout) const;
  MoveEnd met(std::vector<Inserted> watchpoints, Direction direction);
  void leave_out_unchanged(std::vector<Inserted>& watchpoints, Direction direction);
  std::vector<std::vector<std::uint8_t>> contents(const std::vector<Inserted>& watchpoints) const;
  std::optional<MoveEnd> next_untold(Direction direction);
  MoveEnd one_step(Direction direction);

  const RecordingFile& file_;
  const bool has_long_mode_;
  ReplayTimeline timeline_;
  RegisterFile register_file_;
  KnownRegisters known_registers_;
  std::vector<Inserted> inserted_;
  std::function<bool(const StopHit&)> is_left_out_;
  Untold untold_;
  std::vector<std::string> set_in_branch_;  ///< registers that nobody knew
};

}  // namespace citcat
