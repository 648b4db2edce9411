#pragma once
// What CPUID tells of the processor.

#include <stdbool.h>
#include <stdint.h>

struct answer {
  uint32_t eax, ebx, ecx, edx;
};
struct answer ask(uint32_t leaf);
// What the replay has to know of the processor it learns from what the guest asks, as systems do.
void ask_all(void);

bool is_of_amd(void);
bool has_xsave(void);

// XCR0 and CR4.OSXSAVE where it has: the components of the x87 and of SSE.
void enable_xsave(void);
