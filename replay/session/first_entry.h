#pragma once
// What the first entry of the kernel reveals about a recording that begins in a program.

#include <cstdint>

#include "events/recording.h"

namespace citcat {

/// The program that the recording begins in runs with isolated page tables (isolated_tables.h):
/// the kernel changes to its own as soon as it is entered. Replays up to there, kFirstEntryReach
/// instructions at most; false where it does not come so far, and without a replay where the
/// beginning rules it out.
bool begins_with_isolated_tables(const Recording& recording);

inline constexpr std::uint64_t kFirstEntryReach = 1 << 22;

}  // namespace citcat
