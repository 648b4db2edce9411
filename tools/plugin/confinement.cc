#include "tools/plugin/confinement.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#ifdef CITCAT_SECCOMP
#include <seccomp.h>
#endif

namespace citcat::tools {

namespace {

/// The leak checker of a sanitizer traces its own process.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kTracesItself = true;
#else
constexpr bool kTracesItself = false;
#endif

/// capabilities(7): whoever traces must have all that the other has, or CAP_SYS_PTRACE. So much is
/// left that root still reads and writes the files of others.
constexpr std::uint32_t kFileCapabilities = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE |
                                            1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER |
                                            1u << CAP_FSETID;

void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  for (std::size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    const std::uint32_t kept = i == 0 ? kFileCapabilities : 0;
    sets[i].permitted &= kept;
    sets[i].effective &= kept;
    sets[i].inheritable = 0;
  }
  ::syscall(SYS_capset, &header, sets);
}

#ifdef CITCAT_SECCOMP

/// What fails with EPERM.
class Filter {
 public:
  Filter() : filter_(seccomp_init(SCMP_ACT_ALLOW)) {}
  ~Filter() {
    if (filter_ != nullptr) seccomp_release(filter_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  void refuse(std::initializer_list<int> calls) {
    if (filter_ == nullptr) return;
    for (const int call : calls) seccomp_rule_add(filter_, SCMP_ACT_ERRNO(EPERM), call, 0);
  }
  /// Where the first argument, of 32 bits, is `value`.
  void refuse_for(std::initializer_list<int> calls, int value) {
    if (filter_ == nullptr) return;
    for (const int call : calls) {
      const scmp_arg_cmp is_it =
          SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, static_cast<std::uint32_t>(value));
      seccomp_rule_add(filter_, SCMP_ACT_ERRNO(EPERM), call, 1, is_it);
    }
  }
  void refuse_other_processes(int call) {
    if (filter_ == nullptr) return;
    const scmp_arg_cmp is_other = SCMP_A0(SCMP_CMP_NE, 0);
    seccomp_rule_add(filter_, SCMP_ACT_ERRNO(EPERM), call, 1, is_other);
  }
  void load() {
    if (filter_ != nullptr) seccomp_load(filter_);
  }

 private:
  scmp_filter_ctx filter_;
};

void filter_calls(pid_t host, pid_t guard) {
  Filter filter;
  if (!kTracesItself) filter.refuse({SCMP_SYS(ptrace)});
  filter.refuse({SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
                 SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal), SCMP_SYS(kcmp),
                 SCMP_SYS(setpgid), SCMP_SYS(setsid), SCMP_SYS(bpf), SCMP_SYS(perf_event_open)});
  // Limits of itself, which 0 is, are what getrlimit() asks for.
  filter.refuse_other_processes(SCMP_SYS(prlimit64));
  constexpr int kAll = -1;
  for (const int target : {static_cast<int>(host), static_cast<int>(guard), kAll}) {
    filter.refuse_for({SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo),
                       SCMP_SYS(rt_tgsigqueueinfo)},
                      target);
  }
  filter.load();
}

#else

void filter_calls(pid_t, pid_t) {}

#endif

}  // namespace

void close_to_others() {
  if (!kTracesItself) ::prctl(PR_SET_DUMPABLE, 0);
}

void open_to_others() {
  if (!kTracesItself) ::prctl(PR_SET_DUMPABLE, 1);
}

void confine(pid_t host, pid_t guard) {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  drop_capabilities();
  close_to_others();
  filter_calls(host, guard);
}

}  // namespace citcat::tools
