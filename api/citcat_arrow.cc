// The functions of citcat_arrow.h: columns that own their memory, handed over as Arrow's
// structures.
#include "api/citcat_arrow.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "api/citcat.h"
#include "api/current_error.h"
#include "formats/io/error.h"

namespace {

using citcat::current_error;

thread_local std::string arrow_error;

/// A column, or the batch as a structure of columns. Formats are Arrow's: C, S, I and L are
/// unsigned numbers of 8 to 64 bits, z is binary, +l a list, +s a structure.
struct Column {
  const char* format;
  const char* name;
  std::vector<std::uint8_t> values;   ///< of numbers, and of binary
  std::vector<std::int32_t> offsets;  ///< of binary and lists, where each row begins
  std::vector<Column> children;

  bool has_offsets() const { return format[0] == 'z' || format == std::string_view("+l"); }
  bool has_values() const { return format[0] != '+'; }
};

template <class T>
void append(Column& column, const T* values, std::size_t count) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values);
  column.values.insert(column.values.end(), bytes, bytes + count * sizeof(T));
}

/// The schema of a column, and of those in it, which a consumer may move away one by one.
struct OwnSchema {
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

/// The same of a batch; `buffers` lie in the column.
struct OwnArray {
  Column column;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  std::vector<const void*> buffers;
};

template <class Struct, class Own>
void release(Struct* given) {
  for (std::int64_t i = 0; i < given->n_children; ++i) {
    Struct* const child = given->children[i];
    if (child->release != nullptr) child->release(child);
  }
  delete static_cast<Own*>(given->private_data);
  given->release = nullptr;
}

/// Children that were made are released where making another one fails.
template <class Struct, class Own>
void hand_over(std::unique_ptr<Own> own, Struct& out) {
  for (Struct& child : own->children) own->pointers.push_back(&child);
  out.n_children = static_cast<std::int64_t>(own->pointers.size());
  out.children = own->pointers.data();
  out.release = release<Struct, Own>;
  out.private_data = own.release();
}

void make_schema(const Column& column, ArrowSchema& out) {
  auto own = std::make_unique<OwnSchema>();
  own->children.resize(column.children.size());
  own->pointers.reserve(column.children.size());
  ArrowSchema made{};
  made.format = column.format;
  made.name = column.name;
  OwnSchema& kept = *own;
  hand_over(std::move(own), made);
  try {
    for (std::size_t i = 0; i < kept.children.size(); ++i) {
      make_schema(column.children[i], kept.children[i]);
    }
  } catch (...) {
    made.release(&made);
    throw;
  }
  out = made;
}

void make_array(Column column, std::size_t rows, ArrowArray& out) {
  auto own = std::make_unique<OwnArray>();
  own->children.resize(column.children.size());
  own->pointers.reserve(column.children.size());
  own->column = std::move(column);
  OwnArray& kept = *own;
  Column& mine = kept.column;
  // The bitmap of what is null comes first: nothing is.
  kept.buffers.push_back(nullptr);
  if (mine.has_offsets()) kept.buffers.push_back(mine.offsets.data());
  if (mine.has_values()) kept.buffers.push_back(mine.values.data());
  ArrowArray made{};
  made.length = static_cast<std::int64_t>(rows);
  made.n_buffers = static_cast<std::int64_t>(kept.buffers.size());
  made.buffers = kept.buffers.data();
  hand_over(std::move(own), made);
  try {
    for (std::size_t i = 0; i < kept.children.size(); ++i) {
      const auto inner = mine.has_offsets() ? static_cast<std::size_t>(mine.offsets.back()) : rows;
      make_array(std::move(mine.children[i]), inner, kept.children[i]);
    }
  } catch (...) {
    made.release(&made);
    throw;
  }
  out = made;
}

Column number(const char* format, const char* name) { return {format, name, {}, {}, {}}; }

/// In Python's order (Batch of citcat.py).
enum ReferenceColumn { kInstruction, kAddress, kPhysical, kSize, kKind, kProcess, kLevel };

Column reference_columns() {
  return {"+s",
          "",
          {},
          {},
          {number("L", "instruction"), number("L", "address"), number("L", "physical"),
           number("S", "size"), number("C", "kind"), number("L", "process"), number("C", "level")}};
}

enum TraceColumn {
  kAt,
  kIteration,
  kWhat,
  kWhere,
  kBytes,
  kData,
  kPid,
  kPage,
  kFrame,
  kBits,
  kEvent
};

Column trace_columns() {
  return {"+s",
          "",
          {},
          {},
          {number("L", "instruction"),
           number("I", "iteration"),
           number("C", "kind"),
           number("L", "address"),
           {"z", "bytes", {}, {0}, {}},
           {"+l", "data", {}, {0}, {number("L", "item")}},
           number("I", "pid"),
           number("L", "page"),
           number("I", "frame"),
           number("C", "bits"),
           number("C", "event")}};
}

void append_record(Column& batch, const citcat_wide_record& r) {
  std::vector<Column>& c = batch.children;
  append(c[kAt], &r.instruction, 1);
  append(c[kIteration], &r.iteration, 1);
  append(c[kWhat], &r.kind, 1);
  append(c[kWhere], &r.address, 1);
  append(c[kBytes], r.bytes, r.length);
  c[kBytes].offsets.push_back(c[kBytes].offsets.back() + r.length);
  const int numbers = r.kind == CITCAT_EVENT ? 2 : r.data_count;
  append(c[kData].children[0], r.data, static_cast<std::size_t>(numbers));
  c[kData].offsets.push_back(c[kData].offsets.back() + numbers);
  append(c[kPid], &r.pid, 1);
  append(c[kPage], &r.page, 1);
  append(c[kFrame], &r.frame, 1);
  append(c[kBits], &r.bits, 1);
  append(c[kEvent], &r.event, 1);
}

/// Where batches come from.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual Column columns() const = 0;
  /// Adds up to `rows`; how many: 0 at the end. Throws for what differs from the evidence.
  virtual std::size_t read(Column& batch, std::size_t rows) = 0;
};

