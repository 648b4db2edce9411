// #GP, and another on its way, are a double fault.
// expected: match
#include "start.inc"
  GATE 13, done, 0
  mov al, 0x5a
  out 0x80, al
  mov eax, 0x7ff8
  mov fs, eax
  jmp done
