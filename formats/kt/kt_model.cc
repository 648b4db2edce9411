#include "formats/kt/kt_model.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"

namespace citcat {

namespace {

constexpr std::uint8_t kMaxConfidence = 7;
constexpr std::uint8_t kMaxScore = 15;
constexpr std::uint8_t kStartScore = 8;
/// Instructions of one eip (code that changes, several address spaces) the coder looks through.
constexpr int kMaxSameEip = 8;

/// Where a guess at the next instruction comes from: statistics of their own.
enum Source : std::uint8_t { kReturn, kFar, kNear, kSuccessor, kInterrupted, kSources };

/// Masks for comparing the fixed part of a record, by its length in words of four bytes.
constexpr std::uint64_t kLow = 0xffffffff;
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr std::array<std::array<std::uint64_t, 3>, 6> kFixedMasks{
    {{0, 0, 0}, {kLow, 0, 0}, {kAll, 0, 0}, {kAll, kLow, 0}, {kAll, kAll, 0}, {kAll, kAll, kLow}}};

std::size_t follower_slot(std::uint32_t number, std::size_t slot, std::uint32_t last) {
  return kt_hash((std::uint64_t{number} * 2 + slot) << 32 | last);
}

std::uint32_t zigzag32(std::uint32_t v) { return v << 1 ^ (v >> 31 != 0 ? ~std::uint32_t{0} : 0); }
std::uint32_t unzigzag32(std::uint32_t v) { return v >> 1 ^ (~(v & 1) + 1); }

[[noreturn]] void fail_damaged() { throw DamagedSegment(); }

std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.subspan(at, 4).data(), 4);
  return value;
}

[[noreturn]] void fail_not_kt(const char* what) {
  throw FormatError("KT", 0, std::string("expected records as the format has them, found ") + what);
}

/// The instruction at the beginning of `bytes`, without its addresses. Padding that is not zero is
/// refused, because a template would not give it back.
KtInstruction instruction_at(std::span<const std::uint8_t> bytes) {
  KtInstruction i;
  i.eip = word_at(bytes, 0);
  i.size = bytes[4] & 15;
  i.address_count = bytes[4] >> 4;
  if (i.size == 0 || i.address_count > kKtMaxAddresses) fail_not_kt("an impossible instruction");
  std::copy_n(bytes.subspan(5).begin(), i.size, i.code.begin());
  const auto padding = bytes.first(kt_fixed_bytes(i.size)).subspan(std::size_t{5} + i.size);
  if (std::any_of(padding.begin(), padding.end(), [](std::uint8_t b) { return b != 0; })) {
    fail_not_kt("padding that is not zero");
  }
  return i;
}

void learn_score(std::uint8_t& score, bool right) {
  if (right) {
    if (score < kMaxScore) ++score;
  } else {
    score = static_cast<std::uint8_t>(score > 2 ? score - 2 : 0);
  }
}

void push_history(std::uint8_t& history, bool hit) {
  history = static_cast<std::uint8_t>(history << 1 | (hit ? 1 : 0));
}

}  // namespace

