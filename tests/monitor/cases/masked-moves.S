// MASKMOVQ and MASKMOVDQU store the bytes that their mask selects and no others: with every byte, with
// none, alternating, at both ends, across a page, and in a line that is also read.
// expected: match
// options: -cpu Nehalem
#include "start.inc"
  .data
  .align 16
values:
  .byte 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f
masks:
  .quad 0x8080808080808080, 0x8080808080808080
  .quad 0, 0
  .quad 0x8000800080008000, 0x0080008000800080
  .quad 0x0000000000000080, 0x8000000000000000
  .quad 0x00000080ff7f0000, 0x0000008080800000
masks_end:
  .text

.macro MOVE_ALL at
  mov esi, offset masks
1:
  movups xmm1, [esi]
  mov edi, offset \at
  maskmovdqu xmm0, xmm1
  movq mm1, [esi]
  mov edi, offset \at + 64
  maskmovq mm0, mm1
  mov eax, [\at + 4]
  add esi, 16
  cmp esi, offset masks_end
  jb 1b
.endm

  mov eax, cr4
  or eax, 0x600
  mov cr4, eax
  PAGING
  movups xmm0, [values]
  movq mm0, [values]
  mov al, 0x5a
  out 0x80, al
  MOVE_ALL scratch
  MOVE_ALL scratch+3
  MOVE_ALL scratch+4096-7
  MOVE_ALL scratch+4096-64-3
  emms
  jmp done
