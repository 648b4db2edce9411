#pragma once
// What an opcode does, by its mnemonic: one value for all encodings of an operation.

#include <cstdint>

namespace citcat {

/// Mnemonics of the Intel SDM vol. 2, in small letters; `_` behind those that are words of C++.
/// Far branches are `_far`, MOV of any kind is `mov`, the strings are without their width.
// clang-format off
enum class Operation : std::uint16_t {
  aaa, aad, aam, aas, adc, adcx, add, add4s, addpd, addps, addsd, addss, addsubpd, addsubps, adox,
  aesdec, aesdeclast, aesenc, aesenclast, aesimc, aeskeygenassist, and_, andn, andnpd, andnps, andpd,
  andps, arpl, bextr, blendpd, blendps, blendvpd, blendvps, blsi, blsmsk, blsr, bound, brkem, bsf, bsr, bswap, bt, btc, btr, bts, bzhi,
  call, call_far, cbw, clac, clc, cld, clflush, cli, clr1, clts, cmc, cmova, cmovae, cmovb, cmovbe, cmove,
  cmovg, cmovge, cmovl, cmovle, cmovne, cmovno, cmovnp, cmovns, cmovo, cmovp, cmovs, cmp, cmp4s, cmppd,
  cmpps, cmps, cmpsd, cmpss, cmpxchg, cmpxchg8b, comisd, comiss, cpuid, crc32, cvtdq2pd,
  cvtdq2ps, cvtpd2dq, cvtpd2pi, cvtpd2ps, cvtpi2pd, cvtpi2ps, cvtps2dq, cvtps2pd, cvtps2pi,
  cvtsd2si, cvtsd2ss, cvtsi2sd, cvtsi2ss, cvtss2sd, cvtss2si, cvttpd2dq, cvttpd2pi, cvttps2dq,
  cvttps2pi, cvttsd2si, cvttss2si, cwd, daa, das, dec, div, divpd, divps, divsd, divss, dppd,
  dpps, emms, enter, esc, ext_bits, extractps, f2xm1, fabs, fadd, faddp, fbld, fbstp, fchs, fcmovb, fcmovbe,
  fcmove, fcmovnb, fcmovnbe, fcmovne, fcmovnu, fcmovu, fcom, fcomi, fcomip, fcomp, fcompp, fcos,
  fdecstp, fdisi, fdiv, fdivp, fdivr, fdivrp, feni, ffree, ffreep, fiadd, ficom, ficomp, fidiv,
  fidivr, fild, fimul, fincstp, fist, fistp, fisttp, fisub, fisubr, fld, fld1, fldcw, fldenv,
  fldl2e, fldl2t, fldlg2, fldln2, fldpi, fldz, fmul, fmulp, fnclex, fninit, fnop, fnsave, fnstcw,
  fnstenv, fnstsw, fpatan, fprem, fprem1, fptan, frndint, frstor, fscale, fsetpm, fsin, fsincos,
  fsqrt, fst, fstp, fstpnce, fsub, fsubp, fsubr, fsubrp, ftst, fucom, fucomi, fucomip, fucomp,
  fucompp, fwait, fxam, fxch, fxrstor, fxsave, fxtract, fyl2x, fyl2xp1, haddpd, haddps, hlt,
  hsubpd, hsubps, icebp, idiv, imul, in, inc, ins, ins_bits, insertps, int3, int_, into, invd, invlpg, invpcid,
  iret, ja, jae, jb, jbe, jcxz, je, jg, jge, jl, jle, jmp, jmp_far, jne, jno, jnp, jns, jo, jp,
  js, lahf, lar, lddqu, ldmxcsr, lds, lea, leave, les, lfence, lfs, lgdt, lgs, lidt, lldt, lmsw,
  loadall, lods, loop, loope, loopne, lsl, lss, ltr, lzcnt, maskmovdqu, maskmovq, maxpd, maxps, maxsd,
  maxss, mfence, minpd, minps, minsd, minss, monitor, mov, movapd, movaps, movbe, movd, movddup,
  movdq2q, movdqa, movdqu, movhlps, movhpd, movhps, movlhps, movlpd, movlps, movmskpd, movmskps,
  movntdq, movntdqa, movnti, movntpd, movntps, movntq, movq, movq2dq, movs, movsd, movshdup,
  movsldup, movss, movsx, movsxd, movupd, movups, movzx, mpsadbw, mul, mulpd, mulps, mulsd, mulss, mulx, mwait,
  neg, nop, not1, not_, or_, orpd, orps, out, outs, pabsb, pabsd, pabsw, packssdw, packsswb, packusdw,
  packuswb, paddb, paddd, paddq, paddsb, paddsw, paddusb, paddusw, paddw, palignr, pand, pandn,
  pavgb, pavgw, pblendvb, pblendw, pclmulqdq, pcmpeqb, pcmpeqd, pcmpeqq, pcmpeqw, pcmpestri,
  pcmpestrm, pcmpgtb, pcmpgtd, pcmpgtq, pcmpgtw, pcmpistri, pcmpistrm, pdep, pext, pextrb, pextrd, pextrw,
  phaddd, phaddsw, phaddw, phminposuw, phsubd, phsubsw, phsubw, pinsrb, pinsrd, pinsrw,
  pmaddubsw, pmaddwd, pmaxsb, pmaxsd, pmaxsw, pmaxub, pmaxud, pmaxuw, pminsb, pminsd, pminsw,
  pminub, pminud, pminuw, pmovmskb, pmovsxbd, pmovsxbq, pmovsxbw, pmovsxdq, pmovsxwd, pmovsxwq,
  pmovzxbd, pmovzxbq, pmovzxbw, pmovzxdq, pmovzxwd, pmovzxwq, pmuldq, pmulhrsw, pmulhuw, pmulhw,
  pmulld, pmullw, pmuludq, pop, popa, popcnt, popf, por, prefetch, prefetchnta, prefetcht0,
  prefetcht1, prefetcht2, prefetchw, psadbw, pshufb, pshufd, pshufhw, pshuflw, pshufw, psignb,
  psignd, psignw, pslld, pslldq, psllq, psllw, psrad, psraw, psrld, psrldq, psrlq, psrlw, psubb,
  psubd, psubq, psubsb, psubsw, psubusb, psubusw, psubw, ptest, punpckhbw, punpckhdq, punpckhqdq,
  punpckhwd, punpcklbw, punpckldq, punpcklqdq, punpcklwd, push, pusha, pushf, pxor, rcl, rcpps,
  rcpss, rcr, rdfsbase, rdgsbase, rdmsr, rdpid, rdpmc, rdrand, rdseed, rdtsc, rdtscp, ret, ret_far, rol, rol4, ror, ror4, rorx, roundpd, roundps, roundsd, roundss,
  rsm, rsqrtps, rsqrtss, sahf, salc, sar, sarx, sbb, scas, set1, seta, setae, setb, setbe, sete, setg, setge,
  setl, setle, setne, setno, setnp, setns, seto, setp, sets, sfence, sgdt, shl, shld, shlx, shr, shrd, shrx,
  shufpd, shufps, sidt, sldt, smsw, sqrtpd, sqrtps, sqrtsd, sqrtss, stac, stc, std, sti, stmxcsr, stos,
  str, sub, sub4s, subpd, subps, subsd, subss, swapgs, syscall, sysenter, sysexit, sysret, test, test1, tzcnt, ucomisd, ucomiss, unpckhpd,
  unpckhps, unpcklpd, unpcklps, verr, verw, wbinvd, wrfsbase, wrgsbase, wrmsr, xadd, xchg, xgetbv, xlat, xor_, xorpd, xorps,
  xrstor, xsave, xsavec, xsaveopt, xsetbv,
};
// clang-format on

}  // namespace citcat
