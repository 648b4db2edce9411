/* The interface of your own tool for `citcat analyze`: what it receives from a replayed run, and how it reports.

   A tool is a shared object that exports citcat_tool_v1(). It needs only this header, and no library:

     cc -shared -fPIC $(pkg-config --cflags citcat-tool) mix.c -o mix.so
     citcat analyze boot.citcat --tool ./mix.so:limit=10

   Nothing that a tool does changes the run, because the run is a replay. All calls come from one thread.
   Pointers to structures are valid during the call; pointers to a citcat_block are valid as long as the
   tool. With --isolate a tool runs in a process of its own.

   Structures contain their size and grow only at their end, so a tool that was compiled with an older
   header continues to work. docs/howto/write-a-tool.md walks through three examples. */
#ifndef CITCAT_TOOL_H
#define CITCAT_TOOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CITCAT_TOOL_VERSION 1

/** What a tool needs. The host takes the cheapest way that serves all tools of a run. */
enum citcat_wants {
  CITCAT_WANTS_COUNTS = 1,     /**< counted() and iterated(): how often each piece of code ran */
  CITCAT_WANTS_EXECUTIONS = 2, /**< run(), in program order */
  CITCAT_WANTS_REFERENCES = 4, /**< run() with references, without page walks */
  CITCAT_WANTS_WALKS = 8,      /**< page walks among the references */
  CITCAT_WANTS_REGISTERS = 16, /**< run() one instruction at a time, with registers. Slow */
  CITCAT_WANTS_VALUES = 32,    /**< citcat_reference.value is set. Slow */
  CITCAT_WANTS_EVENTS = 64     /**< event() */
};

/** An instruction of a piece of code. */
typedef struct citcat_instruction {
  uint64_t linear;        /**< linear address of its first byte */
  uint64_t offset;        /**< offset of its first byte in CS */
  uint64_t physical;      /**< physical address of its first byte */
  uint64_t physical_rest; /**< physical address of its bytes in the next page, or 0 */
  const char *mnemonic;   /**< "mov"; lower case */
  uint32_t first_address; /**< index of its first address in citcat_execution.addresses */
  uint8_t length;         /**< bytes, 1 to 15 */
  uint8_t address_count;  /**< number of its effective addresses, 0 to 2 (docs/formats/kt.md) */
  uint8_t transfers;      /**< 1: the next instruction need not be the following one */
  uint8_t conditional;    /**< 1: jumps or not, depending on flags or CX */
  uint8_t bytes[16];      /**< `length` bytes of the instruction, then zeros */
} citcat_instruction;

/** Adjacent instructions that run one after another; only the last may transfer control. The machine
    decides how a run is cut into blocks, and results must not depend on it. */
typedef struct citcat_block {
  uint32_t size; /**< bytes of this structure */
  uint32_t count;
  uint32_t instruction_size; /**< bytes of one citcat_instruction: see citcat_instruction_at() */
  uint32_t bits;             /**< default size of the code segment: 16, 32, or 64 in 64-bit mode */
  const citcat_instruction *instructions;
} citcat_block;

/** Instruction `i` of a block, even if the host's structure is larger than this header's. */
static inline const citcat_instruction *citcat_instruction_at(const citcat_block *block, uint32_t i) {
  return (const citcat_instruction *)((const char *)block->instructions +
                                      (size_t)block->instruction_size * i);
}

enum citcat_access { CITCAT_DATA = 0, CITCAT_WALK = 1, CITCAT_SYSTEM = 2 };

/** An access to memory within one page frame. An access to two frames is two references. */
typedef struct citcat_reference {
  uint64_t physical;
  uint64_t linear;      /**< 0 for page walks and system tables */
  uint64_t value;       /**< with CITCAT_WANTS_VALUES: its bytes, the first lowest, at most 8 */
  uint16_t bytes;       /**< size of the access */
  uint16_t instruction; /**< number in the block */
  uint8_t access;       /**< enum citcat_access */
  uint8_t write;        /**< 1: a write */
  uint8_t code;         /**< only in citcat_accesses: 1: bytes of an instruction */
  uint8_t reserved;
} citcat_reference;

/** The state of the machine when something happens. */
typedef struct citcat_context {
  uint64_t address_space;   /**< CR3, which identifies the process */
  uint32_t level;           /**< current privilege level, 0 to 3 */
  uint32_t interrupt_depth; /**< interrupts from outside, NMIs and SMIs that have not returned */
  /** With CITCAT_WANTS_REGISTERS, after the instruction: eax ecx edx ebx esp ebp esi edi; for
      processors with long mode all 64 bits of rax to rdi. Else 0. */
  uint64_t registers[8];
  uint64_t instruction_pointer, flags; /**< the same */
} citcat_context;

