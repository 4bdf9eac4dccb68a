/* SPDX-License-Identifier: MIT
 *
 * tensor: opens a tensor file of any kind, and returns its elements in C order whatever the
 * strides.
 */
#include "probe/tensor/tensor.h"

#include "probe/base/mem.h"
#include "probe/tensor/tensor_int.h"

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

/* ---- verifying -------------------------------------------------------------- */

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
