#pragma once
// The tables of handlers, each made in a file of its own: together they take a compiler long.

#include "replay/machine/fast/handler_table.h"

namespace citcat::fast {

const HandlerTable& plain_handlers(bool bits64);
const HandlerTable& traced_handlers(bool bits64);
const HandlerTable& counted_handlers(bool bits64);
const HandlerTable& trailed_handlers(bool bits64);
const HandlerTable& stored_handlers(bool bits64);
const HandlerTable& stored_trailed_handlers(bool bits64);
const HandlerTable& told_handlers(bool bits64);
const HandlerTable& referenced_handlers(bool bits64);
const HandlerTable& exact_handlers(bool bits64);
const HandlerTable& exact_trapped_handlers(bool bits64);
const HandlerTable& exact_traced_handlers(bool bits64);
const HandlerTable& exact_counted_handlers(bool bits64);
const HandlerTable& exact_trailed_handlers(bool bits64);
const HandlerTable& exact_told_handlers(bool bits64);
const HandlerTable& logged_handlers(bool bits64);

}  // namespace citcat::fast
