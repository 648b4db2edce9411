/* Reads instruction traces from C, record by record: from a KT file or from a recording.
   Link with `pkg-config --cflags --libs citcat-c`.

     citcat_trace *trace = citcat_open("boot.citcat", 0);
     if (!trace) { fprintf(stderr, "%s\n", citcat_error(NULL)); exit(1); }
     citcat_record record;
     while (citcat_next(trace, &record) > 0) simulate(&record);
     if (citcat_error(trace)) fprintf(stderr, "%s\n", citcat_error(trace));
     citcat_close(trace);

   Threads: any number of threads may open, read, seek and close traces at the same time, even of the
   same recording. Only one thread may use a given trace at a time. Each thread has its own text of
   citcat_error(NULL). While a trace is compared with evidence, a thread of the library reads the
   evidence; it takes no signals, and ends with the trace.

   The library installs no signal handler and never ends the process. A call that runs out of memory
   fails; Unicorn may then print a message on the standard error output, and its memory is not freed.
   NULL in place of a trace or a record is an error. After fork() the child may open its own traces. */
#ifndef CITCAT_H
#define CITCAT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CITCAT_API __attribute__((visibility("default")))
#else
#define CITCAT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** A trace that is open. */
typedef struct citcat_trace citcat_trace;

enum citcat_kind {
  CITCAT_INSTRUCTION = 0, /**< an instruction, or one iteration of a REP, was executed */
  CITCAT_PROCESS = 1,     /**< the following records run in address space `pid` */
  CITCAT_TRANSLATION = 2, /**< the page at `page` lies in page frame `frame` */
  CITCAT_EVENT = 3        /**< something happened between instructions: `event` */
};

/** An event, and the fields of the record that describe it. */
enum citcat_event {
  CITCAT_EXCEPTION = 1, /**< `address`: vector; `data[0]`: error code, 0 if it has none */
  CITCAT_SOFTWARE_INTERRUPT = 2, /**< `address`: vector */
  CITCAT_INTERRUPT = 3,          /**< `address`: vector */
  CITCAT_NMI = 4,
  CITCAT_SMI = 5,
  CITCAT_HALTED = 6,
  CITCAT_SHUTDOWN = 7,
  CITCAT_PORT_READ = 8,      /**< `address`: port; `data[0]`: value; `data[1]`: bytes */
  CITCAT_PORT_WRITE = 9,     /**< the same */
  CITCAT_EXTERNAL_WRITE = 10, /**< by another bus master; `address`: physical; `data[1]`: bytes */
  CITCAT_TRANSLATION_DROPPED = 11 /**< the processor lost a page's translation by itself;
                                     `address`: the page's number */
};

/** One record of the trace (docs/formats/kt.md says which addresses an instruction has). */
typedef struct citcat_record {
  uint64_t instruction; /**< instructions completed before this one, where a whole REP counts as one;
                           for other kinds of records, before the instruction that follows. If `bits`
                           is 0, it is derived from the records and counts from the file's first one */
  uint32_t iteration;   /**< iterations of the REP completed before this one */
  uint32_t address;     /**< linear address of the instruction */
  uint32_t data[2];     /**< `data_count` linear addresses that it used */
  uint32_t pid, page, frame;
  uint8_t kind;       /**< enum citcat_kind */
  uint8_t length;     /**< bytes of the instruction, 1 to 15 */
  uint8_t data_count; /**< 0 to 2 */
  uint8_t bytes[15];  /**< `length` bytes of the instruction */
  uint8_t bits;       /**< default size of its code segment, 16 or 32; 0: the file does not say */
  uint8_t event;      /**< enum citcat_event for an EVENT, else 0 */
} citcat_record;

/** The same with addresses of 64 bits, as processors with long mode have. */
typedef struct citcat_wide_record {
  uint64_t instruction; /**< all fields as in citcat_record */
  uint64_t address;
  uint64_t data[2];
  uint64_t page;
  uint32_t iteration;
  uint32_t pid, frame;
  uint8_t kind;
  uint8_t length;
  uint8_t data_count;
  uint8_t bytes[15];
  uint8_t bits; /**< also 64, in 64-bit mode */
  uint8_t event;
} citcat_wide_record;

enum citcat_flags {
  CITCAT_PROCESSES = 1, /**< for a recording: also PROCESS and TRANSLATION records. At the beginning
                             and after citcat_seek() they give the state at that moment */
  CITCAT_UNCHECKED = 2, /**< for a recording: do not compare the replay with the evidence */
  CITCAT_EVENTS = 4,    /**< for a recording, `.kt.zst` or `.ktz`: also EVENT records */
  CITCAT_WIDE = 8       /**< allow traces of 64 bits, which citcat_read_wide() reads */
};

/** Opens a recording or a KT file (plain or compressed). `flags` combines enum citcat_flags. NULL on
    an error: citcat_error(NULL) says why. */
CITCAT_API citcat_trace* citcat_open(const char* path, unsigned flags);

/** Reads the next record. 1: it is in `*record`; 0: the trace is at its end; -1: an error, and
    citcat_error(trace) says why. It is an error if the replay differs from the recording's evidence;
    all records before it are certain. */
CITCAT_API int citcat_next(citcat_trace* trace, citcat_record* record);

/** Reads up to `count` records and returns their number. It is smaller at the end or on an error;
    citcat_error(trace) is NULL at the end. */
CITCAT_API size_t citcat_read(citcat_trace* trace, citcat_record* records, size_t count);

/** The same for traces of 64 or 32 bits. Without CITCAT_WIDE, only traces of 32 bits can be opened;
    with it, citcat_next() and citcat_read() fail at an address of more than 32 bits. */
CITCAT_API size_t citcat_read_wide(citcat_trace* trace, citcat_wide_record* records, size_t count);

/** Goes to an instruction, forwards or backwards, so that the next record is its first one. Returns 0,
    or -1 on an error. This takes well under a second if the recording has checkpoints (citcat
    checkpoint) or the KT file an index; otherwise everything before is replayed or read. */
CITCAT_API int citcat_seek(citcat_trace* trace, uint64_t instruction);

/** The same, to an iteration of a REP. */
CITCAT_API int citcat_seek_iteration(citcat_trace* trace, uint64_t instruction, uint32_t iteration);

/** Closes a trace. NULL is allowed. */
CITCAT_API void citcat_close(citcat_trace* trace);

/** The last error of `trace`; with NULL, the last error of citcat_open(), of citcat_processors() or of
    a call with NULL for a trace in this thread. One line of text, valid until the next call; NULL if
    there was no error. */
CITCAT_API const char* citcat_error(const citcat_trace* trace);

/** The number of processors of a recorded machine. If there are several, "PATH@N" is the name of the
    recording of processor N, counted from 0, wherever a recording can be opened. Returns 1 for one
    processor, for such a name, and for a KT file; 0 on an error: citcat_error(NULL) says why. */
CITCAT_API size_t citcat_processors(const char* path);

/** "0.1.0" */
CITCAT_API const char* citcat_version(void);

#ifdef __cplusplus
}
#endif

#endif
