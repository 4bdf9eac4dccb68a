/* SPDX-License-Identifier: MIT
 *
 * The oracles: glibc's strtod for reading, Python's repr for printing (skipped when there is no
 * Python) and big-integer arithmetic for the table both share.
 */
#include "probe/base/num.h"
#include "probe/base/num_pow10.h"

#include "tests/support/check.h"

#include <float.h>
#include <math.h>

static double of_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* xorshift64*: the same numbers in every run. */
static uint64_t draw(void)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1DU;
}
static double draw_float(void)
{
    uint32_t bits = (uint32_t)draw();
    float v;
    memcpy(&v, &bits, sizeof v);
    return (double)v;
}

/* Check writes a line to a pipe at every assertion: too slow for millions. */
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static const char *print(double v)
{
    static char text[MS_NUM_MAX + 1];
    unsigned n = ms_num_f64(text, v);
    must(n <= MS_NUM_MAX, "%a takes %u bytes", v, n);
    text[n] = '\0';
    return text;
}

/* Reads as strtod does, to the bit. */
static void reads_well(const char *text)
{
    double v = 0;
    bool ok = ms_num_parse_f64(text, strlen(text), &v);
    double expected = strtod(text, NULL);
    must(ok && bits_of(v) == bits_of(expected), "%s: %a, not %a", text, v, expected);
}

/* What is printed reads back equal, here and there. */
static void prints_well(double v)
{
    if (!isfinite(v))
        return;
    const char *text = print(v);
    must(bits_of(strtod(text, NULL)) == bits_of(v), "%a as %s", v, text);
    reads_well(text);
}

static const struct {
    double value;
    const char *text;
} printed[] = {
    {0.0, "0.0"},
    {-0.0, "-0.0"},
    {1.0, "1.0"},
    {-7.0, "-7.0"},
    {0.1, "0.1"},
    {123.456, "123.456"},
    {0.0001, "0.0001"},
    {0.00012345, "0.00012345"},
    {1e-05, "1e-05"},
    {7.441285561071709e-05, "7.441285561071709e-05"},
    {0.30000000000000004, "0.30000000000000004"},
    {1000000000000000.0, "1000000000000000.0"},
    {9007199254740991.0, "9007199254740991.0"},
    {9007199254740992.0, "9007199254740992.0"},
    {9999999999999998.0, "9999999999999998.0"},
    {1234567890123456.7, "1234567890123456.8"},
    {1e16, "1e+16"},
    {1.2345678901234568e17, "1.2345678901234568e+17"},
    {1e22, "1e+22"},
    {1e23, "1e+23"},
    {1e100, "1e+100"},
    {1.5e-100, "1.5e-100"},
    {3.4028234663852886e38, "3.4028234663852886e+38"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {5e-324, "5e-324"},
    {1.5e-323, "1.5e-323"},
    /* Powers of two whose lower neighbour is nearer: more digits are needed to print the nearest
     * decimal than to read the value back. */
    {0x1p-140, "7.174648137343064e-43"},
    {0x1p-97, "6.310887241768095e-30"},
    {0x1p-77, "6.617444900424222e-24"},
    {0x1p-44, "5.684341886080802e-14"},
    {0x1p-24, "5.960464477539063e-08"},
    {0x1p89, "6.189700196426902e+26"},
    {0x1p122, "5.316911983139664e+36"},
    {INFINITY, "Infinity"},
    {-INFINITY, "-Infinity"},
    {NAN, "NaN"},
    {-NAN, "NaN"},
};

START_TEST(doubles_print_as_python_prints_them)
{
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++)
        ck_assert_str_eq(print(printed[i].value), printed[i].text);
}
END_TEST

START_TEST(random_doubles_survive_printing_and_reading)
{
    for (int i = 0; i < 1000000; i++)
        prints_well(of_bits(draw()));
}
END_TEST

START_TEST(random_floats_survive_printing_and_reading)
{
    for (int i = 0; i < 1000000; i++)
        prints_well(draw_float());
}
END_TEST

START_TEST(powers_of_two_and_their_neighbours_survive)
{
    for (int e = -1074; e <= 1023; e++) {
        uint64_t bits = bits_of(ldexp(1.0, e));
        for (uint64_t near = bits - 2; near != bits + 3; near++)
            prints_well(of_bits(near));
    }
}
END_TEST

START_TEST(powers_of_ten_read_well_in_every_spelling)
{
    static const char *const digits[] = {
        "1",
        "0.001",
        "9999999999999999999",
        "18446744073709551616",
        "8.5",
        "0.0000000000000000000000012345678901234567890123",
        "1000000000000000000000000000000000000000000000001",
        "9007199254740993.0000000000000000000000000000000000000000000000000000000000000",
    };
    for (int e = -420; e <= 420; e++) {
        for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
            char text[128];
            snprintf(text, sizeof text, "%s%c%+d", digits[i], i % 2 != 0 ? 'e' : 'E', e);
            reads_well(text);
        }
    }
}
END_TEST

