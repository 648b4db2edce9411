/* The machine of a recording at any moment of its run: registers and memory, forwards and backwards.
   Link with `pkg-config --cflags --libs citcat-c`.

     citcat_machine *machine = citcat_machine_open("boot.citcat", 0);
     uint64_t eax;
     if (machine && citcat_machine_seek(machine, 1000000, 0) == 0 &&
         citcat_machine_register(machine, "eax", &eax) == 1) printf("%llx\n", (unsigned long long)eax);
     citcat_machine_close(machine);

   Different machines may be used in different threads, each machine in one thread at a time. A NULL
   pointer where one is needed is an error. */
#ifndef CITCAT_MACHINE_H
#define CITCAT_MACHINE_H

#include "citcat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A recorded run, and a place in it. */
typedef struct citcat_machine citcat_machine;

enum citcat_machine_flags {
  CITCAT_MACHINE_CHECKED = 1 /**< compare with the evidence on the way; slower */
};

/** Opens a recording, at its beginning or its first checkpoint. `flags` combines enum
    citcat_machine_flags. NULL on an error: citcat_machine_error(NULL) says why. */
CITCAT_API citcat_machine* citcat_machine_open(const char* path, unsigned flags);
/** Closes it. NULL is allowed. */
CITCAT_API void citcat_machine_close(citcat_machine* machine);

/** Goes to the place before an instruction, or before an iteration of it. 0: it is there; 1: the run
    ends before that, and the machine is at its end; -1: an error, for example because the replay
    differs from the evidence. */
CITCAT_API int citcat_machine_seek(citcat_machine* machine, uint64_t instruction, uint32_t iteration);
/** Executes one instruction, or iteration of a REP. 1: done; 0: the run is at its end; -1: an error. */
CITCAT_API int citcat_machine_step(citcat_machine* machine);
/** Goes back by one; 0 at the beginning. */
CITCAT_API int citcat_machine_step_back(citcat_machine* machine);

/** Instructions completed, and iterations of the REP in progress. */
CITCAT_API uint64_t citcat_machine_instruction(const citcat_machine* machine);
CITCAT_API uint32_t citcat_machine_iteration(const citcat_machine* machine);

/** A register by its name in lower case: eax, eip, eflags, cs, cs.base, cr3, gdtr.base ...; for
    processors with long mode rax, r8, rip, rflags, cs, fs.base, cr8, efer ... 1: it is in `*value`; 0: the
    recording does not give its value; -1: there is no register of that name. */
CITCAT_API int citcat_machine_register(citcat_machine* machine, const char* name, uint64_t* value);

/** Reads memory from a physical address on. `known` may be NULL, or has the same size: it gets 1 for
    each byte that the recording or the run defines; for all others both are 0.
    Returns the number of known bytes, or -1 on an error. */
CITCAT_API int64_t citcat_machine_memory(citcat_machine* machine, uint64_t physical, uint8_t* bytes,
                                         uint8_t* known, size_t count);
/** Translates a linear address by the current page tables, with the rights of level 0. 1: the result
    is in `*physical`; 0: the address is not mapped; -1: an error. */
CITCAT_API int citcat_machine_translate(citcat_machine* machine, uint64_t linear, uint64_t* physical);

/** The last error of `machine`; with NULL, of the last citcat_machine_open() in this thread. One line of
    text, valid until the next call; NULL if there was no error. */
CITCAT_API const char* citcat_machine_error(const citcat_machine* machine);

#ifdef __cplusplus
}
#endif

#endif
