#pragma once

namespace citcat {

/// Runs a few guest instructions on a fresh engine and checks every property of the library that
/// citcat relies on: the layout of its register state, coherence of code memory, exception
/// intercepts, page-fault addresses. Takes about a millisecond. Throws InternalError that names
/// the library's version and the property that does not hold.
void prove_engine();

}  // namespace citcat
