/* SPDX-License-Identifier: MIT
 *
 * tool_quantise: the number formats for programs that compare them with others.
 *
 *     tool_quantise encode NUMBER saturates|overflows       float32 in, a byte of code each out
 *     tool_quantise decode NUMBER                           bytes in, float32 out
 *     tool_quantise tensor FORMAT ROWS COLS [BLOCK [POWER]]  float32 in; out: float32 after quantisation
 *                                                           and dequantisation, on standard error figures
 */
#include "probe/base/vec.h"
#include "probe/quantise/quant_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *read_floats(size_t *n)
{
    MS_VEC(float) all = {0};
    for (;;) {
        if (!ms_vec_reserve(&all, all.n + 65536))
            exit(3);
        const size_t got = fread(all.p + all.n, sizeof *all.p, all.cap - all.n, stdin);
        all.n += got;
        if (got == 0)
            break;
    }
    *n = all.n;
    return all.p;
}

static enum quant_number number_of(const char *name)
{
    for (unsigned i = 0; i < QUANT_NUMBERS; i++) {
        if (strcmp(quant_facts((enum quant_number)i)->name, name) == 0)
            return (enum quant_number)i;
    }
    exit(2);
}

static void encode(const char *name, const char *how)
{
    const enum quant_number n = number_of(name);
    const enum quant_overflow o = strcmp(how, "saturates") == 0 ? QUANT_SATURATES : QUANT_OVERFLOWS;
    size_t count;
    float *v = read_floats(&count);
    for (size_t i = 0; i < count; i++)
        putchar(quant_encode(n, (double)v[i], o));
    ms_free(v);
}

static void decode(const char *name)
{
    const enum quant_number n = number_of(name);
    for (int c = getchar(); c != EOF; c = getchar()) {
        const float v = (float)quant_decode(n, (uint8_t)c);
        fwrite(&v, sizeof v, 1, stdout);
    }
}

static void tensor(int argc, char **argv)
{
    const struct quant_format *f = quant_format_find(argv[2]);
    if (f == NULL)
        exit(2);
    struct quant_scheme s = f->scheme;
    struct quant_shape shape = {strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), 1};
    if (argc > 5 && strcmp(argv[5], "channel") == 0) {
        s.by = QUANT_BY_CHANNEL;
        shape = (struct quant_shape){1, shape.outer, shape.length};
    } else if (argc > 5) {
        s.by = QUANT_BY_GROUP;
        s.group = strtoull(argv[5], NULL, 10);
    }
    if (argc > 6)
        s.power = (enum quant_power)strtoul(argv[6], NULL, 10);
    size_t count;
    float *v = read_floats(&count);
    struct quant_loss l = {0};
    if (count != shape.outer * shape.length * shape.inner)
        exit(2);
    quant_tensor(&s, &shape, v, v, &l);
    fwrite(v, sizeof *v, count, stdout);
    fprintf(stderr, "%.17g %.17g %llu %llu %llu %.17g %.17g\n", l.signal, l.noise,
            (unsigned long long)l.underflow, (unsigned long long)l.overflow,
            (unsigned long long)l.clipped, l.scale_min, l.scale_max);
    ms_free(v);
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "encode") == 0)
        encode(argv[2], argv[3]);
    else if (argc >= 3 && strcmp(argv[1], "decode") == 0)
        decode(argv[2]);
    else if (argc >= 5 && strcmp(argv[1], "tensor") == 0)
        tensor(argc, argv);
    else
        return 2;
    return 0;
}
