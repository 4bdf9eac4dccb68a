/* SPDX-License-Identifier: MIT
 *
 * stats_simd: the kernels, written once over groups of 16 elements.
 *
 * A file for one instruction set includes this after it has defined
 *
 *     SIMD_TARGET        the target attribute's text
 *     struct floats      16 floats:   f_*  operations
 *     struct doubles     16 doubles:  d_*  operations
 *     struct shorts      SHORTS 16-bit integers: s_*  operations
 *     struct ints        the 32-bit sums that go with it: i_*  operations
 *
 * and PAIRED when its registers are enough for two blocks. It gets the table KERNELS. Comparisons
 * give a mask of one bit per element. min(x, y) and max(x, y) give y when x is NaN.
 */

#define GROUP MS__LANES

/* Prefetch distance. The hardware prefetcher stops at a page boundary, so the next page is
 * prefetched explicitly. */
enum { AHEAD = 4096 };

/* ---- floating point of up to 32 bits -------------------------------------- */

/* Minimum and maximum are computed in floats; sums are kept as doubles, in which the square of a
 * float is exact, so that a fused multiply-add rounds like a multiplication and an addition. */
struct running {
    struct doubles sum, sumsq;
    struct floats lo, hi;
    uint64_t zero, nan, pinf, ninf;
};

SIMD struct running r_start(void)
{
    return (struct running){
        d_all(0), d_all(0), f_all(INFINITY), f_all(-INFINITY), .zero = 0, .nan = 0, 0, 0};
}
SIMD void r_take(struct running *r, enum ms_dtype t, bool careful, const char *p)
{
    struct floats x = f_load(t, p);
    r->lo = f_min(x, r->lo);
    r->hi = f_max(x, r->hi);
    r->zero += popcount(f_equal(x, f_all(0)));
    if (careful) {
        r->nan += popcount(f_nan(x));
        r->pinf += popcount(f_equal(x, f_all(INFINITY)));
        r->ninf += popcount(f_equal(x, f_all(-INFINITY)));
        x = f_nan_to_zero(x);
    }
    const struct doubles d = careful ? d_of_floats(x) : d_of_floats_at(t, p, x);
    r->sum = d_add(r->sum, d);
    r->sumsq = d_fma(d, d, r->sumsq);
}
SIMD void r_store(const struct running *r, struct ms__lanes *l)
{
    d_store(l->sum, r->sum);
    d_store(l->sumsq, r->sumsq);
    l->min = (double)f_lowest(r->lo);
    l->max = (double)f_highest(r->hi);
    l->zero = r->zero;
    l->nan = r->nan;
    l->pinf = r->pinf;
    l->ninf = r->ninf;
}

SIMD size_t floats_kernel(enum ms_dtype t, bool careful, const char *p, size_t n,
                          struct ms__lanes *l)
{
    const size_t bytes = GROUP * (t == MS_DT_F32 ? 4 : 2);
    struct running r = r_start();
    for (size_t left = n / GROUP; left != 0; left--, p += bytes) {
        __builtin_prefetch(p + AHEAD);
        r_take(&r, t, careful, p);
    }
    r_store(&r, l);
    return n / GROUP * GROUP;
}

#ifdef PAIRED
/* Computes two blocks at once: additions within a lane depend on each other, those of different
 * blocks do not. */
SIMD void floats_pair(enum ms_dtype t, const char *p, struct ms__lanes l[2])
{
    const size_t bytes = GROUP * (t == MS_DT_F32 ? 4 : 2);
    const size_t block = MS_STATS_BLOCK / GROUP * bytes;
    struct running r = r_start(), s = r_start();
    for (size_t left = MS_STATS_BLOCK / GROUP; left != 0; left--, p += bytes) {
        __builtin_prefetch(p + AHEAD);
        __builtin_prefetch(p + block + AHEAD);
        r_take(&r, t, false, p);
        r_take(&s, t, false, p + block);
    }
    r_store(&r, &l[0]);
    r_store(&s, &l[1]);
}
#endif

/* ---- doubles and integers of 32 and 64 bits ------------------------------- */

/* Computes a block in doubles. Converting integers to double keeps their order, so minimum and
 * maximum are right for integers as well. */
SIMD size_t doubles_kernel(enum ms_dtype t, bool careful, const char *p, size_t n,
                           struct ms__lanes *l)
{
    const size_t bytes = GROUP * (t == MS_DT_I32 || t == MS_DT_U32 ? 4 : 8);
    struct doubles sum = d_all(0), sumsq = d_all(0);
    struct doubles lo = d_all((double)INFINITY), hi = d_all((double)-INFINITY);
    uint64_t zero = 0, nan = 0, pinf = 0, ninf = 0;
    for (size_t left = n / GROUP; left != 0; left--, p += bytes) {
        __builtin_prefetch(p + AHEAD);
        struct doubles x = d_load(t, p);
        lo = d_min(x, lo);
        hi = d_max(x, hi);
        zero += popcount(d_equal(x, d_all(0)));
        if (careful) {
            nan += popcount(d_nan(x));
            pinf += popcount(d_equal(x, d_all((double)INFINITY)));
            ninf += popcount(d_equal(x, d_all((double)-INFINITY)));
            x = d_nan_to_zero(x);
        }
        sum = d_add(sum, x);
        sumsq = d_add(sumsq, d_mul(x, x));
    }
    d_store(l->sum, sum);
    d_store(l->sumsq, sumsq);
    l->min = d_lowest(lo);
    l->max = d_highest(hi);
    l->zero = zero;
    l->nan = nan;
    l->pinf = pinf;
    l->ninf = ninf;
    return n / GROUP * GROUP;
}

/* ---- integers of up to 16 bits -------------------------------------------- */

