/* SPDX-License-Identifier: MIT
 *
 * store_pages: refuses a database in which two pages of a tree have the same child.
 *
 * SQLite follows such pages: it reads the child once for each page that names it. A dozen pages, each
 * of which names the next one three hundred times, then read as a table of billions of rows, and
 * whoever reads the table does not end. In a sound database every page has one parent, so each
 * interior page is checked when SQLite first reads it: its children are added to a set, and a page
 * that is already in the set is corruption. The check sees the pages through a VFS that is the
 * system's, except that a page which was read or mapped passes through here. It costs no further
 * reading, and two bits for each page of the file.
 *
 * A row may also share its overflow pages with other rows, or name one of them again and again: a
 * thousand rows of 20 MB each in a file of 28 MB. So all rows together may not say that they have more
 * bytes than the file has.
 *
 * A database with auto_vacuum has pointer maps, every so many pages: such a page is no page of a tree,
 * though its first byte may be that of one. It may not be a child either, nor the root of a table,
 * which ms_store__find_code sees to: otherwise a tree could grow through pages that are not checked.
 *
 * An overflow page is not taken for a page of a tree, as it begins with the number of the next one,
 * whose first byte is 2 from 33 million pages on only.
 */
#include "probe/base/mem.h"
#include "probe/base/store_int.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

enum { PAGE_MIN = 512, DB_HEADER = 100, SIZE_AT = 16, VERSION_AT = 24, VERSION_SIZE = 16 };
enum { RESERVED_AT = 20, AUTO_VACUUM_AT = 52, MAP_ENTRY = 5, FIRST_MAP = 2, LOCK_BYTE = 1 << 30 };
enum { INTERIOR_INDEX = 2, INTERIOR_TABLE = 5, LEAF_INDEX = 10, LEAF_TABLE = 13 };
enum { CELLS_AT = 3, LAST_CHILD_AT = 8, LEAF_HEADER = 8, INTERIOR_HEADER = 12, CHILD_SIZE = 4 };

/* What is kept of an open database, behind what the system's VFS keeps of it. */
struct page_guard {
    const sqlite3_io_methods *system;
    sqlite3_io_methods own;
    uint32_t page_size;                  /* 0 until the first page is read */
    bool has_maps;                       /* pointer maps, for auto_vacuum */
    unsigned char version[VERSION_SIZE]; /* changes whenever another connection writes */
    uint64_t pages;                      /* the largest number in the sets; 0: there are none */
    uint64_t *is_child, *is_checked;     /* sets of page numbers */
    uint64_t bytes, claimed; /* of the file; that the rows of checked pages say they have */
};

static sqlite3_vfs *system_vfs, guarded_vfs;

static size_t guard_offset(void)
{
    const size_t align = _Alignof(struct page_guard);
    return ((size_t)system_vfs->szOsFile + align - 1) / align * align;
}

static struct page_guard *guard_of(sqlite3_file *f)
{
    return (struct page_guard *)(void *)((char *)f + guard_offset());
}

static uint32_t be16(const unsigned char *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const unsigned char *p)
{
    return be16(p) << 16 | be16(p + 2);
}

/* Adds a page to a set; returns whether it was in the set before. */
static bool add_page(uint64_t *set, uint64_t page)
{
    const uint64_t bit = UINT64_C(1) << page % 64;
    const bool was = (set[page / 64] & bit) != 0;
    set[page / 64] |= bit;
    return was;
}

static void forget_pages(struct page_guard *g)
{
    ms_free(g->is_child);
    ms_free(g->is_checked);
    g->is_child = g->is_checked = NULL;
    g->pages = g->claimed = 0;
}

