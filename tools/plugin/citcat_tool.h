/* A tool of one's own for `citcat analyze`: what it is told of a replayed run, and how it reports.

   A tool is a shared object that exports citcat_tool_v1(). It needs this header alone, and no library:

     cc -shared -fPIC $(pkg-config --cflags citcat-tool) mix.c -o mix.so
     citcat analyze boot.citcat --tool ./mix.so:limit=10

   The replay is over before the tool could disturb it: nothing that a tool does changes the run. It is
   called from one thread. Pointers to structures are valid during the call, those to a citcat_block
   as long as the tool. With --isolate it runs in a process of its own.

   Structures grow at their end only, and say their size: a tool that was compiled against an older
   header goes on working. docs/howto/write-a-tool.md walks through three examples. */
#ifndef CITCAT_TOOL_H
#define CITCAT_TOOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CITCAT_TOOL_VERSION 1

/** What a tool wants to be told. The host takes the cheapest way that serves all tools of a run. */
enum citcat_wants {
  CITCAT_WANTS_COUNTS = 1,     /**< counted() and iterated(): how often each piece of code ran */
  CITCAT_WANTS_EXECUTIONS = 2, /**< run(), in program order */
  CITCAT_WANTS_REFERENCES = 4, /**< run() with references, without page walks */
  CITCAT_WANTS_WALKS = 8,      /**< page walks among the references */
  CITCAT_WANTS_REGISTERS = 16, /**< run() one instruction at a time, with registers. Slow */
  CITCAT_WANTS_VALUES = 32,    /**< citcat_reference.value is there. Slow */
  CITCAT_WANTS_EVENTS = 64     /**< event() */
};

/** An instruction of a piece of code. */
typedef struct citcat_instruction {
  uint64_t linear;        /**< linear address of its first byte */
  uint64_t offset;        /**< offset of that in CS */
  uint64_t physical;      /**< of its first byte */
  uint64_t physical_rest; /**< of its bytes behind the end of the page, if there are any; else 0 */
  const char *mnemonic;   /**< "mov"; lower case */
  uint32_t first_address; /**< citcat_execution.addresses of the instructions before it */
  uint8_t length;         /**< bytes, 1 to 15 */
  uint8_t address_count;  /**< effective addresses that it has, 0 to 2 (docs/formats/kt.md) */
  uint8_t transfers;      /**< 1: may continue elsewhere than at the next instruction */
  uint8_t conditional;    /**< 1: jumps or not, depending on flags or CX */
  uint8_t bytes[16];      /**< the instruction, `length` of them; the rest 0 */
} citcat_instruction;

/** Instructions that lie, and run, one after another; only the last may transfer control. How a run is
    cut into blocks is the machine's affair: results must not depend on it. */
typedef struct citcat_block {
  uint32_t size; /**< of this structure, bytes */
  uint32_t count;
  uint32_t instruction_size; /**< of one citcat_instruction, bytes: see citcat_instruction_at() */
  uint32_t bits;             /**< default size of the code segment: 16, 32, or 64 in 64-bit mode */
  const citcat_instruction *instructions;
} citcat_block;

/** Instruction `i` of a block, also where the host's structure is larger than this header's. */
static inline const citcat_instruction *citcat_instruction_at(const citcat_block *block, uint32_t i) {
  return (const citcat_instruction *)((const char *)block->instructions +
                                      (size_t)block->instruction_size * i);
}

enum citcat_access { CITCAT_DATA = 0, CITCAT_WALK = 1, CITCAT_SYSTEM = 2 };

/** An access to memory within one page frame; of more than one frame there are several. */
typedef struct citcat_reference {
  uint64_t physical;
  uint64_t linear;      /**< 0 of page walks and system tables */
  uint64_t value;       /**< with CITCAT_WANTS_VALUES: its bytes, the first lowest, at most 8 */
  uint16_t bytes;       /**< its size */
  uint16_t instruction; /**< number in the block */
  uint8_t access;       /**< enum citcat_access */
  uint8_t write;        /**< 1: a write */
  uint8_t code;         /**< of citcat_accesses: 1: bytes of an instruction */
  uint8_t reserved;
} citcat_reference;

