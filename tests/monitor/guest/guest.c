// Random programs at levels 0 and 3, of 16 and 32 bits and in virtual-8086 mode, or in long mode of
// 64 bits and in compatibility mode, on pages that are absent, read-only or the supervisor's now
// and then, with the timer's interrupts and single steps in between. What each does to registers
// and memory, and which exceptions it ends with, shows on the bus.
//
// The loader's command line: seed=NUMBER programs=NUMBER pae=1, for tables of PAE, nmi=1, for a
// timer that sends NMIs instead of interrupts. A write of 5Ah to port 80h begins it, of A5h ends
// it.

#include <stdbool.h>

#include "devices.h"
#include "machine.h"
#include "program.h"
#include "random.h"

enum {
  kPort = 0x80,
  kBegins = 0x5a,
  kEnds = 0xa5,
  kDebug = 1,
  kNmi = 2,
  kPageFault = 14,
  kTrapFlag = 0x100,
  kInterruptFlag = 0x200,
  kNestedTask = 0x4000,
  kVirtual8086 = 0x20000,
  kBreakpoint = 0xcc,  // INT3
};

enum mode { kUser32, kUser16, kVirtual, kSupervisor32, kSupervisor16, kUser64, kSupervisor64 };

#ifdef __x86_64__
static const enum mode modes[] = {kUser64,       kUser64,       kUser64,       kSupervisor64,
                                  kSupervisor64, kUser32,       kSupervisor64, kUser64,
                                  kUser16,       kSupervisor32, kSupervisor16};
#else
static const enum mode modes[] = {kUser32, kUser16, kVirtual, kSupervisor32, kSupervisor16};
#endif

static bool is_supervisor(enum mode mode) {
  return mode == kSupervisor32 || mode == kSupervisor16 || mode == kSupervisor64;
}

void enter(const struct frame* frame);
void leave(void) __attribute__((noreturn));
void handle(struct frame* frame);
void guest_main(const uint32_t* information);

static uint8_t program_stack[8192] __attribute__((aligned(16)));
#ifdef __x86_64__
static struct frame own_frame;
#endif

// What the program that runs has met so far, and how much of it is enough.
static bool running;
static uint32_t faults, steps, ticks;
// An NMI at the first instruction of a handler has no position of its own where the handler is that
// of a step within a REP.
static bool may_step = true;
enum { kMostFaults = 8, kMostSteps = 24, kMostTicks = 6 };

// The two pages of the program.
static word code_page;
static bool is_code_page(word linear) { return (linear >> 12) - (code_page >> 12) < 2; }

static void change_page(word linear) {
  if (!is_code_page(linear)) set_page(linear, random_page(linear));
}

static void change_some_pages(void) {
  for (uint32_t i = random_below(6); i != 0; --i) {
    change_page(one_in(3) ? kLowLinear + (random_below(kLowPages) << 12)
                          : kTestLinear + (random_below(kTestPages) << 12));
  }
  if (one_in(8)) set_page(kLargeLinear + (random_below(2) << 21), random_entry());
#ifdef __x86_64__
  if (one_in(8)) set_page(kHugeLinear + kFrames, random_entry());
#endif
}

// Lets the access be made that faulted, mostly.
static void mend(word error) {
  enum { kWrite = 2 };
  word linear;
  __asm__ volatile("mov %%cr2, %0" : "=r"(linear));
  linear = first_alias(linear);
  if (!is_test_page(linear) || ++faults > kMostFaults || one_in(8)) leave();
  if (is_code_page(linear)) {
    if ((error & kWrite) != 0) leave();
    set_page(linear & ~(word)0xfff,
             (kCodeFrames + (linear & ~(word)0xfff) - code_page) | kPresent | kUser);
    return;
  }
  const uint32_t frame = is_large_page(linear) ? 0 : random_frame();
  set_page(linear & ~(word)0xfff, frame | kPresent | kWritable | kUser);
}

static void stop(void) {
  write_port(kPort, kEnds);
  for (;;) __asm__ volatile("cli\n hlt");
}

// NMIs interrupt the kernel, too.
static bool in_program(const struct frame* frame) {
  return (frame->cs & 3) != 0 || (frame->flags & kVirtual8086) != 0 || frame->cs != kKernelCode ||
         is_test_page(first_alias(frame->ip));
}

