/* SPDX-License-Identifier: MIT
 *
 * fold_parts: see the header.
 */
#include "mstx/rundb/fold_parts.h"

#include "mstx/rundb/pack.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <zlib.h>

enum { PART_MAX = 1 << 20, LEVEL = 6, PERIOD_MAX = MSTX_CHUNK_MAX };
enum { LEADER = 128, WORD_BITS = 16 };
static const size_t KEPT_MAX = (size_t)1 << 26; /* bytes of parts in memory */
static const uint64_t ID_MAX = (uint64_t)1 << 26;

static enum ms_rc fail_part(struct ms_err *err)
{
    return ms_fail(err, MS_E_FORMAT,
                   "a part of folded events is damaged; import the capture again");
}

/* ---- models -------------------------------------------------------------------- */

void mstx__context_fill(struct mstx_context *c)
{
    ms_assert(c->from[MSTX_SYMBOLS] == MSTX_RANS_SUM);
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
        memset(c->at + c->from[s], (int)s, (size_t)(c->from[s + 1] - c->from[s]));
}

static void read_context(struct mstx_context *c, struct mstx_bytes *b)
{
    uint16_t frequency[MSTX_SYMBOLS] = {0};
    const uint64_t n = mstx_get_below(b, MSTX_SYMBOLS + 1);
    uint32_t sum = 0;
    for (uint64_t i = 0; i < n && !b->bad; i++) {
        const unsigned s = mstx_get_byte(b);
        const uint32_t f = (uint32_t)mstx_get_below(b, MSTX_RANS_SUM + 1);
        b->bad |= s >= MSTX_SYMBOLS || f == 0;
        if (b->bad)
            break;
        b->bad |= frequency[s] != 0;
        frequency[s] = (uint16_t)f;
        sum += f;
    }
    b->bad |= sum != MSTX_RANS_SUM;
    if (b->bad)
        return;
    c->from[0] = 0;
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
        c->from[s + 1] = (uint16_t)(c->from[s] + frequency[s]);
    mstx__context_fill(c);
}

static void read_class(struct mstx_class *c, uint32_t contexts, struct mstx_bytes *b)
{
    c->centre = (int64_t)mstx_unzigzag(mstx_get_varint(b));
    const unsigned byte = mstx_get_byte(b);
    c->by_leader = (byte & LEADER) != 0;
    c->context = (uint8_t)(byte & (LEADER - 1u));
    b->bad |= c->context >= contexts;
}

enum ms_rc mstx__model_read(struct mstx_model *m, struct ms_str text, struct ms_err *err)
{
    struct mstx_bytes b = mstx_bytes_of(text);
    *m = (struct mstx_model){.contexts = (uint32_t)mstx_get_below(&b, MSTX_CONTEXTS + 1)};
    m->context = ms_calloc(m->contexts + (size_t)1, sizeof *m->context);
    if (m->context == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < m->contexts && !b.bad; i++)
        read_context(&m->context[i], &b);
    m->classes = (uint32_t)mstx_get_below(&b, MSTX_CLASSES + 1);
    b.bad |= m->contexts == 0 || m->classes == 0 || m->classes > text.n;
    if (b.bad)
        return ms_fail(err, MS_E_FORMAT,
                       "a model of folded times is damaged; import the capture again");
    m->class = ms_calloc(m->classes, sizeof *m->class);
    if (m->class == NULL)
        return ms_no_memory(err);
    for (uint32_t i = 0; i < m->classes && !b.bad; i++)
        read_class(&m->class[i], m -> contexts, &b);
    if (b.bad || b.at != b.end)
        return ms_fail(err, MS_E_FORMAT,
                       "a model of folded times is damaged; import the capture again");
    return MS_OK;
}

void mstx__model_free(struct mstx_model *m)
{
    ms_free(m->context);
    ms_free(m->class);
    *m = (struct mstx_model){0};
}

/* ---- reading ------------------------------------------------------------------- */