/* The exact middle between v and the next double, as digits: the longest are 767. */
static void spell_middle(char *text, size_t size, double v)
{
    long double next = (long double)of_bits(bits_of(v) + 1);
    snprintf(text, size, "%.1150Le", (long double)v + (next - (long double)v) / 2);
}

START_TEST(the_middle_between_two_doubles_rounds_to_even)
{
    static char text[2400];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = draw() >> 1;
        double v = of_bits(i % 2 != 0 ? bits & 0x003FFFFFFFFFFFFF : bits);
        if (!(v < 1e308))
            continue;
        spell_middle(text, sizeof text, v);
        reads_well(text);
        char *last = strchr(text, 'e') - 1;
        *last = '1'; /* just above it, 1150 digits on */
        reads_well(text);
        *last = '0';
        while (last > text && *last == '0')
            last--;
        if (*last == '.')
            continue;
        --*last; /* just below */
        reads_well(text);
    }
}
END_TEST

START_TEST(numbers_that_64_bits_do_not_hold_read_well)
{
    for (int i = 0; i < 50000; i++) {
        char text[64];
        snprintf(text, sizeof text, "%llu%llu.%llue%d", (unsigned long long)draw(),
                 (unsigned long long)draw() % 1000, (unsigned long long)draw(),
                 (int)(draw() % 700) - 370);
        reads_well(text);
        snprintf(text, sizeof text, "%.*g", 15 + (int)(draw() % 12), of_bits(draw() >> 1));
        if (text[0] >= '0' && text[0] <= '9')
            reads_well(text);
    }
}
END_TEST

START_TEST(the_edges_of_the_range_are_infinity_and_zero)
{
    static const struct {
        const char *text;
        double value;
    } edges[] = {
        {"1e309", INFINITY},
        {"-1e400", -INFINITY},
        {"1.7976931348623158e308", DBL_MAX},
        {"1.7976931348623159e308", INFINITY},
        {"2.4703282292062327e-324", 0.0},
        {"2.4703282292062328e-324", 5e-324},
        {"-1e-400", -0.0},
        {"0e999999999999999999999999", 0.0},
        {"1e999999999999999999999999", INFINITY},
        {"1e-999999999999999999999999", 0.0},
        {"-Infinity", -INFINITY},
        {"Infinity", INFINITY},
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        double v;
        ck_assert(ms_num_parse_f64(edges[i].text, strlen(edges[i].text), &v));
        ck_assert_msg(bits_of(v) == bits_of(edges[i].value), "%s: %a", edges[i].text, v);
    }
    double nan;
    ck_assert(ms_num_parse_f64("NaN", 3, &nan));
    ck_assert(isnan(nan));
}
END_TEST

START_TEST(a_million_zeros_do_not_change_a_number)
{
    size_t zeros = 1000000;
    char *text = malloc(zeros + 32);
    memcpy(text, "0.", 2);
    memset(text + 2, '0', zeros);
    strcpy(text + 2 + zeros, "125e1000002");
    double v;
    ck_assert(ms_num_parse_f64(text, strlen(text), &v));
    ck_assert_double_eq(v, 12.5);
    free(text);
}
END_TEST

START_TEST(what_is_not_a_json_number_is_refused)
{
    static const char *const wrong[] = {
        "",    "-",   "+1",   ".5",        "5.",       "01",    "-01",     "00",       "1e",
        "1e+", "1e-", "1.e5", "1..2",      "1e5.",     "1ee5",  "0x1",     "1 ",       " 1",
        "1f",  "--1", "nan",  "inf",       "-NaN",     "NaN1",  "Infinit", "infinity", "1,",
        "-.5", "e5",  "1_0",  "Infinity ", "-Infinit", "1e1.5",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double v = 7;
        ck_assert_msg(!ms_num_parse_f64(wrong[i], strlen(wrong[i]), &v), "'%s'", wrong[i]);
        ck_assert_double_eq(v, 7);
    }
}
END_TEST

START_TEST(integers_print_with_all_their_digits)
{
    static const int64_t edges[] = {0,     1,     -1,        9,         10,
                                    99,    100,   -100,      9999,      10000,
                                    12345, 99999, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    char text[MS_NUM_MAX];
    char expected[MS_NUM_MAX];
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        int n = snprintf(expected, sizeof expected, "%lld", (long long)edges[i]);
        ck_assert_uint_eq(ms_num_i64(text, edges[i]), (unsigned)n);
        ck_assert_mem_eq(text, expected, n);
        n = snprintf(expected, sizeof expected, "%llu", (unsigned long long)edges[i]);
        ck_assert_uint_eq(ms_num_u64(text, (uint64_t)edges[i]), (unsigned)n);
        ck_assert_mem_eq(text, expected, n);
    }
}
END_TEST

/* ---- the table, computed again --------------------------------------------------- */

struct big {
    unsigned n;
    uint32_t limb[48];
};