struct KtModel::Models {
  static constexpr std::size_t kFlows = 5;
  std::array<std::array<std::array<AdaptiveBit, 8>, 8>, kSources> next_hit;  // confidence, history
  std::array<std::array<AdaptiveBit, kFlows>, 4> next_other;                 // candidate
  AdaptiveBit other_record;
  std::array<AdaptiveBit, kFlows> eip_fall, eip_target;
  AdaptiveBit eip_recent;
  AdaptiveNumber<4> eip_which;
  AdaptiveBit same_eip;
  AdaptiveNumber<8> type;
  AdaptiveBit static_target;
  std::array<AdaptiveNumber<8>, 3 * 256> code;  // position, byte before
  // Kind, which predictor comes first, history of hits.
  std::array<std::array<std::array<AdaptiveBit, 64>, 2>, KtAddressRule::kKinds> first;
  std::array<std::array<std::array<AdaptiveBit, 8>, 2>, KtAddressRule::kKinds> second;
  std::array<std::array<AdaptiveBit, 8>, KtAddressRule::kKinds> third;
  static constexpr std::size_t kFarKinds = KtAddressRule::kKinds + 1;
  std::array<AdaptiveNumber<6>, kFarKinds> far_size;
  std::array<std::array<std::array<AdaptiveBit, 8>, 33>, kFarKinds> far_top;
  std::array<std::array<std::array<AdaptiveBit, 4>, 33>, kFarKinds> far_low;
  AdaptiveBit other_kind;
  std::array<AdaptiveNumber<8>, 3 * 4> word;
  std::array<std::uint32_t, 16> recent_eips{};
  std::uint32_t recent_at = 0;
  std::array<std::uint32_t, 3> last_word{};
};

KtModel::KtModel()
    : models_(std::make_unique<Models>()),
      far_(kKtTableSlots),
      near_(kKtTableSlots),
      followers_(kKtTableSlots) {}

KtModel::~KtModel() = default;

bool KtModel::matches(std::uint32_t number, const Window& window) const {
  if (number == 0) return false;
  const Template& t = templates_[number - 1];
  const auto& mask = kFixedMasks[t.fixed_bytes / 4U];
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < 3; ++i) difference |= (window.words[i] ^ t.fixed[i]) & mask[i];
  if (difference != 0) return false;
  return !t.target_is_static || word_at(window.bytes, t.fixed_bytes) == t.operands.target;
}

std::uint32_t KtModel::add_template(const KtInstruction& instruction, bool target_is_static) {
  Template t;
  t.eip = instruction.eip;
  t.next_eip = instruction.eip + instruction.size;
  std::array<std::uint8_t, 24> fixed{};
  std::memcpy(fixed.data(), &instruction.eip, 4);
  fixed[4] = static_cast<std::uint8_t>(instruction.address_count << 4 | instruction.size);
  std::copy_n(instruction.code.begin(), instruction.size, fixed.begin() + 5);
  std::memcpy(t.fixed.data(), fixed.data(), sizeof fixed);
  t.fixed_bytes = static_cast<std::uint8_t>(kt_fixed_bytes(instruction.size));
  t.address_count = instruction.address_count;
  t.target_is_static = target_is_static;
  t.operands = kt_operands(instruction.eip, instruction.bytes());
  t.flow = t.operands.flow;
  t.effect = t.operands.effect;
  for (std::size_t slot = 0; slot < t.rule.size(); ++slot) {
    t.rule[slot] = kt_address_rule(t.operands, slot);
    t.address[slot].model_score = t.address[slot].stride_score = kStartScore;
  }
  const auto number = static_cast<std::uint32_t>(templates_.size() + 1);
  t.same_eip = by_eip_.exchange(t.eip, number);
  templates_.push_back(t);
  return number;
}

void KtModel::write_run() {
  runs_.varint(std::exchange(run_, 0));
  ++run_count_;
}

// ---- The instruction that comes next
// -------------------------------------------------------------

/// Number + 1 of the next template, or 0 for a record that is no instruction.
template <typename Coder>
std::uint32_t KtModel::code_instruction(Coder& coder, const Window& window) {
  if (current_ == 0) return code_escape(coder, window);
  Template& t = templates_[current_ - 1];
  return t.flow == KtFlow::next ? code_plain_next(coder, window, t) : code_branch(coder, window, t);
}

