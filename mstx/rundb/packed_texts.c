/* SPDX-License-Identifier: MIT
 *
 * packed_texts: see the header.
 */
#include "mstx/rundb/packed_texts.h"

#include "mstx/rundb/varint.h"

#include "probe/base/mem.h"

enum { VERSION = 1, BLOB_BYTES = 1 << 16 };
static const size_t TEXTS_MOST = (size_t)1 << 31; /* bytes of one blob, whose texts may be long */

/* ---- writing ------------------------------------------------------------------ */

enum ms_rc mstx__texts_out_new(struct mstx_texts_out *o, struct ms_store *s, struct ms_err *err)
{
    *o = (struct mstx_texts_out){.text = {.max = TEXTS_MOST}, .blob = {.max = TEXTS_MOST}};
    return ms_store_prepare(s, &o->add, "INSERT INTO packed_texts VALUES(?,?,?)", err);
}

static struct ms_str nth_text(const struct mstx_texts_out *o, uint32_t i)
{
    const uint32_t from = i != 0 ? o->end.p[i - 1] : 0;
    ms_assert(i < o->end.n && o->end.p[i] >= from);
    return (struct ms_str){o->text.p + from, o->end.p[i] - from};
}

enum ms_rc mstx__texts_put(struct mstx_texts_out *o, struct ms_str text, uint32_t *id,
                           struct ms_err *err)
{
    ms_assert(text.n != 0 && o->text.n <= UINT32_MAX);
    uint32_t *known = &o->known[ms_str_hash(text) >> 32 & (MSTX_TEXTS_KNOWN - 1)];
    if (*known == 0 || !ms_str_eq(nth_text(o, *known - 1), text)) {
        if (o->first + o->end.n >= MSTX_TEXT_PACKED - 1)
            return ms_fail(err, MS_E_LIMIT, "more than 2^31 different attributes of events");
        uint32_t *end = ms_vec_push(&o->end);
        if (end == NULL)
            return ms_no_memory(err);
        ms_buf_str(&o->text, text);
        *end = (uint32_t)o->text.n;
        *known = (uint32_t)o->end.n;
    }
    *id = MSTX_TEXT_PACKED | (o->first + *known - 1);
    return o->text.n >= BLOB_BYTES ? mstx__texts_flush(o, err) : ms_buf_check(&o->text, err);
}

static void put_length(struct ms_buf *b, uint32_t n)
{
    uint8_t varint[MSTX_VARINT_MAX];
    ms_buf_put(b, varint, (size_t)(mstx_put_varint(varint, n) - varint));
}

enum ms_rc mstx__texts_flush(struct mstx_texts_out *o, struct ms_err *err)
{
    MS_TRY(ms_buf_check(&o->text, err));
    if (o->end.n == 0)
        return MS_OK;
    ms_buf_clear(&o->blob);
    ms_buf_putc(&o->blob, VERSION);
    for (uint32_t i = 0; i < o->end.n; i++)
        put_length(&o->blob, nth_text(o, i).n);
    ms_buf_str(&o->blob, ms_buf_slice(&o->text));
    MS_TRY(ms_buf_check(&o->blob, err));
    ms_stmt_i64(o->add, 1, o->first);
    ms_stmt_i64(o->add, 2, (int64_t)o->end.n);
    ms_stmt_blob(o->add, 3, o->blob.p, o->blob.n);
    o->first += (uint32_t)o->end.n;
    o->end.n = 0;
    ms_buf_clear(&o->text);
    memset(o->known, 0, sizeof o->known);
    return ms_stmt_run(o->add, err);
}

void mstx__texts_out_free(struct mstx_texts_out *o)
{
    ms_stmt_free(o->add);
    o->add = NULL;
    ms_vec_free(&o->end);
    ms_buf_free(&o->text);
    ms_buf_free(&o->blob);
}

/* ---- reading ------------------------------------------------------------------- */

