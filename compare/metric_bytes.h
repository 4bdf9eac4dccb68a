/* SPDX-License-Identifier: MIT
 *
 * metric_bytes: the pass over a block of 8-bit numbers, in integers, which are exact
 * and four times as many in a register.  A part of metric_simd.h.
 *
 * Differences and divisors are at most 255, so a relative error below 0.001 is none,
 * and one below 0.005 is told by products.  Dividing is left out: where the largest
 * error could be raised, which is seldom, the pass gives up.
 */
typedef int16_t vw __attribute__((vector_size(BYTES)));
typedef uint16_t vu __attribute__((vector_size(BYTES)));

struct byte_state {
    vi nn, bb, nb;
    vu equal, five, most, over;
};

INLINE void load_words(vw *out, const char *p, const enum cmp__source from)
{
    *out = from == CMP__I8 ? WORDS_I8(p) : WORDS_U8(p);
    if (from == CMP__BOOL)
        *out = (*out != 0) & 1;
}

INLINE void magnitude_of(vu *out, const vw *v)
{
    vw sign = *v >> 15;
    *out = (vu)((*v ^ sign) - sign);
}

INLINE void step_bytes(struct byte_state *s, const vw *x, const vw *y, const struct cmp__ceiling *c)
{
    vw difference = *x - *y;
    vu d, b;
    magnitude_of(&d, &difference);
    magnitude_of(&b, y);
    s->nn += MULTIPLY_ADD(*x, *x);
    s->bb += MULTIPLY_ADD(*y, *y);
    s->nb += MULTIPLY_ADD(*x, *y);
    s->most = MAX_WORD(d, s->most);
    s->equal -= (vu)(d == 0);
    s->five -= (vu)((d == 0) | (d * 200 < b));
    s->over |= (vu)(d * c->q > b * c->p + c->at_zero);
}

INLINE uint64_t sum_of_words(const vu *v)
{
    const vu each = *v;
    uint64_t sum = 0;
    for (size_t i = 0; i < BYTES / sizeof(uint16_t); i++)
        sum += each[i];
    return sum;
}

INLINE double sum_of_ints(const vi *v)
{
    const vi each = *v;
    int64_t sum = 0;
    for (size_t i = 0; i < BYTES / sizeof(int32_t); i++)
        sum += each[i];
    return (double)sum;
}

INLINE void take_bytes(struct cmp_facts *f, const struct byte_state *s)
{
    const double nn = sum_of_ints(&s->nn), bb = sum_of_ints(&s->bb), nb = sum_of_ints(&s->nb);
    const vu most = s->most;
    f->nn += nn;
    f->bb += bb;
    f->nb += nb;
    f->dd += nn + bb - 2 * nb;
    for (size_t i = 0; i < BYTES / sizeof(uint16_t); i++)
        f->max_abs = cmp__larger(f->max_abs, (double)most[i]);
    f->thousandth += sum_of_words(&s->equal);
    f->bit_equal += sum_of_words(&s->equal);
    f->five += sum_of_words(&s->five);
}

INLINE bool pass_bytes(struct cmp_facts *f, const char *n, const char *b,
                       const struct cmp__ceiling *ceiling, const enum cmp__source from)
{
    const struct cmp__ceiling c = *ceiling;
    struct byte_state s = {0};
    for (size_t i = 0; i < CMP_METRIC_BLOCK; i += BYTES / sizeof(uint16_t)) {
        vw x, y;
        load_words(&x, n + i, from);
        load_words(&y, b + i, from);
        step_bytes(&s, &x, &y, &c);
    }
    if (sum_of_words(&s.over) != 0)
        return false;
    take_bytes(f, &s);
    return true;
}
