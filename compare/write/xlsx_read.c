/* SPDX-License-Identifier: MIT
 *
 * xlsx_read: reads a workbook, which is a zip archive of XML. A part is unpacked piece by
 * piece into the XML parser, so its size does not matter.
 *
 *     xl/sharedStrings.xml         <si><t>text</t></si> ...      optional
 *     xl/worksheets/sheetN.xml     <row r="1"><c r="A1" t="s"><v>0</v></c> ...
 *
 * Type t of a cell: "s" index of a shared string, "inlineStr" <is><t>text</t></is>,
 * "str" and "e" text in v, "b" 0 or 1, "n" or none a number.
 */
#include "compare/write/xlsx_read.h"

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/num.h"
#include "probe/base/vec.h"
#include "probe/base/zip.h"

#include <expat.h>
#include <stdio.h>
#include <zlib.h>

#define FILE_MAX   ((size_t)1 << 30)
#define SHARED_MAX ((size_t)1 << 30)
#define ROW_MAX    ((size_t)64 << 20) /* text of a row */
enum { PIECE = 64 << 10, COLUMNS_MAX = 16384, SHEETS_MAX = PROBE_ZIP_MEMBERS };

enum kind { NUMBER, SHARED, TEXT, BOOLEAN };

/* A cell of the row being read: text[from, to), or an index of a shared string. */
struct slot {
    enum kind kind;
    size_t from, to;
};

struct book {
    const char *name;
    struct probe_zip zip;
    struct ms_arena *arena;
    MS_VEC(struct ms_str) shared;
    cmp_xlsx_fn fn;
    void *ctx;
    /* state of the part being read */
    XML_Parser xml;
    uint32_t sheet, row;
    struct ms_buf text;
    MS_VEC(struct slot) slots;
    MS_VEC(struct cmp_xlsx_cell) cells;
    size_t column;
    bool in_cell, takes, phonetic;
    enum ms_rc rc;
    struct ms_err *err;
};

/* ---- memory for the two libraries ----------------------------------------- */

static voidpf zlib_alloc(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    return ms_calloc(items, size);
}

static void zlib_free(voidpf opaque, voidpf p)
{
    (void)opaque;
    ms_free(p);
}

static void *xml_alloc(size_t n)
{
    return ms_alloc(n);
}
static void *xml_realloc(void *p, size_t n)
{
    return ms_realloc(p, n);
}
static void xml_free(void *p)
{
    ms_free(p);
}

/* ---- events ------------------------------------------------------------------ */

/* Keeps the first failure and stops the parser. */
static void stop(struct book *b, enum ms_rc rc)
{
    if (b->rc == MS_OK)
        b->rc = rc;
    XML_StopParser(b->xml, XML_FALSE);
}

/* Returns the name without its namespace prefix. */
static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon != NULL ? colon + 1 : name;
}

static const char *find_attribute(const char **attributes, const char *name)
{
    for (; attributes[0] != NULL; attributes += 2) {
        if (strcmp(local_name(attributes[0]), name) == 0)
            return attributes[1];
    }
    return NULL;
}

static void XMLCALL on_text(void *ctx, const char *p, int n)
{
    struct book *b = ctx;
    if (b->takes && !b->phonetic)
        ms_buf_put(&b->text, p, (size_t)n);
    if (b->text.bad != MS_OK)
        stop(b, ms_buf_check(&b->text, b->err));
}

/* Rejects a document type: workbooks need none, and it allows endless expansion of entities. */
static void XMLCALL on_doctype(void *ctx, const char *name, const char *system_id,
                               const char *public_id, int has_subset)
{
    struct book *b = ctx;
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    stop(b, ms_fail(b->err, MS_E_FORMAT, "a document type in the XML"));
}

/* ---- shared strings ------------------------------------------------------------ */

static void XMLCALL shared_begin(void *ctx, const char *name, const char **attributes)
{
    struct book *b = ctx;
    (void)attributes;
    name = local_name(name);
    if (strcmp(name, "si") == 0)
        ms_buf_clear(&b->text);
    b->phonetic = b->phonetic || strcmp(name, "rPh") == 0;
    b->takes = strcmp(name, "t") == 0;
}