template <typename Coder>
std::uint32_t KtModel::code_plain_next(Coder& coder, const Window& window, Template& t) {
  const std::uint32_t guess = t.successor[0];
  if (guess == 0) {
    const std::uint32_t next = code_escape(coder, window);
    if (next != 0) learn_plain_next(templates_[current_ - 1], next);
    return next;
  }
  bool hit = false;
  if constexpr (Coder::kDecodes) {
    if (!has_run_) {
      if (runs_to_read_.at_end()) fail_damaged();
      run_ = runs_to_read_.varint("run");
      has_run_ = true;
    }
    hit = run_ != 0;
    if (hit) --run_;
    has_run_ = hit;
  } else {
    hit = matches(guess, window);
    if (hit) {
      ++run_;
    } else {
      write_run();
    }
  }
  if (hit) {
    if (t.effect == KtEffect::call) calls_[++call_top_ % calls_.size()] = current_;
    return guess;
  }
  const std::uint32_t next = code_others(coder, window, t, guess);
  if (next == 0) return 0;
  Template& again = templates_[current_ - 1];  // a new template may have moved the old ones
  learn_plain_next(again, next);
  // Not the one expected: most likely an interrupt, which will return to what was expected.
  interrupted_[++interrupted_top_ % interrupted_.size()] = guess;
  return next;
}

template <typename Coder>
std::uint32_t KtModel::code_branch(Coder& coder, const Window& window, Template& t) {
  const GuessPlace place = guess_place();
  const Choice choice = choose(t, place);
  std::uint32_t next = choice.number;
  bool hit = false;
  if (choice.number != 0) {
    hit = coder.bit(models_->next_hit[choice.source][choice.confidence][t.history & 7],
                    !Coder::kDecodes && matches(choice.number, window));
    push_history(t.history, hit);
  }
  if (!hit) next = code_others(coder, window, t, choice.number);
  if (next != 0) learn_branch(templates_[current_ - 1], place, next);
  return next;
}

/// What else may follow when `tried` does not.
template <typename Coder>
std::uint32_t KtModel::code_others(Coder& coder, const Window& window, const Template& t,
                                   std::uint32_t tried) {
  const std::array<std::uint32_t, 3> others{t.successor[0], t.successor[1], t.fall};
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto* const end = others.begin() + i;
    if (others[i] == 0 || others[i] == tried || std::find(others.begin(), end, others[i]) != end) {
      continue;
    }
    const bool hit = coder.bit(models_->next_other[i][static_cast<std::size_t>(t.flow)],
                               !Coder::kDecodes && matches(others[i], window));
    if (hit) return others[i];
  }
  return code_escape(coder, window);
}

template <typename Coder>
std::uint32_t KtModel::code_escape(Coder& coder, const Window& window) {
  bool is_other = false;
  std::uint32_t eip = 0;
  if constexpr (!Coder::kDecodes) {
    is_other = window.bytes[4] >= 0x40;
    eip = word_at(window.bytes, 0);
  }
  if (coder.bit(models_->other_record, is_other)) return 0;
  return code_template(coder, window, code_eip(coder, eip));
}

template <typename Coder>
std::uint32_t KtModel::code_eip(Coder& coder, std::uint32_t eip) {
  std::uint32_t fall = 0;
  if (current_ != 0) {
    const Template& t = templates_[current_ - 1];
    const auto flow = static_cast<std::size_t>(t.flow);
    fall = t.next_eip;
    if (coder.bit(models_->eip_fall[flow], eip == fall)) return fall;
    if (t.address_count != 0) {
      const bool second = t.effect == KtEffect::call_indirect && t.operands.reg == 2;
      const std::uint32_t target = addresses_[second ? 1 : 0];
      if (coder.bit(models_->eip_target[flow], eip == target)) return target;
    }
  }
  auto& recent = models_->recent_eips;
  const auto* const found = std::find(recent.begin(), recent.end(), eip);
  const auto index = static_cast<std::uint32_t>(found - recent.begin());
  if (coder.bit(models_->eip_recent, !Coder::kDecodes && found != recent.end())) {
    return recent[models_->eip_which.code(coder, index)];
  }
  const std::uint32_t result = code_far(coder, fall, KtAddressRule::kKinds, eip);
  recent[models_->recent_at++ % recent.size()] = result;
  return result;
}

