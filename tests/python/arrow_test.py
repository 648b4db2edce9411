"""Reads what citcat.py offers by Arrow's C interfaces, as their specification says, and holds it to what `citcat`
itself prints: arrow_test.py CITCAT SOURCE. It shares no code with who makes it: the structures are read from memory,
field by field. Sources: Apache Arrow, "The Arrow C data interface", "The Arrow C stream interface", "The Arrow
PyCapsule Interface", "Arrow columnar format"."""

import ctypes
import gc
import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading

import citcat

program, source = (os.path.abspath(p) for p in sys.argv[1:3])
WORD = 8
failures = []


def check(what, found, expected):
    if found != expected:
        failures.append(what)
        print(f"{what}: expected {expected!r}, found {found!r}")


pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def words(address, count):
    return struct.unpack(f"<{count}Q", ctypes.string_at(address, count * WORD)) if count else ()


def text(address):
    return ctypes.string_at(address).decode() if address else None


def move(address, count, release_at):
    """The structure at another place, and the one that was there marked as released."""
    here = ctypes.create_string_buffer(ctypes.string_at(address, count * WORD), count * WORD)
    ctypes.memset(address + release_at * WORD, 0, WORD)
    return here


def call(address, result, *arguments):
    return ctypes.CFUNCTYPE(result, *(ctypes.c_void_p,) * len(arguments))(address)(*arguments)


class Structure:
    """ArrowSchema, ArrowArray or ArrowArrayStream that the consumer owns."""

    count = release_at = 0

    def __init__(self, place):
        self.memory = place if isinstance(place, ctypes.Array) else move(place, self.count, self.release_at)
        self.fields = words(ctypes.addressof(self.memory), self.count)

    def is_released(self):
        return words(ctypes.addressof(self.memory), self.count)[self.release_at] == 0

    def release(self):
        call(self.fields[self.release_at], None, ctypes.addressof(self.memory))
        check("a released structure says so", self.is_released(), True)


class Schema(Structure):
    count, release_at = 9, 7

    def tree(self, fields=None):
        format_, name, metadata, flags, children, at, dictionary, _, _ = fields or self.fields
        check("no metadata, no flags, no dictionary", (metadata, flags, dictionary), (0, 0, 0))
        return text(format_), text(name), [self.tree(words(c, 9)) for c in words(at, children)]


class Array(Structure):
    count, release_at = 10, 8

    def values(self, schema, fields=None):
        """Columns as lists: of a structure a dictionary of them."""
        length, nulls, offset, buffers, children, at, child_at, dictionary, release, _ = fields or self.fields
        format_, _, inner = schema
        check("nothing is null, shifted or numbered", (nulls, offset, dictionary), (0, 0, 0))
        check("it is not released", release != 0, True)
        check("children", children, len(inner))
        at, below = words(at, buffers), [words(c, 10) for c in words(child_at, children)]
        check("no bitmap of nulls", at[0], 0)
        if format_ == "+s":
            check("the children's lengths", [b[0] for b in below], [length] * len(below))
            return {s[1]: self.values(s, b) for s, b in zip(inner, below)}
        if format_ in "CSIL":
            check("buffers", buffers, 2)
            size = {"C": 1, "S": 2, "I": 4, "L": 8}[format_]
            check("alignment", at[1] % size, 0)
            code = {"C": "B", "S": "H", "I": "I", "L": "Q"}[format_]
            return list(struct.unpack(f"<{length}{code}", ctypes.string_at(at[1], length * size)))
        begins = struct.unpack(f"<{length + 1}i", ctypes.string_at(at[1], (length + 1) * 4))
        check("offsets begin with 0 and go up", (begins[0], list(begins)), (0, sorted(begins)))
        if format_ == "z":
            check("buffers", buffers, 3)
            data = ctypes.string_at(at[2], begins[-1]) if begins[-1] else b""
            return [data[a:b] for a, b in zip(begins, begins[1:])]
        check("a list", (format_, buffers), ("+l", 2))
        items = self.values(inner[0], below[0])
        check("the list's items", len(items), begins[-1])
        return [items[a:b] for a, b in zip(begins, begins[1:])]


class Stream(Structure):
    count, release_at = 5, 3

    def _get(self, field, cls):
        memory = ctypes.create_string_buffer(b"\xff" * (cls.count * WORD), cls.count * WORD)
        code = call(self.fields[field], ctypes.c_int, ctypes.addressof(self.memory), ctypes.addressof(memory))
        return code, cls(memory) if code == 0 else None

    def schema(self):
        code, schema = self._get(0, Schema)
        check("the schema's code", code, 0)
        return schema

    def next(self):
        return self._get(1, Array)

    def error(self):
        return text(call(self.fields[2], ctypes.c_void_p, ctypes.addressof(self.memory)))


def take(capsule):
    """What is in it, which goes when the capsule does, unless it was moved before."""
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    kinds = {b"arrow_schema": Schema, b"arrow_array": Array, b"arrow_array_stream": Stream}
    return kinds[name](pointer_of(capsule, name))


def stream_of(exporter):
    return take(exporter.__arrow_c_stream__())


def schema_of(exporter):
    schema = take(exporter.__arrow_c_schema__())
    tree = schema.tree()
    schema.release()
    return tree


def read_all(exporter):
    """(columns, rows of each batch, error). Batches are read after the stream is gone, and by another thread."""
    stream = stream_of(exporter)
    schema = stream.schema()
    tree = schema.tree()
    schema.release()
    batches = []
    while True:
        code, batch = stream.next()
        if code != 0 or batch.is_released():
            break
        batches.append(batch)
    error = stream.error() if code != 0 else None
    if code == 0:
        check("behind the end is the end", stream.next()[1].is_released(), True)
    stream.release()
    columns, rows = {}, []

    def read():
        for batch in batches:
            found = batch.values(tree)
            rows.append(batch.fields[0])
            for name, values in found.items():
                columns.setdefault(name, []).extend(values)
            batch.release()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    return columns, rows, error


