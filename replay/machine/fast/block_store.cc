#include "replay/machine/fast/block_store.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "x86/decode/addressed_accesses.h"
#include "x86/flag_effects.h"

namespace citcat::fast {

/// One block as it grows.
class BlockStore::Maker {
 public:
  Maker(BlockStore& store, const CodePlace& place, const Set& set)
      : store_(store),
        place_(place),
        set_(set),
        table_(handlers(set.policy, set.shape.bits64)),
        mode_(set.shape.mode()),
        ops_(store.draft_.ops),
        begins_(store.draft_.begins),
        areas_(store.draft_.areas),
        layout_(store.draft_.layout) {
    begins_[0] = areas_[0] = 0;
    layout_.begin(set.policy, set.shape.bits64);
    if (keeps_code()) {
      code_ = &store.draft_.code;
      code_->begin_again(place.linear, set.shape.code_base, place.frame);
    }
  }

  Block* make() {
    while (count_ < kMaxInstructions && tail_ == Tail::branch && !branched_) {
      if (!add_next()) break;
    }
    if (count_ == 0 && tail_ == Tail::branch) return nullptr;
    return finish();
  }

 private:
  using Tail = Block::Tail;

  /// The bytes at `offset`, those after the page as far as they are known.
  std::span<const std::uint8_t> bytes_at(std::uint32_t offset) {
    const std::uint32_t in_page = place_.linear.offset_in_page() + offset;
    const Memory& memory = store_.memory_;
    const std::uint8_t* const first = memory.host(place_.frame);
    const std::uint32_t here = kPageSize - in_page;
    if (here >= kMaxInstructionBytes) return {first + in_page, kMaxInstructionBytes};
    auto& bytes = store_.draft_.bytes;
    std::memcpy(bytes.data(), first + in_page, here);
    if (!place_.has_second) return {bytes.data(), here};
    std::memcpy(&bytes[here], memory.host(place_.second_frame), bytes.size() - here);
    return bytes;
  }

  bool is_defined(std::uint32_t offset, std::uint32_t size) const {
    const std::uint32_t in_page = place_.linear.offset_in_page() + offset;
    const std::uint32_t here = std::min(size, kPageSize - in_page);
    const Memory& memory = store_.memory_;
    return memory.is_defined(place_.frame.plus32(in_page), here) &&
           (here == size || memory.is_defined(place_.second_frame, size - here));
  }

  /// False where the block has to end before what comes next.
  bool add_next() {
    const std::uint32_t offset = begins_[count_];
    // What crosses into another page is a block of its own.
    const bool crosses_begin = place_.linear.offset_in_page() + offset >= kPageSize;
    if (crosses_begin) return false;
    const DecodedInstruction& info = store_.decoder_.decode(bytes_at(offset), mode_);
    if (info.state != DecodeState::ok) {
      // Without its second page nothing is known of it, and nothing to be kept.
      if (count_ != 0 || info.state == DecodeState::needs_more_bytes) return false;
      tail_ = Tail::careful;
      return true;
    }
    const std::uint32_t end = place_.linear.offset_in_page() + offset + info.length;
    if (end > kPageSize && count_ != 0) return false;
    if (!is_defined(offset, info.length)) {
      if (count_ != 0) return false;
      tail_ = Tail::careful;
      return true;
    }
    const std::uint64_t eip = place_.eip + offset;
    const std::uint64_t last = eip + info.length - 1;
    if (last < eip || last > set_.shape.code_limit) {
      tail_ = Tail::careful;
      return true;
    }
    crosses_ = end > kPageSize;
    add(info, eip);
    return !crosses_;
  }

  void add(const DecodedInstruction& info, std::uint64_t eip) {
    Lowered lowered = lower(info, eip, set_.shape, store_.traits_, table_, store_.vectors_);
    if (lowered.kind == Lowered::Kind::careful || lowered.kind == Lowered::Kind::string ||
        !fits_policy(info)) {
      tail_ = lowered.kind == Lowered::Kind::string ? Tail::string : Tail::careful;
      string_bytes_ = info.length;
      return;
    }
    layout_.add(info, LinearAddr{place_.linear.value + begins_[count_]}, lowered);
    ops_[count_] = lowered.op;
    if (code_ != nullptr) code_->add(info);
    if (compares()) add_flags(info);
    ++count_;
    begins_[count_] = static_cast<std::uint16_t>(begins_[count_ - 1] + info.length);
    areas_[count_] = static_cast<std::uint16_t>(layout_.size());
    branched_ = lowered.kind == Lowered::Kind::branch;
  }

  /// Somebody may want to know its instructions, which may not be there any more when it has run.
  bool keeps_code() const {
    const Keep keep = set_.policy.keep;
    return compares() ||
           (keep != Keep::nothing && keep != Keep::stores && keep != Keep::kt_records);
  }

  bool compares() const { return set_.policy.exact; }
  void add_flags(const DecodedInstruction& info) {
    if (shifts_by_cl(info)) {
      shifts_ = true;
    } else {
      flags_ = flags_ + flag_effect_of(info, 0);
    }
  }

