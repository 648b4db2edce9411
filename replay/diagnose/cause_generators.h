#pragma once
// The generators that the rows of cause_table() name, by the file that they are in.

#include "replay/diagnose/cause_table.h"

namespace citcat {

// cause_reads.cc
/// A read showed a single bit other than it had been left: that read is wrong, or what was there
/// before, or a device did it.
void lone_changes(const CauseContext& context, CauseList& out);
/// Bits of what was read, where the values in question came from; and what another bus master wrote
/// there unseen.
void read_values(const CauseContext& context, CauseList& out);
/// Bits of instructions that ran last, as they may have been in memory.
void read_code(const CauseContext& context, CauseList& out);
/// Bytes that were read, of more than one wrong bit.
void solved_reads(const CauseContext& context, CauseList& out);

// cause_writes.cc
/// The write that differs holds, in truth, what the replay has.
void captured_writes(const CauseContext& context, CauseList& out);
/// The replay wrote the same bytes to an address that differs in one bit.
void write_addresses(const CauseContext& context, CauseList& out);
/// The last store of the replay, or a bus word of it, is not in the capture.
void missing_writes(const CauseContext& context, CauseList& out);
void extra_writes(const CauseContext& context, CauseList& out);

// cause_results.cc
/// An instruction that was overwritten shortly before it ran: the processor may have fetched what
/// was there before.
void stale_code(const CauseContext& context, CauseList& out);
/// The instruction's result is the processor's: undefined flags, x87 and SSE arithmetic.
void uncertain_results(const CauseContext& context, CauseList& out);

// cause_interrupts.cc
void interrupts_nearby(const CauseContext& context, CauseList& out);

// cause_smi.cc
/// Code is fetched where the handler of an SMI begins, and the replay goes elsewhere: an SMI whose
/// stores were not captured, as the processor makes them. Replays to see them, and so leaves the
/// machine elsewhere: the last row.
void unseen_smi(const CauseContext& context, CauseList& out);

// cause_ports.cc
/// Bits of port reads.
void port_reads(const CauseContext& context, CauseList& out);
/// Port reads of more than one wrong bit.
void solved_port_reads(const CauseContext& context, CauseList& out);

// cause_internal.cc
/// Values that cross no bus: those in the lineage, then the last ones before the divergence,
/// whatever became of them; and further back those that the values around them contradict.
void internal_values(const CauseContext& context, CauseList& out);

// cause_registers.cc
/// Bits of what the processor held when the recording began.
void register_bits(const CauseContext& context, CauseList& out);
/// Initial registers of more than one wrong bit: solved from what the bus shows, mistyped,
/// exchanged.
void solved_registers(const CauseContext& context, CauseList& out);

}  // namespace citcat
