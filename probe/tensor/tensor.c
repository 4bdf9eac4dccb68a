/* SPDX-License-Identifier: MIT
 *
 * tensor: opening a tensor file of any kind, and handing out its elements in C
 * order whatever the strides.
 */
#include "probe/tensor.h"

#include "probe/base/mem.h"
#include "probe/tensor_int.h"

/* ---- opening -------------------------------------------------------------- */

enum probe_file_kind probe_tensor_sniff(const void *p, size_t n)
{
    static const struct {
        enum probe_file_kind kind;
        const char *magic;
    } kinds[] = {{PROBE_FILE_NPY, "\x93NUMPY"},
                 {PROBE_FILE_PT, "PK\x03\x04"},
                 {PROBE_FILE_ATB, "$Version="}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t k = strlen(kinds[i].magic);
        if (n >= k && memcmp(p, kinds[i].magic, k) == 0)
            return kinds[i].kind;
    }
    return probe__is_pt_legacy(p, n) ? PROBE_FILE_PT_LEGACY : PROBE_FILE_UNKNOWN;
}

static enum ms_rc refuse_unknown(const char *p, size_t n, struct ms_err *err)
{
    if (n == 0)
        return ms_fail(err, MS_E_FORMAT, "is empty; was the dump interrupted?");
    if (n >= 262 && memcmp(p + 257, "ustar", 5) == 0)
        return ms_fail(
            err, MS_E_UNSUPPORTED,
            "is a tar archive, the form of torch 0.1; load and save it with a newer one");
    return ms_fail_at(err, MS_E_FORMAT, 0, 0, "does not begin as .npy, .pt or ATB .bin does");
}

static enum ms_rc read_kind(struct probe_tensor *t, const char *p, size_t n, struct ms_err *err)
{
    t->kind = probe_tensor_sniff(p, n);
    switch (t->kind) {
    case PROBE_FILE_NPY:
        return probe__npy_read(t, p, n, err);
    case PROBE_FILE_PT:
        return probe__pt_read(t, p, n, err);
    case PROBE_FILE_PT_LEGACY:
        return probe__pt_legacy_read(t, p, n, err);
    case PROBE_FILE_ATB:
        return probe__atb_read(t, p, n, err);
    case PROBE_FILE_UNKNOWN:
        break;
    }
    return refuse_unknown(p, n, err);
}

static void clear(struct probe_tensor *t)
{
    *t = (struct probe_tensor){.file = {"", 0}};
}

enum ms_rc probe_tensor_parse(struct probe_tensor *t, const char *name, const void *p, size_t n,
                              struct ms_err *err)
{
    clear(t);
    const enum ms_rc rc = read_kind(t, p, n, err);
    if (rc != MS_OK) {
        ms_err_wrap(err, "%s", name);
        probe_tensor_close(t);
    }
    return rc;
}

enum ms_rc probe_tensor_open(struct probe_tensor *t, const char *path, size_t max_bytes,
                             struct ms_err *err)
{
    clear(t);
    struct ms_file file;
    MS_TRY(ms_file_map(&file, path, max_bytes, err));
    const enum ms_rc rc = probe_tensor_parse(t, path, file.p, file.n, err);
    if (rc == MS_OK)
        t->file = file;
    else
        ms_file_unmap(&file);
    return rc;
}

void probe_tensor_close(struct probe_tensor *t)
{
    ms_file_unmap(&t->file);
    ms_free(t->copy);
    clear(t);
}

/* ---- elements ------------------------------------------------------------- */

/* n elements that lie `step` bytes apart.  A known size makes each copy one move. */
static void copy_apart(char *to, const char *from, size_t n, size_t step, size_t size)
{
    switch (size) {
    case 1:
        for (size_t i = 0; i < n; i++)
            to[i] = from[i * step];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 2, from + i * step, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 4, from + i * step, 4);
        break;
    case 8:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 8, from + i * step, 8);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * size, from + i * step, size);
        break;
    }
}

/* Odometer over all dimensions but the last, whose elements are copied as one run. */
struct walk {
    uint64_t index[PROBE_MAX_DIMS];
    uint64_t at; /* elements from data */
};

static void walk_to(struct walk *w, const struct probe_tensor *t, uint64_t element)
{
    w->at = 0;
    for (uint32_t d = t->ndim; d-- > 0;) {
        w->index[d] = element % t->shape[d];
        element /= t->shape[d];
        w->at += w->index[d] * t->stride[d];
    }
}

static void walk_on(struct walk *w, const struct probe_tensor *t, uint64_t run)
{
    uint32_t d = t->ndim - 1;
    w->index[d] += run;
    w->at += run * t->stride[d];
    while (w->index[d] == t->shape[d] && d != 0) {
        w->at -= w->index[d] * t->stride[d];
        w->index[d] = 0;
        d--;
        w->index[d]++;
        w->at += t->stride[d];
    }
}

static void gather(const struct probe_tensor *t, uint64_t from, uint64_t n, char *to)
{
    const uint32_t last = t->ndim - 1;
    const size_t size = ms_dtype_size(t->dtype);
    struct walk w;
    walk_to(&w, t, from);
    while (n != 0) {
        const uint64_t left = t->shape[last] - w.index[last], run = n < left ? n : left;
        const char *src = (const char *)t->data + w.at * size;
        if (t->stride[last] == 1)
            memcpy(to, src, run * size);
        else
            copy_apart(to, src, run, t->stride[last] * size, size);
        to += run * size;
        n -= run;
        if (n != 0)
            walk_on(&w, t, run);
    }
}

const void *probe_tensor_elements(const struct probe_tensor *t, uint64_t from, uint64_t n,
                                  void *scratch)
{
    if (n == 0)
        return scratch;
    if (t->contiguous)
        return (const char *)t->data + from * ms_dtype_size(t->dtype);
    gather(t, from, n, scratch);
    return scratch;
}

/* The elements fill their memory without gaps in another order than C's, as those of a transposed
 * matrix do: figures do not depend on the order. */
static bool is_dense(const struct probe_tensor *t)
{
    uint64_t dense = 1;
    for (uint32_t placed = 0; placed < t->ndim; placed++) {
        uint32_t d = 0;
        while (d < t->ndim && (t->shape[d] == 1 || t->stride[d] != dense))
            d++;
        if (d == t->ndim)
            break;
        dense *= t->shape[d];
    }
    return dense == t->count;
}

void probe_tensor_stats(const struct probe_tensor *t, struct ms_stats *s)
{
    ms_stats_init(s);
    if (t->contiguous || is_dense(t)) {
        ms_stats_add(s, t->dtype, t->data, t->count);
        return;
    }
    enum { LARGEST = 16 };
    char scratch[(size_t)MS_STATS_BLOCK * LARGEST];
    for (uint64_t at = 0; at < t->count; at += MS_STATS_BLOCK) {
        const uint64_t left = t->count - at, n = left < MS_STATS_BLOCK ? left : MS_STATS_BLOCK;
        gather(t, at, n, scratch);
        ms_stats_add(s, t->dtype, scratch, n);
    }
}

enum ms_rc probe_tensor_verify(const struct probe_tensor *t, struct ms_err *err)
{
    if (!t->has_crc)
        return MS_OK;
    const uint32_t crc = ms_crc32(0, t->data, t->count * ms_dtype_size(t->dtype));
    if (crc == t->crc)
        return MS_OK;
    return ms_fail(err, MS_E_FORMAT,
                   "the data has CRC-32 %08x but %08x was stored; the file is damaged", crc,
                   t->crc);
}