static void big_mul(struct big *b, uint32_t factor)
{
    uint64_t carry = 0;
    for (unsigned i = 0; i < b->n; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0)
        b->limb[b->n++] = (uint32_t)carry;
    must(b->n < 48, "too large");
}
static unsigned big_bits(const struct big *b)
{
    return 32 * b->n - (unsigned)__builtin_clz(b->limb[b->n - 1]);
}
/* Bit i; none below the lowest. */
static unsigned big_bit(const struct big *b, int i)
{
    return i < 0 ? 0 : b->limb[i / 32] >> (i % 32) & 1;
}
static struct big big_of(__uint128_t v)
{
    struct big b = {0};
    for (; v != 0; v >>= 32)
        b.limb[b.n++] = (uint32_t)v;
    return b;
}

/* 10^k, k >= 0: its leading 128 bits are the entry. */
static void check_positive(int k, __uint128_t entry)
{
    struct big power = big_of(1);
    for (int i = 0; i < k; i++)
        big_mul(&power, 10);
    __uint128_t leading = 0;
    int top = (int)big_bits(&power) - 1;
    for (int i = 0; i < 128; i++)
        leading = leading << 1 | big_bit(&power, top - i);
    ck_assert_msg(leading == entry, "10^%d", k);
}

/* 10^-k lies in [entry, entry + 1) times a power of two when a power of two lies between
 * entry * 10^k and (entry + 1) * 10^k. */
static void check_negative(int k, __uint128_t entry)
{
    struct big low = big_of(entry);
    struct big high = big_of(entry + 1);
    for (int i = 0; i < k; i++) {
        big_mul(&low, 10);
        big_mul(&high, 10);
    }
    ck_assert_msg(big_bits(&low) + 1 == big_bits(&high), "10^-%d", k);
}

START_TEST(the_table_of_powers_is_right)
{
    for (int k = MS_POW10_FIRST; k <= MS_POW10_LAST; k++) {
        const uint64_t *bits = ms_num_pow10[k - MS_POW10_FIRST];
        ck_assert_uint_eq(bits[0] >> 63, 1);
        ck_assert_uint_ne(bits[1], UINT64_MAX);
        __uint128_t entry = (__uint128_t)bits[0] << 64 | bits[1];
        if (k >= 0)
            check_positive(k, entry);
        else
            check_negative(-k, entry);
    }
}
END_TEST

/* ---- Python ------------------------------------------------------------------------ */

enum { PYTHON_VALUES = 2400000 };

static void fill(double *v, size_t n)
{
    size_t i = 0;
    for (int e = -1074; e <= 1023; e++) {
        for (uint64_t near = bits_of(ldexp(1.0, e)) - 1; near != bits_of(ldexp(1.0, e)) + 2; near++)
            v[i++] = of_bits(near);
    }
    for (int e = -323; e <= 308; e++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", e);
        v[i++] = strtod(text, NULL);
    }
    for (int k = 0; k < 100000; k++)
        v[i++] = of_bits(draw() >> 13 >> draw() % 40); /* subnormal */
    while (i < n) {
        double next = i % 2 != 0 ? of_bits(draw()) : draw_float();
        if (isfinite(next))
            v[i++] = next;
    }
}

START_TEST(python_prints_the_same)
{
    const char *python = getenv("PYTHON") != NULL ? getenv("PYTHON") : "/usr/bin/python3";
    if (access(python, X_OK) != 0) {
        printf("skip python_prints_the_same: no %s\n", python);
        return;
    }
    char dir[64];
    scratch_dir(dir);
    double *v = malloc(PYTHON_VALUES * sizeof *v);
    fill(v, PYTHON_VALUES);
    char path[96];
    snprintf(path, sizeof path, "%s/doubles", dir);
    write_file(path, v, PYTHON_VALUES * sizeof *v);
    char cmd[256];
    snprintf(cmd, sizeof cmd,
             "'%s' -c 'import array, sys; a = array.array(\"d\"); "
             "a.frombytes(sys.stdin.buffer.read()); print(\"\\n\".join(map(repr, a)))' <%s",
             python, path);
    FILE *f = popen(cmd, "r");
    ck_assert_ptr_nonnull(f);
    char line[64];
    for (size_t i = 0; i < PYTHON_VALUES; i++) {
        must(fgets(line, sizeof line, f) != NULL, "Python stopped");
        line[strcspn(line, "\n")] = '\0';
        const char *ours = print(v[i]);
        must(strcmp(ours, line) == 0, "%a: %s, Python %s", v[i], ours, line);
    }
    ck_assert_int_eq(pclose(f), 0);
    free(v);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("num", doubles_print_as_python_prints_them, random_doubles_survive_printing_and_reading,
          random_floats_survive_printing_and_reading, powers_of_two_and_their_neighbours_survive,
          powers_of_ten_read_well_in_every_spelling, the_middle_between_two_doubles_rounds_to_even,
          numbers_that_64_bits_do_not_hold_read_well, the_edges_of_the_range_are_infinity_and_zero,
          a_million_zeros_do_not_change_a_number, what_is_not_a_json_number_is_refused,
          integers_print_with_all_their_digits, the_table_of_powers_is_right,
          python_prints_the_same)
