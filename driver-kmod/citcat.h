/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CITCAT_H
#define CITCAT_H

#include <linux/linkage.h>

#include "uapi/citcat_dump.h"

#ifndef __ASSEMBLY__
#include <linux/io.h>
#include <linux/types.h>

/* Dumps everything but the general registers. Interrupts and preemption are off. */
void citcat_dump_state(void __iomem *window);

/*
 * Sets the accessed bit of the kernel's and the users' code segment, which a processor has done
 * when it loaded them. Emulators may leave it clear (QEMU does for CS), and a replay could not
 * know.
 */
void citcat_mark_segments_accessed(void);

/* The memory map changes rarely and takes time: dumped with interrupts on. */
void citcat_dump_memory_map(void __iomem *window);

/*
 * Empties caches and TLB, dumps the general registers and writes the start marker; returns inside
 * the trace. Interrupts and preemption are off.
 */
asmlinkage void citcat_switch(void __iomem *window, u32 segment, u32 flush);
/* Label in citcat_switch: the first traced instruction. */
extern const char citcat_first_traced[];
#endif

#endif
