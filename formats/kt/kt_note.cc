#include "formats/kt/kt_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/memory_limit.h"
#include "formats/io/zstd_stream.h"
#include "formats/kt/kt_index.h"

namespace citcat {

namespace {

constexpr std::array<std::uint8_t, 8> kNotesText{'C', 'C', 'K', 'T', 'N', 'O', 'T', 'E'};
/// The most bytes of a segment's notes before compression.
constexpr std::uint64_t kMaxNotesBytes = std::uint64_t{1} << 28;
constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxAddress = (std::uint64_t{1} << 52) - 1;
/// A place has five fields, an event more, of a byte at least each.
constexpr std::uint64_t kLeastNoteBytes = 5;

void encode_note(const KtNote& note, const KtNote& before, ByteWriter& out) {
  out.u8(static_cast<std::uint8_t>(note.kind));
  out.varint(note.at - before.at);
  out.signed_varint(static_cast<std::int64_t>(note.place.instruction - before.place.instruction));
  out.varint(note.place.iteration);
  if (note.kind == KtNote::Kind::place) {
    out.u8(note.place.bits);
    return;
  }
  out.varint(note.where);
  out.varint(note.size);
  out.varint(note.value);
}

std::uint32_t read_32(ByteReader& in, std::string_view field) {
  const std::uint64_t value = in.varint(field);
  if (value > kMax32) in.fail(std::string(field) + ": expected 32 bits, found more");
  return static_cast<std::uint32_t>(value);
}

KtNote decode_note(const KtNote& before, ByteReader& in) {
  KtNote note;
  const std::uint8_t kind = in.u8("kind of a note");
  if (kind >= KtNote::kKinds) {
    in.fail("kind of a note: expected 0 to 11, found " + std::to_string(kind));
  }
  note.kind = static_cast<KtNote::Kind>(kind);
  const std::uint64_t step = in.varint("place of a note");
  if (step > std::numeric_limits<std::uint64_t>::max() - before.at) {
    in.fail("place of a note: expected one within the trace, found one after its end");
  }
  note.at = before.at + step;
  note.place.instruction =
      before.place.instruction + static_cast<std::uint64_t>(in.signed_varint("instruction"));
  note.place.iteration = read_32(in, "iteration");
  if (note.kind == KtNote::Kind::place) {
    note.place.bits = in.u8("size of the code");
    const std::uint8_t bits = note.place.bits;
    if (bits != 0 && bits != 16 && bits != 32 && bits != 64) {
      in.fail("size of the code: expected 0, 16, 32 or 64, found " +
              std::to_string(note.place.bits));
    }
    return note;
  }
  note.where = in.varint("vector, port or address");
  if (note.where > kMaxAddress) in.fail("vector, port or address: expected 52 bits, found more");
  note.size = read_32(in, "size");
  note.value = read_32(in, "value");
  return note;
}

}  // namespace

const char* kt_note_name(KtNote::Kind kind) {
  static constexpr std::array<const char*, KtNote::kKinds> kNames{"place",
                                                                  "exception",
                                                                  "software interrupt",
                                                                  "interrupt",
                                                                  "nmi",
                                                                  "smi",
                                                                  "halt",
                                                                  "shutdown",
                                                                  "port_read",
                                                                  "port_write",
                                                                  "external_write",
                                                                  "translation_dropped"};
  return kNames[static_cast<std::size_t>(kind)];
}

KtNoteForm kt_note_form(KtNote::Kind kind) {
  using Kind = KtNote::Kind;
  switch (kind) {
    case Kind::exception:
    case Kind::software:
    case Kind::external:
      return KtNoteForm::vector;
    case Kind::port_read:
    case Kind::port_write:
      return KtNoteForm::port;
    case Kind::external_write:
      return KtNoteForm::address;
    case Kind::translation_dropped:
      return KtNoteForm::page;
    default:
      return KtNoteForm::bare;
  }
}

std::string kt_note_page(const KtNote& note) {
  constexpr unsigned kPageBits = 12;
  return fmt::format("{:08x}", note.where << kPageBits);
}

std::string kt_note_text(const KtNote& e) {
  switch (kt_note_form(e.kind)) {
    case KtNoteForm::vector:
      return fmt::format("{} {:02x}", kt_note_name(e.kind), e.where) +
             (e.kind == KtNote::Kind::exception ? fmt::format(" error {:x}", e.value) : "");
    case KtNoteForm::port:
      return fmt::format("{} {:04x} size {} value {:0{}x}", kt_note_name(e.kind), e.where, e.size,
                         e.value, 2 * e.size);
    case KtNoteForm::address:
      return fmt::format("{} {:08x} size {}", kt_note_name(e.kind), e.where, e.size);
    case KtNoteForm::page:
      return fmt::format("{} {}", kt_note_name(e.kind), kt_note_page(e));
    case KtNoteForm::bare:
      break;
  }
  return kt_note_name(e.kind);
}

std::vector<std::uint8_t> encode_kt_notes(std::span<const KtNote> notes, std::uint64_t begin) {
  ByteWriter plain;
  plain.varint(notes.size());
  KtNote before;
  before.at = begin;
  for (const KtNote& note : notes) {
    encode_note(note, before, plain);
    before = note;
  }
  ByteWriter body;
  body.bytes(kNotesText);
  body.varint(plain.size());
  body.bytes(zstd_compress(plain.view(), {}));
  return skippable_frame(kSkippableMagic, body.view());
}

std::vector<KtNote> decode_kt_notes(std::span<const std::uint8_t> frame, std::uint64_t begin,
                                    const std::string& name, std::uint64_t offset) {
  ByteReader head(frame, name, offset);
  head.skip(8, "frame of notes");
  const auto text = head.bytes(kNotesText.size(), "frame of notes");
  if (!std::equal(kNotesText.begin(), kNotesText.end(), text.begin())) {
    head.fail_at(offset, "expected the notes of a KT segment, found something else");
  }
  const std::uint64_t size = head.count("bytes of notes", kMaxNotesBytes);
  require_memory(size, name, offset, "notes");
  const auto plain = zstd_decompress(head.bytes(head.remaining(), "notes"), size, name, offset);
  ByteReader in(plain, name, 0);
  const std::uint64_t count = in.count("notes", in.remaining() / kLeastNoteBytes);
  require_memory(size + count * sizeof(KtNote), name, offset, "notes");
  std::vector<KtNote> notes;
  notes.reserve(count);
  KtNote before;
  before.at = begin;
  for (std::uint64_t i = 0; i < count; ++i) {
    notes.push_back(decode_note(before, in));
    before = notes.back();
  }
  in.expect_end("the notes");
  return notes;
}

}  // namespace citcat
