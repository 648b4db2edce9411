#include "devices.h"

void write_port(uint16_t port, uint8_t value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

void set_cr0(word value) { __asm__ volatile("mov %0, %%cr0" : : "r"(value) : "memory"); }
word cr0(void) {
  word value;
  __asm__ volatile("mov %%cr0, %0" : "=r"(value));
  return value;
}
void set_cr4(word value) { __asm__ volatile("mov %0, %%cr4" : : "r"(value) : "memory"); }
word cr4(void) {
  word value;
  __asm__ volatile("mov %%cr4, %0" : "=r"(value));
  return value;
}

uint64_t segment(uint32_t base, uint32_t limit, uint32_t access, uint32_t flags) {
  const uint32_t low = (limit & 0xffff) | base << 16;
  const uint32_t high =
      (base >> 16 & 0xff) | access << 8 | (limit & 0xf0000) | flags << 20 | (base & 0xff000000);
  return (uint64_t)high << 32 | low;
}

// The two controllers (Intel 8259A, initialisation command words): vectors from 20h and 28h, the
// timer's line alone open.
void set_up_interrupts(void) {
  write_port(0x20, 0x11);
  write_port(0x21, kTimerVector);
  write_port(0x21, 4);
  write_port(0x21, 1);
  write_port(0xa0, 0x11);
  write_port(0xa1, kTimerVector + 8);
  write_port(0xa1, 2);
  write_port(0xa1, 1);
  write_port(0x21, 0xfe);
  write_port(0xa1, 0xff);
}

// Counter 0 of the timer (Intel 8254), mode 2, both bytes.
void set_timer(uint16_t period) {
  write_port(0x43, 0x34);
  write_port(0x40, (uint8_t)period);
  write_port(0x40, (uint8_t)(period >> 8));
}

void end_timer_interrupt(void) { write_port(0x20, 0x20); }

void make_timer_nmi(void) {
  enum { kApicBase = 0xfee00000, kLine0 = 0x350, kNmi = 0x400 };
  *(volatile uint32_t*)(kApicBase + kLine0) = kNmi;
}

void end_timer_nmi(void) {
  enum { kPoll = 0x0c };
  uint8_t pending;
  write_port(0x20, kPoll);
  __asm__ volatile("inb $0x20, %0" : "=a"(pending));
  if ((pending & 0x80) != 0) end_timer_interrupt();
}
