// INT n of a vector behind the IDT.
// expected: match
#include "start.inc"
  mov word ptr [idt_register], 0x40 * 8 + 3
  lidt [idt_register]
  mov al, 0x5a
  out 0x80, al
  int 0x40
  jmp done
