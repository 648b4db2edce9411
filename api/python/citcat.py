"""Recordings of whole machines from Python: traces, moments, references, results of tools.

    import citcat
    for record in citcat.Trace("boot.citcat"):
        print(hex(record.address), record.bytes.hex())

    machine = citcat.Machine("boot.citcat")
    machine.seek(1_000_000)
    print(hex(machine["eax"]), machine.memory(0x9fc00, 16))

    for batch in citcat.references("boot.citcat"):
        print(len(batch.address), batch.level.max())

    table = pyarrow.table(citcat.references("boot.citcat"))  # or polars.from_arrow(), duckdb ...

    citcat.analyze("boot.citcat", "count", "bpred:entries=1024")["tools"]["count"]["instructions"]

It stands on the C library (citcat.h, citcat_machine.h, citcat_references.h, citcat_arrow.h) and needs nothing but
Python; where numpy is installed, batches come as its arrays. Whoever takes Arrow's columns takes Trace, references() and
Batch. analyze() runs the program.
"""

import ctypes
import ctypes.util
import json
import os
import subprocess
from collections import namedtuple

__all__ = ["Error", "Trace", "Machine", "Record", "Batch", "references", "KINDS", "analyze", "table", "version"]

try:
    import numpy
except ImportError:  # only batches() differs
    numpy = None


class Error(Exception):
    """What the library or the program says is wrong, in a line."""


def _load():
    """The library: $CITCAT_LIBRARY, else the one installed."""
    name = os.environ.get("CITCAT_LIBRARY") or ctypes.util.find_library("citcat") or "libcitcat.so.0.1"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise Error(f"the C library of citcat: {error}") from None


class _Record(ctypes.Structure):
    """citcat_wide_record"""

    _fields_ = [
        ("instruction", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("data", ctypes.c_uint64 * 2),
        ("page", ctypes.c_uint64),
        ("iteration", ctypes.c_uint32),
        ("pid", ctypes.c_uint32),
        ("frame", ctypes.c_uint32),
        ("kind", ctypes.c_uint8),
        ("length", ctypes.c_uint8),
        ("data_count", ctypes.c_uint8),
        ("bytes", ctypes.c_uint8 * 15),
        ("bits", ctypes.c_uint8),
        ("event", ctypes.c_uint8),
    ]


_lib = _load()


def _declare(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


_P = ctypes.c_void_p
_version = _declare("citcat_version", ctypes.c_char_p)
_processors = _declare("citcat_processors", ctypes.c_size_t, ctypes.c_char_p)
_open = _declare("citcat_open", _P, ctypes.c_char_p, ctypes.c_uint)
_read = _declare("citcat_read_wide", ctypes.c_size_t, _P, ctypes.POINTER(_Record), ctypes.c_size_t)
_seek = _declare("citcat_seek_iteration", ctypes.c_int, _P, ctypes.c_uint64, ctypes.c_uint32)
_close = _declare("citcat_close", None, _P)
_error = _declare("citcat_error", ctypes.c_char_p, _P)
_m_open = _declare("citcat_machine_open", _P, ctypes.c_char_p, ctypes.c_uint)
_m_close = _declare("citcat_machine_close", None, _P)
_m_seek = _declare("citcat_machine_seek", ctypes.c_int, _P, ctypes.c_uint64, ctypes.c_uint32)
_m_step = _declare("citcat_machine_step", ctypes.c_int, _P)
_m_back = _declare("citcat_machine_step_back", ctypes.c_int, _P)
_m_instruction = _declare("citcat_machine_instruction", ctypes.c_uint64, _P)
_m_iteration = _declare("citcat_machine_iteration", ctypes.c_uint32, _P)
_m_register = _declare("citcat_machine_register", ctypes.c_int, _P, ctypes.c_char_p,
                       ctypes.POINTER(ctypes.c_uint64))
_m_memory = _declare("citcat_machine_memory", ctypes.c_int64, _P, ctypes.c_uint64, ctypes.c_void_p,
                     ctypes.c_void_p, ctypes.c_size_t)
_m_translate = _declare("citcat_machine_translate", ctypes.c_int, _P, ctypes.c_uint64,
                        ctypes.POINTER(ctypes.c_uint64))
_m_error = _declare("citcat_machine_error", ctypes.c_char_p, _P)

_COLUMN_ORDER = ("instruction", "address", "physical", "process", "size", "kind", "level")
_COLUMN_TYPES = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint16,
                 ctypes.c_uint8, ctypes.c_uint8)
# In the order of the structure, in which columns of 64 bits that have a narrower twin stand last.
_STRUCTURE_ORDER = ("instruction", None, None, None, "size", "kind", "level", "address", "physical", "process")


class _Columns(ctypes.Structure):
    """citcat_columns"""

    _fields_ = [("structure_size", ctypes.c_size_t)] + [
        (name or "narrow%d" % i, ctypes.c_void_p) for i, name in enumerate(_STRUCTURE_ORDER)]


_r_open = _declare("citcat_references_open", _P, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint64,
                   ctypes.c_uint64)
_r_read = _declare("citcat_references_read", ctypes.c_size_t, _P, ctypes.c_void_p, ctypes.c_size_t)
_r_close = _declare("citcat_references_close", None, _P)
_r_error = _declare("citcat_references_error", ctypes.c_char_p, _P)

_a_references = _declare("citcat_references_arrow", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint64,
                         ctypes.c_uint64, ctypes.c_size_t, _P)
_a_trace = _declare("citcat_trace_arrow", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.c_size_t, _P)
_a_schema = _declare("citcat_arrow_schema", ctypes.c_int, ctypes.c_int, _P)
_a_columns = _declare("citcat_columns_arrow", ctypes.c_int, _P, ctypes.c_size_t, _P)
_a_error = _declare("citcat_arrow_error", ctypes.c_char_p)
_a_new = _declare("citcat_arrow_new", _P, ctypes.c_char_p)
_a_destructor = _declare("citcat_arrow_destructor", _P, ctypes.c_char_p, _P)
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, _P, ctypes.c_char_p, _P)(("PyCapsule_New", ctypes.pythonapi))
_get_pointer = ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, _P)
_ARROW_REFERENCES, _ARROW_TRACE = 0, 1
# The capsules' names, which Python keeps by their addresses: never freed.
_SCHEMA, _ARRAY, _STREAM = b"arrow_schema", b"arrow_array", b"arrow_array_stream"
for _name in (_SCHEMA, _ARRAY, _STREAM):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_name))