/** Where in the life of the machine something happens. */
typedef struct citcat_context {
  uint64_t address_space;   /**< CR3, which stands for the process */
  uint32_t level;           /**< current privilege level, 0 to 3 */
  uint32_t interrupt_depth; /**< interrupts from outside, NMIs and SMIs that have not returned */
  /** With CITCAT_WANTS_REGISTERS, behind the instruction: eax ecx edx ebx esp ebp esi edi, of
      processors with long mode all 64 bits of rax to rdi. Else 0. */
  uint64_t registers[8];
  uint64_t instruction_pointer, flags; /**< the same */
} citcat_context;

/** A piece of code ran once, as a whole; or iterations of a REP string instruction, which is a block
    of its own then. */
typedef struct citcat_execution {
  uint32_t size; /**< of this structure, bytes */
  /** Iterations told together: 1 of whatever is not repeated. Addresses and references are those of
      the first one; of each further one they are `step` bytes higher. */
  uint32_t iterations;
  int32_t step;
  uint32_t does_nothing; /**< 1: a REP whose count was 0: no addresses, no references */
  const citcat_block *block;
  uint64_t instruction; /**< instructions completed before its first one */
  uint64_t iteration;   /**< iterations of the REP completed before it */
  /** Effective addresses of all its instructions: those of instruction i from its first_address on.
      Linear; without CITCAT_WANTS_REFERENCES there are none: NULL. */
  const uint64_t *addresses;
  uint32_t address_count;
  uint32_t reference_count;
  const citcat_reference *references; /**< in program order */
  uint32_t reference_size;            /**< of one citcat_reference, bytes */
  uint32_t reserved;
  citcat_context context; /**< behind it */
} citcat_execution;

/** Reference `i` of an execution, also where the host's structure is larger than this header's. */
static inline const citcat_reference *citcat_reference_at(const citcat_execution *execution, uint32_t i) {
  return (const citcat_reference *)((const char *)execution->references +
                                    (size_t)execution->reference_size * i);
}

/** What was accessed, but not by an instruction that completed: tables and frames of a delivery, walks
    for code, and what an instruction did that was then refused, its own bytes among it. */
typedef struct citcat_accesses {
  uint32_t size; /**< of this structure, bytes */
  uint32_t count;
  uint32_t reference_size; /**< of one citcat_reference, bytes */
  uint32_t reserved;
  const citcat_reference *references; /**< in program order; their `instruction` says nothing */
  citcat_context context;
} citcat_accesses;

/** Reference `i` of them, also where the host's structure is larger than this header's. */
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
  CITCAT_TOOL_FAST_CALL = 7,      /**< SYSENTER completed, or SYSCALL: `value` 1 */
  CITCAT_TOOL_FAST_RETURN = 8,    /**< SYSEXIT completed, or SYSRET: `value` 1 */
  CITCAT_TOOL_ADDRESS_SPACE = 9,  /**< CR3 was loaded: `value` */
  CITCAT_TOOL_PORT_READ = 10,     /**< `port`, `bytes`, `value` */
  CITCAT_TOOL_PORT_WRITE = 11,    /**< the same */
  CITCAT_TOOL_EXTERNAL_WRITE = 12, /**< by another bus master: `physical`, `bytes` */
  CITCAT_TOOL_HALTED = 13,
  CITCAT_TOOL_SHUTDOWN = 14,
  CITCAT_TOOL_CACHE_FLUSHED = 15, /**< `value`: 1 with write-back */
  CITCAT_TOOL_MAPPING = 16,       /**< first use of a translation: `linear`, `physical` (with walks) */
  CITCAT_TOOL_WINDOW_OPENED = 17, /**< the tool is told again */
  CITCAT_TOOL_WINDOW_CLOSED = 18
};

/** What happens besides instructions. A tool ignores kinds that it does not know. */
typedef struct citcat_tool_event {
  uint32_t size; /**< of this structure, bytes */
  uint32_t kind; /**< enum citcat_tool_event_kind */
  uint64_t instruction; /**< instructions completed before it */
  uint64_t iteration;
  uint64_t physical, linear, value;
  uint64_t offset; /**< of a delivery: in CS, of what faulted, or would run next */
  uint64_t cr2;
  uint32_t bytes, vector, error_code;
  uint16_t port, cs;
  citcat_context context;
} citcat_tool_event;

/** Where a tool puts its results: called in report(). Keys are of JSON and CSV: lower case,
    underscores; titles are for people. `unit` may be "" or NULL. Texts are UTF-8 and copied. */
