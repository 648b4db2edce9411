#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "formats/kt/kt_form_model.h"

namespace citcat {

namespace {

constexpr std::uint8_t kMaxConfidence = 7;
constexpr std::uint8_t kMaxScore = 15;
constexpr std::uint8_t kStartScore = 8;
/// Instructions of one eip (code that changes, several address spaces) the coder looks through.
constexpr int kMaxSameEip = 8;

/// Masks for comparing the fixed part of a record, by its length in words of four bytes.
constexpr std::uint64_t kLow = 0xffffffff;
constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr std::array<std::array<std::uint64_t, 3>, 7> kFixedMasks{{{0, 0, 0},
                                                                   {kLow, 0, 0},
                                                                   {kAll, 0, 0},
                                                                   {kAll, kLow, 0},
                                                                   {kAll, kAll, 0},
                                                                   {kAll, kAll, kLow},
                                                                   {kAll, kAll, kAll}}};

std::size_t follower_slot(std::uint32_t number, std::size_t slot, std::uint64_t last) {
  return kt_hash((std::uint64_t{number} * 2 + slot) << 32 ^ last);
}

template <class Word>
Word zigzag_word(Word v) {
  return v << 1 ^ (v >> (8 * sizeof(Word) - 1) != 0 ? ~Word{0} : 0);
}
template <class Word>
Word unzigzag_word(Word v) {
  return v >> 1 ^ (~(v & 1) + 1);
}

/// The key of an address in EipTable. Where two share it, what has the other address is passed
/// over.
std::uint32_t table_key(std::uint64_t eip) { return static_cast<std::uint32_t>(eip ^ eip >> 32); }

[[noreturn]] void fail_damaged() { throw DamagedSegment(); }

template <class Word>
Word word_at(const std::uint8_t* bytes, std::size_t at) {
  Word value = 0;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}

[[noreturn]] void fail_not_kt(const char* what) {
  throw FormatError("KT", 0, std::string("expected records as the format has them, found ") + what);
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

template <class Form>
KtFormModel<Form>::KtFormModel()
    : models_(std::make_unique<KtStatistics<Form>>()),
      far_(kKtTableSlots),
      near_(kKtTableSlots),
      followers_(kKtTableSlots) {}

template <class Form>
KtFormModel<Form>::~KtFormModel() = default;

/// The instruction at the beginning of `window`, without its addresses. Padding that is not zero is
/// refused, because a template would not give it back.
template <class Form>
typename KtFormModel<Form>::Code KtFormModel<Form>::code_at(Window window) {
  constexpr std::size_t kHead = sizeof(Word) + 1;
  Code c;
  c.eip = word_at<Word>(window, 0);
  c.type = window[kHead - 1];
  if (c.size() == 0 || Form::addresses(c.type) > kKtMaxAddresses) {
    fail_not_kt("an impossible instruction");
  }
  std::copy_n(window + kHead, c.size(), c.bytes.begin());
  const std::uint8_t* const padding = window + kHead + c.size();
  if (std::any_of(padding, window + Form::fixed_bytes(c.size()),
                  [](std::uint8_t b) { return b != 0; })) {
    fail_not_kt("padding that is not zero");
  }
  return c;
}

template <class Form>
inline bool KtFormModel<Form>::matches(const Template& t, Window window) {
  const auto& mask = kFixedMasks[t.fixed_bytes / 4U];
  const auto differs = [&](std::size_t i) {
    return (word_at<std::uint64_t>(window, 8 * i) ^ t.fixed[i]) & mask[i];
  };
  if ((differs(0) | differs(1) | differs(2)) != 0) return false;
  return !t.target_is_static ||
         word_at<Word>(window, t.fixed_bytes) == static_cast<Word>(t.operands.target);
}

template <class Form>
std::uint32_t KtFormModel<Form>::add_template(const Code& code, bool target_is_static) {
  Template t;
  t.eip = code.eip;
  t.next_eip = static_cast<Word>(code.eip + code.size());
  std::array<std::uint8_t, 24> fixed{};
  std::memcpy(fixed.data(), &code.eip, sizeof(Word));
  fixed[sizeof(Word)] = code.type;
  std::copy_n(code.bytes.begin(), code.size(), fixed.begin() + sizeof(Word) + 1);
  std::memcpy(t.fixed.data(), fixed.data(), sizeof fixed);
  t.fixed_bytes = static_cast<std::uint8_t>(Form::fixed_bytes(code.size()));
  t.address_count = static_cast<std::uint8_t>(Form::addresses(code.type));
  t.target_is_static = target_is_static;
  t.operands = kt_operands(code.eip, code.code(), Form::is_of_64_bit_mode(code.type));
  t.flow = t.operands.flow;
  t.effect = t.operands.effect;
  for (std::size_t slot = 0; slot < t.rule.size(); ++slot) {
    t.rule[slot] = kt_address_rule(t.operands, slot);
    t.address[slot].model_score = t.address[slot].stride_score = kStartScore;
  }
  const auto number = static_cast<std::uint32_t>(templates_.size() + 1);
  t.same_eip = by_eip_.exchange(table_key(t.eip), number);
  templates_.push_back(t);
  full_ = templates_.size() + 1 >= kMaxTemplates;
  return number;
}

// ---- The instruction that comes next
// -------------------------------------------------------------

/// Number + 1 of the next template, or 0 for a record that is no instruction.
template <class Form>
template <typename Coder>
inline std::uint32_t KtFormModel<Form>::code_instruction(Coder& coder, Window window) {
  if (current_ == 0) return code_escape(coder, window);
  Template& t = templates_[current_ - 1];
  return t.flow == KtFlow::next ? code_plain_next(coder, window, t) : code_branch(coder, window, t);
}

template <class Form>
template <typename Coder>
inline std::uint32_t KtFormModel<Form>::code_plain_next(Coder& coder, Window window, Template& t) {
  const std::uint32_t guess = t.successor[0];
  if (guess == 0) return code_first_next(coder, window);
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
  return code_unexpected_next(coder, window, t, guess);
}

/// Nothing is known of what follows.
template <class Form>
template <typename Coder>
[[gnu::noinline]] std::uint32_t KtFormModel<Form>::code_first_next(Coder& coder, Window window) {
  const std::uint32_t next = code_escape(coder, window);
  if (next != 0) learn_plain_next(templates_[current_ - 1], next);
  return next;
}

template <class Form>
template <typename Coder>
[[gnu::noinline]] std::uint32_t KtFormModel<Form>::code_unexpected_next(Coder& coder, Window window,
                                                                        const Template& t,
                                                                        std::uint32_t guess) {
  const std::uint32_t next = code_others(coder, window, t, guess);
  if (next == 0) return 0;
  Template& again = templates_[current_ - 1];  // a new template may have moved the old ones
  learn_plain_next(again, next);
  // Not the one expected: most likely an interrupt, which will return to what was expected.
  interrupted_[++interrupted_top_ % interrupted_.size()] = guess;
  return next;
}

template <class Form>
template <typename Coder>
std::uint32_t KtFormModel<Form>::code_branch(Coder& coder, Window window, Template& t) {
  const GuessPlace place = guess_place();
  const Choice choice = choose(t, place);
  std::uint32_t next = choice.number;
  bool hit = false;
  if (choice.number != 0) {
    hit = coder.bit(models_->next_hit[static_cast<std::size_t>(choice.source)][choice.confidence]
                                     [t.history & 7],
                    !Coder::kDecodes && matches(choice.number, window));
    push_history(t.history, hit);
  }
  if (!hit) next = code_others(coder, window, t, choice.number);
  if (next != 0) learn_branch(templates_[current_ - 1], place, next);
  return next;
}

/// What else may follow when `tried` does not.
template <class Form>
template <typename Coder>
std::uint32_t KtFormModel<Form>::code_others(Coder& coder, Window window, const Template& t,
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

template <class Form>
template <typename Coder>
std::uint32_t KtFormModel<Form>::code_escape(Coder& coder, Window window) {
  bool is_other = false;
  Word eip = 0;
  if constexpr (!Coder::kDecodes) {
    is_other = !Form::is_instruction(window[sizeof(Word)]);
    eip = word_at<Word>(window, 0);
  }
  if (coder.bit(models_->other_record, is_other)) return 0;
  return code_template(coder, window, code_eip(coder, eip));
}

template <class Form>
template <typename Coder>
typename KtFormModel<Form>::Word KtFormModel<Form>::code_eip(Coder& coder, Word eip) {
  Word fall = 0;
  if (current_ != 0) {
    const Template& t = templates_[current_ - 1];
    const auto flow = static_cast<std::size_t>(t.flow);
    fall = t.next_eip;
    if (coder.bit(models_->eip_fall[flow], eip == fall)) return fall;
    if (t.address_count != 0) {
      const bool second = t.effect == KtEffect::call_indirect && t.operands.reg == 2;
      const Word target = addresses_[second ? 1 : 0];
      if (coder.bit(models_->eip_target[flow], eip == target)) return target;
    }
  }
  auto& recent = models_->recent_eips;
  const auto* const found = std::find(recent.begin(), recent.end(), eip);
  const auto index = static_cast<std::uint32_t>(found - recent.begin());
  if (coder.bit(models_->eip_recent, !Coder::kDecodes && found != recent.end())) {
    return recent[models_->eip_which.code(coder, index)];
  }
  const Word result = code_far(coder, fall, KtAddressRule::kKinds, eip);
  recent[models_->recent_at++ % recent.size()] = result;
  return result;
}

template <class Form>
template <typename Coder>
std::uint32_t KtFormModel<Form>::code_template(Coder& coder, Window window, Word eip) {
  std::uint32_t number = by_eip_.find(table_key(eip));
  for (int i = 0; i < kMaxSameEip && number != 0; ++i) {
    if (coder.bit(models_->same_eip, !Coder::kDecodes && matches(number, window))) return number;
    number = templates_[number - 1].same_eip;
  }
  Code made;
  if constexpr (!Coder::kDecodes) made = code_at(window);
  made.eip = eip;
  made.type = static_cast<std::uint8_t>(models_->type.code(coder, made.type));
  if (made.size() == 0 || !Form::is_instruction(made.type) ||
      Form::addresses(made.type) > kKtMaxAddresses || templates_.size() >= kMaxTemplates) {
    fail_damaged();
  }
  auto before = static_cast<std::uint32_t>(made.size());
  for (std::size_t at = 0; at < made.size(); ++at) {
    const std::size_t context = std::min<std::size_t>(at, 2) * 256 + before;
    before = models_->code[context].code(coder, made.bytes[at]);
    made.bytes[at] = static_cast<std::uint8_t>(before);
  }
  const KtOperands operands = kt_operands(eip, made.code(), Form::is_of_64_bit_mode(made.type));
  bool target_is_static = operands.has_target && Form::addresses(made.type) != 0;
  if (target_is_static) {
    bool agrees = false;
    if constexpr (!Coder::kDecodes) {
      agrees = word_at<Word>(window, Form::fixed_bytes(made.size())) == operands.target;
    }
    target_is_static = coder.bit(models_->static_target, agrees);
  }
  return add_template(made, target_is_static);
}

template <class Form>
typename KtFormModel<Form>::GuessPlace KtFormModel<Form>::guess_place() const {
  const std::uint64_t key = std::uint64_t{current_} << 32;
  GuessPlace place;
  place.far = kt_hash(key ^ (path_ & 0xffff) * 0x10001);
  place.near = kt_hash(key ^ (path_ & 7));
  place.tag = static_cast<std::uint16_t>(kt_hash((key ^ path_) * 3));
  return place;
}

template <class Form>
typename KtFormModel<Form>::Choice KtFormModel<Form>::choose(const Template& t,
                                                             const GuessPlace& place) const {
  if (t.effect == KtEffect::iret) {
    const std::uint32_t guess = interrupted_[interrupted_top_ % interrupted_.size()];
    if (guess != 0) return {guess, KtSource::interrupted, 0};
  } else if (t.flow == KtFlow::ret) {
    const std::uint32_t call = calls_[call_top_ % calls_.size()];
    const std::uint32_t guess = call == 0 ? 0 : templates_[call - 1].fall;
    if (guess != 0) return {guess, KtSource::call, 0};
  }
  const Guess& far = far_[place.far];
  if (far.tag == place.tag && far.number != 0)
    return {far.number, KtSource::far_path, far.confidence};
  const Guess& near = near_[place.near];
  if (near.number != 0) return {near.number, KtSource::near_path, near.confidence};
  return {t.successor[0], KtSource::successor, 0};
}

template <class Form>
void KtFormModel<Form>::learn_plain_next(Template& t, std::uint32_t next) {
  const bool falls = templates_[next - 1].eip == t.next_eip;
  if (falls) t.fall = next;
  if (t.effect == KtEffect::call) calls_[++call_top_ % calls_.size()] = current_;
  // An interrupt must not displace what follows otherwise.
  const bool regular = falls || t.operands.has_target || t.successor[0] == 0;
  if (t.successor[0] == next) return;
  if (regular) t.successor[1] = std::exchange(t.successor[0], next);
  if (!regular) t.successor[1] = next;
}

template <class Form>
void KtFormModel<Form>::learn_return(const Template& t, std::uint32_t next) {
  if (t.effect == KtEffect::iret) {
    --interrupted_top_;
  } else if (t.effect == KtEffect::ret) {
    const std::uint32_t call = calls_[call_top_-- % calls_.size()];
    if (call == 0) return;
    Template& caller = templates_[call - 1];
    if (templates_[next - 1].eip == caller.next_eip) caller.fall = next;
  }
}

template <class Form>
void KtFormModel<Form>::learn_branch(Template& t, const GuessPlace& place, std::uint32_t next) {
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

template <class Form>
template <typename Coder>
inline void KtFormModel<Form>::code_addresses(Coder& coder, Window window, Template& t) {
  for (std::size_t slot = 0; slot < t.address_count; ++slot) {
    if (slot == 0 && t.target_is_static) {
      addresses_[0] = static_cast<Word>(t.operands.target);
      continue;
    }
    Word address = 0;
    if constexpr (!Coder::kDecodes) {
      address = word_at<Word>(window, t.fixed_bytes + sizeof(Word) * slot);
    }
    addresses_[slot] = code_address(coder, t, slot, address);
    registers_.learn_address(t.rule[slot], addresses_[slot]);
  }
}

/// Not the first of the `guesses`, of which `which` says what the second is.
template <class Form>
template <typename Coder>
[[gnu::noinline]] typename KtFormModel<Form>::Word KtFormModel<Form>::code_unexpected_address(
    Coder& coder, const Predictor& p, const std::array<Word, 3>& guesses, std::size_t kind,
    std::size_t which, Word address) {
  const auto [first, second, follower] = guesses;
  if (second != first &&
      coder.bit(models_->second[kind][which][p.history & 7], address == second)) {
    return second;
  }
  if (follower != first && follower != second &&
      coder.bit(models_->third[kind][p.history & 7], address == follower)) {
    return follower;
  }
  const bool is_data = kind == KtAddressRule::memory || kind == KtAddressRule::stack;
  return code_far(coder, is_data ? p.last : first, static_cast<unsigned>(kind), address);
}

template <class Form>
template <typename Coder>
inline typename KtFormModel<Form>::Word KtFormModel<Form>::code_address(Coder& coder, Template& t,
                                                                        std::size_t slot,
                                                                        Word address) {
  Predictor& p = t.address[slot];
  const std::size_t kind = t.rule[slot].kind;
  const Word by_model = registers_.expected_address(t.rule[slot]);
  const Word by_stride = p.last + p.stride;
  Word& follower = followers_[follower_slot(current_, slot, p.last)];
  const bool model_first = p.model_score >= p.stride_score;
  const Word first = model_first ? by_model : by_stride;
  const Word second = model_first ? by_stride : by_model;
  const std::size_t which = model_first ? 1 : 0;
  const bool hit = coder.bit(models_->first[kind][which][p.history & 63], address == first);
  const Word result =
      hit ? first
          : code_unexpected_address(coder, p, {first, second, follower}, kind, which, address);
  push_history(p.history, hit);
  learn_score(p.model_score, by_model == result);
  learn_score(p.stride_score, by_stride == result);
  p.stride = result - p.last;
  p.last = result;
  follower = result;
  return result;
}

template <class Form>
template <typename Coder>
typename KtFormModel<Form>::Word KtFormModel<Form>::code_far(Coder& coder, Word base, unsigned kind,
                                                             Word value) {
  const Word folded = zigzag_word<Word>(value - base);
  const std::uint32_t size =
      models_->far_size[kind].code(coder, static_cast<std::uint32_t>(std::bit_width(folded)));
  if (size > 8 * sizeof(Word)) fail_damaged();
  if (size == 0) return base;
  Word result = 1;
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
  return base + unzigzag_word<Word>(result);
}

// ---- Records
// -------------------------------------------------------------------------------------

template <class Form>
template <typename Coder>
typename KtFormModel<Form>::Word KtFormModel<Form>::code_word(Coder& coder, unsigned kind,
                                                              Word value) {
  Word& last = models_->last_word[kind];
  const Word change = zigzag_word<Word>(value - last);
  Word result = 0;
  for (unsigned byte = sizeof(Word); byte-- > 0;) {
    const auto given = static_cast<std::uint32_t>(change >> (8 * byte) & 0xff);
    result = result << 8 | models_->word[kind * sizeof(Word) + byte].code(coder, given);
  }
  last += unzigzag_word<Word>(result);
  return last;
}

template <class Form>
template <typename Coder>
typename KtFormModel<Form>::OtherRecord KtFormModel<Form>::code_other_record(Coder& coder,
                                                                             Window window) {
  constexpr Word kInPage = 0xfff;
  OtherRecord record, given;
  if constexpr (!Coder::kDecodes) {
    const Word type = word_at<Word>(window, sizeof(Word));
    given.first = word_at<Word>(window, 0);
    given.process = type == kKtProcess;
    bool known = given.process || (type & kInPage) == kKtTranslation;
    if (Form::kNarrow) {
      given.page = type & ~kInPage;
    } else if (!given.process) {
      given.page = word_at<Word>(window, 2 * sizeof(Word));
      known = type == kKtTranslation && (given.page & kInPage) == 0;
    }
    if (!known) fail_not_kt("a reserved type or padding that is not zero");
  }
  record.process = coder.bit(models_->other_kind, given.process);
  record.first = code_word(coder, record.process ? 0 : 1, given.first);
  if (!record.process) record.page = code_word(coder, 2, given.page >> 12) << 12;
  return record;
}

/// Returns its bytes.
template <class Form>
inline std::size_t KtFormModel<Form>::encode_record(RangeEncoder& coder, Window window) {
  const std::uint32_t next = code_instruction(coder, window);
  if (next == 0) return Form::bytes_of_other(code_other_record(coder, window).process);
  current_ = next;
  Template& t = templates_[next - 1];
  code_addresses(coder, window, t);
  registers_.apply(t.operands, addresses_[0]);
  return t.fixed_bytes + sizeof(Word) * t.address_count;
}

template <class Form>
KtModel::Coded KtFormModel<Form>::encode(RangeEncoder& coder, std::span<const std::uint8_t> records,
                                         std::size_t size, std::uint64_t most) {
  Coded done;
  // Nothing that is read of a record that begins there lies after the end.
  const Window begin = records.first(size + kSlack).data();
  while (done.bytes < size && done.instructions < most && !full_) {
    const Window window = begin + done.bytes;
    if (Form::is_instruction(window[sizeof(Word)])) ++done.instructions;
    done.bytes += encode_record(coder, window);
    ++done.records;
  }
  return done;
}

template <class Form>
inline std::size_t KtFormModel<Form>::decode_record(RangeDecoder& coder, std::uint8_t* record) {
  const std::uint32_t next = code_instruction(coder, nullptr);
  if (next == 0) {
    const OtherRecord other = code_other_record(coder, nullptr);
    const Word type = other.process ? kKtProcess : kKtTranslation;
    const std::array<Word, 3> words{other.first, Form::kNarrow ? type | other.page : type,
                                    other.page};
    const std::size_t bytes = Form::bytes_of_other(other.process);
    std::memcpy(record, words.data(), bytes);
    return bytes;
  }
  current_ = next;
  Template& t = templates_[next - 1];
  code_addresses(coder, nullptr, t);
  registers_.apply(t.operands, addresses_[0]);
  std::memcpy(record, t.fixed.data(), sizeof t.fixed);
  std::memcpy(record + t.fixed_bytes, addresses_.data(), sizeof addresses_);
  return t.fixed_bytes + sizeof(Word) * t.address_count;
}

template <class Form>
void KtFormModel<Form>::decode(RangeDecoder& coder, std::span<std::uint8_t> room, std::size_t size,
                               std::uint64_t most, Coded& done) {
  std::uint8_t* const begin = room.first(size + kSlack).data();
  while (done.bytes < size && done.records < most) {
    done.bytes += decode_record(coder, begin + done.bytes);
    ++done.records;
  }
}

std::unique_ptr<KtModel> KtModel::make(KtForm form) {
  if (form == KtForm::wide) return std::make_unique<KtFormModel<KtWideRecords>>();
  return std::make_unique<KtFormModel<KtNarrowRecords>>();
}

}  // namespace citcat
