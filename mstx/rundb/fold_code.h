/* SPDX-License-Identifier: MIT
 *
 * fold_code: numbers that are nearly known, as an entropy code.
 *
 * A number is coded as its difference from a prediction.  The zigzag code of the difference is cut
 * into a symbol, which says how large it is, and bits that follow no rule:
 *
 *     0 to 3              symbol 0 to 3, no bits
 *     2^e to 2^(e+1)-1    symbol 2e or 2e + 1 by its second highest bit, and e - 1 bits, e >= 2
 *     rare                symbol MSTX_SYMBOL_RARE and 64 bits
 *
 * Symbols are coded by rANS, with the frequencies of the context that the model gives the class of
 * the number; a model also holds what to add to the prediction of each class.
 *
 *     model   varint contexts
 *             for each: varint symbols; for each: u8 symbol, varint frequency; they sum to 4096
 *             varint classes
 *             for each: zigzag centre, u8 context, + 128: predicted by the leader
 *     code    varint words, u16 words, bits from the lowest of each byte on
 *
 * The state of rANS has 32 bits and begins as the first two words, the high one first; it is kept at
 * 2^16 or more by shifting a word in.  It ends as 2^16.
 */
#ifndef MSTX_RUNDB_FOLD_CODE_H
#define MSTX_RUNDB_FOLD_CODE_H

#include "mstx/rundb/varint.h"

#include "probe/base/str.h"

enum {
    MSTX_SYMBOLS = 129,
    MSTX_SYMBOL_RARE = 128,
    MSTX_RANS_BITS = 12,
    MSTX_RANS_SUM = 1 << MSTX_RANS_BITS,
    MSTX_CONTEXTS = 16,
    MSTX_CLASSES = 8192,
    MSTX_NUMBERS_MAX = 8192, /* in one code */
};

struct mstx_context {
    uint16_t from[MSTX_SYMBOLS + 1]; /* of a symbol: the sum of the frequencies before it */
    uint8_t at[MSTX_RANS_SUM];       /* symbol by place in the sum */
};

struct mstx_class {
    int64_t centre;
    uint8_t context;
    bool by_leader;
};

struct mstx_model {
    uint32_t contexts, classes;
    struct mstx_context *context;
    struct mstx_class *class;
};

/* Reads a model, which may be untrusted; mstx__model_free in any case. */
enum ms_rc mstx__model_read(struct mstx_model *m, struct ms_str text,
                            struct ms_err *err) MS_MUST_USE;
void mstx__model_free(struct mstx_model *m);
void mstx__model_write(const struct mstx_model *m, struct ms_buf *out);
/* Sets what is derived from the frequencies of a context: at. */
void mstx__context_fill(struct mstx_context *c);

/* ---- symbols ----------------------------------------------------------------- */

struct mstx_coded {
    uint8_t symbol, bits;
    uint64_t rest;
};

static inline struct mstx_coded mstx_coded_of(int64_t difference)
{
    const uint64_t u = mstx_zigzag((uint64_t)difference);
    if (u < 4)
        return (struct mstx_coded){(uint8_t)u, 0, 0};
    const unsigned e = 63 - (unsigned)__builtin_clzll(u);
    return (struct mstx_coded){(uint8_t)(2 * e + (u >> (e - 1) & 1)), (uint8_t)(e - 1),
                               u & (((uint64_t)1 << (e - 1)) - 1)};
}

/* ---- reading ------------------------------------------------------------------ */

struct mstx_decoder {
    uint64_t x; /* state */
    const uint8_t *word, *words_end;
    const uint8_t *bits, *end;
    uint64_t held;
    unsigned n; /* bits in held */
    bool bad;
};

/* Begins to read a code at the front of b, which it takes to its end. */
void mstx__decoder_begin(struct mstx_decoder *d, struct mstx_bytes *b);
/* Tells whether all of a code was read and fits. */
bool mstx__decoder_ended(const struct mstx_decoder *d);

static inline uint64_t mstx__decoder_bits(struct mstx_decoder *d, unsigned n)
{
    if (n > 32) {
        const uint64_t low = mstx__decoder_bits(d, 32);
        return low | mstx__decoder_bits(d, n - 32) << 32;
    }
    while (d->n < n) {
        d->bad |= d->bits == d->end;
        d->held |= (uint64_t)(d->bits < d->end ? *d->bits++ : 0) << d->n;
        d->n += 8;
    }
    const uint64_t v = d->held & (((uint64_t)1 << n) - 1);
    d->held >>= n;
    d->n -= n;
    return v;
}

/* Returns the next difference. */
static inline int64_t mstx__decode(struct mstx_decoder *d, const struct mstx_context *c)
{
    const uint32_t low = (uint32_t)d->x & (MSTX_RANS_SUM - 1);
    const unsigned s = c->at[low];
    d->x = (uint64_t)(c->from[s + 1] - c->from[s]) * (d->x >> MSTX_RANS_BITS) + low - c->from[s];
    if (d->x < 1 << 16) {
        if (d->word == d->words_end) {
            d->bad = true;
            d->x |= 1 << 16;
        } else {
            d->x = d->x << 16 | d->word[0] | (unsigned)d->word[1] << 8;
            d->word += 2;
        }
    }
    if (s < 4)
        return (int64_t)mstx_unzigzag(s);
    if (s == MSTX_SYMBOL_RARE)
        return (int64_t)mstx_unzigzag(mstx__decoder_bits(d, 64));
    const unsigned e = s >> 1;
    const uint64_t top = (uint64_t)(2 | (s & 1)) << (e - 1);
    return (int64_t)mstx_unzigzag(top | mstx__decoder_bits(d, e - 1));
}

/* ---- writing ------------------------------------------------------------------ */

/* Appends the code of n differences, at most MSTX_NUMBERS_MAX, each with its context. */
void mstx__encode(struct ms_buf *out, const struct mstx_model *m, const int64_t *difference,
                  const uint8_t *context, uint32_t n);

#endif
