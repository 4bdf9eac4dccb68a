/* SPDX-License-Identifier: MIT
 *
 * packed_texts: see the header.
 */
#include "mstx/rundb/packed_texts.h"

#include "mstx/rundb/varint.h"

#include "probe/base/mem.h"
#include "probe/base/scan.h"

enum {
    VERSION_PLAIN = 1,
    VERSION_FORMS = 2,
    BLOB_BYTES = 1 << 17, /* of texts; 2^16 gave blobs of which a fifth was forms */
    FORMS_MOST = 4096,
    FORM_BYTES = 4096,
    RUNS_MOST = 1024, /* of a text */
    VALUE_DIGITS = 18
};
static const size_t TEXTS_MOST = (size_t)1 << 31; /* bytes of one blob, whose texts may be long */

/* ---- writing ------------------------------------------------------------------ */

enum ms_rc mstx__texts_out_new(struct mstx_texts_out *o, struct ms_store *s, struct ms_err *err)
{
    *o = (struct mstx_texts_out){.rows = {.max = TEXTS_MOST},
                                 .blob = {.max = TEXTS_MOST},
                                 .shape = {.max = FORM_BYTES},
                                 .arena = ms_arena_new((size_t)FORMS_MOST * FORM_BYTES * 2)};
    if (o->arena == NULL)
        return ms_no_memory(err);
    return ms_store_prepare(s, &o->add, "INSERT INTO packed_texts VALUES(?,?,?)", err);
}

/* Returns the value of a run of digits that reads the same when it is written again; UINT64_MAX: no. */
static uint64_t value_of(struct ms_str run)
{
    uint64_t v = 0;
    if (run.n > VALUE_DIGITS || (run.n > 1 && run.p[0] == '0'))
        return UINT64_MAX;
    for (uint32_t i = 0; i < run.n; i++)
        v = v * 10 + (uint64_t)(run.p[i] - '0');
    return v;
}

/* Splits a text into its runs of digits and its form; false where it has none. */
static bool split_text(struct mstx_texts_out *o, struct ms_str text)
{
    ms_buf_clear(&o->shape);
    o->runs.n = 0;
    for (uint32_t i = 0; i < text.n;) {
        const uint32_t from = i;
        while (i < text.n && !ms_is_digit(text.p[i]))
            i++;
        ms_buf_put(&o->shape, text.p + from, i - from);
        if (i == text.n)
            break;
        const uint32_t run = i;
        while (i < text.n && ms_is_digit(text.p[i]))
            i++;
        struct mstx_text_run *slot = o->runs.n < RUNS_MOST ? ms_vec_push(&o->runs) : NULL;
        if (slot == NULL || i - run > MSTX_TEXT_RUN_DIGITS)
            return false;
        slot->digits = ms_str_sub(text, run, i);
        slot->value = value_of(slot->digits);
        ms_buf_putc(&o->shape, '0');
    }
    return o->shape.bad == MS_OK;
}

/* Adds the form that o->shape holds, with places for the values of its runs. */
static bool add_form(struct mstx_texts_out *o)
{
    struct mstx_text_form *f =
        ms_vec_reserve(&o->last, o->last.n + o->runs.n) ? ms_vec_push(&o->form) : NULL;
    if (f == NULL)
        return false;
    *f = (struct mstx_text_form){.runs = (uint32_t)o->runs.n, .first = (uint32_t)o->last.n};
    o->last.n += o->runs.n;
    return true;
}

uint32_t mstx__texts_form(struct mstx_texts_out *o, struct ms_str text)
{
    bool is_new = false;
    if (text.n == 0 || !split_text(o, text))
        return MSTX_TEXT_FORMLESS;
    const struct ms_str shape = ms_buf_slice(&o->shape);
    const uint32_t at = o->form.n < FORMS_MOST
                            ? ms_map_put_copy(&o->forms, shape, o->arena, &is_new)
                            : ms_map_get(&o->forms, shape);
    if (at == MS_MAP_NONE || (is_new && !add_form(o)))
        return MSTX_TEXT_FORMLESS;
    return at < o->form.n ? at + 1 : MSTX_TEXT_FORMLESS;
}

static uint8_t *put_run(uint8_t *at, const struct mstx_text_run *run, uint64_t *last)
{
    if (run->value != UINT64_MAX) {
        at = mstx_put_varint_fast(at, mstx_zigzag(run->value - *last) << 1);
        *last = run->value;
        return at;
    }
    at = mstx_put_varint(at, (uint64_t)run->digits.n << 1 | 1);
    memcpy(at, run->digits.p, run->digits.n);
    return at + run->digits.n;
}

/* Starts the differences of a form anew at its first text in a blob. */
static bool use_form(struct mstx_texts_out *o, uint32_t form)
{
    uint32_t *slot = ms_vec_push(&o->used);
    struct mstx_text_form *f = &o->form.p[form];
    if (slot == NULL)
        return false;
    *slot = form;
    f->in_blob = (uint32_t)o->used.n;
    for (uint32_t i = 0; i < f->runs; i++)
        o->last.p[f->first + i] = 0;
    return true;
}

