#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tools/export/drmemtrace_contexts.h"
#include "tools/export/drmemtrace_entries.h"
#include "tools/export/drmemtrace_schedule.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {

/// The number of the encoding that was written last for each address.
class EncodedCode {
 public:
  const StaticInstruction*& at(std::uint32_t place) {
    const std::size_t piece = place / kPiece;
    if (piece >= pieces_.size()) pieces_.resize(piece + 1);
    if (pieces_[piece] == nullptr) pieces_[piece] = std::make_unique<Piece>();
    return (*pieces_[piece])[place % kPiece];
  }
  void clear() { pieces_.clear(); }

 private:
  static constexpr std::size_t kPiece = 512;
  using Piece = std::array<const StaticInstruction*, kPiece>;
  std::vector<std::unique_ptr<Piece>> pieces_;  ///< null: nothing was
};

/// What one file of drmemtrace holds: the entries of one thread, or of all that a processor ran.
class DrmemtraceStream {
 public:
  enum class View : std::uint8_t { user, whole, simulator };
  struct Form {
    View view = View::whole;
    std::size_t address_bytes = 8;  ///< of an entry
    bool encodings = true;
    bool physical = false;  ///< where pages lie is told
    /// The places of pages are valid until another file goes on.
    bool among_others = false;
    bool all_threads = false;   ///< they are in one file
    std::size_t processor = 0;  ///< that they run on
    MachineFacts machine;
  };

  DrmemtraceStream(const Form& form, std::unique_ptr<DrmemtraceOutput> output);

  /// DynamoRIO's thread and process: the address space's number, which is not 0.
  static std::uint32_t thread_of(AddressSpaceId address_space) {
    const FrameNumber frame = PhysAddr{address_space}.page();
    if (frame >= ~std::uint32_t{0}) throw UsageError("drmemtrace: a process beyond 16 TiB");
    return static_cast<std::uint32_t>(frame) + 1;
  }

  /// DynamoRIO decodes each file as code of one mode: of 64 bits where the processor has them,
  /// else of 32.
  static bool is_decodable(const StaticInstruction& code, CpuModel model);

  /// What an instruction is to DynamoRIO, whenever it runs.
  struct Code {
    Code(const StaticInstruction& code, CpuModel model, std::uint32_t number);
    static Code of(const StepCode& code) { return std::bit_cast<Code>(code.known); }
    DrEntry type;         ///< of a jump that depends on something: untaken_jump
    bool has_pieces : 1;  ///< one operand is accessed in several pieces
    bool joins : 1;       ///< they may be more than those of one access across a page's end
    bool is_foreign : 1;  ///< not is_decodable()
    bool is_known : 1;    ///< DynamoRIO's decoder knows where it goes, if it is a direct branch
    std::uint32_t place;  ///< the number of its address, which stands for that
  };
  static_assert(sizeof(Code) == sizeof(StepCode::known));

  /// DynamoRIO wants what follows right after it, with no time in between.
  static bool is_branch(const Step& step);

  /// The run goes on in a thread of this file, with `step`, at `time`, which counts from 0.
  void enter(const Step& step, std::uint64_t time);
  /// Of code that has a Code as StepCode::known, as all of these.
  void step(const Step& step);
  void steps(const StepRun& run);
  /// After a step of it.
  void happened(const StepEvent& h);
  void end(std::uint64_t time);
  const DrmemtraceSchedule& schedule() const { return schedule_; }
  /// Instructions with encodings that DynamoRIO takes for others.
  std::uint64_t foreign() const { return foreign_; }

 private:
  void begin(const Step& step);
  void name_thread(std::uint32_t thread);
  void tell_time(std::uint64_t time);
  void enter_level(LinearAddr here, std::uint32_t level);
  void follow_user(const Step& step);
  void happened_in_system(const StepEvent& h);
  void begin_chunk();
  void forget_pages();
  void write_pages(const Step& step);
  void write_page(LinearAddr linear, PhysAddr physical);
  void write_encoding(const StepCode& step, const Code& code);
  void write_access(const StepAccess& a) {
    out_.entry(a.write ? DrEntry::write : DrEntry::read, static_cast<std::uint16_t>(a.size),
               a.linear.value);
  }
  void write_run_accesses(const StepCode& step, const Code& code, const RunAccesses& accesses);
  void completed(DrEntry type, const StepCode& step, LinearAddr next);
  DrEntry entry_of(DrEntry type, const StepCode& step, const Code& code, LinearAddr next) const;
  bool is_at_hand(const StepRun& run);
  void write_at_once(const StepRun& run);

  Form form_;
  DrmemtraceEntries out_;
  DrmemtraceSchedule schedule_;
  DrmemtraceContexts contexts_;
  std::uint32_t thread_ = 0;  ///< 0: none was yet
  EncodedCode encoded_;
  std::unordered_map<std::uint64_t, std::uint64_t> pages_;  ///< physical, by linear, as told
  /// The same of some, by number, which are found at once.
  struct ToldPage {
    std::uint64_t page = ~std::uint64_t{0}, frame = 0;
  };
  std::array<ToldPage, 256> recent_pages_{};
  std::uint64_t foreign_ = 0;
  bool behind_branch_ = false;          ///< the last step was one
  std::optional<std::uint64_t> later_;  ///< a time that is told after the next step
  bool is_told_where_ = true;  ///< an event was told since the last step, or nothing before
  LinearAddr last_next_;       ///< where the last step went on
  LinearAddr last_behind_;     ///< the address after it
  bool last_is_sysenter_ = false;
  bool returned_ = false;  ///< an IRET, SYSEXIT or SYSRET was the last step
  /// Where a thread goes on, unless the system makes it go on elsewhere.
  struct Expected {
    std::optional<LinearAddr> next;
    bool from_system_call = false;
  };
  std::map<std::uint32_t, Expected> threads_;
  Expected* expected_ = nullptr;                ///< of `thread_`
  std::vector<StepAccess> records_, accesses_;  ///< of one step, kept for their capacity
};

}  // namespace citcat::tools
