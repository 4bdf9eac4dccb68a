/* SPDX-License-Identifier: MIT
 *
 * rank_files: the documents of one rank's directory. Frames of stack.json are compared as the JSON
 * text that will be written, so one look-up finds equal stacks.
 */
#include "probe/write/rank_files.h"

#include "probe/base/calm.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"
#include "probe/dump/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- documents that are whole after each flush -------------------------------------- */

/* JSON documents that grow at their end.
 *
 * A reader sees a complete document at any time: an addition becomes visible at once or, when the
 * process is killed during the write, not at all. */

/* Most bytes of one record's text; the description of a tensor takes a few hundred. */
#define TEXT_MAX ((size_t)1 << 30)

static const char *name_of(const struct probe__append *a)
{
    const char *slash = strrchr(a->path, '/');
    return slash != NULL ? slash + 1 : a->path;
}

/* Returns the open directory of the document, or -1 with errno. */
static int open_dir_of(const struct probe__append *a)
{
    const char *slash = strrchr(a->path, '/');
    size_t n = slash != NULL ? (size_t)(slash - a->path) + 1 : 0;
    char *dir =
        n != 0 ? ms_str_dup((struct ms_str){a->path, (uint32_t)n}) : ms_str_dup(MS_STR("."));
    errno = ENOMEM;
    int fd = dir != NULL ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    ms_free(dir);
    return fd;
}

/* Opens the directory of "dir/name" and builds the hidden name of the second file in it. */
static enum ms_rc open_dir(struct probe__append *a, struct ms_err *err)
{
    struct ms_buf name = {.max = TEXT_MAX};
    ms_buf_printf(&name, ".%s.next", name_of(a));
    a->next_name = name.bad == MS_OK ? ms_str_dup(ms_buf_slice(&name)) : NULL;
    ms_buf_free(&name);
    if (a->next_name == NULL)
        return ms_no_memory(err);
    a->dir = ms_hold(open_dir_of(a));
    return a->dir.fd >= 0 ? MS_OK : ms_fail_sys(err, "%s: cannot write", a->path);
}

