/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Interface of /dev/citcat. One process may have it open for writing at a time; it needs
 * CAP_SYS_RAWIO, and a kernel that is not locked down (EPERM).
 */
#ifndef CITCAT_IOCTL_H
#define CITCAT_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define CITCAT_INTERFACE_VERSION	1

/* struct citcat_start flags */
#define CITCAT_START_NO_CACHE_FLUSH	1	/* leave caches and TLB as they are */

/*
 * A dump stops everything for about a millisecond and empties the caches: a rhythm that leaves time
 * for nothing else would take the machine away from its owner.
 */
#define CITCAT_REDUMP_MIN_MS	20

struct citcat_start {
	__u32 flags;		/* CITCAT_START_* */
	__u32 stop_after_ms;	/* write the stop marker by itself after this time; 0: never */
	__u32 redump_every_ms;	/* dump again, as a new segment, in this rhythm; 0: never. Less than
				   CITCAT_REDUMP_MIN_MS is EINVAL */
	__u32 segment;		/* out: number of this dump */
};

struct citcat_info {
	__u32 version;		/* CITCAT_INTERFACE_VERSION */
	__u32 state_bits;	/* 32 or 64: which state blocks a dump writes */
	__u64 window_base;
	__u64 window_bytes;
	__u64 first_traced;	/* virtual address of the first traced instruction */
	__u32 segments;		/* dumps made since the module was loaded */
	__u32 running;		/* a start marker was written, its stop marker was not */
};

/*
 * Dumps the state, empties caches and TLB and writes the start marker. While running: a re-dump, and
 * the timers are those of this request; one that fails leaves them as they are.
 */
#define CITCAT_IOC_START	_IOWR('K', 0xc1, struct citcat_start)
/* Writes the stop marker; EINVAL when not running. */
#define CITCAT_IOC_STOP		_IO('K', 0xc2)
/* The only request that a descriptor opened for reading may make. */
#define CITCAT_IOC_INFO		_IOR('K', 0xc3, struct citcat_info)

#endif /* CITCAT_IOCTL_H */
