/* SPDX-License-Identifier: MIT
 *
 * mem_kinds: see the header.
 */
#include "mstx/memory/mem_kinds.h"

#include "probe/base/assert.h"

#include <string.h>

/* ---- stacks ------------------------------------------------------------------------------- */

static bool is_library(struct ms_str file)
{
    static const char *const parts[] = {"site-packages/", "dist-packages/",  "/torch/",
                                        "<frozen",        "<string>",        "/lib/python3",
                                        "<built-in",      "/mindspore/",     "/msprobe_",
                                        "/msprobe/",      "sitecustomize.py"};
    if (file.n == 0 || ms_str_is(file, "??") || ms_str_starts(file, MS_STR("torch/")))
        return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (ms_str_has(file, parts[i]))
            return true;
    }
    return false;
}

struct mstx_mem_frame mstx__mem_frame_of_name(struct ms_str name)
{
    struct mstx_mem_frame f = {.file = MS_STR(""), .function = name};
    const int64_t close = ms_str_find_str(name, MS_STR("): "));
    const int64_t open = close > 0 ? ms_str_rfind(ms_str_sub(name, 0, (uint32_t)close), '(') : -1;
    if (open >= 0 && ms_str_i64(ms_str_sub(name, (uint32_t)open + 1, (uint32_t)close), &f.line)) {
        f.file = ms_str_sub(name, 0, (uint32_t)open);
        f.function = ms_str_sub(name, (uint32_t)close + 3, name.n);
    }
    return f;
}

/* Returns the phase that a frame says, or MSTX_PHASE_NONE. */
static enum mstx_mem_phase phase_of_frame(const struct mstx_mem_frame *f)
{
    const struct ms_str file = f->file, function = f->function;
    if (ms_str_has(file, "torch/optim/") || ms_str_starts(function, MS_STR("Optimizer.step")) ||
        ms_str_has(file, "apex/optimizers/"))
        return MSTX_PHASE_OPTIMIZER;
    if (ms_str_has(file, "torch/distributed/") || ms_str_has(function, "c10d::"))
        return MSTX_PHASE_COMMUNICATION;
    if (ms_str_has(function, "run_backward") || ms_str_has(function, "torch::autograd::Engine") ||
        ((ms_str_has(file, "torch/autograd/__init__.py") || ms_str_has(file, "torch/_tensor.py")) &&
         ms_str_is(function, "backward")))
        return MSTX_PHASE_BACKWARD;
    if ((ms_str_has(file, "torch/nn/") || !is_library(file)) &&
        (ms_str_is(function, "_apply") || ms_str_is(function, "convert") ||
         ms_str_is(function, "__init__") || ms_str_is(function, "reset_parameters")))
        return MSTX_PHASE_BUILD;
    if (ms_str_has(file, "torch/nn/modules/module.py") || ms_str_is(function, "forward"))
        return MSTX_PHASE_FORWARD;
    return MSTX_PHASE_NONE;
}

/* The outermost frame that says a phase decides between forward and backward, as a recomputed
 * forward runs inside of a backward; a collective or the optimizer inside of either wins. */
static enum mstx_mem_phase phase_of_stack(const struct mstx_mem_frame *frame, size_t n)
{
    enum mstx_mem_phase phase = MSTX_PHASE_NONE;
    for (size_t i = 0; i < n; i++) {
        if (ms_str_starts(frame[i].file, MS_STR("<frozen importlib")))
            return MSTX_PHASE_NONE; /* a module is loaded, whatever it is for */
        const enum mstx_mem_phase p = phase_of_frame(&frame[i]);
        if (p == MSTX_PHASE_COMMUNICATION || p == MSTX_PHASE_OPTIMIZER)
            return p;
        if (p != MSTX_PHASE_NONE && (p != MSTX_PHASE_FORWARD || phase == MSTX_PHASE_NONE))
            phase = p;
    }
    return phase;
}

static void put_frame(struct ms_buf *out, const struct mstx_mem_frame *f)
{
    const int64_t slash = ms_str_rfind(f->file, '/');
    const struct ms_str name = ms_str_sub(f->file, (uint32_t)(slash + 1), f->file.n);
    if (name.n != 0 && !ms_str_is(name, "??"))
        ms_buf_printf(out, "%.*s:%lld ", MS_STR_ARG(name), (long long)f->line);
    ms_buf_str(out, f->function);
}

static uint32_t text_of_frame(struct mstx_mem_log *log, const struct mstx_mem_frame *f)
{
    struct ms_buf b = {.max = 1 << 16};
    put_frame(&b, f);
    const uint32_t text = b.bad == MS_OK ? mstx__mem_text(log, ms_buf_slice(&b)) : MS_MAP_NONE;
    ms_buf_free(&b);
    return text;
}

