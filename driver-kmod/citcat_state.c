// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything of the processor but its general registers, written to the window dword by dword.
 *
 * The hidden parts of segment registers cannot be read on x86. They are taken from the descriptor
 * tables: right as long as nobody changed a descriptor after it was loaded, which Linux does only
 * for the TLS slots, and reloads them then.
 */
#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/fpu/api.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/special_insns.h>

#include "citcat.h"

static void put(void __iomem *window, u32 offset, u32 value)
{
	writel(value, window + offset);
}

static void put64(void __iomem *window, u32 offset, u64 value)
{
	put(window, offset, lower_32_bits(value));
	put(window, offset + 4, upper_32_bits(value));
}

/* The paravirt layer may answer for these instructions; we want what the processor holds. */
static void own_gdtr(struct desc_ptr *table)
{
	asm volatile("sgdt %0" : "=m" (*table));
}

static void own_idtr(struct desc_ptr *table)
{
	asm volatile("sidt %0" : "=m" (*table));
}

static u16 own_ldtr(void)
{
	u16 selector;

	asm volatile("sldt %0" : "=rm" (selector));
	return selector;
}

static u16 own_tr(void)
{
	u16 selector;

	asm volatile("str %0" : "=rm" (selector));
	return selector;
}

/* What a segment register holds besides its selector. */
struct hidden {
	u64 base;
	u32 limit;
	u32 attributes;
};

/*
 * Decodes the descriptor that @selector names in the table at @table of @limit + 1 bytes. System
 * descriptors (LDT, TSS) are 16 bytes in 64-bit mode: Intel SDM vol. 3, 3.5.2 and 7.2.3.
 */
static struct hidden decode(u16 selector, unsigned long table, u32 limit, bool system)
{
	struct hidden hidden = { .attributes = CITCAT_SEGMENT_UNUSABLE };
	u32 index = selector & ~7;
	u32 words[4] = { 0 };
	u32 bytes = system && IS_ENABLED(CONFIG_X86_64) ? 16 : 8;

	if (!(selector & ~3) || index + bytes - 1 > limit)
		return hidden;
	memcpy(words, (void *)(table + index), bytes);

	hidden.base = (words[0] >> 16) | (words[1] & 0xff) << 16 | (words[1] & 0xff000000);
	if (bytes == 16)
		hidden.base |= (u64)words[2] << 32;
	hidden.limit = (words[0] & 0xffff) | (words[1] & 0xf0000);
	hidden.attributes = (words[1] >> 8) & 0xf0ff;
	/* What is loaded has been accessed, also where SYSENTER loaded it without the table. */
	if (hidden.attributes & 0x10)
		hidden.attributes |= 1;
	if (hidden.attributes & 0x8000)
		hidden.limit = hidden.limit << 12 | 0xfff;
	return hidden;
}

static void put_segment(void __iomem *window, int n, u16 selector, struct hidden hidden)
{
	u32 offset = CITCAT_STATE_SEGMENT(n);

	put(window, offset + CITCAT_SEGMENT_SELECTOR, selector);
	put(window, offset + CITCAT_SEGMENT_BASE, lower_32_bits(hidden.base));
	put(window, offset + CITCAT_SEGMENT_LIMIT, hidden.limit);
	put(window, offset + CITCAT_SEGMENT_ATTRIBUTES, hidden.attributes);
	if (IS_ENABLED(CONFIG_X86_64))
		put64(window, CITCAT_STATE64_BASE(n), hidden.base);
}

void citcat_mark_segments_accessed(void)
{
	static const u16 code_selectors[] = {
		__KERNEL_CS, __USER_CS,
#ifdef CONFIG_X86_64
		__USER32_CS,
#endif
	};
	/* The table that GDTR names is mapped read-only; this is its writable twin. */
	struct desc_struct *table = get_cpu_gdt_rw(smp_processor_id());
	int n;

	for (n = 0; n < ARRAY_SIZE(code_selectors); n++) {
		struct desc_struct *descriptor = table + (code_selectors[n] >> 3);

		if (descriptor->p && descriptor->s)
			descriptor->type |= 1;
	}
}

