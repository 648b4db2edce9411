// Executes SSE instructions for their handlers, on the engine's registers.

#include <cstring>

#include "replay/machine/fast/handlers_vectors.h"

namespace citcat::fast {

namespace {

using Part = VectorForm::Part;

/// Before the first change of what may have to be taken back.
void keep_vectors(State* s) {
  for (std::size_t i = 0; i < s->kept_vectors.size(); ++i) {
    std::memcpy(s->kept_vectors[i].data(), s->vectors + State::kVectorStep * i, 16);
  }
  s->kept_mxcsr = *s->mxcsr;
  s->keeps_vectors = false;
  s->vectors_kept = true;
}

}  // namespace

bool make_vector(const VectorForm& form, const Op* op, State* s, void* memory) {
  if (s->vectors == nullptr) return false;
  VectorOperands operands;
  const bool swapped = form.reg_is_second;
  std::uint8_t* const of_reg = swapped ? operands.second.data() : operands.first.data();
  std::uint8_t* const of_rm = swapped ? operands.first.data() : operands.second.data();
  std::uint8_t* const reg = s->vectors + State::kVectorStep * op->a;
  std::uint8_t* const rm = s->vectors + State::kVectorStep * op->b;
  if (form.reg == Part::vector) std::memcpy(of_reg, reg, 16);
  if (form.rm == Part::vector) std::memcpy(of_rm, rm, 16);
  const std::uint8_t gpr = form.reg == Part::gpr ? op->a : op->b;
  if (form.rm == Part::gpr) operands.gpr = get<std::uint64_t>(s, gpr);
  if (s->keeps_vectors) [[unlikely]]
    keep_vectors(s);
  if (!run_vector(form, memory, operands, *s->mxcsr)) return false;
  if (form.writes_vector) std::memcpy(swapped ? rm : reg, operands.first.data(), 16);
  if (form.writes_gpr) put(s, gpr, operands.gpr);
  if (form.writes_flags) s->flags = LazyFlags::from(static_cast<std::uint32_t>(operands.flags));
  return true;
}

}  // namespace citcat::fast
