#pragma once
// The machine as programs find it: segments, pages, gates, a timer.

#include <stdbool.h>
#include <stdint.h>

// Selectors. Every segment has a limit of 4 GiB: the emulator checks none.
enum {
  kKernelCode = 0x08,
  kKernelData = 0x10,
  kUserCode = 0x18 | 3,
  kUserData = 0x20 | 3,
  kTask = 0x28,
  kKernelCode16 = 0x30,
  kUserCode16 = 0x38 | 3,
  kUserData16 = 0x40 | 3,  // base kTestLinear; a stack of 16 bits
  kKernelData16 = 0x48,    // the same for level 0
  kGate = 0x50 | 3,        // a call gate without parameters
  kGate2 = 0x58 | 3,       // one of two parameters
  kAbsent = 0x60 | 3,      // a data segment that is not present
  kOddData = 0x68 | 3,     // base kTestLinear + 0x803
  kLocalTable = 0x70,
  kOtherTask = 0x78,  // a task segment like kTask, not busy
  kSelectors = 0x80,
};

// The same of the local table.
enum {
  kLocalData = 0x00 | 7,
  kLocalData16 = 0x08 | 7,  // base kTestLinear
  kLocalCode = 0x10 | 7,
  kLocalCode16 = 0x18 | 7,
  kLocalAbsent = 0x20 | 7,
  kLocalGate = 0x28 | 7,
  kLocalKernelCode = 0x30 | 4,
  kLocalKernelCode16 = 0x38 | 4,
  kLocalSelectors = 0x40,
};

// Linear addresses of pages that programs use, and the frames behind all of them.
enum {
  kTestLinear = 0x40000000,   // kTestPages pages
  kLargeLinear = 0x40400000,  // 4 MiB: one page, or two with PAE
  kLowLinear = 0x10000,       // kLowPages pages below 1 MiB
  kTestPages = 64,
  kLowPages = 32,
  kFrames = 0x400000,  // physical, and linear for level 0
  kFrameCount = 64,
  kCodeFrames = kFrames + (kFrameCount << 12),  // two more for code
  kAliasLinear = kTestLinear + 0x50000,         // two pages that are these frames, writable
};

// Bits of entries of page tables and directories (Intel SDM vol. 3, 4.3).
enum {
  kPresent = 1,
  kWritable = 2,
  kUser = 4,
  kAccessed = 0x20,
  kDirty = 0x40,
  kLarge = 0x80,
  kGlobal = 0x100,
};

// Makes segments, gates, paging, with PAE or without, and the interrupt controller; interrupts stay
// off.
void set_up_machine(bool with_pae);

// What programs may have done to LDTR, TR and the local table is undone.
void reset_descriptors(void);

// The page at a linear address of programs becomes this, at once. Of a large page `entry` names the
// frame of kLargeLinear.
void set_page(uint32_t linear, uint32_t entry);
// What stands in the table, of an address below kLargeLinear.
uint32_t page_entry(uint32_t linear);
// Where that is, for the kernel.
uint32_t page_entry_address(uint32_t linear);
// Whether set_page() takes it.
bool is_test_page(uint32_t linear);

// The timer interrupts every `period` of its ticks (838 ns).
void set_timer(uint16_t period);
// Tells the controller that the timer's interrupt was taken.
void end_timer_interrupt(void);

// From now on the local APIC makes an NMI of what the controller has for the processor (Intel SDM vol.
// 3, 10.5.1). Before paging is on: its registers are on no page.
void make_timer_nmi(void);
// Takes the timer's interrupt by a poll, as nothing acknowledges it.
void end_timer_nmi(void);

void write_port(uint16_t port, uint8_t value);

void set_cr0(uint32_t value);
uint32_t cr0(void);
void set_cr4(uint32_t value);
uint32_t cr4(void);
