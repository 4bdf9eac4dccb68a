/* SPDX-License-Identifier: MIT
 *
 * tool_tensor: what the library reads from tensor files, for scripts to
 * compare with other readers.
 *
 *     tool_tensor FILE...          a line for each: fields NAME=VALUE, or "error: ..."
 *     tool_tensor npy|pt IN OUT    write IN again
 */
#include "probe/tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>

static void print_shape(const struct probe_tensor *t)
{
    printf(" shape=");
    for (uint32_t d = 0; d < t->ndim; d++)
        printf("%s%" PRIu64, d != 0 ? "," : "", t->shape[d]);
}

/* CRC of the elements as contiguous bytes, taken in pieces of an odd size. */
static uint32_t crc_of_elements(const struct probe_tensor *t)
{
    enum { PIECE = 1009 };
    char scratch[PIECE * 16];
    uint32_t crc = 0;
    for (uint64_t at = 0; at < t->count; at += PIECE) {
        const uint64_t left = t->count - at, n = left < PIECE ? left : PIECE;
        const void *p = probe_tensor_elements(t, at, n, scratch);
        crc = ms_crc32(crc, p, n * ms_dtype_size(t->dtype));
    }
    return crc;
}

static void print_file(const char *path)
{
    struct probe_tensor t;
    struct ms_err err = {0};
    struct ms_stats s;
    if (probe_tensor_open(&t, path, SIZE_MAX, &err) != MS_OK ||
        probe_tensor_verify(&t, &err) != MS_OK) {
        printf("error: %s\n", err.msg);
        return;
    }
    probe_tensor_stats(&t, &s);
    printf("kind=%d dtype=%s", (int)t.kind, ms_dtype_torch(t.dtype));
    print_shape(&t);
    printf(" crc=%08x stored=%d contiguous=%d", crc_of_elements(&t), t.has_crc, t.contiguous);
    printf(" nan=%" PRIu64 " pinf=%" PRIu64 " ninf=%" PRIu64 " zero=%" PRIu64, s.nan, s.pinf,
           s.ninf, s.zero);
    printf(" min=%a max=%a sum=%a sumsq=%a\n", s.min, s.max, s.sum, s.sumsq);
    probe_tensor_close(&t);
}

static int convert(const char *kind, const char *in, const char *out)
{
    struct probe_tensor t;
    struct ms_err err = {0};
    const enum probe_file_kind as = strcmp(kind, "npy") == 0 ? PROBE_FILE_NPY : PROBE_FILE_PT;
    enum ms_rc rc = probe_tensor_open(&t, in, SIZE_MAX, &err);
    if (rc == MS_OK)
        rc = probe_tensor_write(&t, out, as, &err);
    if (rc != MS_OK)
        fprintf(stderr, "%s\n", err.msg);
    probe_tensor_close(&t);
    return rc != MS_OK;
}

int main(int argc, char **argv)
{
    if (argc == 4 && (strcmp(argv[1], "npy") == 0 || strcmp(argv[1], "pt") == 0))
        return convert(argv[1], argv[2], argv[3]);
    for (int i = 1; i < argc; i++)
        print_file(argv[i]);
    return 0;
}
