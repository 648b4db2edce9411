// One entry for each vector, 16 bytes apart. The processor pushes an error code for vectors 8, 10
// to 14 and 17 (Intel SDM vol. 3, table 6-1); the others get a zero. PUSH: the instruction of the
// mode.
//
// This is for the assembler: each directive stands in a line of its own.
// clang-format off
  .globl vector_entries
  .align 16
vector_entries:
  .set vector, 0
  .rept 256
  .align 16
  .if vector != 8 && (vector < 10 || vector > 14) && vector != 17
  PUSH $0
  .endif
  PUSH $vector
  jmp arrive
  .set vector, vector + 1
  .endr