/* Makes sets with room for each page of the file; returns an SQLite code. */
static int make_sets(struct page_guard *g, sqlite3_file *f)
{
    sqlite3_int64 bytes = 0;
    const int code = g->system->xFileSize(f, &bytes);
    if (code != SQLITE_OK)
        return code;
    const uint64_t pages = (uint64_t)bytes / g->page_size + 1;
    g->bytes = (uint64_t)bytes;
    g->is_child = ms_calloc(pages / 64 + 1, sizeof *g->is_child);
    g->is_checked = ms_calloc(pages / 64 + 1, sizeof *g->is_checked);
    if (g->is_child == NULL || g->is_checked == NULL) {
        forget_pages(g);
        return SQLITE_NOMEM;
    }
    g->pages = pages;
    return SQLITE_OK;
}

/* Returns whether a page is a pointer map: the first one, and one after as many pages as it has entries
 * for, or the page behind it where it would be the page of the lock, which is never used. */
static bool is_map(const struct page_guard *g, uint64_t page)
{
    if (!g->has_maps || page < FIRST_MAP)
        return false;
    const uint64_t each = g->page_size / MAP_ENTRY + 1, lock = LOCK_BYTE / g->page_size + 1;
    const uint64_t map = (page - FIRST_MAP) / each * each + FIRST_MAP;
    return page == (map == lock ? map + 1 : map);
}

static bool is_interior(int type)
{
    return type == INTERIOR_INDEX || type == INTERIOR_TABLE;
}

/* Returns the list of the places of cells, NULL when it is longer than the page, which SQLite itself
 * refuses. */
static const unsigned char *cell_list(const struct page_guard *g, const unsigned char *page,
                                      size_t head, uint32_t *cells)
{
    const size_t at = head + (is_interior(page[head]) ? INTERIOR_HEADER : LEAF_HEADER);
    *cells = be16(page + head + CELLS_AT);
    return at + 2 * (size_t)*cells <= g->page_size ? page + at : NULL;
}

static uint32_t place_of_cell(const struct page_guard *g, const unsigned char *list, uint32_t i)
{
    return be16(list + 2 * (size_t)i) & (g->page_size - 1);
}

/* Adds the children of an interior page; false when one of them is already a child, or a pointer map.
 * SQLite itself refuses numbers behind the end of the file. */
static bool add_children(struct page_guard *g, const unsigned char *page, size_t head)
{
    uint32_t cells, child = be32(page + head + LAST_CHILD_AT);
    const unsigned char *list = cell_list(g, page, head, &cells);
    for (uint32_t i = 0; list != NULL; i++) {
        if (child <= g->pages && (is_map(g, child) || add_page(g->is_child, child)))
            return false;
        if (i == cells)
            return true;
        const uint32_t at = place_of_cell(g, list, i);
        child = at + CHILD_SIZE <= g->page_size ? be32(page + at) : UINT32_MAX;
    }
    return true;
}

/* Reads a number of SQLite: seven bits in each byte, the highest first, eight in the ninth. */
static uint64_t number_at(const unsigned char *p, const unsigned char *end)
{
    uint64_t v = 0;
    for (int i = 0; i < 8 && p < end; i++, p++) {
        v = v << 7 | (*p & 0x7F);
        if (*p < 0x80)
            return v;
    }
    return p < end ? v << 8 | *p : v;
}

/* Adds the bytes that the rows of a page say they have; false when all rows together say more than
 * the file has: what does not fit on the page of a row lies on pages that several rows name. */
static bool add_claims(struct page_guard *g, const unsigned char *page, size_t head)
{
    uint32_t cells;
    const unsigned char *list = cell_list(g, page, head, &cells);
    const uint32_t skipped = page[head] == INTERIOR_INDEX ? CHILD_SIZE : 0;
    for (uint32_t i = 0; list != NULL && i < cells; i++) {
        const uint32_t at = place_of_cell(g, list, i) + skipped;
        if (at >= g->page_size || page[at] < 0x80)
            continue; /* fewer than 128 bytes lie on the page itself */
        const uint64_t n = number_at(page + at, page + g->page_size);
        if (n > g->bytes - g->claimed)
            return false;
        g->claimed += n;
    }
    return true;
}

