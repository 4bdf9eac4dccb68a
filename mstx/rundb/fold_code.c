/* SPDX-License-Identifier: MIT
 *
 * fold_code: writing; fold_parts.c reads.
 */
#include "mstx/rundb/fold_code.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

enum { LEADER = 128, WORD_BITS = 16 };

void mstx__model_write(const struct mstx_model *m, struct ms_buf *out)
{
    mstx_buf_varint(out, m->contexts);
    for (uint32_t i = 0; i < m->contexts; i++) {
        const struct mstx_context *c = &m->context[i];
        unsigned n = 0;
        for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
            n += c->from[s + 1] != c->from[s];
        mstx_buf_varint(out, n);
        for (unsigned s = 0; s < MSTX_SYMBOLS; s++) {
            if (c->from[s + 1] == c->from[s])
                continue;
            ms_buf_putc(out, (char)s);
            mstx_buf_varint(out, (uint64_t)(c->from[s + 1] - c->from[s]));
        }
    }
    mstx_buf_varint(out, m->classes);
    for (uint32_t i = 0; i < m->classes; i++) {
        mstx_buf_varint(out, mstx_zigzag((uint64_t)m->class[i].centre));
        ms_buf_putc(out, (char)(m->class[i].context | (m->class[i].by_leader ? LEADER : 0)));
    }
}

/* ---- writing ------------------------------------------------------------------- */

struct bits {
    struct ms_buf *out;
    uint64_t held;
    unsigned n;
};

static void put_bits(struct bits *b, uint64_t v, unsigned n)
{
    if (n > 32) {
        put_bits(b, v & UINT32_MAX, 32);
        v >>= 32;
        n -= 32;
    }
    b->held |= v << b->n;
    b->n += n;
    for (; b->n >= 8; b->n -= 8, b->held >>= 8)
        ms_buf_putc(b->out, (char)b->held);
}

static bool is_rare(const struct mstx_context *c, unsigned symbol)
{
    return c->from[symbol] == c->from[symbol + 1];
}

/* Writes the words of the symbols, from the last one on; returns their first place. */
static uint32_t code_symbols(uint16_t *word, uint32_t end, const struct mstx_model *m,
                             const int64_t *difference, const uint8_t *context, uint32_t n)
{
    uint64_t x = 1 << WORD_BITS;
    uint32_t at = end;
    for (uint32_t i = n; i-- > 0;) {
        const struct mstx_context *c = &m->context[context[i]];
        unsigned s = mstx_coded_of(difference[i]).symbol;
        s = is_rare(c, s) ? MSTX_SYMBOL_RARE : s;
        const uint32_t f = (uint32_t)(c->from[s + 1] - c->from[s]);
        ms_assert(f != 0 && at >= 1);
        if (x >= (uint64_t)f << (2 * WORD_BITS - MSTX_RANS_BITS)) {
            word[--at] = (uint16_t)x;
            x >>= WORD_BITS;
        }
        x = (x / f << MSTX_RANS_BITS) + x % f + c->from[s];
    }
    word[--at] = (uint16_t)x;
    word[--at] = (uint16_t)(x >> WORD_BITS);
    return at;
}

void mstx__encode(struct ms_buf *out, const struct mstx_model *m, const int64_t *difference,
                  const uint8_t *context, uint32_t n)
{
    enum { WORDS = MSTX_NUMBERS_MAX + 2 };
    uint16_t word[WORDS];
    ms_assert(n <= MSTX_NUMBERS_MAX);
    const uint32_t first = code_symbols(word, WORDS, m, difference, context, n);
    mstx_buf_varint(out, WORDS - first);
    for (uint32_t i = first; i < WORDS; i++) {
        ms_buf_putc(out, (char)word[i]);
        ms_buf_putc(out, (char)(word[i] >> 8));
    }
    struct bits bits = {.out = out};
    for (uint32_t i = 0; i < n; i++) {
        const struct mstx_coded c = mstx_coded_of(difference[i]);
        if (is_rare(&m->context[context[i]], c.symbol))
            put_bits(&bits, mstx_zigzag((uint64_t)difference[i]), 64);
        else if (c.bits != 0)
            put_bits(&bits, c.rest, c.bits);
    }
    put_bits(&bits, 0, (8 - bits.n) % 8);
}