/// An error of a C function, as an exception.
[[noreturn]] void raise(const char* why) { throw citcat::Error(why); }

class ReferenceSource final : public Source {
 public:
  ReferenceSource(const char* path, unsigned flags, std::uint64_t from, std::uint64_t to)
      : run_(citcat_references_open(path, flags, from, to), citcat_references_close) {
    if (run_ == nullptr) raise(citcat_references_error(nullptr));
  }
  Column columns() const override { return reference_columns(); }
  std::size_t read(Column& batch, std::size_t rows) override {
    std::vector<Column>& c = batch.children;
    const auto room = [&](ReferenceColumn n, std::size_t size) {
      c[n].values.resize(rows * size);
      return c[n].values.data();
    };
    citcat_columns to{};
    to.size = sizeof to;
    to.instruction = reinterpret_cast<std::uint64_t*>(room(kInstruction, 8));
    to.wide_address = reinterpret_cast<std::uint64_t*>(room(kAddress, 8));
    to.wide_physical = reinterpret_cast<std::uint64_t*>(room(kPhysical, 8));
    to.wide_process = reinterpret_cast<std::uint64_t*>(room(kProcess, 8));
    to.bytes = reinterpret_cast<std::uint16_t*>(room(kSize, 2));
    to.kind = room(kKind, 1);
    to.level = room(kLevel, 1);
    const std::size_t count = citcat_references_read(run_.get(), &to, rows);
    if (count != 0) return count;
    if (const char* const why = citcat_references_error(run_.get())) raise(why);
    return 0;
  }

 private:
  std::unique_ptr<citcat_references, void (*)(citcat_references*)> run_;
};

class TraceSource final : public Source {
 public:
  TraceSource(const char* path, unsigned flags)
      : trace_(citcat_open(path, flags | CITCAT_WIDE), citcat_close) {
    if (trace_ == nullptr) raise(citcat_error(nullptr));
  }
  Column columns() const override { return trace_columns(); }
  std::size_t read(Column& batch, std::size_t rows) override {
    constexpr std::size_t kAtOnce = 1024;
    std::vector<citcat_wide_record> records(std::min(rows, kAtOnce));
    std::size_t done = 0;
    while (done < rows) {
      const std::size_t wanted = std::min(rows - done, records.size());
      const std::size_t count = citcat_read_wide(trace_.get(), records.data(), wanted);
      for (std::size_t i = 0; i < count; ++i) append_record(batch, records[i]);
      done += count;
      if (count < wanted) break;
    }
    const char* const why = citcat_error(trace_.get());
    if (done == 0 && why != nullptr) raise(why);
    return done;
  }

 private:
  std::unique_ptr<citcat_trace, void (*)(citcat_trace*)> trace_;
};

/// A batch has no more rows, so that lists of two numbers each stay within offsets of 32 bits.
constexpr std::size_t kMostRows = std::size_t{1} << 26;

struct Stream {
  std::unique_ptr<Source> source;
  std::size_t rows;
  std::string error;
};

Stream& stream_of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

