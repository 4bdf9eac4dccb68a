/* SPDX-License-Identifier: MIT
 *
 * fuzz pair: two texts, cut at the first line that is "---", as the members of two
 * dumps.  Every row of the target is listed at least once, in every mode the cells of
 * all rows can be made, and a dump against itself has nothing to remark.
 */
#include "compare/official/rules_official.h"
#include "compare/source/source.h"
#include "compare/table/comparison.h"
#include "compare/write/table.h"
#include "viz/words/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine)
{
    if (!fine)
        __builtin_trap();
}

static char paths[2][64];

static void remove_files(void)
{
    unlink(paths[0]);
    unlink(paths[1]);
}

static void write_side(const char *path, const char *members, size_t n)
{
    static const char head[] = "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": "
                               "\"pytorch\", \"data\": {\n";
    FILE *f = fopen(path, "wb");
    check(f != NULL);
    fwrite(head, 1, sizeof head - 1, f);
    if (n != 0)
        fwrite(members, 1, n, f);
    fputs("}}", f);
    check(fclose(f) == 0);
}

static void look(const struct cmp *c, bool same)
{
    struct cmp_view v;
    struct cmp_cell cells[CMP_COLUMNS];
    size_t rows = 0;
    if (cmp_view_init(&v, NULL) != MS_OK)
        return;
    for (size_t g = 0; g < cmp_groups(c); g++) {
        check(cmp_view_group(c, g, &v, NULL) == MS_OK);
        check(v.rows.n == cmp_group_rows(c, g));
        for (size_t i = 0; i < v.rows.n; i++) {
            check(cmp_table_cells(&c->set, c, &v, i, cells, NULL) == MS_OK);
            const struct cmp__pair *p = &c->rows.pairs.p[v.rows.p[i].pair];
            check(!same || p->t != p->b || v.rows.p[i].notes == 0);
            rows++;
        }
    }
    check(rows == cmp_rows(c) && rows >= c->rows.t.order.n);
    cmp_view_free(&v);
}

/* A suspect is a node of one of the sides; a dump against itself has none. */
static void explain(const struct cmp *c, bool same)
{
    struct cmp_source *s;
    const struct cmp_suspect *list;
    if (cmp_source_new(&s, NULL) != MS_OK)
        return;
    check(cmp_source_add(s, c, 0, 0, NULL, NULL) == MS_OK);
    check(cmp_source_find(s, NULL) == MS_OK);
    size_t n = cmp_source_suspects(s, &list);
    check(n == 0 || !same || c->set.conf.fuzzy);
    for (size_t i = 0; i < n; i++) {
        struct ms_buf text = {.max = 1 << 20};
        check(list[i].place == i + 1 && viz_words_say(VIZ_ENGLISH, list[i].message, &text));
        ms_buf_free(&text);
        check(list[i].target.p != NULL || list[i].golden.p != NULL);
        check(!(list[i].factor < 1));
    }
    cmp_source_free(s);
}

static void compare(const char *t, const char *b, const struct cmp_conf *conf, bool same)
{
    struct cmp *c;
    if (cmp_open(&c, conf, t, b, NULL, NULL) != MS_OK)
        return;
    look(c, same);
    explain(c, same);
    cmp_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_str text = {(const char *)data, (uint32_t)size};
    if (size > 1 << 14)
        return 0;
    if (paths[0][0] == 0) {
        snprintf(paths[0], sizeof paths[0], "/tmp/fuzz-pair-%d-t.json", (int)getpid());
        snprintf(paths[1], sizeof paths[1], "/tmp/fuzz-pair-%d-b.json", (int)getpid());
        atexit(remove_files);
    }
    int64_t cut = size != 0 ? ms_str_find_str(text, MS_STR("\n---\n")) : -1;
    struct ms_str t = cut < 0 ? text : ms_str_sub(text, 0, (uint32_t)cut);
    struct ms_str b = cut < 0 ? MS_STR("") : ms_str_sub(text, (uint32_t)cut + 5, text.n);
    write_side(paths[0], t.p, t.n);
    write_side(paths[1], b.p, b.n);
    compare(paths[0], paths[0], &(struct cmp_conf){.ext = true}, true);
    compare(paths[0], paths[1], &(struct cmp_conf){.ext = true}, false);
    compare(paths[0], paths[1], &(struct cmp_conf){.fuzzy = true}, false);
    compare(paths[0], paths[1],
            &(struct cmp_conf){.rules = cmp_rules_of(CMP_STRICT), .cell.on = true}, false);
    compare(paths[0], paths[1], &(struct cmp_conf){.rules = cmp_rules_of(CMP_OLD)}, false);
    return 0;
}