/* Finds the texts in a blob; false when it is damaged. */
static bool split_blob(struct ms_str blob, struct ms_str *text, uint32_t rows)
{
    const uint8_t *p = (const uint8_t *)blob.p, *end = p + blob.n;
    if (blob.n == 0 || *p++ != VERSION)
        return false;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t n = 0;
        for (unsigned shift = 0;; shift += 7, p++) {
            if (p == end || shift > 28)
                return false;
            n |= (uint64_t)(*p & 0x7f) << shift;
            if (*p < 0x80)
                break;
        }
        p++;
        text[i].n = n <= blob.n ? (uint32_t)n : blob.n;
    }
    const char *at = (const char *)p;
    for (uint32_t i = 0; i < rows; i++) {
        if (text[i].n > (size_t)((const char *)end - at))
            return false;
        text[i].p = at;
        at += text[i].n;
    }
    return true;
}

static void note_failure(struct mstx_texts_in *in, const struct ms_err *why)
{
    if (in->failed.rc == MS_OK)
        in->failed = *why;
}

static void note_no_memory(struct mstx_texts_in *in)
{
    struct ms_err err = {0};
    (void)ms_no_memory(&err);
    note_failure(in, &err);
}

/* Keeps the blob of the current row of the statement at a place in the list. */
static bool keep_blob(struct mstx_texts_in *in, size_t at, struct mstx_texts_blob *b)
{
    const struct ms_str data = ms_stmt_get_blob(in->get, 2);
    struct ms_str *text = NULL, kept = {NULL, 0};
    if (b->rows > data.n)
        return false;
    if (ms_vec_reserve(&in->blob, in->blob.n + 1)) {
        text = ms_arena_alloc(in->arena, (b->rows + (size_t)1) * sizeof *text);
        kept = ms_arena_str(in->arena, data);
    }
    if (text == NULL || kept.p == NULL)
        note_no_memory(in);
    if (text == NULL || kept.p == NULL || !split_blob(kept, text, b->rows))
        return false;
    b->text = text;
    memmove(&in->blob.p[at + 1], &in->blob.p[at], (in->blob.n++ - at) * sizeof *in->blob.p);
    in->blob.p[at] = *b;
    return true;
}

/* Reads the blob with a text into its place in the list. */
static bool fetch_blob(struct mstx_texts_in *in, size_t at, uint32_t number)
{
    struct ms_err why = {0};
    bool more = false;
    enum ms_rc rc = MS_OK;
    if (in->get == NULL)
        rc = ms_store_prepare(in->store, &in->get,
                              "SELECT id, rows, data FROM packed_texts WHERE id <= ?"
                              " ORDER BY id DESC LIMIT 1",
                              &why);
    if (rc == MS_OK) {
        ms_stmt_i64(in->get, 1, number);
        rc = ms_stmt_step(in->get, &more, &why);
    }
    if (rc != MS_OK)
        note_failure(in, &why);
    bool ok = rc == MS_OK && more;
    if (ok) {
        const int64_t first = ms_stmt_get_i64(in->get, 0), rows = ms_stmt_get_i64(in->get, 1);
        ok = first >= 0 && first <= number && rows > number - first && rows < MSTX_TEXT_PACKED;
        struct mstx_texts_blob b = {.first = (uint32_t)first, .rows = (uint32_t)rows};
        ok = ok && keep_blob(in, at, &b);
    }
    if (in->get != NULL)
        ms_stmt_reset(in->get);
    return ok;
}

/* Returns the place of the first blob that begins behind a number. */
static size_t place_behind(const struct mstx_texts_in *in, uint32_t number)
{
    size_t low = 0, high = in->blob.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (in->blob.p[mid].first <= number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct ms_str mstx__texts_get(struct mstx_texts_in *in, uint32_t id)
{
    ms_assert((id & MSTX_TEXT_PACKED) != 0);
    const uint32_t number = id & ~MSTX_TEXT_PACKED;
    size_t at = place_behind(in, number);
    const struct mstx_texts_blob *b = at != 0 ? &in->blob.p[at - 1] : NULL;
    if (b == NULL || number - b->first >= b->rows) {
        if (!fetch_blob(in, at, number))
            return MS_STR("");
        b = &in->blob.p[at];
    }
    return b->text[number - b->first];
}

void mstx__texts_in_free(struct mstx_texts_in *in)
{
    ms_stmt_free(in->get);
    ms_vec_free(&in->blob);
}
