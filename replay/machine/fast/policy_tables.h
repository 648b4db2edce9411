#pragma once
// The tables of handlers, each made in a file of its own: together they take a compiler long.

#include "replay/machine/fast/handler_table.h"

namespace citcat::fast {

const HandlerTable& plain_handlers();
const HandlerTable& traced_handlers();
const HandlerTable& counted_handlers();
const HandlerTable& told_handlers();
const HandlerTable& referenced_handlers();
const HandlerTable& exact_handlers();
const HandlerTable& exact_trapped_handlers();
const HandlerTable& exact_traced_handlers();
const HandlerTable& exact_counted_handlers();
const HandlerTable& exact_told_handlers();
const HandlerTable& logged_handlers();

}  // namespace citcat::fast