def sql(recording, query):
    done = subprocess.run([program, "sql", recording, query, "--json"], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return answer["rows"] if isinstance(answer, dict) else answer


def import_sample(folder, name, *options):
    path = os.path.join(source, "samples", *name)
    subprocess.run([program, "import", path, *options, "-o", folder, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def in_use():
    gc.collect()
    libc = ctypes.CDLL(None)

    class Info(ctypes.Structure):
        _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keep".split()]

    libc.mallinfo2.restype = Info
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd


REFERENCES = ("+s", "", [("L", "instruction", []), ("L", "address", []), ("L", "physical", []), ("S", "size", []),
                         ("C", "kind", []), ("L", "process", []), ("C", "level", [])])
TRACE = ("+s", "", [("L", "instruction", []), ("I", "iteration", []), ("C", "kind", []), ("L", "address", []),
                    ("z", "bytes", []), ("+l", "data", [("L", "item", [])]), ("I", "pid", []), ("L", "page", []),
                    ("I", "frame", []), ("C", "bits", []), ("C", "event", [])])
SIDE = os.path.join(source, "samples", "two-processors", "queue.side.")

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    import_sample("linux.citcat", ("linux", "start.bin.zst"), "--internal",
                  os.path.join(source, "samples", "linux", "start.side.csv"))
    import_sample("queue.citcat", ("two-processors", "queue.bin.zst"), "--internal", f"0={SIDE}0.csv", "--internal",
                  f"1={SIDE}1.csv")

    for recording in ("linux.citcat", "queue.citcat@0", "queue.citcat@1"):
        end = 1000
        some = citcat.references(recording, to=end, size=777)
        check("schema of references", schema_of(some), REFERENCES)
        columns, rows, error = read_all(some)
        check("no error", error, None)
        check("full batches but for the last", set(rows[:-1]) <= {777}, True)
        # What `sql` prints of the same run.
        kinds = "CASE kind " + " ".join(f"WHEN '{k}' THEN {n}" for n, k in enumerate(citcat.KINDS)) + " END"
        told = sql(recording, f"select position, address, physical, size, {kinds} k from refs where position < {end} "
                              "and class = 'data'")
        told = [tuple(r.values()) if isinstance(r, dict) else tuple(r) for r in told]
        names = ("instruction", "address", "physical", "size", "kind")
        mine = [r for r in zip(*(columns[n] for n in names)) if r[4] in (1, 2)]
        check(f"{recording}: rows of sql's refs", sorted(mine) == sorted(told), True)
        # What iterating gives.
        for name in REFERENCES[2]:
            same = [int(v) for batch in citcat.references(recording, to=end) for v in getattr(batch, name[1])]
            check(f"{recording}: {name[1]} of batches", columns[name[1]] == same, True)
        # A batch by itself, and one whose columns are lists.
        batch = next(citcat.references(recording, to=end, size=500))
        for given in (batch, citcat.Batch(*([int(v) for v in column] for column in batch))):
            schema, array = given.__arrow_c_array__()
            schema, array = take(schema), take(array)
            found = array.values(schema.tree())
            schema.release()
            array.release()
            check(f"{recording}: a batch", found == {n: columns[n][:500] for n in columns}, True)

    # Traces: of 16, 32 and 64 bits, against what Python reads, and the instructions of `sql`.
    import_sample("area.citcat", ("ibm5150", "area5150.sr"), "--cpu", "8088", "--initial-state",
                  os.path.join(source, "samples", "ibm5150", "state.json"), "--start", "interrupt:0")
    for recording, limit in (("area.citcat", 400), ("linux.citcat", 2000), ("queue.citcat@1", 2000)):
        trace = citcat.Trace(recording, processes=True, events=True)
        check("schema of a trace", schema_of(trace), TRACE)
        stream = stream_of(trace)
        code, batch = stream.next()
        check("no error", code, 0)
        columns = batch.values(TRACE)
        batch.release()
        stream.release()
        kinds = ("instruction", "process", "translation", "event")
        records = [(r.instruction, r.iteration, kinds.index(r.kind), r.address, r.bytes, list(r.data), r.pid, r.page,
                    r.frame, r.bits, r.event) for r in itertools.islice(trace, limit)]
        check(f"{recording}: records", list(zip(*(c[:limit] for c in columns.values()))) == records, True)
        told = sql(recording, f"select position, address, bytes from instructions where position < {limit // 4}")
        told = [tuple(r.values()) if isinstance(r, dict) else tuple(r) for r in told]
        seen = {(at, address): code.hex() for at, again, kind, address, code in
                zip(*(columns[n] for n in ("instruction", "iteration", "kind", "address", "bytes")))
                if kind == 0 and again == 0}
        check(f"{recording}: instructions of sql", len(told), limit // 4)
        check(f"{recording}: bytes of sql", all(seen[(t[0], t[1])] == t[2].replace(" ", "") for t in told), True)
        events = [r for r in records if r[2] == 3]
        check(f"{recording}: events have both numbers", all(len(r[5]) == 2 for r in events), True)

    # A request for the columns that there are is answered, one for others refused.
    references = citcat.references("linux.citcat", to=10)
    trace = citcat.Trace("linux.citcat")
    references.__arrow_c_stream__(requested_schema=references.__arrow_c_schema__())
    try:
        references.__arrow_c_stream__(requested_schema=trace.__arrow_c_schema__())
        check("another table's columns", "given", "refused")
    except citcat.Error:
        pass
    for wrong in (lambda: citcat.references("absent.citcat").__arrow_c_stream__(),
                  lambda: citcat.references("linux.citcat", size=0).__arrow_c_stream__(),
                  lambda: citcat.Batch([1], [2], [3], [4], [5, 5], [6], [0]).__arrow_c_array__()):
        try:
            wrong()
            check("what cannot be", "given", "refused")
        except citcat.Error as error:
            check("it says why", str(error) != "", True)

    # A child may be moved out of its structure, which is released then: the rest goes, the child stays.
    schema, array = next(citcat.references("linux.citcat", size=100)).__arrow_c_array__()
    array = take(array)
    child = Array(words(array.fields[6], 7)[1])
    array.release()
    first = next(citcat.references("linux.citcat", size=100))
    check("a child that was moved", child.values(("L", "address", [])), [int(v) for v in first.address])
    child.release()
    del schema

    # Memory does not grow with what is made, taken or left, the capsules' destructors included.
    def go_through():
        stream = stream_of(citcat.references("linux.citcat", to=200, size=50))
        while not (batch := stream.next()[1]).is_released():
            batch.release()
        stream.release()
        given = next(citcat.references("linux.citcat", to=200, size=50))
        given.__arrow_c_array__()
        citcat.references("linux.citcat", to=200).__arrow_c_stream__()
        citcat.references("linux.citcat", to=200).__arrow_c_schema__()

    for _ in range(3):
        go_through()
    before = in_use()
    for _ in range(8):
        go_through()
    check("memory stays as it is", in_use() - before < 100_000, True)

print("failed: " + ", ".join(failures) if failures else "columns agree")
sys.exit(1 if failures else 0)
