#pragma once
// The operations on wide vectors, for the files that are written with them. Only those files may
// include this one, because it leaves warnings turned off.

#if defined(__x86_64__)
#include <immintrin.h>
// Values that g++ 12's own header leaves undefined on purpose (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif
