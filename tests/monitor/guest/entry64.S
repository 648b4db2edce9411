// The same as entry32.S in long mode: the way there from a multiboot loader's 32 bits, every exception
// and interrupt, system calls, and the way into a program and back.

#define MULTIBOOT_MAGIC 0x1badb002
#define KERNEL_CODE 0x08
#define KERNEL_DATA 0x10

  .section .multiboot, "a"
  .align 4
  .long MULTIBOOT_MAGIC, 0, -MULTIBOOT_MAGIC

  .text
  .code32
  .globl start
start:
  movl $stack_end, %esp
  movl $first_directory, %edi
  movl $0x83, %eax  // present, writable, 2 MiB
1:
  movl %eax, (%edi)
  addl $0x200000, %eax
  addl $8, %edi
  cmpl $first_directory + 4096, %edi
  jne 1b
  movl $first_directory + 3, first_pointers
  movl $first_pointers + 3, first_top
  movl $first_top, %eax
  movl %eax, %cr3
  movl %cr4, %eax
  orl $0x20, %eax  // PAE
  movl %eax, %cr4
  movl $0xc0000080, %ecx  // EFER: SCE, LME, NXE
  rdmsr
  orl $0x901, %eax
  wrmsr
  movl %cr0, %eax
  orl $0x80000000, %eax
  movl %eax, %cr0
  lgdt first_table
  ljmp $KERNEL_CODE, $in_long_mode

  .code64
in_long_mode:
  movl $stack_end, %esp
  movl %ebx, %edi  // the loader's information
  call guest_main
1:
  hlt
  jmp 1b

#define PUSH pushq
#include "vector_entries.h"

arrive:
  pushq %rax
  pushq %rcx
  pushq %rdx
  pushq %rbx
  pushq %rbp
  pushq %rsi
  pushq %rdi
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %r11
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $32, %rsp  // selectors
  cld
  movq %rsp, %rdi  // struct frame *
  call handle
go_on:
  addq $32, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %r11
  popq %r10
  popq %r9
  popq %r8
  popq %rdi
  popq %rsi
  popq %rbp
  popq %rbx
  popq %rdx
  popq %rcx
  popq %rax
  addq $16, %rsp  // vector, error code
  iretq

  .globl enter
enter:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, before_program(%rip)
  movq %rdi, %rsp
  jmp go_on

  .globl leave
leave:
  // The emulator has loaded a null selector if the handler's stack was one of the interrupt stack
  // table, whatever the level was.
  movl $KERNEL_DATA, %eax
  movl %eax, %ss
  movq before_program(%rip), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret

  .globl gate_target, gate_target_2
gate_target:
  pushfq
  popq %rdx
  lretq
gate_target_2:
  addq 8(%rsp), %rcx
  lretq

// SYSCALL in 64-bit mode, in compatibility mode, and SYSENTER: a program has put what SYSEXIT goes back
// to into RCX and RDX.
  .globl system_call, system_call_32, system_enter, system_stack_end
  .macro handle_call
  swapgs
  movq %rsp, program_stack_pointer(%rip)
  leaq system_stack_end(%rip), %rsp
  pushq %r11
  pushq %rcx
  addq %rdi, %rax
  popq %rcx
  popq %r11
  movq program_stack_pointer(%rip), %rsp
  swapgs
  .endm
system_call:
  handle_call
  sysretq
system_call_32:
  handle_call
  sysretl
system_enter:
  addq %rdi, %rax
  testl %ebx, %ebx
  sti  // SYSENTER has cleared IF, and no loop ends without the timer
  js 1f
  sysexitl
1:
  sysexitq

  .data
  .align 8
first_segments:
  .quad 0, 0x00af9b000000ffff
first_table:
  .word 15
  .long first_segments

  .bss
  .align 4096
first_top:
  .skip 4096
first_pointers:
  .skip 4096
first_directory:
  .skip 4096
before_program:
  .quad 0
program_stack_pointer:
  .quad 0
  .skip 4096
system_stack_end:
  .skip 16384
stack_end:

  .section .note.GNU-stack, "", @progbits
