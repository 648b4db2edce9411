// A program for a PC with two processors and nothing else: one puts numbers into a queue without
// locks, the other takes them out, until one comes out wrong.
//
//   gcc -m32 -O1 -g0 -ffreestanding -fno-pie -no-pie -fno-stack-protector -nostdlib -static \
//     -fno-asynchronous-unwind-tables -Wl,--build-id=none -Wl,-T,queue.ld start.S queue.c -o queue.elf

typedef unsigned int word;

struct message {
  word number, copy;
};

enum { kSlots = 8, kBegin = 0x80, kBegins = 0x51, kEnd = 0xf4, kApic = 0xfee00000 };

// Each on a line of its own, so that nothing but the queue is shared.
__attribute__((aligned(64))) volatile word tail;         // numbers put in
__attribute__((aligned(64))) volatile word head;         // numbers taken out
__attribute__((aligned(64))) volatile struct message slots[kSlots];
__attribute__((aligned(64))) volatile word ready;        // the second processor runs
__attribute__((aligned(64))) volatile word wrong;        // the number that should have come

static void out(word port, word value) {
  __asm__ volatile("outl %0, %w1" : : "a"(value), "Nd"(port));
}

// Computes something that takes a while, and not always the same.
__attribute__((noinline)) word work(word number) {
  word value = number;
  for (word n = 0; n < 5 + number % 7; ++n) value = value * 1664525 + 1013904223;
  __asm__ volatile("" : : "r"(value));
  return value;
}

__attribute__((noinline)) void write_message(volatile struct message* to, word number) {
  to->number = number;
  to->copy = number;
}

// The message is there for the other one as soon as the tail has moved: too early.
__attribute__((noinline)) void put(word number) {
  while (tail - head == kSlots) __asm__ volatile("pause");
  word at = tail;
  tail = at + 1;
  write_message(&slots[at % kSlots], number);
}

__attribute__((noinline)) word take(void) {
  while (head == tail) __asm__ volatile("pause");
  word number = slots[head % kSlots].number;
  head = head + 1;
  return number;
}

void produce(void) {
  for (word n = 1; !wrong; ++n) {
    work(n);
    put(n);
  }
  for (;;) __asm__ volatile("hlt");
}

void consume(void) {
  for (word n = 1;; ++n) {
    work(n);
    if (take() == n) continue;
    wrong = n;
    out(kEnd, n);
    for (;;) __asm__ volatile("hlt");
  }
}

// The second processor begins here, with a stack.
void second(void) {
  __sync_lock_test_and_set(&ready, 1);
  consume();
}

static void send(word command) {
  volatile word* const apic = (volatile word*)kApic;
  apic[0x300 / 4] = command;
  while (apic[0x300 / 4] & 0x1000) continue;
}

// Intel SDM vol. 3, 8.4.4.1: INIT and SIPI to all others.
void first(word vector) {
  volatile word* const apic = (volatile word*)kApic;
  out(kBegin, kBegins);
  apic[0xf0 / 4] |= 0x100;
  send(0xc4500);
  for (word n = 0; n < 100; ++n) work(n);
  send(0xc4600 | vector);
  while (!ready) __asm__ volatile("pause");
  produce();
}