static void dump_task(void __iomem *window, struct hidden task)
{
	u32 bytes = 0, n, word;

	if (!(task.attributes & CITCAT_SEGMENT_UNUSABLE))
		bytes = min_t(u32, task.limit + 1, CITCAT_TSS_MAX_BYTES) & ~3;
	for (n = 0; n < bytes / 4; n++) {
		memcpy(&word, (void *)(unsigned long)task.base + 4 * n, 4);
		put(window, CITCAT_TSS(n), word);
	}
	put(window, CITCAT_TSS_COUNT, bytes);
}

static void dump_segments(void __iomem *window)
{
	struct desc_ptr gdtr, idtr;
	struct hidden ldt, task;
	u16 selectors[6], ldtr = own_ldtr(), tr = own_tr();
	int n;

	own_gdtr(&gdtr);
	own_idtr(&idtr);
	savesegment(es, selectors[0]);
	savesegment(cs, selectors[1]);
	savesegment(ss, selectors[2]);
	savesegment(ds, selectors[3]);
	savesegment(fs, selectors[4]);
	savesegment(gs, selectors[5]);

	ldt = decode(ldtr, gdtr.address, gdtr.size, true);
	for (n = 0; n < 6; n++) {
		bool local = selectors[n] & 4;
		struct hidden hidden = decode(selectors[n],
					      local ? (unsigned long)ldt.base : gdtr.address,
					      local ? ldt.limit : gdtr.size, false);

#ifdef CONFIG_X86_64
		/* In 64-bit mode these bases are MSRs, not what the descriptors say. */
		if (n == 4)
			rdmsrl(MSR_FS_BASE, hidden.base);
		if (n == 5)
			rdmsrl(MSR_GS_BASE, hidden.base);
#endif
		put_segment(window, n, selectors[n], hidden);
	}
	put_segment(window, 6, ldtr, ldt);
	task = decode(tr, gdtr.address, gdtr.size, true);
	put_segment(window, 7, tr, task);
	dump_task(window, task);

	put(window, CITCAT_STATE_GDTR_BASE, lower_32_bits(gdtr.address));
	put(window, CITCAT_STATE_GDTR_LIMIT, gdtr.size);
	put(window, CITCAT_STATE_IDTR_BASE, lower_32_bits(idtr.address));
	put(window, CITCAT_STATE_IDTR_LIMIT, idtr.size);
	if (IS_ENABLED(CONFIG_X86_64)) {
		put64(window, CITCAT_STATE64_GDTR_BASE, gdtr.address);
		put64(window, CITCAT_STATE64_IDTR_BASE, idtr.address);
	}
}

static void put_control(void __iomem *window, u32 offset, u32 offset64, unsigned long value)
{
	put(window, offset, lower_32_bits(value));
	if (IS_ENABLED(CONFIG_X86_64))
		put64(window, offset64, value);
}

static void dump_control(void __iomem *window)
{
	static const int debug_register[6] = { 0, 1, 2, 3, 6, 7 };
	unsigned long value;
	int n;

	/* CR0 is dumped by citcat_switch(), which changes it. */
	put_control(window, CITCAT_STATE_CR2, CITCAT_STATE64_CR2, read_cr2());
	put_control(window, CITCAT_STATE_CR3, CITCAT_STATE64_CR3, __read_cr3());
	put_control(window, CITCAT_STATE_CR4, CITCAT_STATE64_CR4, __read_cr4());
#ifdef CONFIG_X86_64
	asm volatile("mov %%cr8, %0" : "=r" (value));
	put64(window, CITCAT_STATE64_CR8, value);
#endif
	for (n = 0; n < 6; n++) {
		get_debugreg(value, debug_register[n]);
		put_control(window, CITCAT_STATE_DR(n), CITCAT_STATE64_DR(n), value);
	}
}

/*
 * Processors without FXSAVE: the FNSAVE image (Intel SDM vol. 1, 8.1.10) put into the places of the
 * FXSAVE image.
 */
