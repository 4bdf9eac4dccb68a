/* SPDX-License-Identifier: MIT
 *
 * callsite: walking, unwinding and caching stacks.
 */
#include "probe/write/callsite.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* ---- names of frames ---------------------------------------------------------------- */

/* Addresses as frames of text. File and line come from elfutils' libdw, loaded when
 * installed; without it the dynamic symbols name the function. Separate debug files are not
 * searched for, since that can access the network. */

/* ---- libdw ------------------------------------------------------------ */

/* The declarations of <elfutils/libdwfl.h> that are needed here. */
struct dw_callbacks {
    int (*find_elf)(void *, void **, const char *, uint64_t, char **, void *);
    int (*find_debuginfo)(void *, void **, const char *, uint64_t, const char *, const char *,
                          uint32_t, char **);
    int (*section_address)(void *, void **, const char *, uint64_t, const char *, uint32_t,
                           const void *, uint64_t *);
    char **debuginfo_path;
};
static struct {
    void *session;
    void *(*module_of)(void *session, uint64_t at);
    void *(*line_at)(void *module, uint64_t at);
    const char *(*line_info)(void *line, uint64_t *at, int *number, int *column, uint64_t *mtime,
                             uint64_t *length);
    const char *(*name_of)(void *module, uint64_t at, uint64_t *offset, void *symbol,
                           uint32_t *section, void **elf, uint64_t *bias);
} dw;
static pthread_once_t dw_once = PTHREAD_ONCE_INIT;

static int no_debug_files(void *m, void **u, const char *n, uint64_t b, const char *f,
                          const char *link, uint32_t crc, char **out)
{
    (void)m, (void)u, (void)n, (void)b, (void)f, (void)link, (void)crc, (void)out;
    return -1;
}

/* POSIX lets a data pointer hold a function; ISO C has no cast for it. */
static bool load(void *library, const char *name, void *function)
{
    void *p = dlsym(library, name);
    memcpy(function, &p, sizeof p);
    return p != NULL;
}

static void dw_open(void)
{
    static struct dw_callbacks callbacks = {.find_debuginfo = no_debug_files};
    void *(*begin)(const struct dw_callbacks *);
    int (*report)(void *, pid_t);
    int (*report_end)(void *, void *, void *);
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !load(library, "dwfl_begin", &begin) ||
        !load(library, "dwfl_linux_proc_report", &report) ||
        !load(library, "dwfl_report_end", &report_end) ||
        !load(library, "dwfl_linux_proc_find_elf", &callbacks.find_elf) ||
        !load(library, "dwfl_addrmodule", &dw.module_of) ||
        !load(library, "dwfl_module_getsrc", &dw.line_at) ||
        !load(library, "dwfl_lineinfo", &dw.line_info) ||
        !load(library, "dwfl_module_addrinfo", &dw.name_of))
        return;
    void *session = begin(&callbacks);
    if (session != NULL && report(session, getpid()) == 0 && report_end(session, NULL, NULL) == 0)
        dw.session = session;
}

/* ---- one frame -------------------------------------------------------- */

struct place {
    const char *file, *function;
    int line; /* 0: unknown */
    uintptr_t offset;
};

static bool place_by_debug_info(uintptr_t pc, struct place *p)
{
    void *module = dw.session != NULL ? dw.module_of(dw.session, pc) : NULL;
    if (module == NULL)
        return false;
    uint64_t symbol[8]; /* an ELF symbol has 24 bytes */
    uint64_t offset = 0;
    void *line = dw.line_at(module, pc);
    p->function = dw.name_of(module, pc, &offset, symbol, NULL, NULL, NULL);
    p->offset = line == NULL ? (uintptr_t)offset : 0; /* shown only when the line is unknown */
    if (line != NULL)
        p->file = dw.line_info(line, NULL, &p->line, NULL, NULL, NULL);
    return p->file != NULL && p->function != NULL;
}

static void place_by_symbols(uintptr_t pc, struct place *p)
{
    Dl_info info;
    if (dladdr((void *)pc, &info) == 0)
        return;
    if (p->file == NULL)
        p->file = info.dli_fname;
    if (p->function != NULL)
        return;
    p->function = info.dli_sname;
    p->offset = pc - (uintptr_t)(info.dli_sname != NULL ? info.dli_saddr : info.dli_fbase);
}

/* The line of the source, without its indentation, when it can be read. */
static void put_source(struct ms_buf *b, const struct place *p)
{
    enum { SOURCE_MAX = 16 << 20, SHOWN = 160 };
    struct ms_file f;
    struct ms_str line = MS_STR_NONE;
    if (p->line <= 0 || ms_file_map(&f, p->file, SOURCE_MAX, NULL) != MS_OK)
        return;
    struct ms_str rest = {f.p, (uint32_t)f.n};
    for (int i = 0; i < p->line && ms_str_split(&rest, '\n', &line);)
        i++;
    while (line.n != 0 && (*line.p == ' ' || *line.p == '\t'))
        line = ms_str_sub(line, 1, line.n);
    ms_buf_str(b, ms_str_sub(line, 0, SHOWN));
    ms_file_unmap(&f);
}

/* Writes one frame. A return address points behind its call, so one byte less is looked up. */
static void put_frame(struct ms_buf *b, uintptr_t pc)
{
    struct place p = {0};
    if (!place_by_debug_info(pc - 1, &p))
        place_by_symbols(pc - 1, &p);
    ms_buf_printf(b, "File %s, line %d, in %s", p.file != NULL ? p.file : "?", p.line,
                  p.function != NULL ? p.function : "?");
    if (p.offset != 0)
        ms_buf_printf(b, "+0x%zx", (size_t)p.offset);
    ms_buf_puts(b, ", \n ");
    put_source(b, &p);
    ms_buf_putc(b, '\0');
}

char **probe__trail_text(const struct probe__trail *t)
{
    enum { TEXT_MAX = 1 << 20 };
    struct ms_buf b = {.max = TEXT_MAX};
    char **list = NULL;
    pthread_once(&dw_once, dw_open);
    for (unsigned i = 0; i < t->n; i++)
        put_frame(&b, t->pc[i]);
    if (b.bad == MS_OK)
        list = ms_alloc(t->n * sizeof *list + b.n + 1);
    if (list != NULL && b.n != 0) {
        char *text = (char *)(list + t->n);
        memcpy(text, b.p, b.n);
        for (unsigned i = 0; i < t->n; i++) {
            list[i] = text;
            text += strlen(text) + 1;
        }
    }
    ms_buf_free(&b);
    return list;
}

/* ---- places of calls ---------------------------------------------------------------- */

/* ---- the walk --------------------------------------------------------- */

struct probe__stack_area probe__stack_area_of_thread(void)
{
    struct probe__stack_area area = {0, 0};
    pthread_attr_t attr;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return area;
    if (pthread_attr_getstack(&attr, &low, &size) == 0)
        area = (struct probe__stack_area){(uintptr_t)low, (uintptr_t)low + size};
    pthread_attr_destroy(&attr);
    return area;
}

/* Two words at a frame pointer, alike on every processor with frame pointers: the previous frame
 * pointer, and the return address. */
struct frame {
    uintptr_t before, pc;
};

/* Reads one frame. A function compiled without frame pointers may use the register for anything,
 * so only aligned addresses within this stack are read, each above the last. Such an address may
 * be any variable of the program, hence no address sanitizer here. */
__attribute__((no_sanitize("address"))) static bool
load_frame(uintptr_t at, const struct probe__stack_area *area, struct frame *f)
{
    if (at < area->low || at % sizeof(uintptr_t) != 0 || area->high < sizeof *f ||
        at > area->high - sizeof *f)
        return false;
    const uintptr_t *p = (const uintptr_t *)at;
    f->before = p[0];
    f->pc = p[1];
    return f->pc != 0;
}

void probe__trail_walk(struct probe__trail *t, const void *frame,
                       const struct probe__stack_area *area)
{
    uintptr_t at = (uintptr_t)frame;
    struct frame f;
    t->n = 0;
    while (t->n < PROBE__FRAMES && load_frame(at, area, &f)) {
        t->pc[t->n++] = f.pc;
        if (f.before <= at)
            break;
        at = f.before;
    }
}

/* ---- the unwinder ----------------------------------------------------- */

/* Unwinds from the return address of `frame`; the unwinder also reports this file and its
 * callers, which are skipped. */
void probe__trail_unwind(struct probe__trail *t, const void *frame)
{
    enum { OURS = 16 };
    void *pc[PROBE__FRAMES + OURS];
    const struct probe__stack_area all = {0, UINTPTR_MAX};
    struct frame f = {0, 0};
    int n = backtrace(pc, PROBE__FRAMES + OURS);
    int from = 0;
    load_frame((uintptr_t)frame, &all, &f);
    while (from < n && (uintptr_t)pc[from] != f.pc)
        from++;
    t->n = 0;
    for (int i = from; i < n && t->n < PROBE__FRAMES; i++)
        t->pc[t->n++] = (uintptr_t)pc[i];
}

/* ---- cache ------------------------------------------------------------ */

static struct ms_str bytes_of(const struct probe__trail *t)
{
    return (struct ms_str){(const char *)t->pc, t->n * (uint32_t)sizeof *t->pc};
}

static const void *object_of(uintptr_t pc)
{
    Dl_info info;
    return dladdr((void *)pc, &info) != 0 ? info.dli_fbase : NULL;
}

/* Tells whether the walk found every frame that the unwinder found, except the C library's code
 * that started the thread; the very last frame may also be the program's. */
static bool same_trail(const struct probe__trail *walked, const struct probe__trail *unwound)
{
    const void *libc = object_of((uintptr_t)backtrace);
    if (walked->n == 0 || walked->n > unwound->n ||
        memcmp(walked->pc, unwound->pc, walked->n * sizeof *walked->pc) != 0)
        return false;
    for (unsigned i = walked->n; i + 1 < unwound->n; i++) {
        if (object_of(unwound->pc[i]) != libc)
            return false;
    }
    return true;
}

static uint32_t id_of_text(const struct probe__trail *t, probe__name_site name, void *ctx)
{
    char **text = probe__trail_text(t);
    if (text == NULL)
        return MS_MAP_NONE;
    uint32_t id = name(ctx, (const char *const *)text, t->n);
    ms_free(text);
    return id;
}

/* Returns the id of an unwound stack. */
static uint32_t id_of_unwound(struct probe__sites *s, const struct probe__trail *t,
                              probe__name_site name, void *ctx)
{
    bool added;
    if (!ms_vec_reserve(&s->ids, s->ids.n + 1))
        return MS_MAP_NONE;
    uint32_t at = ms_map_put_copy(&s->unwound, bytes_of(t), s->arena, &added);
    if (at == MS_MAP_NONE)
        return MS_MAP_NONE;
    if (added)
        s->ids.p[s->ids.n++] = MS_MAP_NONE;
    if (s->ids.p[at] == MS_MAP_NONE)
        s->ids.p[at] = id_of_text(t, name, ctx);
    return s->ids.p[at];
}

/* Looks up the entry of a walked stack, or adds one; NULL when out of memory. */
static struct probe__site *site_of(struct probe__sites *s, const struct probe__trail *walked)
{
    bool added;
    if (s->arena == NULL)
        s->arena = ms_arena_new(SIZE_MAX);
    if (s->arena == NULL || !ms_vec_reserve(&s->of_walked, s->of_walked.n + 1))
        return NULL;
    uint32_t at = ms_map_put_copy(&s->walked, bytes_of(walked), s->arena, &added);
    if (at == MS_MAP_NONE)
        return NULL;
    if (added)
        s->of_walked.p[s->of_walked.n++] = (struct probe__site){MS_MAP_NONE, false};
    return &s->of_walked.p[at];
}

uint32_t probe__site_id(struct probe__sites *s, const struct probe__trail *walked,
                        const void *frame, probe__name_site name, void *ctx)
{
    struct probe__trail unwound;
    struct probe__site *site = site_of(s, walked);
    if (site == NULL)
        return MS_MAP_NONE;
    if (site->is_trusted)
        return site->id;
    probe__trail_unwind(&unwound, frame);
    site->id = id_of_unwound(s, &unwound, name, ctx);
    site->is_trusted = site->id != MS_MAP_NONE && same_trail(walked, &unwound);
    return site->id;
}

void probe__sites_free(struct probe__sites *s)
{
    ms_map_free(&s->walked);
    ms_map_free(&s->unwound);
    ms_vec_free(&s->of_walked);
    ms_vec_free(&s->ids);
    ms_arena_free(s->arena);
}
