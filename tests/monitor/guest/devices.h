#pragma once
// What all modes have alike: ports, the timer and its controller, control registers, descriptors.

#include <stdint.h>

#include "machine.h"

enum { kTimerVector = 0x20 };

// The timer interrupts every `period` of its ticks (838 ns).
void set_timer(uint16_t period);
// Tells the controller that the timer's interrupt was taken.
void end_timer_interrupt(void);

// From now on the local APIC makes an NMI of what the controller has for the processor (Intel SDM
// vol. 3, 10.5.1). Its registers have to be where they are without paging.
void make_timer_nmi(void);
// Takes the timer's interrupt by a poll, as nothing acknowledges it.
void end_timer_nmi(void);

void write_port(uint16_t port, uint8_t value);

void set_cr0(word value);
word cr0(void);
void set_cr4(word value);
word cr4(void);

// The two controllers, with the timer's line alone open, at kTimerVector.
void set_up_interrupts(void);

// A segment descriptor (Intel SDM vol. 3, figure 3-8): `access` is bits 8 to 15 of its upper half,
// `flags` bits 20 to 23.
uint64_t segment(uint32_t base, uint32_t limit, uint32_t access, uint32_t flags);