void mstx__decoder_begin(struct mstx_decoder *d, struct mstx_bytes *b)
{
    const uint64_t words = mstx_get_varint(b);
    *d = (struct mstx_decoder){.end = b->end};
    d->bad = b->bad || words < 2 || words > (uint64_t)(b->end - b->at) / 2;
    d->word = b->at;
    d->words_end = d->bits = d->bad ? b->at : b->at + 2 * words;
    b->at = b->end;
    if (d->bad) {
        d->bits = d->end;
        d->x = 1 << WORD_BITS;
        return;
    }
    const uint8_t *w = d->word;
    d->x = ((uint64_t)w[0] | (uint64_t)w[1] << 8) << WORD_BITS | w[2] | (uint64_t)w[3] << 8;
    d->word += 4;
    d->bad = d->x < 1 << WORD_BITS;
}

bool mstx__decoder_ended(const struct mstx_decoder *d)
{
    return !d->bad && d->x == 1 << WORD_BITS && d->word == d->words_end && d->bits == d->end;
}

/* ---- compression ------------------------------------------------------------------ */

enum ms_rc mstx__part_pack(struct ms_buf *out, struct ms_str part, struct ms_err *err)
{
    ms_buf_clear(out);
    if (part.n > PART_MAX)
        return ms_fail(err, MS_E_LIMIT, "a part of folded events has more than %d bytes", PART_MAX);
    mstx_buf_varint(out, part.n);
    uLongf n = compressBound(part.n);
    char *room = ms_buf_room(out, n);
    if (room == NULL)
        return ms_buf_check(out, err);
    if (compress2((Bytef *)room, &n, (const Bytef *)part.p, part.n, LEVEL) != Z_OK)
        return ms_no_memory(err);
    out->n += n;
    return MS_OK;
}

/* Decompresses a part; the caller frees *text. */
static enum ms_rc expand_part(struct ms_str data, char **text, uint32_t *n, struct ms_err *err)
{
    struct mstx_bytes b = mstx_bytes_of(data);
    uLongf size = (uLongf)mstx_get_below(&b, PART_MAX + 1);
    if (b.bad || size == 0)
        return fail_part(err);
    const uLongf want = size;
    *text = ms_alloc(size);
    if (*text == NULL)
        return ms_no_memory(err);
    const int rc = uncompress((Bytef *)*text, &size, b.at, (uLong)(b.end - b.at));
    *n = (uint32_t)size;
    if (rc == Z_OK && size == want)
        return MS_OK;
    ms_free(*text);
    *text = NULL;
    return rc == Z_MEM_ERROR ? ms_no_memory(err) : fail_part(err);
}

/* ---- the kinds --------------------------------------------------------------------- */

static enum ms_rc read_pattern(struct mstx_part *p, struct mstx_bytes *b, size_t *bytes,
                               struct ms_err *err)
{
    p->n = (uint32_t)mstx_get_below(b, PERIOD_MAX + 1);
    const bool has_slopes = mstx_get_byte(b) != 0;
    if (b->bad || p->n == 0 || p->n > (uint64_t)(b->end - b->at))
        return fail_part(err);
    p->base = ms_calloc(p->n, sizeof *p->base);
    p->slope = has_slopes ? ms_calloc(p->n, sizeof *p->slope) : NULL;
    if (p->base == NULL || (has_slopes && p->slope == NULL))
        return ms_no_memory(err);
    *bytes += 2 * p->n * sizeof *p->base;
    uint64_t before = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        before += mstx_unzigzag(mstx_get_varint(b));
        p->base[i] = (int64_t)before;
    }
    for (uint32_t i = 0; has_slopes && i < p->n; i++)
        p->slope[i] = (int64_t)mstx_unzigzag(mstx_get_varint(b));
    return MS_OK;
}

static enum ms_rc read_structure(struct mstx_part *p, struct mstx_bytes *b, size_t *bytes,
                                 struct ms_err *err)
{
    p->is_periodic = mstx_get_byte(b) != 0;
    p->n = (uint32_t)mstx_get_below(b, 2 * MSTX_CHUNK_MAX + 1);
    if (b->bad || p->n == 0 || p->n > (uint64_t)(b->end - b->at))
        return fail_part(err);
    p->step = ms_calloc(p->n, sizeof *p->step);
    if (p->step == NULL)
        return ms_no_memory(err);
    *bytes += p->n * sizeof *p->step;
    for (uint32_t i = 0; i < p->n; i++)
        p->step[i] = (uint16_t)mstx_get_below(b, MSTX_POINT_END + MSTX_CHUNK_MAX);
    return MS_OK;
}

