/* SPDX-License-Identifier: MIT
 *
 * human: three significant digits and a unit.
 */
#include "probe/base/human.h"

#include "probe/base/num.h"

#include <stdio.h>
#include <string.h>

const char *ms_human_count(char buf[MS_HUMAN_MAX], uint64_t n)
{
    char digits[MS_NUM_MAX];
    unsigned len = ms_num_u64(digits, n);
    char *out = buf;
    for (unsigned i = 0; i < len; i++) {
        if (i != 0 && (len - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return buf;
}

/* Writes v, which is in [1, 1000), with as many decimals as make three digits. */
static void three_digits(char *buf, double v, const char *unit)
{
    int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
    snprintf(buf, MS_HUMAN_MAX, "%.*f %s", decimals, v, unit);
}

const char *ms_human_bytes(char buf[MS_HUMAN_MAX], uint64_t n)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)n;
    unsigned u = 0;
    for (; v >= 999.5 && u < 6; u++)
        v /= 1000;
    if (u == 0)
        snprintf(buf, MS_HUMAN_MAX, "%u B", (unsigned)n);
    else
        three_digits(buf, v, units[u]);
    return buf;
}

const char *ms_human_time(char buf[MS_HUMAN_MAX], int64_t ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double v = ns < 0 ? -(double)ns : (double)ns;
    unsigned u = 0;
    char *out = buf;
    if (ns < 0)
        *out++ = '-';
    for (; v >= 999.5 && u < 3; u++)
        v /= 1000;
    if (u == 3 && v >= 99.5)
        snprintf(out, MS_HUMAN_MAX - 1, "%.0f min %.0f s", (double)((int64_t)(v + 0.5) / 60),
                 (double)((int64_t)(v + 0.5) % 60));
    else if (u == 0)
        snprintf(out, MS_HUMAN_MAX - 1, "%.0f ns", v);
    else
        three_digits(out, v, units[u]);
    return buf;
}

const char *ms_human_error(char buf[MS_HUMAN_MAX], double v)
{
    if (v == 0)
        snprintf(buf, MS_HUMAN_MAX, "0");
    else if (v >= 0.01 && v < 100)
        snprintf(buf, MS_HUMAN_MAX, "%.2g", v);
    else
        snprintf(buf, MS_HUMAN_MAX, "%.1e", v);
    return buf;
}

const char *ms_human_factor(char buf[MS_HUMAN_MAX], double v)
{
    if (v < 10)
        snprintf(buf, MS_HUMAN_MAX, "%.1f", v);
    else if (v < 1e15) {
        /* The two digits are computed here without libm, because the msprobe program itself links
         * only libc. */
        uint64_t unit = 1;
        for (; v >= 100; v /= 10)
            unit *= 10;
        return ms_human_count(buf, (uint64_t)(v + 0.5) * unit);
    } else
        snprintf(buf, MS_HUMAN_MAX, "%.1e", v);
    return buf;
}

void ms_human_cell(struct ms_buf *out, struct ms_str s, unsigned width)
{
    unsigned cells = 0;
    uint32_t at = 0;
    while (at < s.n && cells < width) {
        unsigned n = ms_utf8_len(s.p + at, s.n - at);
        bool is_control =
            n == 0 || (unsigned char)s.p[at] < 0x20 || s.p[at] == 0x7F ||
            (n == 2 && (unsigned char)s.p[at] == 0xC2 && (unsigned char)s.p[at + 1] < 0xA0);
        bool is_cut = cells + 3 == width && s.n - at > 3;
        if (is_cut) {
            ms_buf_puts(out, "...");
            return;
        }
        ms_buf_put(out, is_control ? "." : s.p + at, is_control ? 1 : n);
        at += n != 0 ? n : 1;
        cells++;
    }
    for (; cells < width; cells++)
        ms_buf_putc(out, ' ');
}

void ms_human_more(struct ms_buf *out, size_t more, const char *what)
{
    char count[MS_HUMAN_MAX];
    if (more != 0)
        ms_buf_printf(out, "  ... %s more%s; --most 0 shows all\n", ms_human_count(count, more),
                      what);
}