  /// What loads EFLAGS is told to whoever compares; and with addresses alone, accesses must follow
  /// from them.
  bool fits_policy(const DecodedInstruction& info) const {
    if (set_.policy.keep == Keep::addresses && !accesses_follow(info)) return false;
    return !compares() || info.kind != InstructionClass::popf;
  }

  Block* finish() {
    Block* const b = new (store_.allocate<Block>(1)) Block{};
    Op* const ops = store_.allocate<Op>(count_ + 1);
    std::copy_n(ops_.begin(), count_, ops);
    ops[count_] = Op{};
    ops[count_].handler = table_[tail_ == Tail::branch ? kFall : kLeave].in_registers[0];
    // After FFFF too: what is there is refused, unless the segment goes on.
    ops[count_].immediate = offset_in_mode(place_.eip + begins_[count_], mode_.bits64);
    b->eip = b->first_eip = place_.eip;
    b->linear = place_.linear;
    b->frame = place_.frame;
    b->second_frame = place_.second_frame;
    b->code_base = set_.shape.code_base;
    b->crosses = crosses_;
    b->where = State::where(place_.linear, store_.short_number(place_.frame));
    b->page_index = place_.linear.page() & (kCodePages - 1);
    b->count = count_;
    b->bytes = begins_[count_];
    b->tail = tail_;
    b->mode = mode_;
    b->ops = ops;
    b->counts_shifts = shifts_;
    b->flags = flags_;
    b->next = {&kNowhere, &kNowhere};
    auto* const begins = store_.allocate<std::uint16_t>(count_ + 1);
    std::copy_n(begins_.begin(), count_ + 1, begins);
    b->begins = begins;
    auto* const areas = store_.allocate<std::uint16_t>(count_ + 1);
    std::copy_n(areas_.begin(), count_ + 1, areas);
    b->areas = areas;
    b->area_bytes = static_cast<std::uint32_t>(layout_.size());
    const std::span<const std::uint8_t> image = layout_.image();
    if (!image.empty()) {
      auto* const copy = store_.allocate<std::uint8_t>(image.size());
      std::copy(image.begin(), image.end(), copy);
      b->image = copy;
    }
    if (code_ != nullptr) {
      if (crosses_) code_->set_second_frame(place_.second_frame);
      store_.used_ += code_->count() * sizeof(BlockCode::Instruction);
      b->code = &store_.codes_.emplace_back(*code_);
    }
    cover(*b);
    return b;
  }

  /// Tail included: what it is is part of the block.
  void cover(Block& b) {
    const std::uint32_t bytes = b.bytes + (tail_ == Tail::string ? string_bytes_ : 0);
    const std::uint32_t size = std::max<std::uint32_t>(bytes, 1);
    const PhysAddr begin = place_.frame.plus32(place_.linear.offset_in_page());
    const std::uint32_t here = std::min(size, kPageSize - begin.offset_in_page());
    store_.cover(b, begin, here);
    if (here < size && place_.has_second) store_.cover(b, place_.second_frame, size - here);
  }