void handle(struct frame* frame) {
  if (frame->vector == kNmi) {
    end_timer_nmi();
    if (running && in_program(frame) && ++ticks >= kMostTicks) leave();
    return;
  }
  if (frame->vector == kTimerVector) {
    end_timer_interrupt();
    if (running && ++ticks >= kMostTicks) leave();
    return;
  }
  if (!running) stop();  // a program has changed the kernel
  if (frame->vector == kPageFault) return mend(frame->error);
  if (frame->vector == kDebug && ++steps < kMostSteps) return;
  leave();
}

static uint32_t random_flags(enum mode mode, bool controls) {
  enum { kStatus = 0xcd5, kAlways = 2, kIopl = 0x3000 };
  uint32_t flags = (random32() & (kStatus | kIopl)) | kAlways | kInterruptFlag;
  // The emulator never gets behind a MOV to CR4 that is single-stepped.
  if (one_in(3) && !controls && may_step) flags |= kTrapFlag;
  if (mode == kVirtual) flags |= kVirtual8086;
  if (is_supervisor(mode)) return flags;
  if (one_in(16)) flags |= kNestedTask;
  return flags;
}

static void random_registers(struct frame* frame, enum mode mode) {
  const bool offsets = mode == kUser16 || mode == kVirtual || mode == kSupervisor16;
  const bool wide = mode == kUser64 || mode == kSupervisor64;
  for (uint32_t i = 0; i < kGeneral; ++i) {
    if (i == kNoRegister) continue;
    frame->general[i] = offsets ? random_below(0x6000) : wide ? random_address() : random_pointer();
  }
  // Few strings of 16 bits reach FFFF: the emulator checks no limits.
  if (offsets || one_in(2)) frame->general[kCounter] = random_below(32);
}

// The stack of a program. Aligned: of PUSH of a segment register, the emulator stores the half that
// a processor leaves alone. IRET of long mode loads it at level 0, too.
static void set_stack(struct frame* frame, enum mode mode) {
  frame->ss = is_supervisor(mode) ? kKernelData : one_in(4) ? kUserData16 : kUserData;
  if (is_supervisor(mode)) {
    // With room above it, for what a program pops and then pushes.
    frame->sp = (word)program_stack + sizeof program_stack / 2;
  } else if (mode == kUser64) {
    frame->sp = random_address() & ~(word)3;
  } else {
    frame->sp =
        frame->ss == kUserData16 ? 0x100 + (random_below(0xe000) & ~3u) : random_pointer() & ~3u;
  }
}

// The program's segments. Where it begins is an offset from `base`.
static void set_segments(struct frame* frame, enum mode mode, word linear) {
  static const uint16_t code[] = {kUserCode,     kUserCode16, 0,          kKernelCode32,
                                  kKernelCode16, kUserCode64, kKernelCode};
  word* const data[] = {&frame->ds, &frame->es, &frame->fs, &frame->gs};
  for (uint32_t i = 0; i < 4; ++i) *data[i] = one_in(4) ? kOddData : kUserData;
  frame->cs = code[mode];
  frame->ip = mode == kUser16 || mode == kSupervisor16 ? linear - kTestLinear : linear;
  if (mode == kUser16 || mode == kSupervisor16) frame->ds = kUserData16;
  set_stack(frame, mode);
  if (mode != kVirtual) return;
  word* const real[] = {&frame->old_es, &frame->old_ds, &frame->old_fs, &frame->old_gs, &frame->ss};
  for (uint32_t i = 0; i < 5; ++i) *real[i] = (kLowLinear >> 4) + random_below(kLowPages << 8);
  frame->cs = (linear >> 4) - random_below(16);
  frame->ip = linear - (frame->cs << 4);
  frame->sp = 0x100 + (random_below(0xe000) & ~3u);
}

// The frame lies on a stack of its own, which a program of level 0 goes on with: IRET pops no
// other. Nothing is below it that an NMI would overwrite while it is popped. In long mode NMIs have
// another stack, and IRET pops the program's.
static void enter_program(const struct frame* frame) {
#ifdef __x86_64__
  struct frame* const own = &own_frame;
#else
  struct frame* const own =
      (struct frame*)(program_stack + sizeof program_stack - sizeof(struct frame));
#endif
  *own = *frame;
  prepare_machine(own);
  enter(own);
}

