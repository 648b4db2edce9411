/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The window through which the citcat driver tells a bus monitor the state of the processor.
 *
 * The window is reserved physical memory that nothing else touches. Every dword of the state has an
 * address of its own, so a monitor that knows only addresses and data can collect it: the driver
 * writes each with an uncached 32-bit store. All numbers are little-endian. Offsets are from the
 * base of the window.
 *
 *	0x0000	state block: 32-bit state, or the part of 64-bit state that fits it
 *	0x1000	markers
 *	0x2000	memory map
 *	0x3000	task state segment
 *	0x4000	64-bit state (only written by a 64-bit kernel)
 *
 * This header is shared by the kernel module, its tool and readers of captures; it uses nothing but
 * the preprocessor.
 */
#ifndef CITCAT_DUMP_H
#define CITCAT_DUMP_H

#define CITCAT_WINDOW_MIN_BYTES		0x8000

/* ---- state block ------------------------------------------------------------------------- */

#define CITCAT_STATE_MAGIC_OFFSET	0
#define CITCAT_STATE_MAGIC		0x53544943	/* "CITS" */
#define CITCAT_STATE_VERSION_OFFSET	4
#define CITCAT_STATE_VERSION		1

/* eax ecx edx ebx esp ebp esi edi: as the first traced instruction finds them */
#define CITCAT_STATE_GPR(n)		(8 + 4 * (n))
#define CITCAT_STATE_EIP		40
#define CITCAT_STATE_EFLAGS		44

/*
 * Segments es cs ss ds fs gs ldtr tr. Selector, base, limit in bytes (already scaled by G) and
 * attributes: descriptor bits 40-55 shifted down (0-3 type, 4 S, 5-6 DPL, 7 P, 12 AVL, 14 D/B,
 * 15 G), and CITCAT_SEGMENT_UNUSABLE for a null selector.
 */
#define CITCAT_STATE_SEGMENT(n)		(48 + 16 * (n))
#define CITCAT_SEGMENT_SELECTOR		0
#define CITCAT_SEGMENT_BASE		4
#define CITCAT_SEGMENT_LIMIT		8
#define CITCAT_SEGMENT_ATTRIBUTES	12
#define CITCAT_SEGMENT_UNUSABLE		0x10000

#define CITCAT_STATE_GDTR_BASE		176
#define CITCAT_STATE_GDTR_LIMIT		180
#define CITCAT_STATE_IDTR_BASE		184
#define CITCAT_STATE_IDTR_LIMIT		188
#define CITCAT_STATE_CR0		192
#define CITCAT_STATE_CR2		196
#define CITCAT_STATE_CR3		200
#define CITCAT_STATE_CR4		204
#define CITCAT_STATE_DR(n)		(208 + 4 * (n))	/* n = 0..3: DR0-DR3, 4: DR6, 5: DR7 */
#define CITCAT_STATE_A20_MASK		232
#define CITCAT_STATE_ACTIVITY		236	/* 0 running, 1 halted */
#define CITCAT_STATE_IN_SMM		240
#define CITCAT_STATE_RAM_BYTES		244	/* end of the highest RAM below 4 GiB */
#define CITCAT_STATE_IGNORE_CR0_CD	248	/* the monitor's cache model ignores CR0.CD */
#define CITCAT_STATE_TSC_LOW		252	/* read a few instructions before the start */
#define CITCAT_STATE_TSC_HIGH		256
#define CITCAT_STATE_FXSAVE		260	/* 512 bytes, Intel SDM vol. 1, 10.5.1 */
#define CITCAT_STATE_CPUID_COUNT	772

/* CPUID leaves follow: leaf, eax, ebx, ecx, edx (sub-leaf 0; of leaf 0Dh sub-leaf 1 behind it) */
#define CITCAT_STATE_CPUID(n)		(776 + CITCAT_CPUID_BYTES * (n))
#define CITCAT_CPUID_XSTATE		0xd
#define CITCAT_CPUID_BYTES		20
#define CITCAT_CPUID_MAX		64
/* After the c leaves: number of MSRs, then index, low, high of each, then CITCAT_STATE_END */
#define CITCAT_STATE_MSR_COUNT(c)	CITCAT_STATE_CPUID(c)
#define CITCAT_STATE_MSR(c, n)		(CITCAT_STATE_MSR_COUNT(c) + 4 + CITCAT_MSR_BYTES * (n))
#define CITCAT_MSR_BYTES		12
#define CITCAT_MSR_MAX			96
#define CITCAT_STATE_END		0x45544943	/* "CITE" */
#define CITCAT_STATE_MAX_BYTES		0x1000

/* ---- state block, version 2: processors with 64-bit mode ------------------------------------ */

/*
 * The same block at the same place, its version word being 2. Registers of 64 bits are two words,
 * the lower half first. CPUID leaves, MSRs and the end follow as in version 1, after
 * CITCAT_STATE2_CPUID_COUNT. Attributes of segments also have bit 13: L, 64-bit code.
 */