static enum ms_rc open_next(struct probe__append *a, struct ms_err *err)
{
    a->next =
        ms_hold(openat(a->dir.fd, a->next_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    a->next_end = 0;
    return a->next.fd >= 0 ? MS_OK : ms_fail_sys(err, "%s: cannot write", a->path);
}

static void drop_next(struct probe__append *a)
{
    if (a->next.fd < 0)
        return;
    ms_hold_end(&a->next);
    (void)unlinkat(a->dir.fd, a->next_name, 0);
}

/* Closes the file and keeps the memory, which append_free releases. */
static void append_close(struct probe__append *a)
{
    if (a->path == NULL)
        return; /* was never opened */
    if (ms_is_held(&a->dir))
        drop_next(a);
    ms_hold_end(&a->next);
    ms_hold_end(&a->file);
    ms_hold_end(&a->dir);
    ms_free(a->path);
    ms_free(a->next_name);
    a->path = a->next_name = NULL;
}

/* Opens again what the program has closed: descriptors that it does not know, as daemons do. */
static enum ms_rc hold_all(struct probe__append *a, struct ms_err *err)
{
    bool good = ms_is_held(&a->dir) || ms_hold_again(&a->dir, open_dir_of(a));
    if (good && a->file.fd >= 0 && !ms_is_held(&a->file))
        good = ms_hold_again(&a->file, openat(a->dir.fd, name_of(a), O_RDWR | O_CLOEXEC));
    if (!good)
        return ms_fail(err, MS_E_IO, "%s: the program has closed its descriptor", a->path);
    if (!ms_is_held(&a->next))
        drop_next(a);
    return MS_OK;
}

/* Opens a new document. The file appears with the first flush, as a complete document without
 * members: the caller first writes the head to json, up to the place where members belong. *a is
 * zero, or was closed: then its memory is used again. */
static enum ms_rc append_open(struct probe__append *a, const char *path, const char *tail_0,
                              const char *tail, struct ms_err *err)
{
    struct ms_buf text = a->json.buf, behind = a->behind; /* reused buffers */
    *a = (struct probe__append){.file = MS_HELD_NONE,
                                .dir = MS_HELD_NONE,
                                .next = MS_HELD_NONE,
                                .tail_0 = tail_0,
                                .tail = tail,
                                .behind = behind};
    ms_jwrite_init(&a->json, 1, TEXT_MAX);
    a->json.buf.p = text.p;
    a->json.buf.cap = text.cap;
    a->behind.max = a->json.buf.max;
    ms_buf_clear(&a->behind);
    a->path = ms_str_dup(ms_str_of(path));
    if (a->path == NULL)
        return ms_fail(err, MS_E_NOMEM, "%s: %s", path, ms_rc_text(MS_E_NOMEM));
    enum ms_rc rc = open_dir(a, err);
    if (rc == MS_OK)
        rc = open_next(a, err);
    if (rc != MS_OK)
        append_close(a);
    return rc;
}

/* ---- writing ---------------------------------------------------------- */

static enum ms_rc write_at(const struct probe__append *a, int fd, struct iovec *part, unsigned n,
                           uint64_t at, struct ms_err *err)
{
    for (unsigned i = 0; i < n;) {
        struct ms_calm calm;
        ms_calm_file(&calm);
        ssize_t done = pwritev(fd, part + i, (int)(n - i), (off_t)at);
        ms_calm_end(&calm);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return ms_fail_sys(err, "%s: cannot write", a->path);
        at += (uint64_t)done;
        for (; i < n && (size_t)done >= part[i].iov_len; i++)
            done -= (ssize_t)part[i].iov_len;
        if (i < n) {
            part[i].iov_base = (char *)part[i].iov_base + done;
            part[i].iov_len -= (size_t)done;
        }
    }
    return MS_OK;
}

static struct iovec part_of(const char *p, size_t n)
{
    return (struct iovec){(void *)(uintptr_t)p, n};
}

/* Restores the old tail after a write that a full disk cut short; its bytes are already
 * allocated. */
static void take_back(const struct probe__append *a)
{
    size_t n = a->in_file != NULL ? strlen(a->in_file) : 0;
    struct iovec part = part_of(a->in_file, n);
    if (n != 0 && write_at(a, a->file.fd, &part, 1, a->end, NULL) == MS_OK)
        (void)!ftruncate(a->file.fd,
                         (off_t)(a->end + n)); /* the failed write is the error to report */
}

/* Tells whether `behind` holds the whole body; a second file then needs no copy of the first. */
static bool is_whole(const struct probe__append *a)
{
    return a->behind.n == a->end;
}

/* Records that the pending text is written to the first file alone. */
static void note_behind(struct probe__append *a)
{
    enum { WHOLE_MAX = 1 << 16 };
    if (a->next.fd < 0 && (!is_whole(a) || a->end + a->json.buf.n > WHOLE_MAX))
        return; /* `behind` would no longer hold the whole body */
    ms_buf_str(&a->behind, ms_buf_slice(&a->json.buf));
    if (a->behind.bad == MS_OK)
        return;
    ms_buf_clear(&a->behind);
    drop_next(a); /* the second file is made anew at the next flush that needs one */
}

static enum ms_rc write_here(struct probe__append *a, const char *tail, struct ms_err *err)
{
    struct iovec part[2] = {part_of(a->json.buf.p, a->json.buf.n), part_of(tail, strlen(tail))};
    enum ms_rc rc = write_at(a, a->file.fd, part, 2, a->end, err);
    if (rc != MS_OK) {
        take_back(a);
        return rc;
    }
    note_behind(a);
    a->end += a->json.buf.n;
    return MS_OK;
}

/* Creates a second file, whose body together with `behind` equals the body of the first. */
static enum ms_rc make_next(struct probe__append *a, struct ms_err *err)
{
    char block[1 << 14];
    MS_TRY(open_next(a, err));
    if (is_whole(a))
        return MS_OK;
    ms_buf_clear(&a->behind);
    while (a->next_end < a->end) {
        uint64_t left = a->end - a->next_end;
        ssize_t n =
            pread(a->file.fd, block, left < sizeof block ? left : sizeof block, (off_t)a->next_end);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ms_fail_sys(err, "%s: cannot read", a->path);
        struct iovec part = part_of(block, (size_t)n);
        MS_TRY(write_at(a, a->next.fd, &part, 1, a->next_end, err));
        a->next_end += (uint64_t)n;
    }
    return MS_OK;
}

static void swap_files(struct probe__append *a)
{
    const struct ms_held file = a->file;
    const uint64_t end = a->end;
    a->file = a->next;
    a->next = file;
    a->end = a->next_end + a->behind.n + a->json.buf.n;
    a->next_end = end;
    struct ms_buf text = a->behind;
    a->behind = a->json.buf;
    a->json.buf = text;
}

/* Makes the second file the visible one. */
static enum ms_rc show_next(struct probe__append *a, struct ms_err *err)
{
    bool is_first = a->file.fd < 0;
    const int dir = a->dir.fd;
    if (!is_first && renameat2(dir, a->next_name, dir, name_of(a), RENAME_EXCHANGE) == 0) {
        swap_files(a);
        return MS_OK;
    }
    if (renameat(dir, a->next_name, dir, name_of(a)) != 0)
        return ms_fail_sys(err, "%s: cannot write", a->path);
    swap_files(a);
    ms_hold_end(&a->next); /* replaced by the renameat: not all file systems can exchange files */
    a->in_place = !is_first;
    return MS_OK;
}

static enum ms_rc write_beside(struct probe__append *a, const char *tail, struct ms_err *err)
{
    enum ms_rc rc = a->next.fd < 0 ? make_next(a, err) : MS_OK;
    struct iovec part[3] = {part_of(a->behind.p, a->behind.n),
                            part_of(a->json.buf.p, a->json.buf.n), part_of(tail, strlen(tail))};
    if (rc == MS_OK)
        rc = write_at(a, a->next.fd, part, 3, a->next_end, err);
    if (rc == MS_OK)
        rc = show_next(a, err);
    if (rc != MS_OK)
        drop_next(a); /* frees its space when the disk is full */
    return rc;
}

/* Tells whether the text and its tail lie within one page of the file. No system has pages
 * smaller than PAGE. */
static bool fits_page(const struct probe__append *a, const char *tail)
{
    enum { PAGE = 4096 };
    return a->end / PAGE == (a->end + a->json.buf.n + strlen(tail) - 1) / PAGE;
}

/* Writes the pending text and a new tail to the file in one step. On failure the file is
 * unchanged and the text is kept for the next flush. */
static enum ms_rc append_flush(struct probe__append *a, struct ms_err *err)
{
    if (a->json.err.rc != MS_OK)
        return ms_fail(err, a->json.err.rc, "%s: %s", a->path, a->json.err.msg);
    const char *tail = a->members ? a->tail : a->tail_0;
    if (a->json.buf.n == 0 && a->in_file == tail)
        return MS_OK; /* nothing to write */
    if (a->dir.fd < 0)
        return ms_fail(err, MS_E_IO, "%s: is closed", a->path != NULL ? a->path : "?");
    MS_TRY(hold_all(a, err));
    /* The official readers take this lock. A reader that holds the lock must not stall the
     * training, and need not: the document is complete before and after the write. */
    const int fd = a->file.fd;
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    bool here = fd >= 0 && (a->in_place || fits_page(a, tail));
    enum ms_rc rc = here ? write_here(a, tail, err) : write_beside(a, tail, err);
    if (rc == MS_OK) {
        a->in_file = tail;
        ms_buf_clear(&a->json.buf);
    }
    if (locked && (fd == a->file.fd || fd == a->next.fd))
        flock(fd, LOCK_UN);
    return rc;
}

/* Appends the text of one complete member, indented for its depth; replaces calls to json. */
static void append_member(struct probe__append *a, struct ms_str text)
{
    ms_jwrite_members(&a->json, text);
    a->members = true;
}

static void append_free(struct probe__append *a)
{
    ms_jwrite_free(&a->json);
    ms_buf_free(&a->behind);
}

/* ---- documents of a rank ------------------------------------------------------------ */

enum { FRAMES_MAX = 1 << 20 };

static const struct probe__stack_group unused = {MS_MAP_NONE, MS_MAP_NONE, MS_MAP_NONE};

static enum ms_rc no_memory(struct ms_err *err)
{
    return ms_fail(err, MS_E_NOMEM, "stack.json: %s", ms_rc_text(MS_E_NOMEM));
}

/* ---- stack.json: collecting ------------------------------------------------------- */

/* Drops the nodes, which belong to one file; stacks are kept for all files. */
static void forget_nodes(struct probe__stack_writer *s)
{
    for (size_t i = 0; i < s->order.n; i++)
        s->groups.p[s->order.p[i]] = unused;
    s->order.n = 0;
    s->nodes.n = 0;
    ms_buf_clear(&s->names);
    s->names.max = SIZE_MAX / 2;
    s->written = 0;
    s->split = false;
}

static enum ms_rc stack_open(struct probe__stack_writer *s, const char *path, struct ms_err *err)
{
    forget_nodes(s);
    if (s->arena == NULL) {
        s->arena = ms_arena_new(SIZE_MAX);
        ms_jwrite_init(&s->frames, 1, FRAMES_MAX);
    }
    if (s->arena == NULL)
        return no_memory(err);
    MS_TRY(append_open(&s->out, path, "}", "\n}", err));
    ms_jwrite_obj(&s->out.json);
    return append_flush(&s->out, err);
}

uint32_t probe__stack_group(struct probe__stack_writer *s, const char *const *frames, unsigned n,
                            struct ms_err *err)
{
    bool added;
    ms_jwrite_free(&s->frames);
    ms_jwrite_init(&s->frames, 1, FRAMES_MAX);
    ms_jwrite_arr(&s->frames);
    for (unsigned i = 0; i < n; i++)
        ms_jwrite_str(&s->frames, ms_str_of(frames[i]));
    ms_jwrite_arr_end(&s->frames);
    if (s->frames.err.rc != MS_OK) {
        ms_fail(err, s->frames.err.rc, "a stack left out: %s", s->frames.err.msg);
        return MS_MAP_NONE;
    }
    /* Reserve room for the group first: the map must not hold stacks without a group. */
    uint32_t g = ms_vec_reserve(&s->groups, s->groups.n + 1)
                     ? ms_map_put_copy(&s->stacks, ms_buf_slice(&s->frames.buf), s->arena, &added)
                     : MS_MAP_NONE;
    if (g == MS_MAP_NONE)
        no_memory(err);
    else if (added)
        s->groups.p[s->groups.n++] = unused;
    return g;
}

static struct ms_str node_name(const struct probe__stack_writer *s,
                               const struct probe__stack_node *n)
{
    return (struct ms_str){s->names.p + n->name, n->name_n};
}

enum ms_rc probe__stack_add(struct probe__stack_writer *s, struct ms_str node, uint32_t group,
                            struct ms_err *err)
{
    struct probe__stack_group *g = &s->groups.p[group];
    if (!ms_vec_reserve(&s->order, s->order.n + 1) || !ms_vec_reserve(&s->nodes, s->nodes.n + 1))
        return no_memory(err);
    const size_t name = s->names.n;
    ms_buf_str(&s->names, node);
    MS_TRY(ms_buf_check(&s->names, err));
    uint32_t id = (uint32_t)s->nodes.n;
    s->nodes.p[s->nodes.n++] = (struct probe__stack_node){name, node.n, MS_MAP_NONE};
    if (g->first != MS_MAP_NONE) {
        s->nodes.p[g->last].next = id;
    } else {
        g->first = id;
        s->order.p[s->order.n++] = group;
    }
    g->last = id;
    if (g->pending == MS_MAP_NONE)
        g->pending = id;
    return MS_OK;
}

/* ---- writing ---------------------------------------------------------- */

/* Writes the frames of a group, parsed from the JSON list that is its key. */
static void put_frames(struct probe__stack_writer *s, struct ms_jwrite *json, uint32_t group)
{
    struct ms_jread r;
    struct ms_str list = ms_map_key(&s->stacks, group);
    struct ms_str frame;
    ms_jwrite_arr(json);
    ms_jread_init(&r, list.p, list.n, 0);
    s->text.max = FRAMES_MAX;
    while (probe_stack_next(&r, &s->text, &frame))
        ms_jwrite_str(json, frame);
    ms_jwrite_arr_end(json);
}

/* Writes "id": [[names from `node` on], [frames]]. */
static void put_group(struct probe__stack_writer *s, struct ms_jwrite *json, uint32_t id,
                      uint32_t group, uint32_t node)
{
    char digits[MS_NUM_MAX];
    ms_jwrite_key(json, (struct ms_str){digits, ms_num_u64(digits, id)});
    ms_jwrite_arr(json);
    ms_jwrite_arr(json);
    for (; node != MS_MAP_NONE; node = s->nodes.p[node].next)
        ms_jwrite_str(json, node_name(s, &s->nodes.p[node]));
    ms_jwrite_arr_end(json);
    put_frames(s, json, group);
    ms_jwrite_arr_end(json);
}

static enum ms_rc stack_flush(struct probe__stack_writer *s, struct ms_err *err)
{
    for (size_t i = 0; i < s->order.n; i++) {
        uint32_t g = s->order.p[i];
        struct probe__stack_group *group = &s->groups.p[g];
        if (group->pending == MS_MAP_NONE)
            continue;
        s->split |= group->pending != group->first;
        put_group(s, &s->out.json, s->written++, g, group->pending);
        group->pending = MS_MAP_NONE;
        s->out.members = true;
    }
    return append_flush(&s->out, err);
}

static void put_all(struct probe__stack_writer *s, struct ms_jwrite *json, struct ms_out *out)
{
    ms_jwrite_obj(json);
    for (size_t i = 0; i < s->order.n; i++) {
        uint32_t g = s->order.p[i];
        put_group(s, json, (uint32_t)i, g, s->groups.p[g].first);
        ms_out_str(out, ms_buf_slice(&json->buf));
        ms_buf_clear(&json->buf);
    }
    ms_jwrite_obj_end(json);
}

/* Replaces the file by one in which each stack is a single group. */
static enum ms_rc rewrite_stacks(struct probe__stack_writer *s, struct ms_err *err)
{
    struct ms_out *out;
    struct ms_jwrite json;
    MS_TRY(ms_out_create(&out, s->out.path, err));
    ms_jwrite_init(&json, 1, SIZE_MAX / 2);
    put_all(s, &json, out);
    enum ms_rc rc = ms_jwrite_finish(&json, err);
    if (rc == MS_OK) {
        ms_out_str(out, ms_buf_slice(&json.buf));
        rc = ms_out_commit(out, err);
    } else {
        ms_out_abort(out);
    }
    ms_jwrite_free(&json);
    return rc;
}

/* Flushes, rewrites the file if some stack was split, and closes it. */
static enum ms_rc stack_finish(struct probe__stack_writer *s, struct ms_err *err)
{
    enum ms_rc rc = stack_flush(s, err);
    if (rc == MS_OK && s->split)
        rc = rewrite_stacks(s, err);
    append_close(&s->out);
    return rc;
}

static void stack_free(struct probe__stack_writer *s)
{
    append_free(&s->out);
    ms_jwrite_free(&s->frames);
    ms_map_free(&s->stacks);
    ms_vec_free(&s->groups);
    ms_vec_free(&s->order);
    ms_vec_free(&s->nodes);
    ms_buf_free(&s->names);
    ms_buf_free(&s->text);
    ms_arena_free(s->arena);
}

/* ---- the directory ------------------------------------------------------- */

enum { FLUSH_BYTES = 256 * 1024 };

static const char *const task_text[] = {"statistics", "tensor", "structure", "nan_check",
                                        "overflow_check"};
static const char *const level_text[] = {"mix", "L0", "L1", "debug"};
static const char *const framework_text[] = {"pytorch", "pytorch", "mindspore", "mindtorch"};

/* ---- opening ---------------------------------------------------------- */

static void put_head(struct probe__files *f)
{
    struct ms_jwrite *json = &f->dump.json;
    ms_jwrite_obj(json);
    ms_jwrite_kstr(json, "task", task_text[f->layout.task]);
    ms_jwrite_kstr(json, "level", level_text[f->layout.level]);
    ms_jwrite_kstr(json, "framework", framework_text[f->layout.framework]);
    ms_jwrite_key(json, MS_STR("dump_data_dir"));
    if (f->data_dir != NULL)
        ms_jwrite_str(json, ms_str_of(f->data_dir));
    else
        ms_jwrite_null(json);
    ms_jwrite_key(json, MS_STR("data"));
    ms_jwrite_obj(json);
}

static enum ms_rc open_document(const struct probe__files *f, struct probe__append *a,
                                const char *name, const char *tail_0, const char *tail,
                                struct ms_err *err)
{
    char *path = ms_path_join(f->dir, name);
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = append_open(a, path, tail_0, tail, err);
    ms_free(path);
    return rc;
}

static enum ms_rc open_dump(struct probe__files *f, struct ms_err *err)
{
    const char *name = f->layout.level == PROBE_LEVEL_DEBUG ? "debug.json" : "dump.json";
    MS_TRY(open_document(f, &f->dump, name, "}\n}", "\n }\n}", err));
    put_head(f);
    return append_flush(&f->dump, err);
}

static enum ms_rc open_extra(struct probe__files *f, struct ms_err *err)
{
    MS_TRY(open_document(f, &f->construct, "construct.json", "}", "\n}", err));
    ms_jwrite_obj(&f->construct.json);
    MS_TRY(append_flush(&f->construct, err));
    char *path = ms_path_join(f->dir, "stack.json");
    if (path == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = stack_open(&f->stack, path, err);
    ms_free(path);
    return rc;
}

/* Creates the directory of tensor files and stores its absolute path, which the head names. */
static enum ms_rc set_data_dir(struct probe__files *f, struct ms_err *err)
{
    char *rel = ms_path_join(f->dir, "dump_tensor_data");
    char absolute[PATH_MAX];
    enum ms_rc rc = rel == NULL ? ms_no_memory(err) : ms_mkdirs(rel, err);
    if (rc == MS_OK && realpath(rel, absolute) == NULL)
        rc = ms_fail_sys(err, "%s", rel);
    ms_free(rel);
    MS_TRY(rc);
    ms_free(f->data_dir);
    f->data_dir = ms_str_dup(ms_str_of(absolute));
    return f->data_dir != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc set_dir(struct probe__files *f, const char *dir, struct ms_err *err)
{
    char *copy = ms_str_dup(ms_str_of(dir));
    if (copy == NULL)
        return ms_no_memory(err);
    ms_free(f->dir);
    f->dir = copy;
    return f->layout.tensors ? set_data_dir(f, err) : MS_OK;
}

static enum ms_rc open_all(struct probe__files *f, const char *dir, struct ms_err *err)
{
    MS_TRY(ms_mkdirs(dir, err));
    MS_TRY(set_dir(f, dir, err));
    MS_TRY(open_dump(f, err));
    return f->layout.extra ? open_extra(f, err) : MS_OK;
}

enum ms_rc probe__files_open(struct probe__files *f, const char *dir,
                             const struct probe__layout *layout, struct ms_err *err)
{
    f->layout = *layout;
    enum ms_rc rc = open_all(f, dir, err);
    f->is_open = rc == MS_OK;
    if (rc != MS_OK)
        probe__files_abandon(f);
    return rc;
}

/* ---- writing ---------------------------------------------------------- */

bool probe__files_add(struct probe__files *f, struct ms_str member)
{
    append_member(&f->dump, member);
    return f->dump.json.buf.n >= FLUSH_BYTES;
}

void probe__files_parent(struct probe__files *f, struct ms_str child, const char *parent)
{
    struct ms_jwrite *json = &f->construct.json;
    ms_jwrite_key(json, child);
    if (parent != NULL)
        ms_jwrite_str(json, ms_str_of(parent));
    else
        ms_jwrite_null(json);
    f->construct.members = true;
}

enum ms_rc probe__files_flush(struct probe__files *f, struct ms_err *err)
{
    if (!f->is_open)
        return MS_OK;
    MS_TRY(append_flush(&f->dump, err));
    if (!f->layout.extra)
        return MS_OK;
    MS_TRY(append_flush(&f->construct, err));
    return stack_flush(&f->stack, err);
}

/* Updates a document's path after the directory was renamed. The path serves messages and, for
 * stack.json, the rewrite. */
static enum ms_rc follow(const struct probe__files *f, struct probe__append *a, struct ms_err *err)
{
    if (a->path == NULL)
        return MS_OK;
    char *path = ms_path_join(f->dir, ms_path_base(a->path).p);
    if (path == NULL)
        return ms_no_memory(err);
    ms_free(a->path);
    a->path = path;
    return MS_OK;
}

enum ms_rc probe__files_moved(struct probe__files *f, const char *dir, struct ms_err *err)
{
    MS_TRY(set_dir(f, dir, err));
    MS_TRY(follow(f, &f->dump, err));
    MS_TRY(follow(f, &f->construct, err));
    return follow(f, &f->stack.out, err);
}

/* ---- closing ---------------------------------------------------------- */

enum ms_rc probe__files_close(struct probe__files *f, struct ms_err *err)
{
    struct ms_err first = {0};
    if (!f->is_open)
        return MS_OK;
    append_flush(&f->dump, &first); /* `first` keeps the first failure */
    if (f->layout.extra) {
        append_flush(&f->construct, &first);
        stack_finish(&f->stack, &first);
    }
    probe__files_abandon(f);
    if (first.rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = first;
    return first.rc;
}

void probe__files_abandon(struct probe__files *f)
{
    append_close(&f->dump);
    append_close(&f->construct);
    append_close(&f->stack.out);
    f->is_open = false;
}

void probe__files_free(struct probe__files *f)
{
    append_free(&f->dump);
    append_free(&f->construct);
    stack_free(&f->stack);
    ms_free(f->dir);
    ms_free(f->data_dir);
}
