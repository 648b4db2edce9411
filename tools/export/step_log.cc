#include "tools/export/step_log.h"

#include <cstring>
#include <type_traits>

namespace citcat::tools {
namespace {

enum class LogTag : std::uint8_t { code, step, stretch, event, written };

static_assert(std::is_trivially_copyable_v<StaticInstruction>);
static_assert(std::is_trivially_copyable_v<StepStretch>);
static_assert(std::is_trivially_copyable_v<StepEvent>);
static_assert(std::is_trivially_copyable_v<StepTotals>);

template <class T>
void put_raw(ByteWriter& out, const T& value) {
  out.bytes({reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
}

template <class T>
T get_raw(ByteReader& in) {
  T value;
  std::memcpy(&value, in.bytes(sizeof value, "a kept value").data(), sizeof value);
  return value;
}

constexpr std::uint64_t kLongestFacts = std::uint64_t{1} << 20;

}  // namespace

void StepLog::keep_piece() {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  if (buffer_.size() < kPiece) return;
  pieces_.push_back({spool_->append(buffer_.view()), buffer_.size()});
  buffer_.clear();
}

std::uint32_t StepLog::number_of(const StaticInstruction& code) {
  const auto [at, added] = numbers_.try_emplace(&code, static_cast<std::uint32_t>(numbers_.size()));
  if (added) {
    buffer_.u8(static_cast<std::uint8_t>(LogTag::code));
    put_raw(buffer_, code);
  }
  return at->second;
}

void StepLog::step(const ToldStep& step, std::span<const StepAccess> accesses) {
  const std::uint32_t number = number_of(*step.code->instruction);
  buffer_.u8(static_cast<std::uint8_t>(LogTag::step));
  buffer_.varint(number);
  buffer_.varint(step.position.instruction);
  buffer_.varint(step.position.iteration);
  const unsigned isolated = step.isolated_tables ? 8 : 0;
  buffer_.u8(static_cast<std::uint8_t>(step.level << 4 | isolated));
  buffer_.varint(step.address_space);
  buffer_.string(step.facts);
  buffer_.varint(accesses.size());
  for (const StepAccess& a : accesses) {
    buffer_.varint(a.linear.value);
    buffer_.varint(a.physical.value);
    buffer_.varint(std::uint64_t{a.size} << 1 | (a.write ? 1 : 0));
  }
  keep_piece();
}

void StepLog::stretch(const StepStretch& stretch) {
  buffer_.u8(static_cast<std::uint8_t>(LogTag::stretch));
  put_raw(buffer_, stretch);
  keep_piece();
}

void StepLog::event(const ToldEvent& event) {
  buffer_.u8(static_cast<std::uint8_t>(LogTag::event));
  put_raw(buffer_, event.event);
  buffer_.u8(event.bits64 ? 1 : 0);
  buffer_.string(event.facts);
  keep_piece();
}

void StepLog::written(LinearAddr first, std::uint64_t instruction, const StepTotals& totals,
                      const std::vector<PartSpool::Piece>& text) {
  buffer_.u8(static_cast<std::uint8_t>(LogTag::written));
  buffer_.varint(first.value);
  buffer_.varint(instruction);
  put_raw(buffer_, totals);
  buffer_.varint(text.size());
  for (const PartSpool::Piece& piece : text) put_raw(buffer_, piece);
  keep_piece();
}

void StepLog::save(ByteWriter& out) {
  out.varint(pieces_.size() + 1);
  for (const PartSpool::Piece& piece : pieces_) {
    out.varint(piece.offset);
    out.varint(piece.size);
  }
  out.varint(spool_->append(buffer_.view()));
  out.varint(buffer_.size());
}

void StepLog::load(ByteReader& in) {
  pieces_.resize(in.count("number of pieces", std::uint64_t{1} << 40));
  for (PartSpool::Piece& piece : pieces_) {
    piece.offset = in.varint("offset of a piece");
    piece.size = in.varint("size of a piece");
  }
}

void StepLog::tell(StepLogListener& listener) {
  std::vector<StepAccess> accesses;
  std::string facts;
  for (const PartSpool::Piece& piece : pieces_) {
    const std::vector<std::uint8_t> bytes = spool_->read(piece.offset, piece.size);
    ByteReader in(bytes, "what a part of the run left");
    while (!in.at_end()) {
      switch (static_cast<LogTag>(in.u8("kind"))) {
        case LogTag::code:
          instructions_.push_back(get_raw<StaticInstruction>(in));
          code_.emplace_back(instructions_.back(), listener.know(instructions_.back()));
          break;
        case LogTag::step: {
          ToldStep step;
          step.code = &code_.at(in.varint("code"));
          step.position.instruction = in.varint("instruction");
          step.position.iteration = static_cast<std::uint32_t>(in.varint("iteration"));
          const std::uint8_t packed = in.u8("level");
          step.level = packed >> 4;
          step.isolated_tables = (packed & 8) != 0;
          step.address_space = in.varint("address space");
          facts = in.string("facts", kLongestFacts);
          step.facts = facts;
          accesses.resize(in.count("accesses", kLongestFacts));
          for (StepAccess& a : accesses) {
            a.linear = LinearAddr{in.varint("linear address")};
            a.physical = PhysAddr{in.varint("physical address")};
            const std::uint64_t size = in.varint("size");
            a.size = static_cast<std::uint32_t>(size >> 1);
            a.write = (size & 1) != 0;
          }
          listener.told_step(step, accesses);
          break;
        }
        case LogTag::stretch:
          listener.told_stretch(get_raw<StepStretch>(in));
          break;
        case LogTag::event: {
          ToldEvent event;
          event.event = get_raw<StepEvent>(in);
          event.bits64 = in.u8("bits") != 0;
          event.facts = in.string("facts", kLongestFacts);
          listener.told_event(event);
          break;
        }
        case LogTag::written: {
          const LinearAddr first{in.varint("address")};
          const std::uint64_t instruction = in.varint("instruction");
          const auto totals = get_raw<StepTotals>(in);
          listener.told_written(first, instruction, totals);
          for (std::uint64_t n = in.varint("pieces of text"); n != 0; --n) {
            const auto text = get_raw<PartSpool::Piece>(in);
            listener.told_text(spool_->read(text.offset, text.size));
          }
          break;
        }
      }
    }
  }
}

}  // namespace citcat::tools
