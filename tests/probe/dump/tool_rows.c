/* SPDX-License-Identifier: MIT
 *
 * tool_rows: what the library reads from the files of a dump, as JSON lists one
 * after the other, for scripts to compare with other readers.
 *
 *     tool_rows dump.json         ["dump", task, level, framework, mode], then for each record
 *                                 ["record", name, kind, dir, rows] and its rows as ["row", name,
 *                                 section, type, dtype, shape, Max, Min, Mean, Norm,
 *                                 requires_grad, md5]
 *     tool_rows construct.json    ["node", name, parent, micro step]
 *     tool_rows stack.json        ["stack", name, frames]
 */
#include "probe/base/jwrite.h"
#include "probe/dump/dump.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"

#include <stdio.h>

static struct ms_jwrite line;

static void begin_line(const char *what)
{
    ms_jwrite_init(&line, 0, 1 << 24);
    ms_jwrite_arr(&line);
    ms_jwrite_str(&line, ms_str_of(what));
}

static void end_line(void)
{
    ms_jwrite_arr_end(&line);
    ms_buf_putc(&line.buf, '\n');
    fwrite(line.buf.p, 1, line.buf.n, stdout);
    ms_jwrite_free(&line);
}

/* JSON of the file as it is, or null. */
static void put_json(struct ms_str json)
{
    if (json.n != 0)
        ms_jwrite_raw(&line, json);
    else
        ms_jwrite_null(&line);
}

static void put_row(const struct probe_dump *d, const struct probe_row *row)
{
    struct probe_leaf leaf;
    struct ms_buf name = {.max = 1 << 20};
    probe_row_leaf(d, row, &leaf);
    probe_row_name(d, row, &name);
    begin_line("row");
    ms_jwrite_str(&line, ms_buf_slice(&name));
    ms_jwrite_str(&line, ms_str_of(probe_section_names[row->section]));
    ms_jwrite_str(&line, leaf.type);
    ms_jwrite_str(&line, leaf.dtype_text);
    put_json(leaf.shape_json);
    for (int i = 0; i < PROBE_STATS; i++)
        put_json(leaf.stat[i].text);
    put_json(leaf.requires_grad < 0   ? MS_STR_NONE
             : leaf.requires_grad > 0 ? MS_STR("true")
                                      : MS_STR("false"));
    ms_jwrite_str(&line, leaf.md5);
    end_line();
    ms_buf_free(&name);
}

static enum ms_rc show_dump(const char *path, struct ms_err *err)
{
    struct probe_dump *d;
    MS_TRY(probe_dump_open(&d, path, 0, NULL, err));
    begin_line("dump");
    ms_jwrite_str(&line, d->task);
    ms_jwrite_str(&line, d->level);
    ms_jwrite_str(&line, ms_str_of(probe_framework_text(d->framework)));
    ms_jwrite_str(&line, ms_str_of(probe_mode_text(d->mode)));
    end_line();
    for (uint32_t i = 0; i < d->nodes.n; i++) {
        static const char *const dirs[] = {"", "forward", "backward"};
        const struct probe_node *n = &d->nodes.p[i];
        begin_line("record");
        ms_jwrite_str(&line, probe_node_name(d, i));
        ms_jwrite_str(&line, ms_str_of(probe_node_kind_text((enum probe_node_kind)n->kind)));
        ms_jwrite_str(&line, ms_str_of(dirs[n->dir]));
        ms_jwrite_u64(&line, n->nrows);
        end_line();
        for (uint32_t k = 0; k < n->nrows; k++)
            put_row(d, &d->rows.p[n->first_row + k]);
    }
    probe_dump_close(d);
    return MS_OK;
}

static enum ms_rc show_tree(const char *path, struct ms_err *err)
{
    struct probe_tree t;
    MS_TRY(probe_tree_open(&t, path, 0, err));
    for (uint32_t i = 0; i < t.nodes.n; i++) {
        const struct probe_tree_node *n = &t.nodes.p[i];
        if (!n->listed)
            continue;
        begin_line("node");
        ms_jwrite_str(&line, probe_tree_name(&t, i));
        if (n->parent != MS_MAP_NONE)
            ms_jwrite_str(&line, probe_tree_name(&t, n->parent));
        else
            ms_jwrite_null(&line);
        ms_jwrite_u64(&line, n->micro_step);
        end_line();
    }
    probe_tree_close(&t);
    return MS_OK;
}

static enum ms_rc show_stacks(const char *path, struct ms_err *err)
{
    struct probe_stacks s;
    MS_TRY(probe_stacks_open(&s, path, 0, err));
    for (uint32_t i = 0; i < s.stack_of.n; i++) {
        begin_line("stack");
        ms_jwrite_str(&line, ms_map_key(&s.names, i));
        /* The list as one line: text with line breaks escaped. */
        struct ms_str list = s.frames.p[s.stack_of.p[i]];
        struct ms_buf scratch = {.max = 1 << 20};
        struct ms_str frame;
        struct ms_jread r;
        ms_jread_init(&r, list.p, list.n, 0);
        ms_jwrite_arr(&line);
        while (probe_stack_next(&r, &scratch, &frame))
            ms_jwrite_str(&line, frame);
        ms_jwrite_arr_end(&line);
        end_line();
        ms_buf_free(&scratch);
    }
    probe_stacks_close(&s);
    return MS_OK;
}

int main(int argc, char **argv)
{
    struct ms_err err = {0};
    if (argc != 2)
        return 2;
    struct ms_str name = ms_path_base(argv[1]);
    enum ms_rc rc = ms_str_is(name, "construct.json") ? show_tree(argv[1], &err)
                    : ms_str_is(name, "stack.json")   ? show_stacks(argv[1], &err)
                                                      : show_dump(argv[1], &err);
    if (rc != MS_OK)
        printf("[\"error\", \"%s\"]\n", err.msg);
    return rc != MS_OK;
}