static void fnsave_as_fxsave(u8 *image)
{
	static u8 old[108] __aligned(4);
	u16 tags;
	u8 abridged = 0;
	int n;

	asm volatile("fnsave %0; frstor %0" : "+m" (old));
	memset(image, 0, 512);
	memcpy(image + 0, old + 0, 2);		/* control word */
	memcpy(image + 2, old + 4, 2);		/* status word */
	memcpy(&tags, old + 8, 2);
	for (n = 0; n < 8; n++)
		abridged |= (((tags >> 2 * n) & 3) != 3) << n;
	image[4] = abridged;
	memcpy(image + 6, old + 18, 2);		/* opcode */
	memcpy(image + 8, old + 12, 6);		/* instruction pointer and its CS */
	memcpy(image + 16, old + 20, 6);	/* operand pointer and its DS */
	for (n = 0; n < 8; n++)
		memcpy(image + 32 + 16 * n, old + 28 + 10 * n, 10);
}

static void dump_fpu(void __iomem *window)
{
	static u8 image[512] __aligned(64);
	u32 n, word;

	/*
	 * Saves what the task has in the FPU and leaves the registers as they are for the kernel;
	 * what FXSAVE sees then is what the trace starts with, for nothing uses the FPU until then.
	 */
	kernel_fpu_begin();
	memset(image, 0, sizeof(image));
	if (boot_cpu_has(X86_FEATURE_FXSR))
		asm volatile("fxsave %0" : "=m" (image));
	else
		fnsave_as_fxsave(image);
	kernel_fpu_end();

	for (n = 0; n < sizeof(image); n += 4) {
		memcpy(&word, image + n, 4);
		put(window, CITCAT_STATE_FXSAVE + n, word);
	}
}

static u32 put_cpuid(void __iomem *window, u32 count, u32 leaf, u32 subleaf)
{
	u32 offset = CITCAT_STATE_CPUID(count), r[4];

	if (count == CITCAT_CPUID_MAX)
		return count;
	cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]);
	put(window, offset, leaf);
	put(window, offset + 4, r[0]);
	put(window, offset + 8, r[1]);
	put(window, offset + 12, r[2]);
	put(window, offset + 16, r[3]);
	return count + 1;
}

static u32 dump_cpuid(void __iomem *window)
{
	static const u32 bases[] = { 0, 0x80000000 };
	u32 count = 0, n, leaf, last;

	for (n = 0; n < ARRAY_SIZE(bases); n++) {
		last = cpuid_eax(bases[n]);
		/* A processor without extended leaves answers with something of the basic ones. */
		if ((last & 0xffff0000) != bases[n])
			continue;
		for (leaf = bases[n]; leaf <= last && count < CITCAT_CPUID_MAX; leaf++) {
			count = put_cpuid(window, count, leaf, 0);
			/* Which of XSAVE's relatives there are: without it XSAVEOPT is #UD. */
			if (leaf == CITCAT_CPUID_XSTATE)
				count = put_cpuid(window, count, leaf, 1);
		}
	}
	put(window, CITCAT_STATE_CPUID_COUNT, count);
	return count;
}

/* A range of MSRs that exist when the processor has @feature. */
struct msr_range {
	u32 first;
	u32 last;
	u16 feature;
};

static const struct msr_range msr_ranges[] = {
	{ MSR_IA32_TSC, MSR_IA32_TSC, X86_FEATURE_TSC },
	{ MSR_IA32_APICBASE, MSR_IA32_APICBASE, X86_FEATURE_APIC },
	{ MSR_MTRRcap, MSR_MTRRcap, X86_FEATURE_MTRR },
	{ MSR_IA32_SYSENTER_CS, MSR_IA32_SYSENTER_EIP, X86_FEATURE_SEP },
	{ MSR_IA32_MCG_CAP, MSR_IA32_MCG_STATUS, X86_FEATURE_MCA },
	{ MSR_IA32_DEBUGCTLMSR, MSR_IA32_DEBUGCTLMSR, X86_FEATURE_DS },
	{ 0x200, 0x20f, X86_FEATURE_MTRR },
	{ MSR_MTRRfix64K_00000, MSR_MTRRfix64K_00000, X86_FEATURE_MTRR },
	{ MSR_MTRRfix16K_80000, MSR_MTRRfix16K_A0000, X86_FEATURE_MTRR },
	{ MSR_MTRRfix4K_C0000, MSR_MTRRfix4K_F8000, X86_FEATURE_MTRR },
	{ MSR_IA32_CR_PAT, MSR_IA32_CR_PAT, X86_FEATURE_PAT },
	{ MSR_MTRRdefType, MSR_MTRRdefType, X86_FEATURE_MTRR },
	{ MSR_EFER, MSR_EFER, X86_FEATURE_NX },
	{ MSR_STAR, MSR_SYSCALL_MASK, X86_FEATURE_LM },
	{ MSR_FS_BASE, MSR_KERNEL_GS_BASE, X86_FEATURE_LM },
	{ MSR_TSC_AUX, MSR_TSC_AUX, X86_FEATURE_RDTSCP },
};

