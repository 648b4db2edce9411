// A triple fault, by an IDT without entries, with which the emulator ends (-no-reboot).
// expected: match
// end: shutdown
#include "start.inc"
  mov al, 0x5a
  out 0x80, al
  lidt [none]
  int3
  .balign 8
none:
  .word 0
  .long 0
