// CALL through a gate to an offset behind the end of its segment.
// expected: beyond the end
#include "start.inc"
  ENTRY SPARE, 0x0000ffff, 0x00009b00
  ENTRY SPARE + 8, SPARE << 16, 0x00108c00
  mov al, 0x5a
  out 0x80, al
  FAR_CALL SPARE+8
  jmp done