static void XMLCALL shared_end(void *ctx, const char *name)
{
    struct book *b = ctx;
    name = local_name(name);
    b->takes = false;
    if (strcmp(name, "rPh") == 0)
        b->phonetic = false;
    if (strcmp(name, "si") != 0)
        return;
    struct ms_str *slot = ms_vec_push(&b->shared);
    if (slot == NULL) {
        stop(b, ms_no_memory(b->err));
        return;
    }
    *slot = ms_arena_str(b->arena, ms_buf_slice(&b->text));
    if (slot->p == NULL)
        stop(b, ms_arena_fail(b->arena, b->err));
}

/* ---- a sheet --------------------------------------------------------------------- */

/* Returns the zero-based column of a reference such as "BC12"; COLUMNS_MAX when there is none. */
static size_t column_of(const char *reference)
{
    size_t column = 0;
    for (; *reference >= 'A' && *reference <= 'Z' && column <= COLUMNS_MAX; reference++)
        column = column * 26 + (size_t)(*reference - 'A') + 1;
    return column != 0 && column <= COLUMNS_MAX ? column - 1 : COLUMNS_MAX;
}

static void begin_row(struct book *b, const char **attributes)
{
    const char *r = find_attribute(attributes, "r");
    uint64_t number = 0;
    b->row = r != NULL && ms_str_u64(ms_str_of(r), &number) && number <= UINT32_MAX
                 ? (uint32_t)number
                 : b->row + 1;
    b->slots.n = 0;
    b->column = 0;
    ms_buf_clear(&b->text);
}

static enum kind kind_of(const char *t)
{
    return t == NULL || strcmp(t, "n") == 0 ? NUMBER
           : strcmp(t, "s") == 0            ? SHARED
           : strcmp(t, "b") == 0            ? BOOLEAN
                                            : TEXT;
}

/* Begins a cell; columns skipped since the previous cell get empty slots. */
static void begin_cell(struct book *b, const char **attributes)
{
    const char *r = find_attribute(attributes, "r");
    size_t column = r != NULL ? column_of(r) : b->slots.n;
    if (column >= COLUMNS_MAX || column < b->slots.n) {
        stop(b, ms_fail(b->err, MS_E_FORMAT, "row %u: a cell out of its place", b->row));
        return;
    }
    if (!ms_vec_reserve(&b->slots, column + 1)) {
        stop(b, ms_no_memory(b->err));
        return;
    }
    while (b->slots.n <= column)
        b->slots.p[b->slots.n++] = (struct slot){TEXT, b->text.n, b->text.n};
    b->slots.p[column].kind = kind_of(find_attribute(attributes, "t"));
    b->column = column;
    b->in_cell = true;
}

static void XMLCALL sheet_begin(void *ctx, const char *name, const char **attributes)
{
    struct book *b = ctx;
    name = local_name(name);
    if (strcmp(name, "row") == 0)
        begin_row(b, attributes);
    else if (strcmp(name, "c") == 0)
        begin_cell(b, attributes);
    b->phonetic = b->phonetic || strcmp(name, "rPh") == 0;
    b->takes = b->in_cell && (strcmp(name, "v") == 0 || strcmp(name, "t") == 0);
}

static enum ms_rc cell_of(const struct book *b, const struct slot *s, struct cmp_xlsx_cell *cell,
                          struct ms_err *err)
{
    struct ms_str text = {b->text.p + s->from, (uint32_t)(s->to - s->from)};
    double value;
    uint64_t index = 0;
    *cell = (struct cmp_xlsx_cell){.text = s->from != s->to ? text : MS_STR("")};
    if (cell->text.n == 0)
        return MS_OK;
    if (s->kind == NUMBER)
        cell->number = ms_num_parse_f64(text.p, text.n, &value);
    if (s->kind == BOOLEAN)
        cell->text = ms_str_is(text, "0") ? MS_STR("False") : MS_STR("True");
    if (s->kind != SHARED)
        return MS_OK;
    if (!ms_str_u64(text, &index) || index >= b->shared.n)
        return ms_fail(err, MS_E_FORMAT, "row %u: there is no shared string '%.*s'", b->row,
                       text.n < 20 ? (int)text.n : 20, text.p);
    cell->text = b->shared.p[index];
    return MS_OK;
}