/// What `work` does, as Arrow's number of an error.
template <class Work>
int numbered(std::string& error, Work&& work) {
  try {
    error.clear();
    work();
    return 0;
  } catch (const std::bad_alloc&) {
    error = current_error();
    return ENOMEM;
  } catch (...) {
    error = current_error();
    return EIO;
  }
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  Stream& self = stream_of(stream);
  return numbered(self.error, [&] { make_schema(self.source->columns(), *out); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  Stream& self = stream_of(stream);
  return numbered(self.error, [&] {
    *out = ArrowArray{};
    Column batch = self.source->columns();
    const std::size_t count = self.source->read(batch, self.rows);
    if (count != 0) make_array(std::move(batch), count, *out);
  });
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::string& error = stream_of(stream).error;
  return error.empty() ? nullptr : error.c_str();
}

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

void begin_stream(std::unique_ptr<Source> source, std::size_t rows, ArrowArrayStream& out) {
  auto stream = std::make_unique<Stream>(std::move(source), rows, std::string());
  out = {get_schema, get_next, get_last_error, release_stream, stream.release()};
}

void require_rows(std::size_t rows) {
  if (rows == 0 || rows > kMostRows) {
    throw citcat::UsageError("rows of a batch: expected 1 to " + std::to_string(kMostRows) +
                             ", found " + std::to_string(rows));
  }
}

/// 0, or -1 with arrow_error set.
template <class Work>
int tried(const void* out, Work&& work) {
  return numbered(arrow_error,
                  [&] {
                    if (out == nullptr)
                      throw citcat::UsageError("there is no place for the result");
                    work();
                  }) == 0
             ? 0
             : -1;
}

constexpr std::string_view kSchemaName = "arrow_schema", kArrayName = "arrow_array",
                           kStreamName = "arrow_array_stream";

void* (*get_capsule_pointer)(void* capsule, const char* name) = nullptr;

/// A capsule's destructor. It calls nothing of Python's that could change the error being handled.
template <class Struct, const std::string_view& Name>
void drop_capsule(void* capsule) {
  auto* const held = static_cast<Struct*>(get_capsule_pointer(capsule, Name.data()));
  if (held == nullptr) return;
  if (held->release != nullptr) held->release(held);
  std::free(held);
}

}  // namespace

int citcat_references_arrow(const char* path, unsigned flags, uint64_t from, uint64_t to,
                            size_t rows, ArrowArrayStream* out) {
  return tried(out, [&] {
    require_rows(rows);
    begin_stream(std::make_unique<ReferenceSource>(path, flags, from, to), rows, *out);
  });
}

int citcat_trace_arrow(const char* path, unsigned flags, size_t rows, ArrowArrayStream* out) {
  return tried(out, [&] {
    require_rows(rows);
    begin_stream(std::make_unique<TraceSource>(path, flags), rows, *out);
  });
}

int citcat_arrow_schema(citcat_arrow_table table, ArrowSchema* out) {
  return tried(out, [&] {
    make_schema(table == CITCAT_ARROW_TRACE ? trace_columns() : reference_columns(), *out);
  });
}

int citcat_columns_arrow(const citcat_columns* columns, size_t rows, ArrowArray* out) {
  return tried(out, [&] {
    if (columns == nullptr || columns->size < sizeof *columns || columns->instruction == nullptr ||
        columns->wide_address == nullptr || columns->wide_physical == nullptr ||
        columns->wide_process == nullptr || columns->bytes == nullptr || columns->kind == nullptr ||
        columns->level == nullptr) {
      throw citcat::UsageError("a column is missing");
    }
    Column batch = reference_columns();
    append(batch.children[kInstruction], columns->instruction, rows);
    append(batch.children[kAddress], columns->wide_address, rows);
    append(batch.children[kPhysical], columns->wide_physical, rows);
    append(batch.children[kProcess], columns->wide_process, rows);
    append(batch.children[kSize], columns->bytes, rows);
    append(batch.children[kKind], columns->kind, rows);
    append(batch.children[kLevel], columns->level, rows);
    make_array(std::move(batch), rows, *out);
  });
}

const char* citcat_arrow_error(void) { return arrow_error.empty() ? nullptr : arrow_error.c_str(); }

void* citcat_arrow_new(const char* name) {
  const std::string_view wanted = name == nullptr ? "" : name;
  const std::size_t size = wanted == kSchemaName   ? sizeof(ArrowSchema)
                           : wanted == kArrayName  ? sizeof(ArrowArray)
                           : wanted == kStreamName ? sizeof(ArrowArrayStream)
                                                   : 0;
  return size == 0 ? nullptr : std::calloc(1, size);
}

void (*citcat_arrow_destructor(const char* name, void* (*get_pointer)(void*, const char*)))(void*) {
  const std::string_view wanted = name == nullptr ? "" : name;
  get_capsule_pointer = get_pointer;
  if (wanted == kSchemaName) return drop_capsule<ArrowSchema, kSchemaName>;
  if (wanted == kArrayName) return drop_capsule<ArrowArray, kArrayName>;
  if (wanted == kStreamName) return drop_capsule<ArrowArrayStream, kStreamName>;
  return nullptr;
}
