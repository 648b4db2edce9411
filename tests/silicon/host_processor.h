#pragma once
// The processor we run on, one instruction at a time: at ring 3 in 64-bit mode, or as what a 64-bit
// kernel lets it be besides, a 32-bit processor with paging, in 32- and 16-bit code segments of a
// local descriptor table that is ours. A child process lies still under ptrace and is given
// registers; TF makes the step. Nothing is emulated on the way: a virtual machine would need
// hardware that lends its legacy modes, and KVM without it interprets the instructions.

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/machine/cpu_state.h"

namespace citcat::silicon {

class HostProcessor {
 public:
  /// Why none can be had here; empty where one can.
  static std::string unavailable();

  enum class Rights : std::uint8_t { none, read, write };
  struct Page {
    std::uint64_t linear = 0;
    std::uint32_t frame = 0;  ///< number
    Rights rights = Rights::write;
  };
  /// `pages` are all that there is of the linear address space, frames of a memory of `ram_bytes`.
  /// Throws std::runtime_error.
  HostProcessor(std::uint32_t ram_bytes, std::vector<Page> pages);
  ~HostProcessor();
  HostProcessor(const HostProcessor&) = delete;
  HostProcessor& operator=(const HostProcessor&) = delete;

  std::span<std::uint8_t> ram() const { return {ram_, ram_bytes_}; }

  /// A segment descriptor of ring 3, accessed; all zeros for one that is empty.
  struct Descriptor {
    std::uint32_t base = 0, limit = 0;  ///< the limit as it stands in the descriptor
    bool code = false, expand_down = false;
    bool read_write = true;  ///< of code: readable; of data: writable
    bool wide = false, pages = false, present = true, empty = false;
    std::uint32_t low() const;
    std::uint32_t high() const;
  };
  void set_ldt(const std::vector<Descriptor>& table);

  struct Step {
    enum class End : std::uint8_t { stepped, exception, other } end = End::other;
    std::uint8_t vector = 0;
    std::uint32_t error_code = 0;
    std::uint64_t cr2 = 0;
    std::string why;  ///< of `other`
  };
  /// Executes one instruction, or one iteration of a repeated string, from `state`, and leaves
  /// there what came of it: general registers, EIP, EFLAGS without TF, selectors, and the bases of
  /// FS and GS; of a state of a processor with long mode all 64 bits of them, and R8 to R15. The
  /// instruction is executed with TF set, which an image of EFLAGS shows.
  Step step(CpuState& state, bool floating_point);

 private:
  void start();
  void stop();
  [[noreturn]] void child() const;
  long inject(long number, long a, long b, long c);
  bool resume(int signal, int& stopped_by);
  Step read_exception(int signal);

  struct Shared;
  std::vector<Page> pages_;
  std::vector<Descriptor> ldt_;
  std::uint8_t* ram_ = nullptr;
  std::uint32_t ram_bytes_ = 0;
  int ram_file_ = -1;
  Shared* shared_ = nullptr;
  pid_t child_ = -1;
  user_regs_struct idle_{};  ///< of the child where it waits
};

}  // namespace citcat::silicon
