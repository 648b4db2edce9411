// JMP through a gate to a segment that is not present.
// expected: did not raise #NP
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00cf1b00
  ENTRY SPARE + 8, SPARE << 16, 0x00108c00
  mov al, 0x5a
  out 0x80, al
  FAR_JMP SPARE+8
  jmp done
