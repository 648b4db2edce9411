#pragma once
// The processor's registers as gdb numbers them, and the description that tells gdb about them
// (Debugging with GDB, appendix G, "Target Descriptions": features org.gnu.gdb.i386.core, .sse and
// .segments, which have the registers of 64 bits where the processor has long mode, whatever mode
// it is in). What gdb has no feature for - control and debug registers, hidden parts of segments,
// the position in the run - is in citcat's own feature, org.citcat.system.
//
// gdb does not know segments: its program counter is the address of the next instruction. `eip` is
// therefore CS.base + EIP, a linear address; the register itself is `eip_offset`. In flat code they
// are the same. `esp` is what the register holds, and `ss_base` is beside it.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/machine/cpu_state.h"
#include "replay/session/moment.h"

namespace citcat {

/// A processor as gdb looks at it.
struct RegisterView {
  CpuState cpu;
  Moment moment;
};

/// Which registers there are depends on the processor: SSE from the P6 family on, registers of 64
/// bits with long mode.
class RegisterFile {
 public:
  explicit RegisterFile(CpuModel model);

  /// target.xml. `bits16`: code of 16 bits is disassembled as such, until gdb is told otherwise.
  std::string description(bool bits16) const;
  std::size_t count() const { return registers_.size(); }
  /// Bytes of register `number`, which is below count(), lowest first; nullopt if it is not known
  /// what it holds.
  std::optional<std::vector<std::uint8_t>> value(std::size_t number,
                                                 const RegisterView& view) const;
  std::size_t bytes(std::size_t number) const { return registers_[number].bytes; }
  const std::string& name(std::size_t number) const { return registers_[number].name; }
  /// Sets it in `cpu`; false if it cannot be set (a fact about the run, not the processor), or
  /// `value` has another size.
  bool set(std::size_t number, std::span<const std::uint8_t> value, CpuState& cpu) const;

  /// Numbers of (R/E)IP, (R/E)SP and (R/E)BP.
  std::array<std::size_t, 3> places() const;

 private:
  /// Where its value is.
  enum class Source : std::uint8_t { state, msr, eip, x87, control, tags, xmm, mxcsr, run };
  struct Register {
    std::string name;
    std::size_t bytes = 4;
    std::string type;   ///< in target.xml
    std::string state;  ///< name for get_register(); also of what makes it unknown
    Source source = Source::state;
    std::size_t index = 0;  ///< of several of a kind
    unsigned feature = 0;
  };
  void add(Register r) { registers_.push_back(std::move(r)); }
  void add_core();
  void add_wide_core();
  void add_wide_segments();
  void add_x87();
  void add_sse(std::size_t count);
  void add_system();

  bool wide_;
  std::vector<Register> registers_;
};

}  // namespace citcat