template <typename Coder>
std::uint32_t KtModel::code_template(Coder& coder, const Window& window, std::uint32_t eip) {
  std::uint32_t number = by_eip_.find(eip);
  for (int i = 0; i < kMaxSameEip && number != 0; ++i) {
    if (coder.bit(models_->same_eip, !Coder::kDecodes && matches(number, window))) return number;
    number = templates_[number - 1].same_eip;
  }
  KtInstruction i;
  if constexpr (!Coder::kDecodes) i = instruction_at(window.bytes);
  i.eip = eip;
  const std::uint32_t type =
      models_->type.code(coder, std::uint32_t{i.address_count} << 4 | i.size);
  i.size = type & 15;
  i.address_count = static_cast<std::uint8_t>(type >> 4);
  if (i.size == 0 || i.address_count > kKtMaxAddresses || templates_.size() >= kMaxTemplates) {
    fail_damaged();
  }
  std::uint32_t before = i.size;
  for (std::size_t at = 0; at < i.size; ++at) {
    const std::size_t context = std::min<std::size_t>(at, 2) * 256 + before;
    before = models_->code[context].code(coder, i.code[at]);
    i.code[at] = static_cast<std::uint8_t>(before);
  }
  const KtOperands operands = kt_operands(eip, i.bytes());
  bool target_is_static = operands.has_target && i.address_count != 0;
  if (target_is_static) {
    bool agrees = false;
    if constexpr (!Coder::kDecodes) {
      agrees = word_at(window.bytes, kt_fixed_bytes(i.size)) == operands.target;
    }
    target_is_static = coder.bit(models_->static_target, agrees);
  }
  return add_template(i, target_is_static);
}

KtModel::GuessPlace KtModel::guess_place() const {
  const std::uint64_t key = std::uint64_t{current_} << 32;
  GuessPlace place;
  place.far = kt_hash(key ^ (path_ & 0xffff) * 0x10001);
  place.near = kt_hash(key ^ (path_ & 7));
  place.tag = static_cast<std::uint16_t>(kt_hash((key ^ path_) * 3));
  return place;
}

KtModel::Choice KtModel::choose(const Template& t, const GuessPlace& place) const {
  if (t.effect == KtEffect::iret) {
    const std::uint32_t guess = interrupted_[interrupted_top_ % interrupted_.size()];
    if (guess != 0) return {guess, kInterrupted, 0};
  } else if (t.flow == KtFlow::ret) {
    const std::uint32_t call = calls_[call_top_ % calls_.size()];
    const std::uint32_t guess = call == 0 ? 0 : templates_[call - 1].fall;
    if (guess != 0) return {guess, kReturn, 0};
  }
  const Guess& far = far_[place.far];
  if (far.tag == place.tag && far.number != 0) return {far.number, kFar, far.confidence};
  const Guess& near = near_[place.near];
  if (near.number != 0) return {near.number, kNear, near.confidence};
  return {t.successor[0], kSuccessor, 0};
}

void KtModel::learn_plain_next(Template& t, std::uint32_t next) {
  const bool falls = templates_[next - 1].eip == t.next_eip;
  if (falls) t.fall = next;
  if (t.effect == KtEffect::call) calls_[++call_top_ % calls_.size()] = current_;
  // An interrupt must not displace what follows otherwise.
  const bool regular = falls || t.operands.has_target || t.successor[0] == 0;
  if (t.successor[0] == next) return;
  if (regular) t.successor[1] = std::exchange(t.successor[0], next);
  if (!regular) t.successor[1] = next;
}

void KtModel::learn_return(const Template& t, std::uint32_t next) {
  if (t.effect == KtEffect::iret) {
    --interrupted_top_;
  } else if (t.effect == KtEffect::ret) {
    const std::uint32_t call = calls_[call_top_-- % calls_.size()];
    if (call == 0) return;
    Template& caller = templates_[call - 1];
    if (templates_[next - 1].eip == caller.next_eip) caller.fall = next;
  }
}

