// Long mode.

#include "descriptors.h"
#include "devices.h"
#include "machine.h"
#include "model.h"
#include "random.h"

static uint64_t gdt[kSelectors / 8];
static uint64_t ldt[kLocalSelectors / 8];
static uint64_t idt[2 * 256];
static bool no_execute;
static uint64_t top[512] __attribute__((aligned(4096)));
static uint64_t pointers[512] __attribute__((aligned(4096)));
static uint64_t directories[4][512] __attribute__((aligned(4096)));  // of the first gigabytes
static uint64_t low_table[512] __attribute__((aligned(4096)));
static uint64_t test_table[512] __attribute__((aligned(4096)));

enum { kNmiStack = 1, kOtherStack = 2, kInterruptStacks = 2 };
static uint8_t exception_stack[8192] __attribute__((aligned(16)));
static uint8_t interrupt_stacks[kInterruptStacks][8192] __attribute__((aligned(16)));

// The task segment of long mode (Intel SDM vol. 3, figure 7-11) with its map of ports.
enum { kMappedPorts = 0x400 };
static struct task {
  uint32_t reserved;
  uint64_t rsp[3], reserved2, stacks[7], reserved3;
  uint16_t reserved4, map_base;
  uint8_t map[kMappedPorts / 8], end;
} __attribute__((packed)) task, other_task;

extern uint8_t vector_entries[], gate_target[], gate_target_2[];
extern uint8_t system_call[], system_call_32[], system_enter[], system_stack_end[];

