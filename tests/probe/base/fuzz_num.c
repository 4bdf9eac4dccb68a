/* SPDX-License-Identifier: MIT
 *
 * fuzz_num: the input is tried as the text of a number, and its first eight
 * bytes as a double.
 */
#include "probe/base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what, const char *text)
{
    if (condition)
        return;
    fprintf(stderr, "fuzz_num: %s: %s\n", what, text);
    abort();
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* What is accepted has the value strtod gives it, to the bit. */
static void check_text(const char *text, size_t n)
{
    double v;
    if (!ms_num_parse_f64(text, n, &v))
        return;
    char *end;
    double expected = strtod(text, &end);
    require(end == text + n, "accepted more than strtod", text);
    require(isnan(v) ? isnan(expected) : bits_of(v) == bits_of(expected), "value differs", text);
}

/* No text with fewer digits reads back equal. */
static void check_shortest(const char *text, double v)
{
    unsigned digits = 0;
    unsigned zeros = 0;
    for (const char *p = text; *p != '\0' && *p != 'e'; p++) {
        if (*p < '0' || *p > '9' || (digits == 0 && *p == '0'))
            continue;
        digits++;
        zeros = *p == '0' ? zeros + 1 : 0;
    }
    char shorter[64];
    if (digits < zeros + 2)
        return;
    snprintf(shorter, sizeof shorter, "%.*e", (int)(digits - zeros - 2), v);
    require(strtod(shorter, NULL) != v, "a shorter text would do", text);
}

static void check_value(double v)
{
    char text[MS_NUM_MAX + 1];
    unsigned n = ms_num_f64(text, v);
    text[n <= MS_NUM_MAX ? n : 0] = '\0';
    require(n != 0 && n <= MS_NUM_MAX, "length", text);
    double back;
    require(ms_num_parse_f64(text, n, &back), "what is printed does not parse", text);
    require(isnan(v) ? isnan(back) : bits_of(back) == bits_of(v), "round trip", text);
    if (isfinite(v))
        check_shortest(text, v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size != 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_text(text, size);
    if (size >= sizeof(double)) {
        double v;
        memcpy(&v, data, sizeof v);
        check_value(v);
    }
    free(text);
    return 0;
}