/* Computes a block of small integers. All sums are exact, so lane 0 may hold all of them. A block
 * adds at most MS_STATS_BLOCK / SHORTS pairs to a 32-bit sum; squares of 16 bits need 64 bits.
 * Unsigned 16-bit values are shifted by -2^15 to be signed and shifted back at the end. */
SIMD size_t shorts_kernel(enum ms_dtype t, const char *p, size_t n, struct ms__lanes *l)
{
    const bool bytes = t == MS_DT_I8 || t == MS_DT_U8;
    const int16_t shift = t == MS_DT_U16 ? INT16_MIN : 0;
    const struct shorts ones = s_all(1), none = s_all(shift);
    struct shorts lo = s_all(INT16_MAX), hi = s_all(INT16_MIN);
    struct ints sum = i_zero(), sumsq = i_zero();
    uint64_t zero = 0;
    const size_t groups = n / SHORTS;
    for (size_t left = groups; left != 0; left--, p += SHORTS * (bytes ? 1 : 2)) {
        __builtin_prefetch(p + AHEAD);
        const struct shorts x = s_load(t, p);
        lo = s_min(x, lo);
        hi = s_max(x, hi);
        zero += popcount(s_equal(x, none));
        sum = i_add32(sum, s_dot(x, ones));
        sumsq = bytes ? i_add32(sumsq, s_dot(x, x)) : i_add_wide(sumsq, s_dot(x, x));
    }
    const size_t done = groups * SHORTS;
    if (done == 0)
        return 0;
    const int64_t k = (int64_t)done, offset = -(int64_t)shift, s = i_total32(sum);
    const int64_t ss = bytes ? i_total32(sumsq) : i_total64(sumsq);
    l->sum[0] = (double)(s + offset * k);
    l->sumsq[0] = (double)(ss + 2 * offset * s + offset * offset * k);
    l->min = (double)(s_lowest(lo) + offset);
    l->max = (double)(s_highest(hi) + offset);
    l->zero = zero;
    return done;
}

/* ---- bool ----------------------------------------------------------------- */

/* Computes a block of bools: the number of zeros determines every statistic. */
SIMD size_t bool_kernel(const char *p, size_t n, struct ms__lanes *l)
{
    const size_t done = n / 64 * 64;
    uint64_t zero = 0;
    for (const char *end = p + done; p != end; p += 64) {
        __builtin_prefetch(p + AHEAD);
        zero += (uint64_t)__builtin_popcountll(zero_bytes(p));
    }
    if (done == 0)
        return 0;
    l->zero = zero;
    l->sum[0] = l->sumsq[0] = (double)(done - zero);
    l->min = zero == 0;
    l->max = zero != done;
    return done;
}

/* ---- one function per type ------------------------------------------------ */

#define FLOATING(name, T, family)                                                                  \
    ENTRY static size_t name##_quick(const char *p, size_t n, struct ms__lanes *l)                 \
    {                                                                                              \
        return family##_kernel(T, false, p, n, l);                                                 \
    }                                                                                              \
    ENTRY static size_t name##_careful(const char *p, size_t n, struct ms__lanes *l)               \
    {                                                                                              \
        return family##_kernel(T, true, p, n, l);                                                  \
    }
#define INTEGER(name, call)                                                                        \
    ENTRY static size_t name##_quick(const char *p, size_t n, struct ms__lanes *l)                 \
    {                                                                                              \
        return call;                                                                               \
    }
#ifdef PAIRED
#define PAIR(name, T)                                                                              \
    ENTRY static void name##_pair(const char *p, struct ms__lanes l[2])                            \
    {                                                                                              \
        floats_pair(T, p, l);                                                                      \
    }
PAIR(f16, MS_DT_F16)
PAIR(bf16, MS_DT_BF16)
PAIR(f32, MS_DT_F32)
#else
#define f16_pair  NULL
#define bf16_pair NULL
#define f32_pair  NULL
#endif

FLOATING(f16, MS_DT_F16, floats)
FLOATING(bf16, MS_DT_BF16, floats)
FLOATING(f32, MS_DT_F32, floats)
FLOATING(f64, MS_DT_F64, doubles)
INTEGER(i32, doubles_kernel(MS_DT_I32, false, p, n, l))
INTEGER(u32, doubles_kernel(MS_DT_U32, false, p, n, l))
INTEGER(i64, doubles_kernel(MS_DT_I64, false, p, n, l))
INTEGER(u64, doubles_kernel(MS_DT_U64, false, p, n, l))
INTEGER(i16, shorts_kernel(MS_DT_I16, p, n, l))
INTEGER(u16, shorts_kernel(MS_DT_U16, p, n, l))
INTEGER(i8, shorts_kernel(MS_DT_I8, p, n, l))
INTEGER(u8, shorts_kernel(MS_DT_U8, p, n, l))
INTEGER(bool, bool_kernel(p, n, l))

const struct ms__stats_kernels KERNELS[MS_DT_MAX] = {
    [MS_DT_BOOL] = {.quick = bool_quick},
    [MS_DT_U8] = {.quick = u8_quick},
    [MS_DT_I8] = {.quick = i8_quick},
    [MS_DT_U16] = {.quick = u16_quick},
    [MS_DT_I16] = {.quick = i16_quick},
    [MS_DT_U32] = {.quick = u32_quick},
    [MS_DT_I32] = {.quick = i32_quick},
    [MS_DT_U64] = {.quick = u64_quick},
    [MS_DT_I64] = {.quick = i64_quick},
    [MS_DT_F16] = {f16_quick, f16_careful, f16_pair},
    [MS_DT_BF16] = {bf16_quick, bf16_careful, bf16_pair},
    [MS_DT_F32] = {f32_quick, f32_careful, f32_pair},
    [MS_DT_F64] = {f64_quick, f64_careful, NULL},
};
