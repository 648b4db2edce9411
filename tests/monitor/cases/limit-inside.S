// Accesses up to the ends of segments with limits, that expand down, and of code; a limit that grows.
// expected: match
#include "start.inc"
  ENTRY SPARE, 0x000000ff, 0x00409300        // 0 to ff
  ENTRY SPARE + 8, 0x00000fff, 0x00409700    // expands down: from 1000h on
  ENTRY SPARE + 16, 0x000000ff, 0x00409b00   // code that may be read
  ENTRY SPARE + 24, 0x000000ff, 0x00409100   // data that may be read only
  mov al, 0x5a
  out 0x80, al
  mov eax, SPARE
  mov es, eax
  mov eax, es:[0xfc]
  mov byte ptr es:[0xff], 1
  xor edi, edi
  mov ecx, 64
  rep stosd
  mov eax, SPARE + 8
  mov fs, eax
  mov eax, offset scratch
  inc dword ptr fs:[eax]
  mov eax, fs:[0x1000]
  mov eax, SPARE + 16
  mov gs, eax
  mov eax, gs:[0xfc]
  mov eax, SPARE + 24
  mov gs, eax
  mov eax, gs:[0xfc]
  xor eax, eax
  mov gs, eax
  mov ebp, offset scratch
  mov [ebp], eax
  push dword ptr es:[0x10]
  pop dword ptr es:[0xfc]
  ENTRY SPARE, 0x00001fff, 0x00409300
  mov eax, SPARE
  mov es, eax
  mov eax, es:[0x1ffc]
  jmp done