/* Folds a stack: frames from the outermost on, separated by semicolons. */
static uint32_t text_of_stack(struct mstx_mem_log *log, const struct mstx_mem_frame *frame,
                              size_t n)
{
    struct ms_buf b = {.max = 1 << 20};
    for (size_t i = n; i-- > 0;) {
        put_frame(&b, &frame[i]);
        if (i != 0)
            ms_buf_putc(&b, ';');
    }
    const uint32_t text = b.bad == MS_OK ? mstx__mem_text(log, ms_buf_slice(&b)) : MS_MAP_NONE;
    ms_buf_free(&b);
    return text;
}

/* Finds the operator in a stack of C++ functions: "at::_ops::addmm::call" is aten::addmm. */
static uint32_t op_of_stack(struct mstx_mem_log *log, const struct mstx_mem_frame *frame, size_t n)
{
    char op[MS_STR_SHOWN + 8];
    for (size_t i = 0; i < n; i++) {
        struct ms_str f = frame[i].function;
        const int64_t at = ms_str_find_str(f, MS_STR("at::_ops::"));
        if (at < 0)
            continue;
        f = ms_str_sub(f, (uint32_t)at + 10, f.n);
        const int64_t end = ms_str_find_str(f, MS_STR("::"));
        f = ms_str_sub(f, 0, end < 0 ? f.n : (uint32_t)end);
        if (f.n == 0 || f.n >= MS_STR_SHOWN)
            continue;
        memcpy(op, "aten::", 6);
        memcpy(op + 6, f.p, f.n);
        return mstx__mem_text(log, (struct ms_str){op, f.n + 6});
    }
    return n != 0 ? mstx__mem_text(log, frame[0].function) : 0;
}

/* Finds the innermost module: the function forward of some file. */
static const struct mstx_mem_frame *module_frame(const struct mstx_mem_frame *frame, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ms_str_is(frame[i].function, "forward") &&
            !ms_str_has(frame[i].file, "torch/autograd/"))
            return &frame[i];
    }
    return NULL;
}

enum ms_rc mstx__mem_site_of_stack(struct mstx_mem_log *log, const struct mstx_mem_frame *frame,
                                   size_t n, bool backward_if_empty, struct mstx_mem_site *site,
                                   struct ms_err *err)
{
    *site = (struct mstx_mem_site){0};
    size_t user = 0;
    while (user < n && is_library(frame[user].file))
        user++;
    const struct mstx_mem_frame *module = module_frame(frame, n);
    site->phase =
        (uint8_t)(n == 0 && backward_if_empty ? MSTX_PHASE_BACKWARD : phase_of_stack(frame, n));
    site->op = op_of_stack(log, frame, n);
    site->module = module != NULL ? text_of_frame(log, module) : 0;
    site->frame = n != 0 ? text_of_frame(log, &frame[user < n ? user : 0]) : 0;
    site->stack = text_of_stack(log, frame, n);
    return site->op != MS_MAP_NONE && site->module != MS_MAP_NONE && site->frame != MS_MAP_NONE &&
                   site->stack != MS_MAP_NONE
               ? MS_OK
               : ms_no_memory(err);
}

/* ---- steps -------------------------------------------------------------------------------- */

int64_t mstx__mem_step_at(const struct mstx_mem_space *s, int64_t at_ns)
{
    size_t from = 0, to = s->steps.n;
    while (from < to) { /* the first step that begins after at_ns */
        const size_t mid = from + (to - from) / 2;
        if (s->steps.p[mid].begin_ns <= at_ns)
            from = mid + 1;
        else
            to = mid;
    }
    return from != 0 && at_ns <= s->steps.p[from - 1].end_ns ? (int64_t)from - 1 : -1;
}

bool mstx__mem_is_kept(const struct mstx_mem_space *s, const struct mstx_mem_block *b)
{
    return b->end == MSTX_MEM_NEVER ||
           (s->steps.n != 0 && b->end_ns > s->steps.p[s->steps.n - 1].end_ns);
}

static enum mstx_mem_phase phase_of(const struct mstx_mem_log *log, const struct mstx_mem_block *b)
{
    return log->sites.p[b->site].phase;
}

/* Tells whether a new step begins: its forward follows the phase that ends a step. */
static bool ends_step(enum mstx_mem_phase now, enum mstx_mem_phase last, enum mstx_mem_phase mark)
{
    return last == mark && now == MSTX_PHASE_FORWARD;
}

static enum ms_rc add_step(struct mstx_mem_space *s, int64_t begin_ns, int64_t end_ns,
                           struct ms_err *err)
{
    struct mstx_mem_step *step = ms_vec_push(&s->steps);
    if (step == NULL)
        return ms_no_memory(err);
    *step = (struct mstx_mem_step){(int64_t)s->steps.n - 1, begin_ns, end_ns};
    return MS_OK;
}