// Writes the program into its two pages, which then are there or not, and read-only mostly: of a
// REP that overwrites itself nobody says what happens.
static void put_code(uint32_t linear, uint32_t offset, const struct program_kind* kind) {
  code_page = linear & ~(word)0xfff;
  uint8_t* const first = (uint8_t*)kCodeFrames + (linear & 0xfff);
  *write_program(first, offset, kind) = kBreakpoint;
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t present = one_in(6) ? 0 : kPresent;
    set_page(code_page + (i << 12), (kCodeFrames + (i << 12)) | kUser | present);
  }
}

static void run_program(void) {
  const enum mode mode = modes[random_below(sizeof modes / sizeof *modes)];
  struct frame frame = {0};
  const bool controls = is_supervisor(mode) && one_in(2);
  frame.flags = random_flags(mode, controls);
  random_registers(&frame, mode);
  const uint32_t iopl = (uint32_t)frame.flags >> 12 & 3;
  const bool bits64 = mode == kUser64 || mode == kSupervisor64;
  const struct program_kind kind = {.wide = bits64 || mode == kUser32 || mode == kSupervisor32,
                                    .supervisor = is_supervisor(mode),
                                    .controls = controls,
                                    .ports_open = iopl == 3,
                                    .virtual_8086 = mode == kVirtual,
                                    .bits64 = bits64};

  // Near the end of a page every other time.
  const uint32_t page = mode == kVirtual ? kLowLinear + (random_below(kLowPages - 2) << 12)
                                         : kTestLinear + (random_below(14) << 12);
  word linear = page + (one_in(2) ? 0xfe0 + random_below(32) : random_below(0xf00));
#ifdef __x86_64__
  if (bits64 && one_in(3)) linear += kHighAlias;
#endif
  set_segments(&frame, mode, linear);
  put_code(first_alias(linear), (uint32_t)frame.ip, &kind);
  change_some_pages();
  faults = steps = ticks = 0;
  set_timer((uint16_t)(20 + random_below(one_in(2) ? 40 : 2000)));
  running = true;
  enter_program(&frame);
  running = false;
}

static uint32_t number_after(const char* text, const char* key, uint32_t otherwise) {
  for (; *text != 0; ++text) {
    uint32_t i = 0;
    while (key[i] != 0 && text[i] == key[i]) ++i;
    if (key[i] != 0) continue;
    uint32_t number = 0;
    for (text += i; *text >= '0' && *text <= '9'; ++text)
      number = number * 10 + (uint32_t)(*text - '0');
    return number;
  }
  return otherwise;
}

void guest_main(const uint32_t* information) {
  enum { kFlags = 0, kHasCommandLine = 4, kCommandLine = 4 };  // words of it
  const char* const line = (information[kFlags] & kHasCommandLine) != 0
                               ? (const char*)(word)information[kCommandLine]
                               : "";
  const uint32_t seed = number_after(line, "seed=", 1);
  const uint32_t programs = number_after(line, "programs=", 100);
  seed_random(seed);
  const bool timer_nmi = number_after(line, "nmi=", 0) != 0;
#ifdef __x86_64__
  may_step = !timer_nmi;
#endif
  set_up_machine(number_after(line, "pae=", 0) != 0, timer_nmi);
  choose_instructions();
  const word usual0 = cr0(), usual4 = cr4();
  uint32_t* const frames = (uint32_t*)kFrames;
  write_port(kPort, kBegins);
  for (uint32_t i = 0; i < kFrameCount << 10; ++i) frames[i] = random32();
  for (uint32_t page = 0; page < kTestPages; ++page) change_page(kTestLinear + (page << 12));
  for (uint32_t page = 0; page < kLowPages; ++page) change_page(kLowLinear + (page << 12));
  for (uint32_t i = 0; i < programs; ++i) {
    run_program();
    set_cr0(usual0);
    set_cr4(usual4);
    reset_descriptors();
  }
  stop();
}