#define CITCAT_STATE2_VERSION		2
/* rax rcx rdx rbx rsp rbp rsi rdi r8-r15 */
#define CITCAT_STATE2_GPR(n)		(8 + 8 * (n))
#define CITCAT_STATE2_RIP		136
#define CITCAT_STATE2_RFLAGS		144
/* es cs ss ds fs gs ldtr tr */
#define CITCAT_STATE2_SEGMENT(n)	(152 + 20 * (n))
#define CITCAT_SEGMENT2_SELECTOR	0
#define CITCAT_SEGMENT2_BASE		4	/* 8 bytes */
#define CITCAT_SEGMENT2_LIMIT		12
#define CITCAT_SEGMENT2_ATTRIBUTES	16
#define CITCAT_STATE2_GDTR_BASE		312	/* 8 bytes, then the limit */
#define CITCAT_STATE2_IDTR_BASE		324
#define CITCAT_STATE2_CR0		336
#define CITCAT_STATE2_CR2		344
#define CITCAT_STATE2_CR3		352
#define CITCAT_STATE2_CR4		360
#define CITCAT_STATE2_CR8		368
#define CITCAT_STATE2_EFER		376
#define CITCAT_STATE2_DR(n)		(384 + 8 * (n))	/* n as in CITCAT_STATE_DR */
#define CITCAT_STATE2_XCR0		432
#define CITCAT_STATE2_A20_MASK		440
#define CITCAT_STATE2_ACTIVITY		444
#define CITCAT_STATE2_IN_SMM		448
#define CITCAT_STATE2_RAM_BYTES		452
#define CITCAT_STATE2_IGNORE_CR0_CD	456
#define CITCAT_STATE2_TSC_LOW		460
#define CITCAT_STATE2_TSC_HIGH		464
#define CITCAT_STATE2_FXSAVE		468	/* as FXSAVE64 stores it, with XMM0-15 */
#define CITCAT_STATE2_CPUID_COUNT	980

/* ---- markers ------------------------------------------------------------------------------ */

/*
 * The trace begins after the store of CITCAT_MARK_START here: the state block describes the
 * processor before the instruction that follows that store. It ends with the store of
 * CITCAT_MARK_STOP.
 */
#define CITCAT_MARK_OFFSET		0x1000
#define CITCAT_MARK_START		0x57a27001
#define CITCAT_MARK_STOP		0x57a27002
/* Number of the dump that the start marker belongs to, from 1: analysers that fill up restart. */
#define CITCAT_MARK_SEGMENT		0x1004
/* What EBX holds when the driver executes WBINVD: a monitor may get ready from there on. */
#define CITCAT_ARM_VALUE		CITCAT_MARK_START

/* ---- memory map --------------------------------------------------------------------------- */

/* Count, then for each range: first byte (low, high), last byte (low, high), kind. */
#define CITCAT_MEMORY_MAP_COUNT		0x2000
#define CITCAT_MEMORY_MAP(n)		(0x2004 + CITCAT_MEMORY_RANGE_BYTES * (n))
#define CITCAT_MEMORY_RANGE_BYTES	20
#define CITCAT_MEMORY_MAP_MAX		128
#define CITCAT_MEMORY_RAM		1
#define CITCAT_MEMORY_RESERVED		2
#define CITCAT_MEMORY_OTHER		3	/* devices, ROM, firmware tables */

/* ---- task state segment ------------------------------------------------------------------- */

/* Bytes that follow, a multiple of 4 (0: no TSS is loaded), then the beginning of the TSS. */
#define CITCAT_TSS_COUNT		0x3000
#define CITCAT_TSS(n)			(0x3004 + 4 * (n))
/* Without the map of I/O permissions: Intel SDM vol. 3, 8.2.1 and 8.7 */
#define CITCAT_TSS_MAX_BYTES		104

/* ---- 64-bit state ------------------------------------------------------------------------- */

/* All values are 8 bytes, low dword first. */
#define CITCAT_STATE64_MAGIC_OFFSET	0x4000
#define CITCAT_STATE64_MAGIC		0x34365443	/* "CT64" */
/* rax rcx rdx rbx rsp rbp rsi rdi r8-15 */
#define CITCAT_STATE64_GPR(n)		(0x4008 + 8 * (n))
#define CITCAT_STATE64_RIP		0x4088
#define CITCAT_STATE64_RFLAGS		0x4090
#define CITCAT_STATE64_BASE(n)		(0x4098 + 8 * (n))	/* es cs ss ds fs gs ldtr tr */
#define CITCAT_STATE64_GDTR_BASE	0x40d8
#define CITCAT_STATE64_IDTR_BASE	0x40e0
#define CITCAT_STATE64_CR0		0x40e8
#define CITCAT_STATE64_CR2		0x40f0
#define CITCAT_STATE64_CR3		0x40f8
#define CITCAT_STATE64_CR4		0x4100
#define CITCAT_STATE64_CR8		0x4108
#define CITCAT_STATE64_DR(n)		(0x4110 + 8 * (n))
#define CITCAT_STATE64_END_OFFSET	0x4140
#define CITCAT_STATE64_END		0x34364543	/* "CE64" */

#endif /* CITCAT_DUMP_H */
