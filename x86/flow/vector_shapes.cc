// Intel SDM vol. 2.

#include "x86/flow/vector_shapes.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace citcat::flow {
namespace {

struct Row {
  VectorShape shape;
  std::string_view names;
};

using enum VectorShape::Kind;
constexpr Row kRows[] = {
    {{both, 1, 1},
     "paddb psubb paddsb paddusb psubsb psubusb pavgb pminub pmaxub pminsb pmaxsb "
     "pcmpeqb pcmpgtb psignb"},
    {{both, 2, 2},
     "paddw psubw paddsw paddusw psubsw psubusw pavgw pminsw pmaxsw pminuw pmaxuw "
     "pcmpeqw pcmpgtw pmullw pmulhw pmulhuw pmulhrsw pmaddubsw psignw"},
    {{both, 4, 4},
     "paddd psubd pminsd pmaxsd pminud pmaxud pcmpeqd pcmpgtd pmulld pmaddwd psignd "
     "addps subps mulps divps minps maxps cmpps addsubps"},
    {{both, 8, 8},
     "paddq psubq pcmpeqq pcmpgtq psadbw addpd subpd mulpd divpd minpd maxpd cmppd "
     "addsubpd"},
    {{each, 1, 1}, "pabsb"},
    {{each, 2, 2}, "pabsw"},
    {{each, 4, 4},
     "pabsd sqrtps rsqrtps rcpps cvtdq2ps cvtps2dq cvttps2dq cvtps2pi cvttps2pi "
     "roundps"},
    {{each, 8, 8}, "sqrtpd roundpd"},
    {{each, 8, 4}, "cvtps2pd cvtdq2pd cvtpi2pd pmovsxdq pmovzxdq"},
    {{each, 4, 8}, "cvtpd2ps cvtpd2dq cvttpd2dq cvtpd2pi cvttpd2pi"},
    {{each, 2, 1}, "pmovsxbw pmovzxbw"},
    {{each, 4, 1}, "pmovsxbd pmovzxbd"},
    {{each, 8, 1}, "pmovsxbq pmovzxbq"},
    {{each, 4, 2}, "pmovsxwd pmovzxwd"},
    {{each, 8, 2}, "pmovsxwq pmovzxwq"},
    {{low_both, 4, 4}, "addss subss mulss divss minss maxss cmpss"},
    {{low_both, 8, 8}, "addsd subsd mulsd divsd minsd maxsd cmpsd"},
    {{low, 4, 4}, "sqrtss rsqrtss rcpss roundss"},
    {{low, 8, 8}, "sqrtsd roundsd cvtsi2sd"},
    {{low, 4, 8}, "cvtsd2ss cvtsi2ss"},
    {{low, 8, 4}, "cvtss2sd"},
    {{two_low, 4, 4}, "cvtpi2ps"},
    {{shift, 2, 8}, "psllw psrlw psraw"},
    {{shift, 4, 8}, "pslld psrld psrad"},
    {{shift, 8, 8}, "psllq psrlq"},
    {{low_of_pairs, 8, 8}, "pmuludq pmuldq"},
    {{neighbours, 1, 2}, "packsswb packuswb"},
    {{neighbours, 2, 4}, "packssdw packusdw phaddw phaddsw phsubw phsubsw"},
    {{neighbours, 4, 8}, "phaddd phsubd haddps hsubps"},
    {{neighbours, 8, 16}, "haddpd hsubpd"},
    {{unpack_low, 1, 1}, "punpcklbw"},
    {{unpack_low, 2, 2}, "punpcklwd"},
    {{unpack_low, 4, 4}, "punpckldq unpcklps"},
    {{unpack_low, 8, 8}, "punpcklqdq unpcklpd"},
    {{unpack_high, 1, 1}, "punpckhbw"},
    {{unpack_high, 2, 2}, "punpckhwd"},
    {{unpack_high, 4, 4}, "punpckhdq unpckhps"},
    {{unpack_high, 8, 8}, "punpckhqdq unpckhpd"},
    {{compare, 4, 4}, "comiss ucomiss"},
    {{compare, 8, 8}, "comisd ucomisd"},
    {{to_integer, 8, 4}, "cvtss2si cvttss2si"},
    {{to_integer, 8, 8}, "cvtsd2si cvttsd2si"},
    {{signs, 1, 1}, "pmovmskb"},
    {{signs, 1, 4}, "movmskps"},
    {{signs, 1, 8}, "movmskpd"},
};

std::unordered_map<std::string_view, VectorShape> shapes_by_name() {
  std::unordered_map<std::string_view, VectorShape> shapes;
  for (const Row& row : kRows) {
    for (std::string_view rest = row.names; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      shapes.emplace(rest.substr(0, end), row.shape);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return shapes;
}

}  // namespace

std::optional<VectorShape> vector_shape(ZydisMnemonic mnemonic) {
  static const std::unordered_map<std::string_view, VectorShape> shapes = shapes_by_name();
  const char* const name = ZydisMnemonicGetString(mnemonic);
  const auto found = shapes.find(name != nullptr ? name : "");
  return found == shapes.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace citcat::flow