_PROCESSES, _UNCHECKED, _EVENTS, _WIDE = 1, 2, 4, 8
_KINDS = ("instruction", "process", "translation", "event")
_EVENT = 3
_ARROW_ROWS = 65536

Record = namedtuple("Record", "instruction iteration kind address bytes data pid page frame bits event")
Record.__doc__ = """A record of a trace (citcat_wide_record). `kind`: "instruction", "process", "translation" or
"event"; `bytes` of the instruction; `data` the linear addresses that it used, or an event's two numbers."""


def version():
    """Of the library: "0.1.0"."""
    return _version().decode()


def _path(path):
    return os.fsencode(path)


def _capsule(name, fill):
    """A capsule of Arrow's with what `fill` puts into the structure."""
    structure = _a_new(name)
    if not structure:
        raise MemoryError
    capsule = _capsule_new(structure, name, _a_destructor(name, _get_pointer))
    if fill(structure) != 0:
        raise Error(_a_error().decode(errors="replace"))
    return capsule


class _Schema(ctypes.Structure):
    """The beginning of ArrowSchema."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", _P), ("flags", ctypes.c_int64),
                ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(_P))]


def _column_names(capsule):
    get = ctypes.PYFUNCTYPE(_P, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    schema = _Schema.from_address(get(capsule, _SCHEMA))
    return [_Schema.from_address(schema.children[i]).name for i in range(schema.n_children)]


class _Tabular:
    """Columns that are offered as Arrow's PyCapsule interface says."""

    _table = _ARROW_REFERENCES

    def __arrow_c_schema__(self):
        return _capsule(_SCHEMA, lambda structure: _a_schema(self._table, structure))

    def _check_request(self, requested_schema):
        """Other types are not offered; other columns are refused."""
        if requested_schema is not None and (
                _column_names(requested_schema) != _column_names(self.__arrow_c_schema__())):
            raise Error("columns are asked for that this table does not have")


def processors(path):
    """The recordings of an archive's machine: a name for each processor, in their order.

    An archive of one processor has its own name alone."""
    count = _processors(_path(path))
    if count == 0:
        raise Error(_error(None).decode(errors="replace"))
    name = os.fsdecode(path)
    return [name] if count == 1 else [f"{name}@{number}" for number in range(count)]