static void dump_msrs(void __iomem *window, u32 cpuid_count)
{
	u32 count = 0, n, index;
	u64 value;

	for (n = 0; n < ARRAY_SIZE(msr_ranges); n++) {
		if (!boot_cpu_has(msr_ranges[n].feature))
			continue;
		for (index = msr_ranges[n].first; index <= msr_ranges[n].last; index++) {
			if (count == CITCAT_MSR_MAX || rdmsrl_safe(index, &value))
				continue;
			put(window, CITCAT_STATE_MSR(cpuid_count, count), index);
			put64(window, CITCAT_STATE_MSR(cpuid_count, count) + 4, value);
			count++;
		}
	}
	put(window, CITCAT_STATE_MSR_COUNT(cpuid_count), count);
	put(window, CITCAT_STATE_MSR(cpuid_count, count), CITCAT_STATE_END);
}

void citcat_dump_state(void __iomem *window)
{
	u64 tsc;

	put(window, CITCAT_STATE_MAGIC_OFFSET, CITCAT_STATE_MAGIC);
	put(window, CITCAT_STATE_VERSION_OFFSET, CITCAT_STATE_VERSION);
	put(window, CITCAT_STATE_A20_MASK, 0xffffffff);
	put(window, CITCAT_STATE_ACTIVITY, 0);
	put(window, CITCAT_STATE_IN_SMM, 0);
	put(window, CITCAT_STATE_IGNORE_CR0_CD, 0);
	if (IS_ENABLED(CONFIG_X86_64)) {
		put(window, CITCAT_STATE64_MAGIC_OFFSET, CITCAT_STATE64_MAGIC);
		put(window, CITCAT_STATE64_END_OFFSET, CITCAT_STATE64_END);
	}
	dump_segments(window);
	dump_control(window);
	dump_fpu(window);
	dump_msrs(window, dump_cpuid(window));

	tsc = boot_cpu_has(X86_FEATURE_TSC) ? rdtsc() : 0;
	put(window, CITCAT_STATE_TSC_LOW, lower_32_bits(tsc));
	put(window, CITCAT_STATE_TSC_HIGH, upper_32_bits(tsc));
}

static u32 range_kind(const struct resource *range)
{
	if ((range->flags & IORESOURCE_SYSTEM_RAM) == IORESOURCE_SYSTEM_RAM)
		return CITCAT_MEMORY_RAM;
	return strcasecmp(range->name, "reserved") ? CITCAT_MEMORY_OTHER : CITCAT_MEMORY_RESERVED;
}

/*
 * The list of top-level ranges is walked without its lock, which modules cannot take: these ranges
 * are made at boot and changed by memory hot-plug only.
 */
void citcat_dump_memory_map(void __iomem *window)
{
	const struct resource *range;
	u64 ram_end = 0;
	u32 count = 0;

	for (range = iomem_resource.child; range; range = range->sibling) {
		u32 offset = CITCAT_MEMORY_MAP(count), kind = range_kind(range);

		if (kind == CITCAT_MEMORY_RAM && range->end < (1ULL << 32))
			ram_end = range->end + 1ULL;
		if (count == CITCAT_MEMORY_MAP_MAX)
			continue;
		put64(window, offset, range->start);
		put64(window, offset + 8, range->end);
		put(window, offset + 16, kind);
		count++;
	}
	put(window, CITCAT_MEMORY_MAP_COUNT, count);
	put(window, CITCAT_STATE_RAM_BYTES, lower_32_bits(ram_end));
}