static enum ms_rc give_row(struct book *b)
{
    struct ms_err *err = b->err;
    if (!ms_vec_reserve(&b->cells, b->slots.n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < b->slots.n; i++)
        MS_TRY(cell_of(b, &b->slots.p[i], &b->cells.p[i], err));
    const struct cmp_xlsx_row row = {b->cells.p, b->slots.n, b->sheet, b->row};
    return b->fn(b->ctx, &row, err);
}

static void XMLCALL sheet_end(void *ctx, const char *name)
{
    struct book *b = ctx;
    name = local_name(name);
    b->takes = false;
    if (strcmp(name, "rPh") == 0)
        b->phonetic = false;
    if (strcmp(name, "c") == 0 && b->in_cell) {
        b->slots.p[b->column].to = b->text.n;
        b->in_cell = false;
    }
    if (strcmp(name, "row") != 0 || b->rc != MS_OK)
        return;
    enum ms_rc rc = give_row(b);
    if (rc != MS_OK)
        stop(b, rc);
}

/* ---- parts ------------------------------------------------------------------------- */

static enum ms_rc feed_parser(struct book *b, const char *p, size_t n, bool last)
{
    enum XML_Status status = XML_Parse(b->xml, p, (int)n, last);
    if (b->rc != MS_OK)
        return b->rc;
    if (status == XML_STATUS_OK)
        return MS_OK;
    enum XML_Error why = XML_GetErrorCode(b->xml);
    if (why == XML_ERROR_NO_MEMORY)
        return ms_no_memory(b->err);
    return ms_fail_at(b->err, MS_E_FORMAT, (uint32_t)XML_GetCurrentLineNumber(b->xml),
                      (int64_t)XML_GetCurrentByteIndex(b->xml), "%s", XML_ErrorString(why));
}

static enum ms_rc feed_stored(struct book *b, const struct probe_zip_member *m)
{
    for (size_t at = 0; at < m->size; at += PIECE)
        MS_TRY(feed_parser(b, m->data + at, m->size - at < PIECE ? m->size - at : PIECE, false));
    return feed_parser(b, "", 0, true);
}

static enum ms_rc feed_pieces(struct book *b, const struct probe_zip_member *m, z_stream *z,
                              char *piece)
{
    int got = Z_OK;
    size_t left = m->size;
    while (got != Z_STREAM_END) {
        if (z->avail_in == 0 && left != 0) {
            z->avail_in = left < PIECE ? (uInt)left : PIECE;
            left -= z->avail_in;
        }
        z->next_out = (Bytef *)piece;
        z->avail_out = PIECE;
        got = inflate(z, Z_NO_FLUSH);
        if (got == Z_MEM_ERROR)
            return ms_no_memory(b->err);
        if (got != Z_OK && got != Z_STREAM_END)
            return ms_fail(b->err, MS_E_FORMAT, "the compressed data is damaged or cut short");
        MS_TRY(feed_parser(b, piece, PIECE - z->avail_out, false));
    }
    return feed_parser(b, "", 0, true);
}

static enum ms_rc feed_deflated(struct book *b, const struct probe_zip_member *m)
{
    enum { RAW = -15 }; /* negative window bits: raw deflate data without a header */
    z_stream z = {.zalloc = zlib_alloc, .zfree = zlib_free};
    /* zlib does not write to its input, but declares the pointer without const */
    memcpy(&z.next_in, &m->data, sizeof z.next_in);
    char *piece = ms_alloc(PIECE);
    enum ms_rc rc = MS_OK;
    if (piece == NULL || inflateInit2(&z, RAW) != Z_OK) {
        rc = ms_no_memory(b->err);
    } else {
        rc = feed_pieces(b, m, &z, piece);
        (void)inflateEnd(&z);
    }
    ms_free(piece);
    return rc;
}

static enum ms_rc read_part(struct book *b, const struct probe_zip_member *m,
                            XML_StartElementHandler begin, XML_EndElementHandler end)
{
    enum { STORED = 0, DEFLATED = 8 };
    const XML_Memory_Handling_Suite memory = {xml_alloc, xml_realloc, xml_free};
    if (m->method != STORED && m->method != DEFLATED)
        return ms_fail(b->err, MS_E_UNSUPPORTED, "%.*s is packed by method %u, which is not known",
                       MS_STR_ARG(m->name), m->method);
    b->xml = XML_ParserCreate_MM(NULL, &memory, NULL);
    if (b->xml == NULL)
        return ms_no_memory(b->err);
    b->rc = MS_OK;
    b->row = 0;
    b->in_cell = b->takes = b->phonetic = false;
    b->slots.n = 0;
    XML_SetUserData(b->xml, b);
    XML_SetElementHandler(b->xml, begin, end);
    XML_SetCharacterDataHandler(b->xml, on_text);
    XML_SetStartDoctypeDeclHandler(b->xml, on_doctype);
    enum ms_rc rc = m->method == STORED ? feed_stored(b, m) : feed_deflated(b, m);
    XML_ParserFree(b->xml);
    b->xml = NULL;
    return rc != MS_OK ? ms_err_wrap(b->err, "%.*s", MS_STR_ARG(m->name)), rc : MS_OK;
}

/* ---- the workbook -------------------------------------------------------------------- */

/* Lists the sheets in the order of their numbers. */
static uint32_t list_sheets(const struct probe_zip *z, const struct probe_zip_member **sheets)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < z->n; i++) {
        const struct probe_zip_member *m = &z->member[i];
        if (!ms_str_starts(m->name, MS_STR("xl/worksheets/sheet")) ||
            !ms_str_ends(m->name, MS_STR(".xml")))
            continue;
        uint32_t at = n++;
        for (; at > 0 && ms_str_cmp_natural(sheets[at - 1]->name, m->name) > 0; at--)
            sheets[at] = sheets[at - 1];
        sheets[at] = m;
    }
    return n;
}