class _Closing:
    """What is closed at the end of a `with`, or when nothing refers to it any longer."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class Trace(_Closing, _Tabular):
    """The instructions of a recording or KT file, in order. Iterating gives Record after Record; a
    replay that leaves the recording's evidence raises Error behind what was sure. As Arrow's stream it has a row for
    each record, from the first one, wherever this object stands."""

    _table = _ARROW_TRACE

    def __init__(self, path, processes=False, events=False, check=True):
        flags = _WIDE | (_PROCESSES if processes else 0) | (0 if check else _UNCHECKED)
        flags |= _EVENTS if events else 0
        self._path, self._flags = _path(path), flags
        self._trace = _open(self._path, flags)
        if not self._trace:
            raise Error(_error(None).decode())

    def close(self):
        if getattr(self, "_trace", None):
            _close(self._trace)
            self._trace = None

    def seek(self, instruction, iteration=0):
        """The next record is that of the instruction."""
        self._check_open()
        if _seek(self._trace, instruction, iteration) != 0:
            raise Error(_error(self._trace).decode())
        return self

    def _check_open(self):
        if not self._trace:
            raise Error("the trace is closed")

    def _fill(self, buffer):
        """How many records were read into `buffer`, at least one; None at the end."""
        self._check_open()
        count = _read(self._trace, buffer, len(buffer))
        if count == 0:
            error = _error(self._trace)
            if error:
                raise Error(error.decode())
            return None
        return count

    def __iter__(self):
        buffer = (_Record * 4096)()
        while (count := self._fill(buffer)) is not None:
            for r in buffer[:count]:
                yield Record(r.instruction, r.iteration, _KINDS[r.kind], r.address, bytes(r.bytes[:r.length]),
                             tuple(r.data[:2 if r.kind == _EVENT else r.data_count]), r.pid, r.page, r.frame, r.bits, r.event)

    def __arrow_c_stream__(self, requested_schema=None):
        self._check_request(requested_schema)
        return _capsule(_STREAM, lambda structure: _a_trace(self._path, self._flags, _ARROW_ROWS, structure))

    def batches(self, size=100_000):
        """Records by columns, up to `size` at once: a numpy structured array with the fields of
        citcat_wide_record; without numpy a ctypes array of the same layout. Each is the caller's own."""
        while True:
            buffer = (_Record * size)()
            count = self._fill(buffer)
            if count is None:
                return
            yield numpy.ctypeslib.as_array(buffer)[:count] if numpy else buffer[:count]


class Machine(_Closing):
    """The machine of a recording at a moment of its run. Positions are instructions completed, with
    iterations of a REP in progress."""

    def __init__(self, path, check=False):
        self._machine = _m_open(_path(path), 1 if check else 0)
        if not self._machine:
            raise Error(_m_error(None).decode())

    def close(self):
        if getattr(self, "_machine", None):
            _m_close(self._machine)
            self._machine = None

    def _answer(self, answer):
        if answer < 0:
            raise Error(_m_error(self._machine).decode() if self._machine else "the machine is closed")
        return answer

    def seek(self, instruction, iteration=0):
        """True: there; False: the run ends before, and the machine is at its end."""
        return self._answer(_m_seek(self._machine, instruction, iteration)) == 0

    def step(self):
        """False at the end of the run."""
        return self._answer(_m_step(self._machine)) == 1

    def step_back(self):
        """False at the beginning."""
        return self._answer(_m_back(self._machine)) == 1

    @property
    def position(self):
        """(instructions completed, iterations of the REP in progress)"""
        return _m_instruction(self._machine), _m_iteration(self._machine)

    def __getitem__(self, register):
        """The value of "eax", "cs.base", "cr3" ..., of a processor with long mode "rax" ...; None where nothing that was recorded tells it."""
        value = ctypes.c_uint64()
        known = self._answer(_m_register(self._machine, register.encode(), ctypes.byref(value)))
        return value.value if known else None

    def memory(self, physical, count):
        """`count` bytes from a physical address on; None where one of them is defined by no
        evidence. known_memory() tells which."""
        data, known = self.known_memory(physical, count)
        return data if all(known) else None

    def known_memory(self, physical, count):
        """(bytes, bytes of 1 and 0): the memory, and which of it is defined."""
        data, known = ctypes.create_string_buffer(count), ctypes.create_string_buffer(count)
        self._answer(_m_memory(self._machine, physical, data, known, count))
        return data.raw, known.raw

    def translate(self, linear):
        """The physical address of a linear one; None where there is none."""
        physical = ctypes.c_uint64()
        found = self._answer(_m_translate(self._machine, linear, ctypes.byref(physical)))
        return physical.value if found else None