/** One complete execution of a block; or iterations of a REP string instruction, which is then the only
    instruction of its block. */
typedef struct citcat_execution {
  uint32_t size; /**< bytes of this structure */
  /** The number of iterations that are reported together; 1 without REP. Addresses and references are
      those of the first one, and `step` bytes higher for each further one. */
  uint32_t iterations;
  int32_t step;
  uint32_t does_nothing; /**< 1: a REP whose count was 0: no addresses, no references */
  const citcat_block *block;
  uint64_t instruction; /**< instructions completed before its first one */
  uint64_t iteration;   /**< iterations of the REP completed before it */
  /** Linear effective addresses of all its instructions; those of instruction i begin at its
      first_address. NULL without CITCAT_WANTS_REFERENCES. */
  const uint64_t *addresses;
  uint32_t address_count;
  uint32_t reference_count;
  const citcat_reference *references; /**< in program order */
  uint32_t reference_size;            /**< bytes of one citcat_reference */
  uint32_t reserved;
  citcat_context context; /**< after it */
} citcat_execution;

/** Reference `i` of an execution, even if the host's structure is larger than this header's. */
static inline const citcat_reference *citcat_reference_at(const citcat_execution *execution, uint32_t i) {
  return (const citcat_reference *)((const char *)execution->references +
                                    (size_t)execution->reference_size * i);
}

/** Accesses that belong to no completed instruction: tables and frames of a delivery, page walks for
    code, and those of an instruction that faulted, including its own bytes. */
typedef struct citcat_accesses {
  uint32_t size; /**< bytes of this structure */
  uint32_t count;
  uint32_t reference_size; /**< bytes of one citcat_reference */
  uint32_t reserved;
  const citcat_reference *references; /**< in program order; `instruction` has no meaning */
  citcat_context context;
} citcat_accesses;

/** Reference `i` of them, even if the host's structure is larger than this header's. */
static inline const citcat_reference *citcat_access_at(const citcat_accesses *accesses, uint32_t i) {
  return (const citcat_reference *)((const char *)accesses->references +
                                    (size_t)accesses->reference_size * i);
}

enum citcat_tool_event_kind {
  CITCAT_TOOL_EXCEPTION = 1,      /**< delivered: `vector`, `error_code`, `offset`, `cr2` */
  CITCAT_TOOL_INTERRUPT = 2,      /**< the same from outside; also NMI (vector 2) and SMI below */
  CITCAT_TOOL_SOFTWARE = 3,       /**< INT n, INT3, INTO: the same */
  CITCAT_TOOL_NMI = 4,
  CITCAT_TOOL_SMI = 5,
  CITCAT_TOOL_RETURNED = 6,       /**< IRET or RSM completed */
  CITCAT_TOOL_FAST_CALL = 7,      /**< SYSENTER completed; SYSCALL if `value` is 1 */
  CITCAT_TOOL_FAST_RETURN = 8,    /**< SYSEXIT completed; SYSRET if `value` is 1 */
  CITCAT_TOOL_ADDRESS_SPACE = 9,  /**< CR3 was loaded: `value` */
  CITCAT_TOOL_PORT_READ = 10,     /**< `port`, `bytes`, `value` */
  CITCAT_TOOL_PORT_WRITE = 11,    /**< the same */
  CITCAT_TOOL_EXTERNAL_WRITE = 12, /**< by another bus master: `physical`, `bytes` */
  CITCAT_TOOL_HALTED = 13,
  CITCAT_TOOL_SHUTDOWN = 14,
  CITCAT_TOOL_CACHE_FLUSHED = 15, /**< `value`: 1 with write-back */
  CITCAT_TOOL_MAPPING = 16,       /**< first use of a translation: `linear`, `physical` (with walks) */
  CITCAT_TOOL_WINDOW_OPENED = 17, /**< the tool sees the run again */
  CITCAT_TOOL_WINDOW_CLOSED = 18
};

/** An event between instructions. A tool ignores kinds that it does not know. */
typedef struct citcat_tool_event {
  uint32_t size; /**< bytes of this structure */
  uint32_t kind; /**< enum citcat_tool_event_kind */
  uint64_t instruction; /**< instructions completed before it */
  uint64_t iteration;
  uint64_t physical, linear, value;
  uint64_t offset; /**< for a delivery: offset in CS of the instruction that faulted or would run next */
  uint64_t cr2;
  uint32_t bytes, vector, error_code;
  uint16_t port, cs;
  citcat_context context;
} citcat_tool_event;