/* Numbers the text that was appended to the blob, which is written when it is large. */
static enum ms_rc end_text(struct mstx_texts_out *o, uint32_t *id, struct ms_err *err)
{
    if (o->first + o->n >= MSTX_TEXT_PACKED - 1)
        return ms_fail(err, MS_E_LIMIT, "more than 2^31 attributes of events");
    *id = MSTX_TEXT_PACKED | (o->first + o->n++);
    return o->bytes + o->rows.n >= BLOB_BYTES ? mstx__texts_flush(o, err)
                                              : ms_buf_check(&o->rows, err);
}

enum ms_rc mstx__texts_put_runs(struct mstx_texts_out *o, uint32_t form,
                                const struct mstx_text_run *runs, uint32_t *id, struct ms_err *err)
{
    ms_assert(form >= 1 && form <= o->form.n);
    const struct mstx_text_form *f = &o->form.p[form - 1];
    if (f->in_blob == 0 && !use_form(o, form - 1))
        return ms_no_memory(err);
    const size_t most = (f->runs + (size_t)2) * (MSTX_VARINT_MAX + MSTX_TEXT_RUN_DIGITS);
    uint8_t *from = (uint8_t *)ms_buf_room(&o->rows, most), *at = from;
    if (from == NULL)
        return ms_buf_check(&o->rows, err);
    at = mstx_put_varint_fast(at, f->in_blob);
    uint64_t *last = o->last.n != 0 ? o->last.p + f->first : NULL;
    o->bytes += ms_map_key(&o->forms, form - 1).n - f->runs;
    for (uint32_t i = 0; i < f->runs; i++) {
        ms_assert(runs[i].digits.n >= 1 && runs[i].digits.n <= MSTX_TEXT_RUN_DIGITS);
        o->bytes += runs[i].digits.n;
        at = put_run(at, &runs[i], &last[i]);
    }
    o->rows.n += (size_t)(at - from);
    return end_text(o, id, err);
}

enum ms_rc mstx__texts_put(struct mstx_texts_out *o, struct ms_str text, uint32_t *id,
                           struct ms_err *err)
{
    ms_assert(text.n != 0);
    const uint32_t form = mstx__texts_form(o, text);
    if (form != MSTX_TEXT_FORMLESS)
        return mstx__texts_put_runs(o, form, o->runs.p, id, err);
    mstx_buf_varint(&o->rows, 0);
    mstx_buf_varint(&o->rows, text.n);
    ms_buf_str(&o->rows, text);
    return end_text(o, id, err);
}

/* Writes the head of the blob, and makes all forms unused. */
static void put_forms(struct mstx_texts_out *o)
{
    ms_buf_clear(&o->blob);
    ms_buf_putc(&o->blob, VERSION_FORMS);
    mstx_buf_varint(&o->blob, o->used.n);
    mstx_buf_varint(&o->blob, o->bytes);
    for (size_t i = 0; i < o->used.n; i++) {
        const struct ms_str shape = ms_map_key(&o->forms, o->used.p[i]);
        mstx_buf_varint(&o->blob, shape.n);
        ms_buf_str(&o->blob, shape);
        o->form.p[o->used.p[i]].in_blob = 0;
    }
    o->used.n = 0;
    o->bytes = 0;
}

enum ms_rc mstx__texts_flush(struct mstx_texts_out *o, struct ms_err *err)
{
    MS_TRY(ms_buf_check(&o->rows, err));
    if (o->n == 0)
        return MS_OK;
    put_forms(o);
    ms_buf_str(&o->blob, ms_buf_slice(&o->rows));
    MS_TRY(ms_buf_check(&o->blob, err));
    ms_stmt_i64(o->add, 1, o->first);
    ms_stmt_i64(o->add, 2, o->n);
    ms_stmt_blob(o->add, 3, o->blob.p, o->blob.n);
    o->first += o->n;
    o->n = 0;
    ms_buf_clear(&o->rows);
    return ms_stmt_run(o->add, err);
}

void mstx__texts_out_free(struct mstx_texts_out *o)
{
    ms_stmt_free(o->add);
    o->add = NULL;
    ms_map_free(&o->forms);
    ms_vec_free(&o->form);
    ms_vec_free(&o->last);
    ms_vec_free(&o->used);
    ms_vec_free(&o->runs);
    ms_buf_free(&o->shape);
    ms_buf_free(&o->rows);
    ms_buf_free(&o->blob);
    ms_arena_free(o->arena);
    o->arena = NULL;
}

/* ---- reading ------------------------------------------------------------------- */