class Batch(_Tabular):
    """Columns of references: instructions completed before, linear and physical address, bytes, number of the kind in
    KINDS, CR3 of the process, privilege level. No tuple: who takes Arrow's columns would take it for a list of them."""

    __slots__ = _fields = ("instruction", "address", "physical", "size", "kind", "process", "level")

    def __init__(self, instruction, address, physical, size, kind, process, level):
        for name, column in zip(self._fields, (instruction, address, physical, size, kind, process, level)):
            setattr(self, name, column)

    def __iter__(self):
        return (getattr(self, name) for name in self._fields)

    def __arrow_c_array__(self, requested_schema=None):
        self._check_request(requested_schema)
        rows = len(self.instruction)
        if any(len(column) != rows for column in self):
            raise Error("the columns of a batch differ in length")
        # Each stays until it has been copied.
        arrays = {name: _array(getattr(self, name), kind) for name, kind in zip(_COLUMN_ORDER, _COLUMN_TYPES)}
        columns = _columns_at(arrays)
        return (self.__arrow_c_schema__(),
                _capsule(_ARRAY, lambda structure: _a_columns(ctypes.byref(columns), rows, structure)))


def _array(column, kind):
    """The column as an array of numbers of that kind, which lie one behind the other."""
    return numpy.ascontiguousarray(column, dtype=kind) if numpy is not None else (kind * len(column))(*column)


def _columns_at(arrays):
    """Which must outlive it."""
    places = {name: a.ctypes.data if hasattr(a, "ctypes") else ctypes.addressof(a) for name, a in arrays.items()}
    return _Columns(ctypes.sizeof(_Columns), *(places[name] if name else None for name in _STRUCTURE_ORDER))


KINDS = ("fetch", "read", "write", "walk read", "walk write", "system read", "system write")


class _References(_Tabular):
    """references() as a stream of Arrow's, and to be iterated over."""

    def __init__(self, path, from_, to, size, check):
        self._arguments = (_path(path), 0 if check else _UNCHECKED, from_, 2**64 - 1 if to is None else to)
        self._size = size
        self._batches = self._read()

    def __arrow_c_stream__(self, requested_schema=None):
        self._check_request(requested_schema)
        return _capsule(_STREAM, lambda structure: _a_references(*self._arguments, self._size, structure))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._batches)

    def close(self):
        self._batches.close()

    def _read(self):
        run = _r_open(*self._arguments)
        if not run:
            raise Error(_r_error(None).decode())
        try:
            while True:
                arrays = {name: (kind * self._size)() for name, kind in zip(_COLUMN_ORDER, _COLUMN_TYPES)}
                count = _r_read(run, ctypes.byref(_columns_at(arrays)), self._size)
                if count == 0:
                    error = _r_error(run)
                    if error:
                        raise Error(error.decode())
                    return
                yield Batch(**{k: numpy.ctypeslib.as_array(a)[:count] if numpy else a[:count]
                               for k, a in arrays.items()})
        finally:
            _r_close(run)


def references(path, from_=0, to=None, size=100_000, check=True):
    """What instructions [from_, to) fetched, read and wrote, in program order: Batch after Batch of up to
    `size` rows. Columns are numpy arrays; without numpy arrays of ctypes. Each is the caller's own. Given to who
    takes Arrow's streams, it is read from the beginning each time."""
    return _References(path, from_, to, size, check)


def table(rows):
    """A table of a tool's results as columns: {"mnemonic": [...], "count": [...]}; those of numbers are
    numpy arrays where numpy is installed."""
    columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
    if numpy is None:
        return columns
    return {key: values if any(isinstance(v, str) for v in values) else numpy.array(values)
            for key, values in columns.items()}


def analyze(recording, *tools, **options):
    """What `citcat analyze --json` says, as a dictionary. `tools` as for --tool. Options are those of the
    command, with _ for -: start and end of the range are `from_` and `to`; `program` is the program to
    run, else $CITCAT, else "citcat"."""
    program = options.pop("program", None) or os.environ.get("CITCAT", "citcat")
    command = [program, "analyze", os.fspath(recording), "--json"]
    for tool in tools:
        command += ["--tool", tool]
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            command.append(option)
        elif value is not None and value is not False:
            command += [option, str(value)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Error(f"{program}: {error.strerror}") from None
    if done.returncode != 0:
        raise Error(done.stderr.strip() or f"{program} ended with status {done.returncode}")
    return json.loads(done.stdout)