/** Receives the results of a tool in report(). Keys appear in JSON and CSV: lower case, underscores;
    titles are for people. `unit` may be "" or NULL. Texts are UTF-8 and copied. */
typedef struct citcat_report citcat_report;
struct citcat_report {
  uint32_t size; /**< bytes of this structure */
  void (*number)(citcat_report *, const char *key, const char *title, uint64_t value, const char *unit);
  void (*fraction)(citcat_report *, const char *key, const char *title, double value, const char *unit);
  void (*text)(citcat_report *, const char *key, const char *title, const char *value);
  /** Everything up to the matching end_group() goes into an object of that key. */
  void (*group)(citcat_report *, const char *key, const char *title);
  void (*end_group)(citcat_report *);
  /** A table: call column() for each column, then a function for each cell, row by row, and end_table().
      The number of cells must be a multiple of the number of columns. */
  void (*table)(citcat_report *, const char *key, const char *title);
  void (*column)(citcat_report *, const char *key, const char *title, const char *unit);
  void (*number_cell)(citcat_report *, uint64_t value);
  void (*fraction_cell)(citcat_report *, double value);
  void (*text_cell)(citcat_report *, const char *value);
  void (*end_table)(citcat_report *);
};

/** Receives the state of a tool in save(). */
typedef struct citcat_state citcat_state;
struct citcat_state {
  uint32_t size; /**< bytes of this structure */
  void (*write)(citcat_state *, const void *bytes, size_t count);
};

/** The facts for make(). */
typedef struct citcat_tool_setup {
  uint32_t size; /**< bytes of this structure */
  /** 1: the tool sees the run from its beginning. 0: it sees a later part, and the state of a model at
      the beginning of the part is not known. */
  uint32_t begins;
  uint64_t from; /**< first instruction that the tool sees */
  uint64_t ram_bytes; /**< memory of the recorded machine; 0: not known */
  /** The value of the option `key` ("limit" of `mix.so:limit=10`); NULL if it was not given. Options
      that make() does not ask for are refused. Valid during make(). */
  const char *(*option)(const struct citcat_tool_setup *, const char *key);
  /** Says why make() returns NULL. */
  void (*fail)(const struct citcat_tool_setup *, const char *message);
} citcat_tool_setup;

/** A tool. Functions that it does not need may be NULL, except make, destroy and report. */
typedef struct citcat_tool {
  uint32_t size;    /**< sizeof(citcat_tool) */
  uint32_t version; /**< CITCAT_TOOL_VERSION */
  const char *name;    /**< key of its results: lower case letters, digits, underscores */
  const char *summary; /**< one line */
  const char *options; /**< lines "key=VALUE  what it means"; NULL if there are no options */
  uint32_t wants;      /**< combination of enum citcat_wants */
  uint32_t reserved;

  /** Makes a tool, or returns NULL after setup->fail(). There may be several tools: one to check the
      options before the run, and one for each group (--by) or part (--jobs). Some of them see nothing of
      the run and do not report. */
  void *(*make)(const citcat_tool_setup *setup);
  void (*destroy)(void *tool);
  /** Called once for each block, which stays valid as long as the tool. The return value belongs to the
      tool and is passed to run() and counted() as `mine`. */
  void *(*code)(void *tool, const citcat_block *block);
  void (*run)(void *tool, void *mine, const citcat_execution *execution);
  /** With CITCAT_WANTS_REFERENCES. */
  void (*accesses)(void *tool, const citcat_accesses *accesses);
  /** This many more complete executions; replaces run() for tools that need only counts. */
  void (*counted)(void *tool, void *mine, uint64_t executions);
  /** With counts: a REP string instruction, the only one of its block, was begun this many times and did
      this many further iterations. */
  void (*iterated)(void *tool, void *mine, uint64_t begun, uint64_t further);
  /** This many of those begun were interrupted between two iterations. When they continue, they count as
      begun again. */
  void (*interrupted)(void *tool, void *mine, uint64_t times);
  void (*event)(void *tool, const citcat_tool_event *event);
  void (*report)(const void *tool, citcat_report *report);

  /** For runs in parts (--jobs, --shard) a tool needs all three functions; otherwise it sees the run as a
      whole. merge() adds the results of `later`, which saw the next part, to `tool`. */
  void (*merge)(void *tool, void *later);
  void (*save)(const void *tool, citcat_state *state);
  /** Restores the state of a new tool. 0, or -1 for bytes that save() never writes. */
  int (*load)(void *tool, const void *bytes, size_t count);
} citcat_tool;

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const citcat_tool *citcat_tool_v1(void);

#ifdef __cplusplus
}
#endif

#endif