void KtModel::learn_branch(Template& t, const GuessPlace& place, std::uint32_t next) {
  const bool falls = templates_[next - 1].eip == t.next_eip;
  if (falls) t.fall = next;
  if (t.effect == KtEffect::call_indirect) calls_[++call_top_ % calls_.size()] = current_;
  if (t.flow == KtFlow::ret) learn_return(t, next);
  if (t.successor[0] != next) t.successor[1] = std::exchange(t.successor[0], next);
  const auto learn = [next](Guess& guess) {
    if (guess.number == next) {
      if (guess.confidence < kMaxConfidence) ++guess.confidence;
    } else if (guess.confidence > 1) {
      guess.confidence = static_cast<std::uint8_t>(guess.confidence / 2);
    } else {
      guess.number = next;
      guess.confidence = 0;
    }
  };
  Guess& far = far_[place.far];
  if (far.tag == place.tag) {
    learn(far);
  } else if (far.confidence == 0) {
    far = {next, place.tag, 0};
  } else {
    --far.confidence;
  }
  learn(near_[place.near]);
  if (t.flow == KtFlow::branch) path_ = path_ << 1 | (falls ? 0 : 1);
  if (t.flow == KtFlow::indirect) path_ = path_ << 3 ^ (next & 7);
}

// ---- Addresses
// -----------------------------------------------------------------------------------

template <typename Coder>
void KtModel::code_addresses(Coder& coder, const Window& window, Template& t) {
  for (std::size_t slot = 0; slot < t.address_count; ++slot) {
    if (slot == 0 && t.target_is_static) {
      addresses_[0] = t.operands.target;
      continue;
    }
    std::uint32_t address = 0;
    if constexpr (!Coder::kDecodes) address = word_at(window.bytes, t.fixed_bytes + 4 * slot);
    addresses_[slot] = code_address(coder, t, slot, address);
    registers_.learn_address(t.rule[slot], addresses_[slot]);
  }
}

template <typename Coder>
std::uint32_t KtModel::code_address(Coder& coder, Template& t, std::size_t slot,
                                    std::uint32_t address) {
  Predictor& p = t.address[slot];
  const std::size_t kind = t.rule[slot].kind;
  const std::uint32_t by_model = registers_.expected_address(t.rule[slot]);
  const std::uint32_t by_stride = p.last + p.stride;
  std::uint32_t& follower = followers_[follower_slot(current_, slot, p.last)];
  const bool model_first = p.model_score >= p.stride_score;
  const std::uint32_t first = model_first ? by_model : by_stride;
  const std::uint32_t second = model_first ? by_stride : by_model;
  const std::size_t which = model_first ? 1 : 0;
  const bool hit = coder.bit(models_->first[kind][which][p.history & 63], address == first);
  std::uint32_t result = first;
  if (!hit) {
    if (second != first &&
        coder.bit(models_->second[kind][which][p.history & 7], address == second)) {
      result = second;
    } else if (follower != first && follower != second &&
               coder.bit(models_->third[kind][p.history & 7], address == follower)) {
      result = follower;
    } else {
      const bool is_data = kind == KtAddressRule::memory || kind == KtAddressRule::stack;
      result = code_far(coder, is_data ? p.last : first, static_cast<unsigned>(kind), address);
    }
  }
  push_history(p.history, hit);
  learn_score(p.model_score, by_model == result);
  learn_score(p.stride_score, by_stride == result);
  p.stride = result - p.last;
  p.last = result;
  follower = result;
  return result;
}