/* Cuts the record into steps where the phase `mark` ends. */
static enum ms_rc cut_steps(const struct mstx_mem_log *log, struct mstx_mem_space *s,
                            enum mstx_mem_phase mark, struct ms_err *err)
{
    enum mstx_mem_phase last = MSTX_PHASE_NONE;
    int64_t begin = MSTX_MEM_NO_TIME, now = MSTX_MEM_NO_TIME;
    for (size_t i = 0; i < s->blocks.n; i++) {
        const struct mstx_mem_block *b = &s->blocks.p[i];
        const enum mstx_mem_phase phase = phase_of(log, b);
        if (b->begin == 0 || b->begin_ns == MSTX_MEM_NO_TIME)
            continue;
        if (begin == MSTX_MEM_NO_TIME && phase != MSTX_PHASE_BUILD && phase != MSTX_PHASE_NONE)
            begin = b->begin_ns;
        if (begin != MSTX_MEM_NO_TIME && ends_step(phase, last, mark) && b->begin_ns > begin) {
            MS_TRY(add_step(s, begin, b->begin_ns - 1, err));
            begin = b->begin_ns;
        }
        if (phase == MSTX_PHASE_FORWARD || phase == MSTX_PHASE_BACKWARD ||
            phase == MSTX_PHASE_OPTIMIZER)
            last = phase;
        now = b->begin_ns;
    }
    return begin != MSTX_MEM_NO_TIME && s->steps.n != 0 ? add_step(s, begin, now, err) : MS_OK;
}

static enum ms_rc find_steps(const struct mstx_mem_log *log, struct mstx_mem_space *s,
                             struct ms_err *err)
{
    if (s->steps.n != 0)
        return MS_OK;
    MS_TRY(cut_steps(log, s, MSTX_PHASE_OPTIMIZER, err));
    if (s->steps.n >= 3) /* two optimizer calls, and what follows */
        return MS_OK;
    s->steps.n = 0;
    return cut_steps(log, s, MSTX_PHASE_BACKWARD, err);
}

/* ---- kinds --------------------------------------------------------------------------------- */

static bool in_one_step(const struct mstx_mem_space *s, const struct mstx_mem_block *b)
{
    return b->end != MSTX_MEM_NEVER && (s->steps.n == 0 || mstx__mem_step_at(s, b->begin_ns) ==
                                                               mstx__mem_step_at(s, b->end_ns));
}

/* The phase in which a block was made; a record that knows phases has forward wherever a step has
 * no other. */
static enum mstx_mem_phase made_in(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                                   const struct mstx_mem_block *b)
{
    const enum mstx_mem_phase phase = phase_of(log, b);
    if (phase != MSTX_PHASE_NONE || s->steps.n == 0 || b->begin_ns == MSTX_MEM_NO_TIME)
        return phase;
    return mstx__mem_step_at(s, b->begin_ns) >= 0 ? MSTX_PHASE_FORWARD : MSTX_PHASE_NONE;
}

static enum mstx_mem_kind kind_of(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                                  const struct mstx_mem_block *b)
{
    const enum mstx_mem_kind known = log->sites.p[b->site].kind;
    if (known != MSTX_MEM_UNKNOWN)
        return known;
    const bool brief = in_one_step(s, b);
    const bool ends_forward = b->end_phase == MSTX_PHASE_FORWARD || b->end_phase == MSTX_PHASE_NONE;
    switch (made_in(log, s, b)) {
    case MSTX_PHASE_BUILD:
        return mstx__mem_is_kept(s, b) ? MSTX_MEM_PARAMETER : MSTX_MEM_TEMPORARY;
    case MSTX_PHASE_FORWARD:
        return brief && ends_forward ? MSTX_MEM_TEMPORARY : MSTX_MEM_ACTIVATION;
    case MSTX_PHASE_BACKWARD:
        return brief && b->end_phase == MSTX_PHASE_BACKWARD ? MSTX_MEM_TEMPORARY
                                                            : MSTX_MEM_GRADIENT;
    case MSTX_PHASE_OPTIMIZER:
        return brief && b->end_phase == MSTX_PHASE_OPTIMIZER ? MSTX_MEM_TEMPORARY
                                                             : MSTX_MEM_OPTIMIZER;
    case MSTX_PHASE_COMMUNICATION:
        return MSTX_MEM_COMMUNICATION;
    default:
        return b->begin == 0 ? MSTX_MEM_EARLIER : MSTX_MEM_UNKNOWN;
    }
}

enum ms_rc mstx__mem_set_kinds(struct mstx_mem_log *log, struct ms_err *err)
{
    for (size_t i = 0; i < log->spaces.n; i++) {
        struct mstx_mem_space *s = log->spaces.p[i];
        MS_TRY(find_steps(log, s, err));
        for (size_t k = 0; k < s->blocks.n; k++) {
            struct mstx_mem_block *b = &s->blocks.p[k];
            if (b->kind == MSTX_MEM_UNKNOWN)
                b->kind = (uint8_t)kind_of(log, s, b);
            ms_assert(b->kind < MSTX_MEM_KIND_COUNT);
        }
    }
    return MS_OK;
}
