#include "silicon/host_processor.h"

#include <asm/ldt.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

// The child waits here for system calls to make, and its signal handler ends here.
extern "C" void citcat_host_stub();
extern "C" void citcat_host_caught();
asm(".text\n"
    "citcat_host_stub: syscall\n"
    "int3\n"
    "citcat_host_caught: int3\n"
    "hlt\n");

namespace citcat::silicon {
namespace {

constexpr std::uint32_t kFlagTf = 1u << 8;
constexpr std::uint8_t kInt3 = 3;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

int checked(long result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return static_cast<int>(result);
}

void on_alarm(int) {}

constexpr std::array<unsigned long long user_regs_struct::*, 16> kRegisters = {
    &user_regs_struct::rax, &user_regs_struct::rcx, &user_regs_struct::rdx, &user_regs_struct::rbx,
    &user_regs_struct::rsp, &user_regs_struct::rbp, &user_regs_struct::rsi, &user_regs_struct::rdi,
    &user_regs_struct::r8,  &user_regs_struct::r9,  &user_regs_struct::r10, &user_regs_struct::r11,
    &user_regs_struct::r12, &user_regs_struct::r13, &user_regs_struct::r14, &user_regs_struct::r15};
/// In SegmentRegister order.
constexpr std::array<unsigned long long user_regs_struct::*, 6> kSelectors = {
    &user_regs_struct::es, &user_regs_struct::cs, &user_regs_struct::ss,
    &user_regs_struct::ds, &user_regs_struct::fs, &user_regs_struct::gs};

constexpr std::uint64_t joined(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}
void split(std::uint64_t value, std::uint32_t& low, std::uint32_t& high) {
  low = static_cast<std::uint32_t>(value);
  high = static_cast<std::uint32_t>(value >> 32);
}

void to_host(const CpuState& state, user_regs_struct& r) {
  const LongModeState wide = state.long_mode.value_or(LongModeState{});
  r.orig_rax = ~0ull;
  for (std::size_t i = 0; i < 8; ++i) {
    r.*kRegisters[i] = joined(state.gpr[i], wide.gpr_high[i]);
    r.*kRegisters[8 + i] = wide.r[i];
  }
  r.rip = joined(state.eip, wide.rip_high);
  r.eflags = state.eflags | kFlagTf;
  for (std::size_t i = 0; i < 6; ++i) r.*kSelectors[i] = state.segment[i].selector;
  const Segment &fs = state.segment[kFs], &gs = state.segment[kGs];
  const bool bases = state.long_mode.has_value();
  r.fs_base = fs.unusable && !bases ? 0 : joined(fs.base, wide.base_high[kFs]);
  r.gs_base = gs.unusable && !bases ? 0 : joined(gs.base, wide.base_high[kGs]);
}

void from_host(const user_regs_struct& r, CpuState& state) {
  LongModeState wide = state.long_mode.value_or(LongModeState{});
  for (std::size_t i = 0; i < 8; ++i) {
    split(r.*kRegisters[i], state.gpr[i], wide.gpr_high[i]);
    wide.r[i] = r.*kRegisters[8 + i];
  }
  split(r.rip, state.eip, wide.rip_high);
  state.eflags = static_cast<std::uint32_t>(r.eflags) & ~kFlagTf;
  for (std::size_t i = 0; i < 6; ++i) {
    state.segment[i].selector = static_cast<std::uint16_t>(r.*kSelectors[i]);
  }
  split(r.fs_base, state.segment[kFs].base, wide.base_high[kFs]);
  split(r.gs_base, state.segment[kGs].base, wide.base_high[kGs]);
  if (state.long_mode) state.long_mode = wide;
}

/// Ends a wait for a child that does not stop.
class Watchdog {
 public:
  Watchdog() {
    struct sigaction action {};
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, &before_);
    set(1);
  }
  ~Watchdog() {
    set(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static void set(int seconds) {
    const itimerval time{{seconds, 0}, {seconds, 0}};
    setitimer(ITIMER_REAL, &time, nullptr);
  }
  struct sigaction before_ {};
};

}  // namespace

/// Shared by both processes.
struct HostProcessor::Shared {
  std::array<std::uint8_t, 0x10000> signal_stack;
  user_desc descriptor;
};

std::uint32_t HostProcessor::Descriptor::low() const {
  return empty ? 0 : (limit & 0xffff) | base << 16;
}

/// Intel SDM vol. 3, figure 3-8.
std::uint32_t HostProcessor::Descriptor::high() const {
  if (empty) return 0;
  const std::uint32_t type =
      1u | (read_write ? 2u : 0) | (expand_down && !code ? 4u : 0) | (code ? 8u : 0);
  return (base >> 16 & 0xff) | type << 8 | 1u << 12 | 3u << 13 | (present ? 1u << 15 : 0) |
         (limit & 0xf0000) | (wide ? 1u << 22 : 0) | (pages ? 1u << 23 : 0) | (base & 0xff000000);
}

std::string HostProcessor::unavailable() {
  try {
    // The last page may be taken: by the shadow memory of a sanitizer.
    HostProcessor trial(4096, {{0x100000, 0, Rights::write}, {0xfffff000, 0, Rights::write}});
    Descriptor code16;
    code16.code = true;
    code16.base = 0x100000;
    code16.limit = 0xfff;
    Descriptor stack16 = code16;
    stack16.code = false;
    trial.set_ldt({code16, stack16});
    trial.ram()[0] = 0x40;  // INC AX
    CpuState state;
    state.segment[kCs].selector = 7;
    state.segment[kSs].selector = 15;
    state.segment[kDs].selector = state.segment[kEs].selector = 0;
    state.segment[kFs].selector = state.segment[kGs].selector = 0;
    const Step step = trial.step(state, false);
    if (step.end != Step::End::stepped) return "no 16-bit code: " + step.why;
    return state.eip == 1 && state.gpr[kEax] == 1 ? "" : "16-bit code does not run as such";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

HostProcessor::HostProcessor(std::uint32_t ram_bytes, std::vector<Page> pages)
    : pages_(std::move(pages)), ram_bytes_(ram_bytes) {
  ram_file_ = checked(memfd_create("guest", MFD_CLOEXEC), "memfd_create");
  checked(ftruncate(ram_file_, ram_bytes_), "ftruncate");
  void* const ram = mmap(nullptr, ram_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, ram_file_, 0);
  void* const shared =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ram == MAP_FAILED || shared == MAP_FAILED) throw std::runtime_error("no memory");
  ram_ = static_cast<std::uint8_t*>(ram);
  shared_ = static_cast<Shared*>(shared);
  start();
}

HostProcessor::~HostProcessor() {
  stop();
  munmap(ram_, ram_bytes_);
  munmap(shared_, sizeof(Shared));
  close(ram_file_);
}

/// What the child does by itself: it takes its surroundings down to the pages and waits.
void HostProcessor::child() const {
  constexpr int kFailed = 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const Page& page : pages_) {
    const int rights = page.rights == Rights::none   ? PROT_NONE
                       : page.rights == Rights::read ? PROT_READ | PROT_EXEC
                                                     : PROT_READ | PROT_WRITE | PROT_EXEC;
    void* const at = reinterpret_cast<void*>(static_cast<std::uintptr_t>(page.linear));
    const void* const got = mmap(at, 4096, rights, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE,
                                 ram_file_, static_cast<off_t>(page.frame) * 4096);
    if (got != at) _exit(kFailed);
  }
  stack_t stack{};
  stack.ss_sp = shared_->signal_stack.data();
  stack.ss_size = shared_->signal_stack.size();
  if (sigaltstack(&stack, nullptr) != 0) _exit(kFailed);
  struct sigaction action {};
  action.sa_handler = reinterpret_cast<void (*)(int)>(&citcat_host_caught);
  action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO;
  for (const int signal : kSignals) {
    if (sigaction(signal, &action, nullptr) != 0) _exit(kFailed);
  }
  if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(kFailed);
  asm volatile("int3");
  _exit(kFailed);
}

void HostProcessor::start() {
  child_ = checked(fork(), "fork");
  if (child_ == 0) child();
  int stopped_by = 0;
  int status = 0;
  if (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) {
    child_ = -1;
    throw std::runtime_error("no child process to be traced");
  }
  stopped_by = WSTOPSIG(status);
  if (stopped_by != SIGTRAP) throw std::runtime_error("a child process that stops elsewhere");
  checked(ptrace(PTRACE_SETOPTIONS, child_, 0, PTRACE_O_EXITKILL), "PTRACE_SETOPTIONS");
  checked(ptrace(PTRACE_GETREGS, child_, 0, &idle_), "PTRACE_GETREGS");
  if (!ldt_.empty()) set_ldt(std::vector<Descriptor>(ldt_));
}

void HostProcessor::stop() {
  if (child_ < 0) return;
  kill(child_, SIGKILL);
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
}

/// False where the child does not come to a stop.
bool HostProcessor::resume(int signal, int& stopped_by) {
  if (ptrace(PTRACE_CONT, child_, 0, signal) != 0) return false;
  int status = 0;
  if (waitpid(child_, &status, 0) != child_) return false;
  if (!WIFSTOPPED(status)) {
    child_ = -1;
    return false;
  }
  stopped_by = WSTOPSIG(status);
  return true;
}

/// Has the child make a system call.
long HostProcessor::inject(long number, long a, long b, long c) {
  user_regs_struct r = idle_;
  r.rip = reinterpret_cast<std::uintptr_t>(&citcat_host_stub);
  r.orig_rax = ~0ull;
  r.rax = static_cast<unsigned long long>(number);
  r.rdi = static_cast<unsigned long long>(a);
  r.rsi = static_cast<unsigned long long>(b);
  r.rdx = static_cast<unsigned long long>(c);
  checked(ptrace(PTRACE_SETREGS, child_, 0, &r), "PTRACE_SETREGS");
  int stopped_by = 0;
  if (!resume(0, stopped_by)) throw std::runtime_error("the child process is gone");
  checked(ptrace(PTRACE_GETREGS, child_, 0, &r), "PTRACE_GETREGS");
  return static_cast<long>(r.rax);
}

void HostProcessor::set_ldt(const std::vector<Descriptor>& table) {
  ldt_ = table;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Descriptor& d = table[i];
    user_desc u{};
    u.entry_number = static_cast<unsigned>(i);
    u.base_addr = d.base;
    u.limit = d.limit;
    u.seg_32bit = d.wide ? 1 : 0;
    u.contents = d.code          ? MODIFY_LDT_CONTENTS_CODE
                 : d.expand_down ? MODIFY_LDT_CONTENTS_STACK
                                 : MODIFY_LDT_CONTENTS_DATA;
    u.read_exec_only = d.read_write ? 0 : 1;
    u.limit_in_pages = d.pages ? 1 : 0;
    u.seg_not_present = d.present ? 0 : 1;
    if (d.empty) {  // what the kernel takes for one: LDT_empty()
      u = {};
      u.entry_number = static_cast<unsigned>(i);
      u.read_exec_only = 1;
      u.seg_not_present = 1;
    }
    std::memcpy(&shared_->descriptor, &u, sizeof u);
    constexpr long kWrite = 0x11;
    const long result =
        inject(SYS_modify_ldt, kWrite, reinterpret_cast<long>(&shared_->descriptor), sizeof u);
    if (static_cast<int>(result) != 0) {
      throw std::runtime_error(std::string("modify_ldt: ") +
                               std::strerror(-static_cast<int>(result)));
    }
  }
}

HostProcessor::Step HostProcessor::read_exception(int signal) {
  Step step;
  siginfo_t info{};
  checked(ptrace(PTRACE_GETSIGINFO, child_, 0, &info), "PTRACE_GETSIGINFO");
  if (signal == SIGTRAP) {
    step.end = info.si_code == TRAP_TRACE ? Step::End::stepped : Step::End::exception;
    step.vector = kInt3;
    return step;
  }
  if (std::find(std::begin(kSignals), std::end(kSignals), signal) == std::end(kSignals)) {
    step.why = "signal " + std::to_string(signal);
    return step;
  }
  // The frame of the signal has what the kernel was told: the handler is entered for that.
  int stopped_by = 0;
  if (!resume(signal, stopped_by)) {
    step.why = "the child process is gone";
    return step;
  }
  user_regs_struct r{};
  checked(ptrace(PTRACE_GETREGS, child_, 0, &r), "PTRACE_GETREGS");
  const auto stack = reinterpret_cast<std::uintptr_t>(shared_->signal_stack.data());
  if (stopped_by != SIGTRAP || r.rdx < stack ||
      r.rdx > stack + sizeof shared_->signal_stack - sizeof(ucontext_t)) {
    step.why = "no signal frame";
    return step;
  }
  const auto& frame = *reinterpret_cast<const ucontext_t*>(r.rdx);
  step.end = Step::End::exception;
  step.vector = static_cast<std::uint8_t>(frame.uc_mcontext.gregs[REG_TRAPNO]);
  step.error_code = static_cast<std::uint32_t>(frame.uc_mcontext.gregs[REG_ERR]);
  step.cr2 = static_cast<std::uint64_t>(frame.uc_mcontext.gregs[REG_CR2]);
  return step;
}

HostProcessor::Step HostProcessor::step(CpuState& state, bool floating_point) {
  const Watchdog watchdog;
  if (child_ < 0) start();
  user_regs_struct r = idle_;
  to_host(state, r);
  checked(ptrace(PTRACE_SETREGS, child_, 0, &r), "PTRACE_SETREGS");
  user_fpregs_struct fp{};
  static_assert(sizeof fp == sizeof state.fx);
  if (floating_point) {
    std::memcpy(&fp, state.fx.data(), sizeof fp);
    checked(ptrace(PTRACE_SETFPREGS, child_, 0, &fp), "PTRACE_SETFPREGS");
  }
  Step out;
  int stopped_by = 0;
  if (!resume(0, stopped_by)) {
    stop();
    out.why = "the child process does not stop";
    return out;
  }
  checked(ptrace(PTRACE_GETREGS, child_, 0, &r), "PTRACE_GETREGS");
  if (floating_point) {
    checked(ptrace(PTRACE_GETFPREGS, child_, 0, &fp), "PTRACE_GETFPREGS");
    std::memcpy(state.fx.data(), &fp, sizeof fp);
  }
  from_host(r, state);
  return read_exception(stopped_by);
}

}  // namespace citcat::silicon