  BlockStore& store_;
  const CodePlace& place_;
  const Set& set_;
  const HandlerTable& table_;
  CodeMode mode_;
  std::array<Op, kMaxInstructions>& ops_;
  std::array<std::uint16_t, kMaxInstructions + 1>&begins_, &areas_;
  AreaLayout& layout_;
  BlockCode* code_ = nullptr;  ///< null where it is not kept
  std::uint32_t count_ = 0;
  Tail tail_ = Tail::branch;
  bool branched_ = false, crosses_ = false, shifts_ = false;
  std::uint32_t string_bytes_ = 0;
  FlagEffect flags_;
};

BlockStore::BlockStore(CpuModel model, Memory& memory)
    : traits_(cpu_traits(model)), memory_(memory), decoder_(model) {}

BlockStore::Set& BlockStore::set_of(const CodeShape& shape, Policy policy) {
  const auto is = [&](const Set& set) { return set.policy == policy && set.shape == shape; };
  if (last_set_ != nullptr && is(*last_set_)) return *last_set_;
  const auto found = std::find_if(sets_.begin(), sets_.end(), [&](auto& set) { return is(*set); });
  if (found != sets_.end()) return *(last_set_ = found->get());
  sets_.push_back(std::make_unique<Set>(Set{.shape = shape, .policy = policy}));
  return *(last_set_ = sets_.back().get());
}

/// Where the block that begins there is kept, or is to be kept: linear probing.
BlockStore::Slot& BlockStore::slot_of(std::vector<Slot>& slots, LinearAddr linear, PhysAddr frame) {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  const std::uint64_t key = linear.value << 20 ^ frame.page();
  for (std::size_t i = key * kMix >> 40;; ++i) {
    Slot& slot = slots[i & (slots.size() - 1)];
    if (slot.block == nullptr || (slot.linear == linear && slot.frame == frame)) return slot;
  }
}

void BlockStore::grow(Set& set) {
  std::vector<Slot> slots(2 * set.slots.size());
  for (const Slot& slot : set.slots) {
    if (slot.block != nullptr) slot_of(slots, slot.linear, slot.frame) = slot;
  }
  set.slots = std::move(slots);
}

Block* BlockStore::find(const CodePlace& place, const CodeShape& shape, Policy policy) {
  Set& set = set_of(shape, policy);
  if (2 * set.used >= set.slots.size()) grow(set);
  Slot& slot = slot_of(set.slots, place.linear, place.frame);
  Block* const block = slot.block;
  const bool usable =
      block != nullptr && block->eip == place.eip &&
      (!block->crosses || (place.has_second && block->second_frame == place.second_frame));
  if (usable) return block;
  Block* const made = Maker(*this, place, set).make();
  if (made == nullptr) return nullptr;
  ++made_;
  if (block == nullptr) ++set.used;
  slot = {place.linear, place.frame, made};
  return made;
}

const Block& BlockStore::cut(const Block& block, std::uint32_t count, Policy policy) {
  std::copy_n(block.ops, count, cut_ops_.begin());
  Op& end = cut_ops_[count] = Op{};
  end.handler = handlers(policy, block.mode.bits64)[kFall].in_registers[0];
  end.immediate = block.eip_of(count);
  cut_ = block;
  cut_.ops = cut_ops_.data();
  cut_.count = count;
  cut_.bytes = block.begins[count];
  cut_.area_bytes = block.areas[count];
  cut_.tail = Block::Tail::branch;
  cut_.next = {&kNowhere, &kNowhere};
  cut_.counts_shifts = true;  // flags_of() tells
  if (block.code == nullptr) return cut_;
  cut_code_ = block.code->first(count);
  cut_.code = &cut_code_;
  return cut_;
}

/// From the last instruction back to where all flags are known: most often that is not far.
FlagEffect BlockStore::flags_of(const Block& block, std::uint32_t count,
                                std::span<const std::uint8_t> counts) {
  const auto info = [&](std::uint32_t i) -> const DecodedInstruction& {
    return block.code->instruction(i).info;
  };
  FlagEffect flags;
  for (std::uint32_t i = count; i != 0 && flags.written != kArithmeticFlags; --i) {
    if (!shifts_by_cl(info(i - 1))) {
      flags = flag_effect_of(info(i - 1), 0) + flags;
      continue;
    }
    std::size_t before = 0;
    for (std::uint32_t j = 0; j + 1 < i; ++j) before += shifts_by_cl(info(j)) ? 1 : 0;
    if (before < counts.size()) flags = flag_effect(info(i - 1), counts[before]) + flags;
  }
  return flags;
}

const DecodedInstruction& BlockStore::decode_tail(const Block& block) {
  const std::uint32_t i = block.count;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  const std::uint32_t in_page = block.linear.offset_in_page() + block.begins[i];
  const std::uint32_t here = std::min<std::uint32_t>(kPageSize - in_page, kMaxInstructionBytes);
  std::memcpy(bytes.data(), memory_.host(block.frame.plus32(in_page)), here);
  if (here < bytes.size() && block.crosses) {
    std::memcpy(&bytes[here], memory_.host(block.second_frame), bytes.size() - here);
  }
  return decoder_.decode(bytes, block.mode);
}

void BlockStore::cover(Block& block, PhysAddr at, std::uint32_t size) {
  FrameCode*& frame = frames_[at.page()];
  if (frame == nullptr) {
    frame = frame_codes_.emplace_back(std::make_unique<FrameCode>()).get();
    used_frames_.push_back(at.page());
    memory_.watch(at.page());
  }
  new_code_ |= frame->blocks.empty();
  frame->covered.set(at.offset_in_page(), size);
  frame->blocks.push_back(&block);
}

std::uint64_t BlockStore::short_number(PhysAddr frame) {
  constexpr std::uint64_t kOwn = std::uint64_t{1} << 27;
  if (frame.page() < kOwn) return frame.page();
  return kOwn + far_frames_.try_emplace(frame.page(), far_frames_.size()).first->second;
}

bool BlockStore::stored(PhysAddr at, std::uint32_t size) {
  FrameCode* const frame = std::as_const(frames_)[at.page()];
  if (frame == nullptr || frame->covered.next(at.offset_in_page()) >= at.offset_in_page() + size) {
    return false;
  }
  // All blocks of the frame: code that is patched is patched in many places.
  for (Block* const block : frame->blocks) {
    if (block->eip != Block::kNoEip) ++dropped_;
    block->eip = Block::kNoEip;
  }
  frame->blocks.clear();
  frame->covered = ByteMask{};
  return true;
}

void BlockStore::clear() {
  sets_.clear();
  last_set_ = nullptr;
  for (const FrameNumber frame : used_frames_) frames_[frame] = nullptr;
  used_frames_.clear();
  frame_codes_.clear();
  codes_.clear();
  arena_.release();
  used_ = 0;
}

}  // namespace citcat::fast
