#pragma once
// Where the processor executes, and what it fetches.

#include <cstdint>

#include "monitor/processor/insn.h"
#include "monitor/processor/observed_processor.h"

namespace citcat::monitor {

class CodeStream {
 public:
  explicit CodeStream(ObservedProcessor& cpu) : cpu_(cpu) {}

  /// Blocks are shared by all linear addresses of a physical page, so what an instruction was
  /// translated at need not be where it runs. At the first of a block EIP tells.
  std::uint64_t find(const Insn& insn) {
    if (insn.first_in_block) {
      const std::uint64_t ip = cpu_.registers.ip();
      displacement_ = ip + base_at(ip, insn.linear) - insn.linear;
    }
    return linear_of(insn);
  }
  /// The same for one behind it in its block.
  std::uint64_t linear_of(const Insn& insn) const {
    return insn.narrowed(insn.linear + displacement_);
  }
  /// That as an offset in CS.
  std::uint64_t offset_of(const Insn& insn) const {
    return insn.narrowed(insn.linear + displacement_ -
                         (insn.code == CodeSize::bits64 ? 0 : segment_.base));
  }
  /// The linear address that the instruction's memory operand has.
  std::uint64_t effective_address(const Insn& insn, const LoggedState& state) const;
  /// The same without the state, which takes long.
  std::uint64_t effective_address(const Insn& insn) const;

  std::uint64_t base() const { return segment_.base; }
  /// The same, where something may have loaded CS since the instruction in flight was found.
  std::uint64_t known_base() const {
    return segment_.known ? segment_.base : cpu_.registers.state().segment[1].base;
  }
  std::uint16_t selector() const { return segment_.selector; }
  /// Something may have loaded CS. `hidden`: its selector does not say its base.
  void forget_segment(bool hidden) {
    segment_.known = false;
    segment_.hidden = hidden;
  }
  void take_selector() { segment_.selector = cpu_.registers.selector(1); }

  /// After the instruction before, for sequential fetches.
  std::uint64_t next() const { return next_; }
  /// The next fetch is not sequential.
  void jump() { next_ = kNowhere; }
  /// The line of the last fetch is held as it is in memory.
  bool line_is_known() const { return line_is_known_; }
  void lose_line() { line_is_known_ = false; }
  /// An instruction is executed that lies in this line.
  void pass(std::uint64_t linear, unsigned size) { next_ = linear + size; }
  void fetch(const Insn& insn, std::uint64_t linear);
  /// A fetch of which nothing is seen. False, with nothing done, where something may be.
  bool fetch_unseen(const Insn& insn, std::uint64_t linear);

 private:
  template <typename Gpr, typename Base>
  std::uint64_t address_of_operand(const Insn& insn, Gpr gpr, Base base) const;
  std::uint64_t base_at(std::uint64_t ip, std::uint64_t translated_at);

  /// No linear address of any mode: it is not canonical.
  static constexpr std::uint64_t kNowhere = std::uint64_t{1} << 63;

  ObservedProcessor& cpu_;
  std::uint64_t displacement_ = 0;  ///< of the block: where it runs minus where it was translated
  std::uint64_t next_ = 0;
  bool line_is_known_ = false;
  struct Segment {
    std::uint64_t base = 0;
    std::uint16_t selector = 0;
    bool known = false;
    bool hidden = true;  ///< real mode has not loaded CS: its selector does not say
  } segment_;
};

}  // namespace citcat::monitor
