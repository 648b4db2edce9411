#pragma once
// Notes hold everything about a run that KT has no records for: the position of a record, the size
// of the code, and the events between instructions. `.kt.zst` and `.ktz` keep them beside the
// records (docs/formats/kt.md, "Notes").

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// The position of a record, as Position in events/position.h, and the size of its code.
struct KtPlace {
  std::uint64_t instruction = 0;
  std::uint32_t iteration = 0;
  std::uint8_t bits = 0;  ///< 16 or 32: default size of the code segment; 0: not known
  bool same_position(const KtPlace& other) const {
    return instruction == other.instruction && iteration == other.iteration;
  }
  bool operator==(const KtPlace&) const = default;
};

/// A note about the place before the record at `at`.
struct KtNote {
  enum class Kind : std::uint8_t {
    place,      ///< the next instruction record is at `place`, whatever the ones before suggest
    exception,  ///< `where` is the vector, `value` the error code (0 where the vector has none)
    software,   ///< INT n, INT3 and the like: `where` is the vector
    external,   ///< an interrupt request: `where` is the vector
    nmi,
    smi,
    halted,               ///< HLT
    shutdown,             ///< a third fault
    port_read,            ///< `where` is the port, `size` bytes, `value` what was read
    port_write,           ///< the same, what was written
    external_write,       ///< another bus master stores `size` bytes at physical address `where`
    translation_dropped,  ///< the processor loses its translation of linear page number `where`
  };
  static constexpr std::uint8_t kKinds = 12;

  std::uint64_t at = 0;  ///< bytes of KT before that record
  KtPlace place;         ///< for an event: instructions and iterations completed before it
  std::uint64_t where = 0;
  std::uint32_t size = 0, value = 0;
  Kind kind = Kind::place;
  /// For a place: the records before it imply it, so it is kept only where a segment begins.
  bool implied = false;
  bool operator==(const KtNote&) const = default;
};

/// "place", "exception", "software interrupt", "interrupt", "nmi", "smi", "halt", "shutdown",
/// "port_read", "port_write", "external_write", "translation_dropped".
const char* kt_note_name(KtNote::Kind kind);
/// An event for people, in one line: "port_read 0060 size 1 value 1c".
std::string kt_note_text(const KtNote& note);

/// The meaning of KtNote::where, `value` and `size` for a kind.
enum class KtNoteForm : std::uint8_t { bare, vector, port, address, page };
KtNoteForm kt_note_form(KtNote::Kind kind);
/// Where the page of a note of KtNoteForm::page begins: "00401000".
std::string kt_note_page(const KtNote& note);

/// A skippable frame with these notes of one segment, in their order; `begin`: bytes of KT before
/// the segment.
std::vector<std::uint8_t> encode_kt_notes(std::span<const KtNote> notes, std::uint64_t begin);
/// The notes of such a frame. Throws FormatError with `name` and `offset`, the place of the frame.
std::vector<KtNote> decode_kt_notes(std::span<const std::uint8_t> frame, std::uint64_t begin,
                                    const std::string& name, std::uint64_t offset);

}  // namespace citcat
