#pragma once
// The machine as programs find it: segments, pages, gates. It is made by machine32.c or
// machine64.c.

#include <stdbool.h>
#include <stdint.h>

// A register, or what the processor pushes: 32 bits, or 64 where the guest is built for long mode.
typedef uintptr_t word;

// Selectors. Every segment has a limit of 4 GiB: the emulator checks none.
#ifdef __x86_64__
// In the order that SYSRET and SYSEXIT take them in (Intel SDM vol. 3, 5.8.7 and 5.8.8).
// Descriptors of tables, tasks and gates have 16 bytes.
enum {
  kKernelCode = 0x08,
  kKernelData = 0x10,
  kUserCode = 0x18 | 3,  // of compatibility mode, like all but those that say otherwise
  kUserData = 0x20 | 3,
  kUserCode64 = 0x28 | 3,
  kUserDataBehind = 0x30 | 3,  // what SYSEXIT takes behind it
  kTask = 0x38,
  kOtherTask = 0x48,
  kLocalTable = 0x58,
  kGate = 0x68 | 3,
  kGate2 = 0x78 | 3,
  kKernelCode16 = 0x88,
  kUserCode16 = 0x90 | 3,
  kUserData16 = 0x98 | 3,
  kKernelData16 = 0xa0,
  kAbsent = 0xa8 | 3,
  kOddData = 0xb0 | 3,
  kKernelCode32 = 0xb8,
  kSelectors = 0xc0,
};

enum {
  kLocalData = 0x00 | 7,
  kLocalData16 = 0x08 | 7,
  kLocalCode = 0x10 | 7,
  kLocalCode16 = 0x18 | 7,
  kLocalAbsent = 0x20 | 7,
  kLocalGate = 0x28 | 7,
  kLocalKernelCode = 0x38 | 4,
  kLocalKernelCode16 = 0x40 | 4,
  kLocalCode64 = 0x48 | 7,
  kLocalSelectors = 0x50,
};
#else
enum {
  kKernelCode = 0x08,
  kKernelCode32 = kKernelCode,  // long mode tells these from others
  kKernelData = 0x10,
  kUserCode = 0x18 | 3,
  kUserCode64 = kUserCode,
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
  kLocalCode64 = kLocalCode,
  kLocalCode16 = 0x18 | 7,
  kLocalAbsent = 0x20 | 7,
  kLocalGate = 0x28 | 7,
  kLocalKernelCode = 0x30 | 4,
  kLocalKernelCode16 = 0x38 | 4,
  kLocalSelectors = 0x40,
};
#endif

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

#ifdef __x86_64__
// All this is there three times: from 0 on, open like that from kHighAlias on, and without code
// from kClosedAlias on. kHugeLinear is physical address 0: a page of 1 GiB where the processor has
// such, or else pages of 2 MiB.
#define kHighAlias 0xffffff8000000000u
#define kClosedAlias 0x00007f8000000000u
#define kHugeLinear 0x80000000u
enum { kAliasBits = 39 };
#endif

// The first of the addresses that share a page's entries.
static inline word first_alias(word linear) {
#ifdef __x86_64__
  return linear & ((1ull << kAliasBits) - 1);
#else
  return linear;
#endif
}

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
#define kNoExecute (1ull << 63)  // of entries of 8 bytes

// The general registers as entry*.S pushes them, ESP's slot among those of 32 bits.
#ifdef __x86_64__
enum { kGeneral = 15, kCounter = 13, kNoRegister = kGeneral };
#else
enum { kGeneral = 8, kCounter = 6, kNoRegister = 3 };
#endif

// What entry*.S finds when a program is entered, and leaves of one that was left. The selectors of
// data are loaded there, and in long mode not left: the kernel does not touch them.
struct frame {
  word gs, fs, es, ds;
  word general[kGeneral];  // EDI first, EAX last; in long mode R15 first
  word vector, error;
  word ip, cs, flags, sp, ss;
  word old_es, old_ds, old_fs, old_gs;  // virtual-8086 mode alone
};

// Makes segments, gates, paging, of 32 bits with PAE or without, and the interrupt controller;
// interrupts stay off. With `timer_nmi` the timer sends NMIs in place of them.
void set_up_machine(bool with_pae, bool timer_nmi);

// What programs may have done to LDTR, TR and the local table is undone.
void reset_descriptors(void);

// The page at a linear address of programs, the first of those that share its entry, becomes this,
// at once and at all of them. Of a large page `entry` names no frame.
void set_page(word linear, uint64_t entry);
// What stands in the table, of an address below kLargeLinear.
uint64_t page_entry(word linear);
// Where that is, for the kernel.
word page_entry_address(word linear);
// Whether set_page() takes it; of those, whether it is large.
bool is_test_page(word linear);
bool is_large_page(word linear);
// The bits that entries may have beside those of all machines: kNoExecute or none.
uint64_t entry_marks(void);

// What of a program's state IRET does not load: in long mode segments, and at random their bases.
void prepare_machine(const struct frame* frame);