static enum ms_rc read_book(struct book *b, const char *p, size_t n)
{
    const struct probe_zip_member *sheets[SHEETS_MAX];
    struct ms_err *err = b->err;
    MS_TRY(probe_zip_read(&b->zip, p, n, PROBE_ZIP_MEMBERS, err));
    uint32_t nsheets = list_sheets(&b->zip, sheets);
    if (nsheets == 0)
        return ms_fail(err, MS_E_FORMAT, "a zip archive, but not a workbook: it has no sheets");
    const struct probe_zip_member *shared =
        probe_zip_find(&b->zip, MS_STR("xl/"), "sharedStrings.xml");
    if (shared != NULL)
        MS_TRY(read_part(b, shared, shared_begin, shared_end));
    for (b->sheet = 0; b->sheet < nsheets; b->sheet++)
        MS_TRY(read_part(b, sheets[b->sheet], sheet_begin, sheet_end));
    return MS_OK;
}

enum ms_rc cmp_xlsx_parse(const char *name, const char *p, size_t n, cmp_xlsx_fn fn, void *ctx,
                          struct ms_err *err)
{
    struct ms_err own = {0};
    struct book *b = ms_calloc(1, sizeof *b);
    if (b == NULL)
        return ms_no_memory(err);
    *b = (struct book){.name = name,
                       .arena = ms_arena_new(SHARED_MAX),
                       .fn = fn,
                       .ctx = ctx,
                       .text.max = ROW_MAX,
                       .err = err != NULL ? err : &own};
    enum ms_rc rc = b->arena != NULL ? read_book(b, p, n) : ms_no_memory(b->err);
    if (rc != MS_OK)
        ms_err_wrap(b->err, "%s", name);
    ms_arena_free(b->arena);
    ms_vec_free(&b->shared);
    ms_vec_free(&b->slots);
    ms_vec_free(&b->cells);
    ms_buf_free(&b->text);
    ms_free(b);
    return rc;
}

enum ms_rc cmp_xlsx_read(const char *path, cmp_xlsx_fn fn, void *ctx, struct ms_err *err)
{
    struct ms_file f;
    MS_TRY(ms_file_map(&f, path, FILE_MAX, err));
    enum ms_rc rc = cmp_xlsx_parse(path, f.p, f.n, fn, ctx, err);
    ms_file_unmap(&f);
    return rc;
}