static void write_msr(uint32_t msr, uint64_t value) {
  __asm__ volatile("wrmsr" : : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

// EDX of the CPUID leaf with no-execute and pages of 1 GiB.
static uint32_t extended_features(void) { return ask(0x80000001).edx; }

static void set_up_task(struct task* t) {
  t->rsp[0] = (uint64_t)exception_stack + sizeof exception_stack;
  for (uint32_t i = 0; i < kInterruptStacks; ++i)
    t->stacks[i] = (uint64_t)interrupt_stacks[i] + sizeof interrupt_stacks[i];
  t->map_base = (uint16_t) __builtin_offsetof(struct task, map);
  for (uint32_t i = 0; i < sizeof t->map; ++i) t->map[i] = 0xff;
  t->map[0xe8 / 8] = 0x0f;  // ports ECh to EFh, where nothing is
  t->end = 0xff;
}

// Descriptors of 16 bytes: of system segments and gates (Intel SDM vol. 3, figures 5-11, 6-8, 7-4).
static void put_system_segment(uint64_t* at, const void* base, uint32_t bytes, uint32_t access) {
  at[0] = segment((uint32_t)(uint64_t)base, bytes - 1, access, 0);
  at[1] = (uint64_t)base >> 32;
}

static void put_gate(uint64_t* at, const void* target, uint32_t access, uint32_t stack) {
  const uint64_t offset = (uint64_t)target;
  at[0] = (offset & 0xffff0000) << 32 | (uint64_t)(access << 8 | stack) << 32 | kKernelCode << 16 |
          (offset & 0xffff);
  at[1] = offset >> 32;
}

static void set_up_local_segments(void) {
  set_up_common_local_segments(ldt);
  put_gate(&ldt[kLocalGate / 8], gate_target, 0xec, 0);
  ldt[kLocalCode64 / 8] = segment(0, 0xfffff, 0xfa, kPages | kLong);
}

static void free_task(uint32_t selector, struct task* t) {
  put_system_segment(&gdt[selector / 8], t, sizeof *t, 0x89);
}

void reset_descriptors(void) {
  set_up_local_segments();
  if (reload_local_table()) return;
  free_task(kTask, &task);
  free_task(kOtherTask, &other_task);
  load_task();
}

static void set_up_segments(void) {
  const uint32_t code0 = 0x9b, code3 = 0xfb, data3 = 0xf3;
  set_up_common_segments(gdt);
  gdt[kKernelCode / 8] = segment(0, 0xfffff, code0, kPages | kLong);
  gdt[kUserCode64 / 8] = segment(0, 0xfffff, code3, kPages | kLong);
  gdt[kUserDataBehind / 8] = segment(0, 0xfffff, data3, kPages | kWide);
  free_task(kTask, &task);
  free_task(kOtherTask, &other_task);
  put_system_segment(&gdt[kLocalTable / 8], ldt, sizeof ldt, 0x82);
  put_gate(&gdt[kGate / 8], gate_target, 0xec, 0);
  put_gate(&gdt[kGate2 / 8], gate_target_2, 0xec, 0);
  gdt[kKernelCode32 / 8] = segment(0, 0xfffff, code0, kPages | kWide);
  set_up_task(&task);
  set_up_task(&other_task);
}

// An NMI may find the stack pointer of a program at level 0, and has a stack of its own; of some
// seeds everything has. An NMI would show which SS its handler was interrupted with.
static void set_up_gates(bool timer_nmi) {
  const uint32_t usual_stack = one_in(2) || timer_nmi ? 0 : kOtherStack;
  for (uint32_t vector = 0; vector < 256; ++vector) {
    put_gate(&idt[2 * vector], vector_entries + 16 * vector, gate_rights(vector),
             vector == 2 ? kNmiStack : usual_stack);
  }
}

static uint64_t table_entry(const uint64_t* table, uint64_t marks) {
  return (uint64_t)table | marks;
}

// The first 4 MiB of the kernel, of these the first 2 by pages; 4 MiB by large pages at each of
// kFrames, the kernel's, and kLargeLinear; the local APIC's registers.
static void set_up_tables(bool pages_of_1gib) {
  const uint64_t kernel = kPresent | kWritable, open = kernel | kUser, apic = 0xfee00000;
  for (uint64_t page = 256; page < 512; ++page) low_table[page] = page << 12 | kernel;
  for (uint32_t page = 0; page < 2; ++page)
    test_table[(kAliasLinear >> 12 & 511) + page] = (kCodeFrames + (page << 12)) | open;
  directories[0][0] = table_entry(low_table, open);
  for (uint64_t at = 1; at < 4; ++at) directories[0][at] = at << 21 | kernel | kLarge;
  directories[1][0] = table_entry(test_table, open);
  for (uint64_t at = 0; at < 2; ++at)
    directories[1][(kLargeLinear >> 21 & 511) + at] = (kFrames + (at << 21)) | open | kLarge;
  directories[2][kFrames >> 21] = kFrames | open | kLarge;
  enum { kCacheDisable = 0x10 };
  directories[3][apic >> 21 & 511] = (apic & ~0x1fffffull) | kernel | kLarge | kCacheDisable;
  for (uint64_t at = 0; at < 4; ++at) pointers[at] = table_entry(directories[at], open);
  if (pages_of_1gib) pointers[kHugeLinear >> 30] = open | kLarge;
  top[0] = top[kHighAlias >> kAliasBits & 511] = table_entry(pointers, open);
  top[kClosedAlias >> kAliasBits & 511] =
      table_entry(pointers, open | (no_execute ? kNoExecute : 0));
}

static void set_up_pages(void) {
  enum { kPae = 0x20, kPageGlobal = 0x80, kFxsave = 0x200, kSimd = 0x400 };
  enum { kWriteProtect = 1 << 16, kNumericError = 0x20, kMonitorFpu = 2, kNoExecuteBit = 20 };
  ask_all();
  const uint32_t features = extended_features();
  no_execute = (features >> kNoExecuteBit & 1) != 0;
  set_up_tables((features >> 26 & 1) != 0);
  __asm__ volatile("mov %0, %%cr3" : : "r"((uint64_t)top) : "memory");
  set_cr4(kPae | kPageGlobal | kFxsave | kSimd);
  enable_xsave();
  set_cr0((cr0() | kWriteProtect | kNumericError | kMonitorFpu) & ~4ull);
}

// Both kinds of system calls (Intel SDM vol. 3, 5.8.7 and 5.8.8).
static void set_up_calls(void) {
  enum { kStar = 0xc0000081, kLstar, kCstar, kFmask };
  enum { kEnterCode = 0x174, kEnterStack, kEnterTarget };
  enum { kTrap = 0x100, kInterrupt = 0x200, kDirection = 0x400, kPrivilege = 0x3000 };
  enum { kNested = 0x4000, kAlignment = 0x40000, kStatus = 0x8d5 };
  write_msr(kStar, (uint64_t)kUserCode << 48 | (uint64_t)kKernelCode << 32);
  write_msr(kLstar, (uint64_t)system_call);
  write_msr(kCstar, (uint64_t)system_call_32);
  // All status flags, too: the emulator clears them whatever the mask says.
  write_msr(kFmask, kTrap | kInterrupt | kDirection | kPrivilege | kNested | kAlignment | kStatus);
  write_msr(kEnterCode, kKernelCode);
  write_msr(kEnterStack, (uint64_t)system_stack_end);
  write_msr(kEnterTarget, (uint64_t)system_enter);
}

void set_up_machine(bool with_pae, bool timer_nmi) {
  struct {
    uint16_t limit;
    uint64_t base;
  } __attribute__((packed)) table;
  (void)with_pae;
  set_up_segments();
  table.limit = sizeof gdt - 1;
  table.base = (uint64_t)gdt;
  __asm__ volatile(
      "lgdt %0\n"
      "mov %1, %%ds\n mov %1, %%es\n mov %1, %%fs\n mov %1, %%gs\n mov %1, %%ss"
      :
      : "m"(table), "r"(kKernelData)
      : "memory");
  set_up_gates(timer_nmi);
  table.limit = sizeof idt - 1;
  table.base = (uint64_t)idt;
  __asm__ volatile("lidt %0" : : "m"(table) : "memory");
  reset_descriptors();
  set_up_pages();
  set_up_calls();
  set_up_interrupts();
  if (timer_nmi) make_timer_nmi();
}

void prepare_machine(const struct frame* frame) {
  enum { kFsBase = 0xc0000100, kGsBase, kKernelGsBase };
  __asm__ volatile("mov %0, %%ds\n mov %1, %%es\n mov %2, %%fs\n mov %3, %%gs"
                   :
                   : "r"((uint32_t)frame->ds), "r"((uint32_t)frame->es), "r"((uint32_t)frame->fs),
                     "r"((uint32_t)frame->gs));
  if (one_in(2)) write_msr(kFsBase, random_address());
  if (one_in(2)) write_msr(kGsBase, random_address());
  write_msr(kKernelGsBase, random_address());
}

bool is_large_page(word linear) {
  return linear >> 22 == kLargeLinear >> 22 || linear >> 30 == kHugeLinear >> 30;
}

bool is_test_page(word linear) {
  return linear - kTestLinear < kTestPages << 12 || linear - kLowLinear < kLowPages << 12 ||
         is_large_page(linear);
}

uint64_t entry_marks(void) { return no_execute ? kNoExecute : 0; }

// The table that an address of programs has its entry in, but for those in large pages.
static uint64_t* table_of(word linear) { return linear >> 21 == 0 ? low_table : test_table; }

// A large page has the frame that it always had.
static void set_large_page(word linear, uint64_t entry) {
  uint64_t* const pointer = &pointers[linear >> 30];
  const bool is_1gib = (*pointer & kLarge) != 0;
  volatile uint64_t* const at = is_1gib ? pointer : &directories[linear >> 30][linear >> 21 & 511];
  const uint64_t frame = is_1gib                             ? 0
                         : linear >> 30 == kHugeLinear >> 30 ? linear & 0x3fe00000
                                                             : kFrames + (linear & 0x200000);
  *at = entry | frame | kLarge;
}

void set_page(word linear, uint64_t entry) {
  if (is_large_page(linear)) {
    set_large_page(linear, entry);
  } else {
    *(volatile uint64_t*)page_entry_address(linear) = entry;
  }
  const word addresses[] = {linear, linear + kHighAlias, linear + kClosedAlias};
  for (uint32_t i = 0; i < sizeof addresses / sizeof *addresses; ++i)
    __asm__ volatile("invlpg (%0)" : : "r"(addresses[i]) : "memory");
}

word page_entry_address(word linear) { return (word)&table_of(linear)[linear >> 12 & 511]; }

uint64_t page_entry(word linear) { return *(const uint64_t*)page_entry_address(linear); }
