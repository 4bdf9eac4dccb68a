/* SPDX-License-Identifier: MIT
 *
 * callsite: walking, unwinding and caching stacks.
 */
#include "probe/write/callsite.h"

#include "probe/base/mem.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

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
