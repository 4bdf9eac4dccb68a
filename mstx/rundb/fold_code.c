/* SPDX-License-Identifier: MIT
 *
 * fold_code: see the header.
 */
#include "mstx/rundb/fold_code.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

enum { LEADER = 128, WORD_BITS = 16 };

/* ---- models -------------------------------------------------------------------- */

void mstx__context_fill(struct mstx_context *c)
{
    ms_assert(c->from[MSTX_SYMBOLS] == MSTX_RANS_SUM);
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
        memset(c->at + c->from[s], (int)s, (size_t)(c->from[s + 1] - c->from[s]));
}

static void read_context(struct mstx_context *c, struct mstx_bytes *b)
{
    uint16_t frequency[MSTX_SYMBOLS] = {0};
    const uint64_t n = mstx_get_below(b, MSTX_SYMBOLS + 1);
    uint32_t sum = 0;
    for (uint64_t i = 0; i < n && !b->bad; i++) {
        const unsigned s = mstx_get_byte(b);
        const uint32_t f = (uint32_t)mstx_get_below(b, MSTX_RANS_SUM + 1);
        b->bad |= s >= MSTX_SYMBOLS || f == 0;
        if (b->bad)
            break;
        b->bad |= frequency[s] != 0;
        frequency[s] = (uint16_t)f;
        sum += f;
    }
    b->bad |= sum != MSTX_RANS_SUM;
    if (b->bad)
        return;
    c->from[0] = 0;
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
        c->from[s + 1] = (uint16_t)(c->from[s] + frequency[s]);
    mstx__context_fill(c);
}

static void read_class(struct mstx_class *c, uint32_t contexts, struct mstx_bytes *b)
{
    c->centre = (int64_t)mstx_unzigzag(mstx_get_varint(b));
    const unsigned byte = mstx_get_byte(b);
    c->by_leader = (byte & LEADER) != 0;
    c->context = (uint8_t)(byte & (LEADER - 1u));
    b->bad |= c->context >= contexts;
}

enum ms_rc mstx__model_read(struct mstx_model *m, struct ms_str text, struct ms_err *err)
{
    struct mstx_bytes b = mstx_bytes_of(text);
    *m = (struct mstx_model){.contexts = (uint32_t)mstx_get_below(&b, MSTX_CONTEXTS + 1)};
    m->context = ms_calloc(m->contexts + (size_t)1, sizeof *m->context);
    if (m->context == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < m->contexts && !b.bad; i++)
        read_context(&m->context[i], &b);
    m->classes = (uint32_t)mstx_get_below(&b, MSTX_CLASSES + 1);
    b.bad |= m->contexts == 0 || m->classes == 0 || m->classes > text.n;
    if (b.bad)
        return ms_fail(err, MS_E_FORMAT,
                       "a model of folded times is damaged; import the capture again");
    m->class = ms_calloc(m->classes, sizeof *m->class);
    if (m->class == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < m->classes && !b.bad; i++)
        read_class(&m->class[i], m -> contexts, &b);
    if (b.bad || b.at != b.end)
        return ms_fail(err, MS_E_FORMAT,
                       "a model of folded times is damaged; import the capture again");
    return MS_OK;
}

void mstx__model_free(struct mstx_model *m)
{
    ms_free(m->context);
    ms_free(m->class);
    *m = (struct mstx_model){0};
}

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

/* ---- reading ------------------------------------------------------------------- */

void mstx__decoder_begin(struct mstx_decoder *d, struct mstx_bytes *b)
{
    const uint64_t words = mstx_get_varint(b);
    *d = (struct mstx_decoder){.end = b->end};
    d->bad = b->bad || words < 2 || words > (uint64_t)(b->end - b->at) / 2;
    d->word = b->at;
    d->words_end = d->bits = d->bad ? b->at : b->at + 2 * words;
    b->at = b->end;
    if (d->bad) {
        d->bits = d->end;
        d->x = 1 << WORD_BITS;
        return;
    }
    const uint8_t *w = d->word;
    d->x = ((uint64_t)w[0] | (uint64_t)w[1] << 8) << WORD_BITS | w[2] | (uint64_t)w[3] << 8;
    d->word += 4;
    d->bad = d->x < 1 << WORD_BITS;
}

bool mstx__decoder_ended(const struct mstx_decoder *d)
{
    return !d->bad && d->x == 1 << WORD_BITS && d->word == d->words_end && d->bits == d->end;
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
