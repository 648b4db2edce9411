// Where the guest of 32 bits begins, where every exception and interrupt arrives, and the way into a program and
// back. Started by any multiboot loader (Multiboot Specification 0.6.96, 3.1 and 3.2): flat segments,
// no paging, interrupts off.

#define MULTIBOOT_MAGIC 0x1badb002
#define KERNEL_CODE 0x08
#define KERNEL_DATA 0x10

  .section .multiboot, "a"
  .align 4
  .long MULTIBOOT_MAGIC, 0, -MULTIBOOT_MAGIC

  .text
  .globl start
start:
  movl $stack_end, %esp
  pushl %ebx  // the loader's information
  call guest_main
1:
  hlt
  jmp 1b

#define PUSH pushl
#include "vector_entries.h"

arrive:
  pushal
  pushl %ds
  pushl %es
  pushl %fs
  pushl %gs
  cld
  movl $KERNEL_DATA, %eax
  movl %eax, %ds
  movl %eax, %es
  pushl %esp  // struct frame *
  call handle
  addl $4, %esp
// struct frame on top of the stack becomes the machine's state.
go_on:
  popl %gs
  popl %fs
  popl %es
  popl %ds
  popal
  addl $8, %esp  // vector, error code
  iretl

// void enter(const struct frame *): returns when leave() is called.
  .globl enter
enter:
  movl 4(%esp), %eax
  pushal
  movl %esp, before_program
  movl %eax, %esp
  jmp go_on

// void leave(void)
  .globl leave
leave:
  movl before_program, %esp
  popal
  ret

// Behind call gates: with as many parameters as the gates copy.
  .globl gate_target, gate_target_2
gate_target:
  pushfl
  popl %edx
  lretl
gate_target_2:
  addl 8(%esp), %ecx
  lretl $8

  .bss
  .align 16
before_program:
  .long 0
  .skip 16384
stack_end:

  .section .note.GNU-stack, "", @progbits
