/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last instructions before a trace and the first one in it.
 *
 * CR0.CD is set before WBINVD, so that the caches are empty and stay empty until the trace runs:
 * the first traced instruction is the one that switches them on again (Intel SDM vol. 3, 12.5.3).
 * A monitor therefore sees the first touch of every byte. On real processors up to 32 bytes behind
 * the marker may have been prefetched, and the marker itself may be posted: the fetches of the
 * first instructions can appear before it.
 *
 * From PUSHF on only MOVs run, so that flags and registers are what was stored. EBX holds
 * CITCAT_ARM_VALUE at WBINVD.
 */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>
#include <asm/processor-flags.h>

#include "citcat.h"

	.text

#ifdef CONFIG_X86_32

/* Arguments on the stack (asmlinkage): window, segment, flush. */
SYM_FUNC_START(citcat_switch)
	pushl	%ebp
	pushl	%ebx
	pushl	%esi
	pushl	%edi
	movl	20(%esp), %edi
	movl	24(%esp), %esi
	movl	$CITCAT_ARM_VALUE, %ebx
	movl	%cr0, %ebp
	cmpl	$0, 28(%esp)
	je	.Lkeep

	movl	%ebp, %eax
	orl	$X86_CR0_CD, %eax
	andl	$~X86_CR0_NW, %eax
	movl	%eax, %cr0
	wbinvd
	/* Rewriting CR3 leaves global pages in the TLB; clearing CR4.PGE drops them. */
	movl	%cr4, %eax
	movl	%eax, %ecx
	andl	$~X86_CR4_PGE, %ecx
	movl	%ecx, %cr4
	movl	%eax, %cr4
	movl	%cr3, %eax
	movl	%eax, %cr3
.Lkeep:
	movl	%esi, CITCAT_MARK_SEGMENT(%edi)
	movl	%cr0, %eax
	movl	%eax, CITCAT_STATE_CR0(%edi)
	movl	$citcat_first_traced, CITCAT_STATE_EIP(%edi)
	pushfl
	popl	%eax
	movl	%eax, CITCAT_STATE_EFLAGS(%edi)
	movl	%eax, CITCAT_STATE_GPR(0)(%edi)
	movl	%ecx, CITCAT_STATE_GPR(1)(%edi)
	movl	%edx, CITCAT_STATE_GPR(2)(%edi)
	movl	%ebx, CITCAT_STATE_GPR(3)(%edi)
	movl	%esp, CITCAT_STATE_GPR(4)(%edi)
	movl	%ebp, CITCAT_STATE_GPR(5)(%edi)
	movl	%esi, CITCAT_STATE_GPR(6)(%edi)
	movl	%edi, CITCAT_STATE_GPR(7)(%edi)
	movl	$CITCAT_MARK_START, CITCAT_MARK_OFFSET(%edi)
SYM_INNER_LABEL(citcat_first_traced, SYM_L_GLOBAL)
	movl	%ebp, %cr0
	popl	%edi
	popl	%esi
	popl	%ebx
	popl	%ebp
	RET
SYM_FUNC_END(citcat_switch)

#else

/* Arguments: window in RDI, segment in ESI, flush in EDX. */
SYM_FUNC_START(citcat_switch)
	pushq	%rbp
	pushq	%rbx
	movl	$CITCAT_ARM_VALUE, %ebx
	movq	%cr0, %rbp
	testl	%edx, %edx
	jz	.Lkeep

	movq	%rbp, %rax
	orq	$X86_CR0_CD, %rax
	andq	$~X86_CR0_NW, %rax
	movq	%rax, %cr0
	wbinvd
	/* Rewriting CR3 leaves global pages in the TLB; clearing CR4.PGE drops them. */
	movq	%cr4, %rax
	movq	%rax, %rcx
	andq	$~X86_CR4_PGE, %rcx
	movq	%rcx, %cr4
	movq	%rax, %cr4
	movq	%cr3, %rax
	movq	%rax, %cr3
.Lkeep:
	movl	%esi, CITCAT_MARK_SEGMENT(%rdi)
	movq	%cr0, %rax
	movl	%eax, CITCAT_STATE_CR0(%rdi)
	movq	%rax, CITCAT_STATE64_CR0(%rdi)
	leaq	citcat_first_traced(%rip), %rax
	movl	%eax, CITCAT_STATE_EIP(%rdi)
	movq	%rax, CITCAT_STATE64_RIP(%rdi)
	pushfq
	popq	%rax
	movl	%eax, CITCAT_STATE_EFLAGS(%rdi)
	movq	%rax, CITCAT_STATE64_RFLAGS(%rdi)
	movl	%eax, CITCAT_STATE_GPR(0)(%rdi)
	movl	%ecx, CITCAT_STATE_GPR(1)(%rdi)
	movl	%edx, CITCAT_STATE_GPR(2)(%rdi)
	movl	%ebx, CITCAT_STATE_GPR(3)(%rdi)
	movl	%esp, CITCAT_STATE_GPR(4)(%rdi)
	movl	%ebp, CITCAT_STATE_GPR(5)(%rdi)
	movl	%esi, CITCAT_STATE_GPR(6)(%rdi)
	movl	%edi, CITCAT_STATE_GPR(7)(%rdi)
	movq	%rax, CITCAT_STATE64_GPR(0)(%rdi)
	movq	%rcx, CITCAT_STATE64_GPR(1)(%rdi)
	movq	%rdx, CITCAT_STATE64_GPR(2)(%rdi)
	movq	%rbx, CITCAT_STATE64_GPR(3)(%rdi)
	movq	%rsp, CITCAT_STATE64_GPR(4)(%rdi)
	movq	%rbp, CITCAT_STATE64_GPR(5)(%rdi)
	movq	%rsi, CITCAT_STATE64_GPR(6)(%rdi)
	movq	%rdi, CITCAT_STATE64_GPR(7)(%rdi)
	movq	%r8, CITCAT_STATE64_GPR(8)(%rdi)
	movq	%r9, CITCAT_STATE64_GPR(9)(%rdi)
	movq	%r10, CITCAT_STATE64_GPR(10)(%rdi)
	movq	%r11, CITCAT_STATE64_GPR(11)(%rdi)
	movq	%r12, CITCAT_STATE64_GPR(12)(%rdi)
	movq	%r13, CITCAT_STATE64_GPR(13)(%rdi)
	movq	%r14, CITCAT_STATE64_GPR(14)(%rdi)
	movq	%r15, CITCAT_STATE64_GPR(15)(%rdi)
	movl	$CITCAT_MARK_START, CITCAT_MARK_OFFSET(%rdi)
SYM_INNER_LABEL(citcat_first_traced, SYM_L_GLOBAL)
	movq	%rbp, %cr0
	popq	%rbx
	popq	%rbp
	RET
SYM_FUNC_END(citcat_switch)

#endif