/* Finds the texts of a blob of version 1. */
static bool split_plain(struct mstx_bytes *r, struct ms_str *text, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++)
        text[i].n = (uint32_t)mstx_get_below(r, UINT32_MAX);
    for (uint32_t i = 0; i < rows && !r->bad; i++) {
        r->bad |= text[i].n > (size_t)(r->end - r->at);
        text[i].p = (const char *)r->at;
        r->at += r->bad ? 0 : text[i].n;
    }
    return !r->bad;
}

/* The forms of a blob, and the values of the runs of all of them. */
struct forms {
    MS_VEC(struct in_form {
        struct ms_str shape;
        size_t first;
    })
    list;
    MS_VEC(uint64_t) last;
    char *to, *end; /* room for texts */
};

static struct ms_str get_bytes(struct mstx_bytes *r)
{
    const uint32_t n = (uint32_t)mstx_get_below(r, UINT32_MAX);
    const struct ms_str s = {(const char *)r->at, n};
    r->bad |= n > (size_t)(r->end - r->at);
    r->at += r->bad ? 0 : n;
    return r->bad ? MS_STR("") : s;
}

static bool read_form(struct forms *f, struct mstx_bytes *r)
{
    const struct ms_str shape = get_bytes(r);
    struct in_form *slot = r->bad ? NULL : ms_vec_push(&f->list);
    if (slot == NULL || !ms_vec_reserve(&f->last, f->last.n + shape.n))
        return false;
    *slot = (struct in_form){shape, f->last.n};
    for (uint32_t i = 0; i < shape.n; i++) {
        if (shape.p[i] == '0')
            f->last.p[f->last.n++] = 0;
    }
    return true;
}

/* Writes the digits of the next run; NULL where they do not fit. */
static char *get_run(struct forms *f, struct mstx_bytes *r, uint64_t *last)
{
    char digits[24], *p = digits + sizeof digits;
    const uint64_t v = mstx_get_varint(r);
    struct ms_str s = {(const char *)r->at, (uint32_t)(v >> 1)};
    if ((v & 1) == 0) {
        *last += mstx_unzigzag(v >> 1);
        uint64_t left = *last;
        do {
            *--p = (char)('0' + left % 10);
            left /= 10;
        } while (left != 0);
        s = (struct ms_str){p, (uint32_t)(digits + sizeof digits - p)};
    } else {
        r->bad |= v >> 1 > MSTX_TEXT_RUN_DIGITS || v >> 1 > (size_t)(r->end - r->at);
        r->at += r->bad ? 0 : s.n;
    }
    if (r->bad || (size_t)(f->end - f->to) < s.n)
        return NULL;
    memcpy(f->to, s.p, s.n);
    return f->to + s.n;
}

/* Builds a text from its form and the runs that follow. */
static bool build_text(struct forms *f, const struct in_form *of, struct mstx_bytes *r,
                       struct ms_str *text)
{
    uint64_t *last = f->last.n != 0 ? f->last.p + of->first : NULL; /* a form may have no runs */
    char *from = f->to;
    for (uint32_t i = 0; i < of->shape.n && f->to != NULL; i++) {
        if (of->shape.p[i] == '0')
            f->to = get_run(f, r, last++);
        else if (f->to == f->end)
            f->to = NULL;
        else
            *f->to++ = of->shape.p[i];
    }
    if (f->to == NULL)
        return false;
    *text = (struct ms_str){from, (uint32_t)(f->to - from)};
    return true;
}

static bool read_texts(struct forms *f, struct mstx_bytes *r, struct ms_str *text, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        const uint64_t form = mstx_get_below(r, f->list.n + 1);
        if (form == 0)
            text[i] = get_bytes(r);
        else if (!build_text(f, &f->list.p[form - 1], r, &text[i]))
            return false;
        if (r->bad)
            return false;
    }
    return true;
}

static bool split_forms(struct mstx_bytes *r, struct ms_str *text, uint32_t rows,
                        struct ms_arena *a)
{
    struct forms f = {0};
    const uint64_t forms = mstx_get_below(r, FORMS_MOST + 1);
    const uint64_t bytes = mstx_get_below(r, 2 * BLOB_BYTES);
    bool ok = !r->bad;
    for (uint64_t i = 0; i < forms && ok; i++)
        ok = read_form(&f, r);
    f.to = ok ? ms_arena_text(a, bytes + 1) : NULL;
    f.end = f.to != NULL ? f.to + bytes : NULL;
    ok = f.to != NULL && read_texts(&f, r, text, rows);
    ms_vec_free(&f.list);
    ms_vec_free(&f.last);
    return ok;
}

bool mstx__texts_split(struct ms_str blob, struct ms_str *text, uint32_t rows, struct ms_arena *a)
{
    struct mstx_bytes r = mstx_bytes_of(blob);
    switch (mstx_get_byte(&r)) {
    case VERSION_PLAIN:
        return split_plain(&r, text, rows);
    case VERSION_FORMS:
        return split_forms(&r, text, rows, a);
    default:
        return false;
    }
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
    if (text == NULL || kept.p == NULL || !mstx__texts_split(kept, text, b->rows, in->arena))
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