static enum ms_rc read_kind(struct mstx_part *p, struct ms_str text, size_t *bytes,
                            struct ms_err *err)
{
    struct mstx_bytes b = mstx_bytes_of(text);
    p->kind = mstx_get_byte(&b);
    switch (p->kind) {
    case MSTX_PART_PATTERN:
        MS_TRY(read_pattern(p, &b, bytes, err));
        break;
    case MSTX_PART_STRUCTURE:
        MS_TRY(read_structure(p, &b, bytes, err));
        break;
    case MSTX_PART_MODEL:
        MS_TRY(mstx__model_read(&p->model, ms_str_sub(text, 1, text.n), err));
        *bytes += p->model.contexts * sizeof *p->model.context;
        return MS_OK;
    default:
        return fail_part(err);
    }
    return !b.bad && b.at == b.end ? MS_OK : fail_part(err);
}

void mstx__part_free(struct mstx_part *p)
{
    if (p == NULL)
        return;
    ms_free(p->base);
    ms_free(p->slope);
    ms_free(p->step);
    mstx__model_free(&p->model);
    ms_free(p);
}

struct mstx_part *mstx__part_read(struct ms_str text, size_t *bytes, struct ms_err *err)
{
    struct mstx_part *p = ms_calloc(1, sizeof *p);
    if (p == NULL) {
        (void)!ms_no_memory(err);
        return NULL;
    }
    if (read_kind(p, text, bytes, err) == MS_OK)
        return p;
    mstx__part_free(p);
    return NULL;
}

/* ---- the parts of a database ------------------------------------------------------- */

static void forget_all(struct mstx_parts *p)
{
    for (size_t i = 0; i < p->part.n; i++) {
        mstx__part_free(p->part.p[i]);
        p->part.p[i] = NULL;
    }
    p->bytes = 0;
}

void mstx__parts_rest(struct mstx_parts *p)
{
    if (p->bytes > KEPT_MAX)
        forget_all(p);
}

void mstx__parts_free(struct mstx_parts *p)
{
    forget_all(p);
    ms_vec_free(&p->part);
    ms_stmt_free(p->get);
    p->get = NULL;
}

static bool reserve_id(struct mstx_parts *p, uint64_t id)
{
    if (id < p->part.n)
        return true;
    const size_t want = (size_t)id + (size_t)id / 2 + 64;
    if (!ms_vec_reserve(&p->part, want))
        return false;
    memset(p->part.p + p->part.n, 0, (want - p->part.n) * sizeof *p->part.p);
    p->part.n = want;
    return true;
}

/* Reads the part of the current row of the statement. */
static enum ms_rc take_row(struct mstx_parts *p, uint64_t id, struct ms_err *err)
{
    char *text = NULL;
    uint32_t n = 0;
    MS_TRY(expand_part(ms_stmt_get_blob(p->get, 0), &text, &n, err));
    struct mstx_part *part = mstx__part_read((struct ms_str){text, n}, &p->bytes, err);
    ms_free(text);
    if (part == NULL)
        return MS_E_FORMAT;
    if (reserve_id(p, id)) {
        p->part.p[id] = part;
        return MS_OK;
    }
    mstx__part_free(part);
    return ms_no_memory(err);
}

static enum ms_rc fetch(struct mstx_parts *p, uint64_t id, struct ms_err *err)
{
    bool more = false;
    if (p->get == NULL)
        MS_TRY(
            ms_store_prepare(p->store, &p->get, "SELECT data FROM fold_parts WHERE id = ?", err));
    ms_stmt_i64(p->get, 1, (int64_t)id);
    enum ms_rc rc = ms_stmt_step(p->get, &more, err);
    if (rc == MS_OK)
        rc = more ? take_row(p, id, err)
                  : ms_fail(err, MS_E_FORMAT,
                            "run.db has no part %" PRIu64 "; import the capture again", id);
    ms_stmt_reset(p->get);
    return rc;
}

const struct mstx_part *mstx__parts_get(struct mstx_parts *p, uint64_t id, enum mstx_part_kind kind,
                                        struct ms_err *err)
{
    if (id == 0 || id > ID_MAX) {
        (void)!fail_part(err);
        return NULL;
    }
    if ((id >= p->part.n || p->part.p[id] == NULL) && fetch(p, id, err) != MS_OK)
        return NULL;
    if (p->part.p[id]->kind == kind)
        return p->part.p[id];
    (void)!fail_part(err);
    return NULL;
}
