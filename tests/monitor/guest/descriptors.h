// Segments and rights of vectors that programs of 32 bits and of long mode find alike.
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "devices.h"
#include "machine.h"

enum { kPages = 8, kWide = 4, kLong = 2 };  // bits 20 to 23 of a descriptor's upper half

enum { kUserVectors = 0x80, kUserVectorsEnd = 0x90 };

// The rights of the gate of a vector: programs of level 3 may name a few.
static inline uint32_t gate_rights(uint32_t vector) {
  const bool for_user =
      vector == 3 || vector == 4 || (vector >= kUserVectors && vector < kUserVectorsEnd);
  return for_user ? 0xee : 0x8e;
}

static inline void set_up_common_segments(uint64_t* gdt) {
  const uint32_t code0 = 0x9b, data0 = 0x93, code3 = 0xfb, data3 = 0xf3;
  gdt[kKernelData / 8] = segment(0, 0xfffff, data0, kPages | kWide);
  gdt[kUserCode / 8] = segment(0, 0xfffff, code3, kPages | kWide);
  gdt[kUserData / 8] = segment(0, 0xfffff, data3, kPages | kWide);
  gdt[kKernelCode16 / 8] = segment(kTestLinear, 0xfffff, code0, kPages);
  gdt[kUserCode16 / 8] = segment(kTestLinear, 0xfffff, code3, kPages);
  gdt[kUserData16 / 8] = segment(kTestLinear, 0xfffff, data3, kPages);
  gdt[kKernelData16 / 8] = segment(kTestLinear, 0xfffff, data0, kPages);
  gdt[kAbsent / 8] = segment(kTestLinear, 0xfffff, data3 & ~0x80u, kPages | kWide);
  gdt[kOddData / 8] = segment(kTestLinear + 0x803, 0xfffff, data3, kPages | kWide);
}

// None accessed yet.
static inline void set_up_common_local_segments(uint64_t* ldt) {
  const uint32_t code0 = 0x9a, code3 = 0xfa, data3 = 0xf2;
  ldt[kLocalData / 8] = segment(0, 0xfffff, data3, kPages | kWide);
  ldt[kLocalData16 / 8] = segment(kTestLinear, 0xfffff, data3, kPages);
  ldt[kLocalCode / 8] = segment(0, 0xfffff, code3, kPages | kWide);
  ldt[kLocalCode16 / 8] = segment(kTestLinear, 0xfffff, code3, kPages);
  ldt[kLocalAbsent / 8] = segment(0, 0xfffff, data3 & ~0x80u, kPages | kWide);
  ldt[kLocalKernelCode / 8] = segment(0, 0xfffff, code0, kPages | kWide);
  ldt[kLocalKernelCode16 / 8] = segment(kTestLinear, 0xfffff, code0, kPages);
}

// Loads LDTR anew. True where TR still holds kTask.
static inline bool reload_local_table(void) {
  uint32_t current;
  __asm__ volatile("lldt %w0" : : "r"(kLocalTable) : "memory");
  __asm__ volatile("str %0" : "=r"(current));
  return current == kTask;
}

static inline void load_task(void) { __asm__ volatile("ltr %w0" : : "r"(kTask) : "memory"); }

#endif
