// The yardsticks. Memory is made coherent with code by the library's snapshot level, as the replay
// engine does it (docs/engine.md), so that both pay the same for it.

#include "bench/replay/engine_alone.h"

#include <unicorn/unicorn.h>

#include <array>
#include <ctime>
#include <stdexcept>

// The library's uc_ctl macros convert out-of-range numbers to an enumeration.
#pragma GCC diagnostic ignored "-Wconversion"

namespace citcat::bench {
namespace {

void check(uc_err error) {
  if (error != UC_ERR_OK) throw std::runtime_error(uc_strerror(error));
}

volatile std::uint32_t g_seen;

void trace(uc_engine* uc, std::uint64_t, std::uint32_t, void*) {
  constexpr std::array<int, 8> kRegisters = {UC_X86_REG_EAX, UC_X86_REG_ECX, UC_X86_REG_EDX,
                                             UC_X86_REG_EBX, UC_X86_REG_ESP, UC_X86_REG_EBP,
                                             UC_X86_REG_ESI, UC_X86_REG_EDI};
  std::uint32_t sum = 0;
  for (const int r : kRegisters) {
    std::uint32_t value = 0;
    uc_reg_read(uc, r, &value);
    sum += value;
  }
  g_seen = sum;
}

}  // namespace

double run_alone(const Guest& guest, Alone what) {
  uc_engine* uc = nullptr;
  check(uc_open(UC_ARCH_X86, UC_MODE_32, &uc));
  check(uc_ctl_set_tcg_buffer_size(uc, 32u << 20));
  check(uc_ctl_context_mode(uc, UC_CTL_CONTEXT_MEMORY));
  uc_context* context = nullptr;
  check(uc_context_alloc(uc, &context));
  check(uc_context_save(uc, context));
  uc_context_free(context);
  check(uc_ctl_context_mode(uc, UC_CTL_CONTEXT_CPU));
  check(uc_mem_map(uc, 0, Guest::kMemory, UC_PROT_ALL));
  check(uc_mem_write(uc, Guest::kOrigin, guest.code.data(), guest.code.size()));
  const std::uint32_t esp = Guest::kStack;
  check(uc_reg_write(uc, UC_X86_REG_ESP, &esp));
  uc_hook hook = 0;
  if (what == Alone::tracer) {
    check(uc_hook_add(uc, &hook, UC_HOOK_CODE, reinterpret_cast<void*>(trace), nullptr, 1, 0));
  }
  const std::clock_t start = std::clock();
  check(uc_emu_start(uc, Guest::kOrigin, 0, 0, 0));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  uc_close(uc);
  return seconds;
}

}  // namespace citcat::bench
