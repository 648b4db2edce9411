/*
 * Writes captures in citcat's native format (docs/formats/capture.md). C99, no dependencies, no
 * allocation, no I/O of its own: fit for a monitor's firmware, an emulator or a converter.
 *
 *	struct citcat_capture capture;
 *	struct citcat_capture_info info = {0};
 *	struct citcat_capture_record record = {0};
 *
 *	info.cpu = CITCAT_CPU_486;
 *	citcat_capture_begin(&capture, &info, write_to_file, file);
 *	record.type = CITCAT_CODE_READ;
 *	record.instructions = CITCAT_NOT_COUNTED;
 *	...
 *	citcat_capture_put(&capture, &record);
 *	citcat_capture_end(&capture);
 *
 * Readers refuse a capture that was not ended, because it is cut short.
 */
#ifndef CITCAT_CAPTURE_H
#define CITCAT_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CITCAT_CAPTURE_HEADER_BYTES 72
#define CITCAT_CAPTURE_RECORD_BYTES 40
#define CITCAT_CAPTURE_DATA_BYTES 16

/* citcat_capture_record.instructions of a record whose position was not counted */
#define CITCAT_NOT_COUNTED UINT64_MAX

enum citcat_cpu {
  CITCAT_CPU_UNKNOWN = 0,
  CITCAT_CPU_8088 = 1,
  CITCAT_CPU_286 = 2,
  CITCAT_CPU_386 = 3,
  CITCAT_CPU_486 = 4,
  CITCAT_CPU_PENTIUM = 5,
  CITCAT_CPU_P6 = 6,
  CITCAT_CPU_X86_64 = 7,
  CITCAT_CPU_8086 = 8,
  CITCAT_CPU_80186 = 9,
  CITCAT_CPU_80188 = 10,
  CITCAT_CPU_V20 = 11,
  CITCAT_CPU_V30 = 12
};

enum citcat_cache {
  CITCAT_CACHE_UNDECLARED = 0, /* the reader infers it from the records */
  CITCAT_CACHE_NONE = 1,
  CITCAT_CACHE_WRITE_THROUGH = 2,
  CITCAT_CACHE_WRITE_BACK = 3
};

enum citcat_record_type {
  CITCAT_CODE_READ = 1,
  CITCAT_DATA_READ = 2,
  CITCAT_DATA_WRITE = 3,
  CITCAT_IO_READ = 4,
  CITCAT_IO_WRITE = 5,
  CITCAT_INTERRUPT_ACKNOWLEDGE = 6, /* both cycles; data[0] is the vector */
  CITCAT_HALT = 7,
  CITCAT_SHUTDOWN = 8,
  CITCAT_FLUSH = 9, /* data[0]: 1 INVD, 2 WBINVD */
  CITCAT_NMI = 10,
  CITCAT_RESET = 11,
  CITCAT_SMI = 12,
  CITCAT_INSTRUCTION = 13, /* execution of an instruction begins; data are its bytes */
  /* The last record of a capture that was interrupted; data[0] is enum citcat_cut */
  CITCAT_CUT = 14,
  /* Comes after the last transaction: record.instructions were complete by then, even if the bus
     has not shown them, and record.iterations of the one in progress */
  CITCAT_REACHED = 21,
  CITCAT_HIGH = 22 /* see citcat_capture_high() */
};

enum citcat_cut {
  CITCAT_CUT_SOURCE_GONE = 1,  /* the recorded machine went away */
  CITCAT_CUT_STORAGE_FULL = 2, /* no room for more */
  CITCAT_CUT_BY_HAND = 3,      /* somebody stopped the monitor */
  CITCAT_CUT_MONITOR = 4       /* something happened that the monitor cannot record */
};

/* citcat_capture_record.flags of memory records */
#define CITCAT_LINE 1u          /* 16 bytes of a line burst */
#define CITCAT_WRITE_BACK 2u    /* of a dirty line */
#define CITCAT_UNCACHEABLE 4u   /* KEN# inactive */
#define CITCAT_SNOOP 8u         /* write-back forced by another bus master */
#define CITCAT_STATE_WINDOW 16u /* write into the driver's state dump window */
#define CITCAT_STORE_FILL 32u   /* line fill caused by a store */
/* citcat_capture_record.flags of CITCAT_INSTRUCTION */
#define CITCAT_INSTRUCTION_PREFIX 1u  /* a prefix of the instruction that follows */
#define CITCAT_INSTRUCTION_FLUSHED 2u /* the first after the prefetch queue was emptied */

/* What the capture says about itself. All zero is valid: nothing is known. */
struct citcat_capture_info {
  enum citcat_cpu cpu;
  enum citcat_cache cache;
  uint8_t bus_bytes;           /* width of the data bus: 1, 2, 4, 8; 0 means 4 */
  uint8_t line_bytes;          /* of the cache: 0, 16, 32 */
  uint8_t counts_instructions; /* nonzero: records carry `instructions` */
  uint8_t counts_clocks;       /* nonzero: records carry `clock` */
  uint32_t address_mask;       /* address bits captured; 0 means all 32 */
  uint64_t clock_hz;           /* rate of `clock`, 0 when not known */
  const char* monitor;         /* at most 32 bytes are kept; NULL for none */
};

struct citcat_capture_record {
  uint64_t instructions; /* completed before it, or CITCAT_NOT_COUNTED */
  uint32_t clock;        /* may wrap */
  uint32_t address;      /* physical, or the I/O port */
  uint32_t iterations;   /* of the REP instruction in flight, completed */
  uint8_t type;          /* enum citcat_record_type */
  uint8_t size;          /* bytes in data */
  uint8_t flags;
  uint8_t burst;                           /* 0 or 1: which 16 bytes of a 32-byte line */
  uint8_t data[CITCAT_CAPTURE_DATA_BYTES]; /* in address order */
};

/* Takes `size` bytes and returns 0, or anything else for failure. */
typedef int (*citcat_capture_sink)(void* context, const uint8_t* bytes, size_t size);

/* State of a capture being written; only the library uses its fields. */
struct citcat_capture {
  citcat_capture_sink sink;
  void* context;
  uint64_t records;
  uint64_t sum;
  uint64_t sum_of_sums;
};

/* Each returns 0, or what the sink returned. */
int citcat_capture_begin(struct citcat_capture* capture, const struct citcat_capture_info* info,
                         citcat_capture_sink sink, void* context);
int citcat_capture_put(struct citcat_capture* capture, const struct citcat_capture_record* record);
/*
 * Records have the lower 32 bits of addresses. `upper` are the 20 bits above them in all memory
 * records that follow; they are 0 until the first call.
 */
int citcat_capture_high(struct citcat_capture* capture, uint32_t upper);
int citcat_capture_end(struct citcat_capture* capture);

#ifdef __cplusplus
}
#endif

#endif /* CITCAT_CAPTURE_H */
