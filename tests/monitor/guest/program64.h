#pragma once
// Instructions of long mode, and those that take a machine of 64 bits to show.

#include "machine.h"
#include "writer.h"

void put_system_call(struct writer* w);
void put_base(struct writer* w);
void put_aligned_operand(struct writer* w);
void put_simd(struct writer* w);
// MOV RAX, address; INVLPG [RAX].
void put_invalidation(struct writer* w, word linear);
