// Protected mode, with PAE and without.

#include "descriptors.h"
#include "devices.h"
#include "machine.h"
#include "model.h"

static uint64_t gdt[kSelectors / 8];
static uint64_t ldt[kLocalSelectors / 8];
static uint64_t idt[256];
static bool pae;
// Tables with 4-byte entries, or with PAE 8-byte entries in twice as many tables: for 4 MiB, or for
// the gigabytes 0 and 1.
static uint8_t directories[2][4096] __attribute__((aligned(4096)));
static uint8_t low_tables[2][4096] __attribute__((aligned(4096)));
static uint8_t test_table[4096] __attribute__((aligned(4096)));
static uint64_t pointers[4] __attribute__((aligned(32)));
static uint8_t exception_stack[8192] __attribute__((aligned(16)));

// The task segment (Intel SDM vol. 3, figure 7-2) with its map of ports.
enum { kMappedPorts = 0x400 };
static struct task {
  uint32_t link, esp0, ss0, others[22];
  uint16_t trap, map_base;
  uint8_t map[kMappedPorts / 8], end;
} __attribute__((packed)) task, other_task;

extern uint8_t vector_entries[], gate_target[], gate_target_2[];

// A gate (figures 5-8 and 6-2).
static uint64_t gate(const void* target, uint32_t access, uint32_t parameters) {
  const uint32_t offset = (uint32_t)target;
  return (uint64_t)((offset & 0xffff0000) | access << 8 | parameters) << 32 | kKernelCode << 16 |
         (offset & 0xffff);
}

static void set_up_task(struct task* t) {
  t->esp0 = (uint32_t)exception_stack + sizeof exception_stack;
  t->ss0 = kKernelData;
  t->map_base = (uint16_t) __builtin_offsetof(struct task, map);
  for (uint32_t i = 0; i < sizeof t->map; ++i) t->map[i] = 0xff;
  t->map[0xe8 / 8] = 0x0f;  // ports ECh to EFh, where nothing is
  t->end = 0xff;
}

static void set_up_local_segments(void) {
  set_up_common_local_segments(ldt);
  ldt[kLocalGate / 8] = gate(gate_target, 0xec, 0);
}

static uint64_t free_task(struct task* t) { return segment((uint32_t)t, sizeof *t - 1, 0x89, 0); }

void reset_descriptors(void) {
  set_up_local_segments();
  if (reload_local_table()) return;
  gdt[kTask / 8] = free_task(&task);
  gdt[kOtherTask / 8] = free_task(&other_task);
  load_task();
}

static void set_up_segments(void) {
  const uint32_t code0 = 0x9b;
  set_up_common_segments(gdt);
  gdt[kKernelCode / 8] = segment(0, 0xfffff, code0, kPages | kWide);
  gdt[kTask / 8] = free_task(&task);
  gdt[kOtherTask / 8] = free_task(&other_task);
  gdt[kLocalTable / 8] = segment((uint32_t)ldt, sizeof ldt - 1, 0x82, 0);
  gdt[kGate / 8] = gate(gate_target, 0xec, 0);
  gdt[kGate2 / 8] = gate(gate_target_2, 0xec, 2);
  set_up_task(&task);
  set_up_task(&other_task);
}

static void set_up_gates(void) {
  for (uint32_t vector = 0; vector < 256; ++vector) {
    idt[vector] = gate(vector_entries + 16 * vector, gate_rights(vector), 0);
  }
}

static void put_entry(uint8_t* table, uint32_t index, uint32_t entry) {
  if (pae) {
    ((volatile uint64_t*)table)[index] = entry;
  } else {
    ((volatile uint32_t*)table)[index] = entry;
  }
}

// The bytes that an entry of a directory maps: 2 MiB with PAE, else 4 MiB.
static uint32_t large_bytes(void) { return pae ? 1 << 21 : 1 << 22; }

static void put_directory_entry(uint32_t linear, uint32_t entry) {
  const uint32_t number = linear / large_bytes();
  put_entry(directories[pae ? number / 512 : 0], pae ? number % 512 : number, entry);
}

// The first 4 MiB by pages, from 1 MiB on those of the kernel; and 4 MiB by large pages at each of
// kFrames, the kernel's, and kLargeLinear.
static void set_up_tables(void) {
  const uint32_t open = kPresent | kWritable | kUser;
  for (uint32_t page = 256; page < 1024; ++page)
    put_entry(low_tables[0], page, page << 12 | kPresent | kWritable);
  put_directory_entry(kTestLinear, (uint32_t)test_table | open);
  for (uint32_t page = 0; page < 2; ++page)
    put_entry(test_table, (kAliasLinear >> 12 & 1023) + page, (kCodeFrames + (page << 12)) | open);
  for (uint32_t at = 0; at < 1 << 22; at += large_bytes()) {
    put_directory_entry(at, (uint32_t)low_tables[at >> 21] | open);
    put_directory_entry(kFrames + at, (kFrames + at) | kPresent | kWritable | kLarge);
    put_directory_entry(kLargeLinear + at, (kFrames + at) | open | kLarge);
  }
}

static void set_up_pages(void) {
  enum { kPageSize = 0x10, kPae = 0x20, kPageGlobal = 0x80, kFxsave = 0x200, kSimd = 0x400 };
  set_up_tables();
  for (uint32_t i = 0; i < 2; ++i) pointers[i] = (uint32_t)directories[i] | kPresent;
  __asm__ volatile("mov %0, %%cr3"
                   :
                   : "r"(pae ? (uint32_t)pointers : (uint32_t)directories)
                   : "memory");
  set_cr4(kPageSize | (pae ? kPae : 0) | kPageGlobal | kFxsave | kSimd);
  ask_all();
  enable_xsave();
  enum { kPaging = 1u << 31, kWriteProtect = 1 << 16, kNumericError = 0x20, kMonitorFpu = 2 };
  set_cr0((cr0() | kPaging | kWriteProtect | kNumericError | kMonitorFpu) & ~4u);
}

void set_up_machine(bool with_pae, bool timer_nmi) {
  pae = with_pae;
  if (timer_nmi) make_timer_nmi();
  struct {
    uint16_t limit;
    uint32_t base;
  } __attribute__((packed)) table;
  set_up_segments();
  table.limit = sizeof gdt - 1;
  table.base = (uint32_t)gdt;
  __asm__ volatile(
      "lgdt %0\n"
      "ljmp %1, $1f\n"
      "1: mov %2, %%ds\n mov %2, %%es\n mov %2, %%fs\n mov %2, %%gs\n mov %2, %%ss"
      :
      : "m"(table), "i"(kKernelCode), "r"(kKernelData)
      : "memory");
  set_up_gates();
  table.limit = sizeof idt - 1;
  table.base = (uint32_t)idt;
  __asm__ volatile("lidt %0" : : "m"(table) : "memory");
  reset_descriptors();
  set_up_pages();
  set_up_interrupts();
}

bool is_large_page(word linear) { return linear >> 22 == kLargeLinear >> 22; }

bool is_test_page(word linear) {
  return linear - kTestLinear < kTestPages << 12 || linear - kLowLinear < kLowPages << 12 ||
         is_large_page(linear);
}

uint64_t entry_marks(void) { return 0; }

void prepare_machine(const struct frame* frame) { (void)frame; }

// The table that an address of programs has its entry in, but for those in large pages.
static uint8_t* table_of(uint32_t linear) { return linear >> 22 == 0 ? low_tables[0] : test_table; }

void set_page(word linear, uint64_t wide_entry) {
  const uint32_t entry = (uint32_t)wide_entry;
  if (is_large_page(linear)) {
    const uint32_t within = linear & ((1 << 22) - large_bytes());
    put_directory_entry(linear, entry | (kFrames + within) | kLarge);
  } else {
    put_entry(table_of(linear), linear >> 12 & 1023, entry);
  }
  __asm__ volatile("invlpg (%0)" : : "r"(linear) : "memory");
}

word page_entry_address(word linear) {
  return (uint32_t)table_of(linear) + (linear >> 12 & 1023) * (pae ? 8 : 4);
}

uint64_t page_entry(word linear) { return *(const uint32_t*)page_entry_address(linear); }