/* Returns an SQLite code for a page that has been read. */
static int check_page(sqlite3_file *f, const unsigned char *page, int64_t offset)
{
    struct page_guard *g = guard_of(f);
    const size_t head = offset == 0 ? DB_HEADER : 0;
    const uint64_t number = (uint64_t)offset / g->page_size + 1;
    const int type = page[head];
    if ((!is_interior(type) && type != LEAF_INDEX && type != LEAF_TABLE) || is_map(g, number))
        return SQLITE_OK;
    const int code = g->pages == 0 ? make_sets(g, f) : SQLITE_OK;
    if (code != SQLITE_OK || number > g->pages || add_page(g->is_checked, number))
        return code;
    if (is_interior(type) && !add_children(g, page, head))
        return SQLITE_CORRUPT;
    return type == INTERIOR_TABLE || add_claims(g, page, head) ? SQLITE_OK : SQLITE_CORRUPT;
}

/* Learns from the first page the size of all and whether there are pointer maps, and forgets what was
 * learned of a file that another connection has changed: SQLite then reads the first page again. */
static void look_at_first(struct page_guard *g, const unsigned char *page)
{
    const uint32_t size = be16(page + SIZE_AT);
    g->page_size = size == 1 ? 1 << 16 : size;
    g->has_maps = be32(page + AUTO_VACUUM_AT) != 0 && page[RESERVED_AT] == 0;
    if (memcmp(g->version, page + VERSION_AT, VERSION_SIZE) != 0)
        forget_pages(g);
    memcpy(g->version, page + VERSION_AT, VERSION_SIZE);
}

/* SQLite reads whole pages, and parts of the first one. */
static int check_read(sqlite3_file *f, const unsigned char *p, int n, int64_t offset)
{
    struct page_guard *g = guard_of(f);
    if (offset == 0 && n >= DB_HEADER)
        look_at_first(g, p);
    return n >= PAGE_MIN && (uint32_t)n == g->page_size ? check_page(f, p, offset) : SQLITE_OK;
}

static int guarded_read(sqlite3_file *f, void *p, int n, sqlite3_int64 offset)
{
    const int code = guard_of(f)->system->xRead(f, p, n, offset);
    return code == SQLITE_OK ? check_read(f, p, n, offset) : code;
}

static int guarded_fetch(sqlite3_file *f, sqlite3_int64 offset, int n, void **p)
{
    const struct page_guard *g = guard_of(f);
    int code = g->system->xFetch(f, offset, n, p);
    if (code == SQLITE_OK && *p != NULL && (code = check_read(f, *p, n, offset)) != SQLITE_OK) {
        g->system->xUnfetch(f, offset, *p);
        *p = NULL;
    }
    return code;
}

/* Pages move between their parents while a tree grows. */
static int guarded_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 offset)
{
    forget_pages(guard_of(f));
    return guard_of(f)->system->xWrite(f, p, n, offset);
}

static int guarded_close(sqlite3_file *f)
{
    forget_pages(guard_of(f));
    return guard_of(f)->system->xClose(f);
}

static int guarded_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *given)
{
    (void)vfs;
    const int code = system_vfs->xOpen(system_vfs, name, f, flags, given);
    if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0)
        return code;
    struct page_guard *g = guard_of(f);
    *g = (struct page_guard){.system = f->pMethods, .own = *f->pMethods};
    g->own.xRead = guarded_read;
    g->own.xWrite = guarded_write;
    g->own.xClose = guarded_close;
    if (g->own.iVersion >= 3)
        g->own.xFetch = guarded_fetch;
    f->pMethods = &g->own;
    return SQLITE_OK;
}

static void register_guard(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    if (system_vfs == NULL)
        return;
    guarded_vfs = *system_vfs;
    guarded_vfs.zName = "msprobe-guarded";
    guarded_vfs.szOsFile = (int)(guard_offset() + sizeof(struct page_guard));
    guarded_vfs.xOpen = guarded_open;
    sqlite3_vfs_register(&guarded_vfs, 0);
}

const char *ms_store__guarded_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_guard);
    return guarded_vfs.zName;
}