typedef struct citcat_report citcat_report;
struct citcat_report {
  uint32_t size; /**< of this structure, bytes */
  void (*number)(citcat_report *, const char *key, const char *title, uint64_t value, const char *unit);
  void (*fraction)(citcat_report *, const char *key, const char *title, double value, const char *unit);
  void (*text)(citcat_report *, const char *key, const char *title, const char *value);
  /** What follows, up to the matching end_group(), stands in an object of that key. */
  void (*group)(citcat_report *, const char *key, const char *title);
  void (*end_group)(citcat_report *);
  /** A table: column() for each, then its cells, row by row. end_table() where all are there; the
      number of cells is then a multiple of that of columns. */
  void (*table)(citcat_report *, const char *key, const char *title);
  void (*column)(citcat_report *, const char *key, const char *title, const char *unit);
  void (*number_cell)(citcat_report *, uint64_t value);
  void (*fraction_cell)(citcat_report *, double value);
  void (*text_cell)(citcat_report *, const char *value);
  void (*end_table)(citcat_report *);
};

/** Where save() puts the state of a tool. */
typedef struct citcat_state citcat_state;
struct citcat_state {
  uint32_t size; /**< of this structure, bytes */
  void (*write)(citcat_state *, const void *bytes, size_t count);
};

/** What is known when a tool is made. */
typedef struct citcat_tool_setup {
  uint32_t size; /**< of this structure, bytes */
  /** 1: nothing was told before. 0: a part of the run, and what a model holds at its beginning is not
      known. */
  uint32_t begins;
  uint64_t from; /**< first instruction that is told */
  uint64_t ram_bytes; /**< memory of the recorded machine; 0: not known */
  /** Value of the option `key` ("limit" of `mix.so:limit=10`); NULL where it was not given. Options
      that nobody asks for are refused. Valid during make(). */
  const char *(*option)(const struct citcat_tool_setup *, const char *key);
  /** Says why make() returns NULL. */
  void (*fail)(const struct citcat_tool_setup *, const char *message);
} citcat_tool_setup;

/** A tool. Functions that it does not need are NULL, but for make, destroy and report. */
typedef struct citcat_tool {
  uint32_t size;    /**< sizeof(citcat_tool) */
  uint32_t version; /**< CITCAT_TOOL_VERSION */
  const char *name;    /**< key of its results: lower case letters, digits, underscores */
  const char *summary; /**< one line */
  const char *options; /**< lines "key=VALUE  what it means"; NULL where there are none */
  uint32_t wants;      /**< of enum citcat_wants */
  uint32_t reserved;

  /** NULL after setup->fail(). Options are tried before the run, and there may be several tools, of
      groups (--by) or parts (--jobs): of those that are made some are told nothing, and report nothing. */
  void *(*make)(const citcat_tool_setup *setup);
  void (*destroy)(void *tool);
  /** Once for a piece of code, which lives as long as the tool; what it returns, the tool's own, is
      handed to run() and counted(). */
  void *(*code)(void *tool, const citcat_block *block);
  void (*run)(void *tool, void *mine, const citcat_execution *execution);
  /** With CITCAT_WANTS_REFERENCES. */
  void (*accesses)(void *tool, const citcat_accesses *accesses);
  /** So many more executions, each of them whole: in place of run() where counts are all that is
      wanted. */
  void (*counted)(void *tool, void *mine, uint64_t executions);
  /** With counts: a REP string instruction, the only one of its block, began anew so many times, and
      did so many further iterations. */
  void (*iterated)(void *tool, void *mine, uint64_t begun, uint64_t further);
  /** So many of those begun were interrupted between two iterations, and did not complete: they are
      counted as begun again when they go on. */
  void (*interrupted)(void *tool, void *mine, uint64_t times);
  void (*event)(void *tool, const citcat_tool_event *event);
  void (*report)(const void *tool, citcat_report *report);

  /** For runs in parts (--jobs, --shard): all three, or the run is told as a whole. `later` was told
      what comes next: afterwards `tool` is as if it had been told both. */
  void (*merge)(void *tool, void *later);
  void (*save)(const void *tool, citcat_state *state);
  /** Into a tool just made. 0, or -1 for bytes that save() never writes. */
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
