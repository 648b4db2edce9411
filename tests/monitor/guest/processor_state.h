#pragma once
// Images of the registers of the x87 and of SSE.

#include <stdint.h>

#include "writer.h"

// The address of an operand that is aligned by 16. For FXSAVE the emulator asks for 512 bytes, of
// which not all are stored: those that are lie in one page, or in two as all of them do.
uint32_t aligned_pointer(void);
// XSAVE of all components, then XSAVE, XSAVEOPT or XRSTOR of some, twice. The header is written
// before: it and what is saved first make a page fault come as a processor has it, and an image
// that is restored has been saved. Where CR0.TS may be set the emulator takes no notice.
void put_extended_state(struct writer* w);