template <typename Coder>
std::uint32_t KtModel::code_far(Coder& coder, std::uint32_t base, unsigned kind,
                                std::uint32_t value) {
  const std::uint32_t folded = zigzag32(value - base);
  const std::uint32_t size =
      models_->far_size[kind].code(coder, static_cast<std::uint32_t>(std::bit_width(folded)));
  if (size > 32) fail_damaged();
  if (size == 0) return base;
  std::uint32_t result = 1;
  for (std::uint32_t i = size - 1; i-- > 0;) {
    const bool value_bit = (folded >> i & 1) != 0;
    const std::uint32_t from_top = size - 2 - i;
    bool coded = false;
    if (from_top < 3) {
      coded = coder.bit(models_->far_top[kind][size][result & 7], value_bit);
    } else if (i < 4) {
      coded = coder.bit(models_->far_low[kind][size][i], value_bit);
    } else {
      coded = coder.even_bit(value_bit);
    }
    result = result << 1 | (coded ? 1 : 0);
  }
  return base + unzigzag32(result);
}

// ---- Records
// -------------------------------------------------------------------------------------

template <typename Coder>
std::uint32_t KtModel::code_word(Coder& coder, unsigned kind, std::uint32_t value) {
  std::uint32_t& last = models_->last_word[kind];
  const std::uint32_t change = zigzag32(value - last);
  std::uint32_t result = 0;
  for (unsigned byte = 4; byte-- > 0;) {
    result = result << 8 | models_->word[kind * 4 + byte].code(coder, change >> (8 * byte) & 0xff);
  }
  last += unzigzag32(result);
  return last;
}

template <typename Coder>
KtRecord KtModel::code_other_record(Coder& coder, const Window& window) {
  KtRecord record;
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  if constexpr (!Coder::kDecodes) {
    first = word_at(window.bytes, 0);
    second = word_at(window.bytes, 4);
    const bool known = second == kKtProcess || (second & 0xfff) == kKtTranslation;
    if (!known) fail_not_kt("a reserved type or padding that is not zero");
  }
  if (coder.bit(models_->other_kind, (second & 0xff) == kKtProcess)) {
    record.kind = KtRecord::Kind::process;
    record.pid = code_word(coder, 0, first);
  } else {
    record.kind = KtRecord::Kind::translation;
    record.frame = code_word(coder, 1, first);
    record.page = code_word(coder, 2, second >> 12) << 12;
  }
  return record;
}

std::size_t KtModel::encode(RangeEncoder& coder, std::span<const std::uint8_t> record) {
  Window window;
  window.bytes = record;
  std::memcpy(window.words.data(), record.first(sizeof window.words).data(), sizeof window.words);
  const std::uint32_t next = code_instruction(coder, window);
  if (next == 0) {
    code_other_record(coder, window);
    return 8;
  }
  current_ = next;
  Template& t = templates_[next - 1];
  code_addresses(coder, window, t);
  registers_.apply(t.operands, addresses_[0]);
  return t.fixed_bytes + std::size_t{4} * t.address_count;
}

std::size_t KtModel::decode(RangeDecoder& coder, std::span<std::uint8_t> record) {
  const Window none;
  const std::uint32_t next = code_instruction(coder, none);
  if (next == 0) {
    const KtRecord other = code_other_record(coder, none);
    const bool is_process = other.kind == KtRecord::Kind::process;
    const std::array<std::uint32_t, 2> words{is_process ? other.pid : other.frame,
                                             is_process ? kKtProcess : other.page | kKtTranslation};
    std::memcpy(record.first(8).data(), words.data(), 8);
    return 8;
  }
  current_ = next;
  Template& t = templates_[next - 1];
  code_addresses(coder, none, t);
  registers_.apply(t.operands, addresses_[0]);
  std::memcpy(record.first(sizeof t.fixed).data(), t.fixed.data(), sizeof t.fixed);
  std::memcpy(record.subspan(t.fixed_bytes, sizeof addresses_).data(), addresses_.data(),
              sizeof addresses_);
  return t.fixed_bytes + std::size_t{4} * t.address_count;
}

}  // namespace citcat
