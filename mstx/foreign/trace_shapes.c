/* SPDX-License-Identifier: MIT
 *
 * trace_shapes: see the header.
 */
#include "mstx/foreign/trace_shapes.h"

#include "mstx/foreign/trace_text.h"

#include "probe/base/assert.h"
#include "probe/base/scan.h"

#include <string.h>

/* Bounds of what is learned of one trace, which may be made to harm. */
enum {
    LESSONS_MOST = 1 << 14, /* events that are taken apart */
    SHAPES_MOST = 1 << 12,
    LITERALS_MOST = 1 << 24, /* bytes */
    BESIDE_MOST = 16,        /* nodes that are looked at after one slot */
    EVENT_BYTES = 1 << 14,   /* of an event that is learned */
    MEANT_MOST = 32,
    WHOLE_DIGITS = 15, /* of microseconds: greater times are left to the reader of everything */
    PART_DIGITS = 3,
    VALUE_DIGITS = 18,
    BLOCK = 8
};

/* What follows the literal of a node. */
enum slot {
    SLOT_END,
    SLOT_NAME,
    SLOT_NUMBER, /* digits that begin a number, without a zero before others */
    SLOT_DIGITS  /* digits behind a point or within a text */
};

struct mstx_shape_node {
    const char *text; /* BLOCK bytes behind it may be read */
    uint32_t n;
    enum slot slot;
    struct mstx_shape_node *beside, *child;
    struct mstx_shape *shape; /* of SLOT_END */
};

/* What a run of digits is besides being an attribute. */
enum meaning { IS_PID, IS_TID, IS_ID, IS_TS, IS_TS_PART, IS_DUR, IS_DUR_PART, IS_FIELD };

struct meant {
    uint8_t meaning;
    bool is_negative; /* a minus stands before the digits */
    uint16_t run, field;
};

struct mstx_shape {
    struct mstx_trace_item item; /* an event of the shape, without name and numbers */
    uint16_t args_first, meant_count;
    struct meant meant[];
};

/* ---- reading ---------------------------------------------------------------------- */

/* Tells whether the text at p goes on with the literal of the node and what may follow it. */
static inline bool goes_on(const char *p, const struct mstx_shape_node *n)
{
    uint32_t i = 0;
    for (; i + BLOCK <= n->n; i += BLOCK) {
        if (ms_load8(p + i) != ms_load8(n->text + i))
            return false;
    }
    const uint64_t mask = ((uint64_t)1 << 8 * (n->n - i)) - 1;
    if (i != n->n && ((ms_load8(p + i) ^ ms_load8(n->text + i)) & mask) != 0)
        return false;
    return n->slot < SLOT_NUMBER || ms_is_digit(p[n->n]);
}

/* Finds the node among `*first` and those beside it that goes on at p, and puts it first. */
static inline struct mstx_shape_node *find_node(struct mstx_shape_node **first, const char *p)
{
    struct mstx_shape_node *n = *first, *before = NULL;
    for (unsigned i = 0; n != NULL && !goes_on(p, n); i++) {
        before = n;
        n = i < BESIDE_MOST ? n->beside : NULL;
    }
    if (before != NULL && n != NULL) {
        before->beside = n->beside;
        n->beside = *first;
        *first = n;
    }
    return n;
}

/* Returns the number that the first n of eight bytes are the digits of; n is at most 8. */
static inline uint64_t value8(uint64_t digits, unsigned n)
{
    uint64_t v = n != 0 ? digits << (64 - 8 * n) & 0x0F0F0F0F0F0F0F0FU : 0;
    v = (v * 10 + (v >> 8)) & 0x00FF00FF00FF00FFU;
    v = (v * 100 + (v >> 16)) & 0x0000FFFF0000FFFFU;
    return (v * 10000 + (v >> 32)) & 0xFFFFFFFFU;
}

static inline uint64_t value_of(struct ms_str run)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < run.n; i++)
        v = v * 10 + (uint64_t)(run.p[i] - '0');
    return v;
}

/* Passes the digits at p. */
static inline const char *pass_run(const char *p, struct mstx_text_run *run)
{
    const char *from = p;
    const uint64_t first = ms_load8(p);
    unsigned n = ms_count_digits8(first);
    p += n;
    while (n == BLOCK) {
        n = ms_count_digits8(ms_load8(p));
        p += n;
    }
    run->digits = (struct ms_str){from, (uint32_t)(p - from)};
    if (run->digits.n > VALUE_DIGITS || (run->digits.n > 1 && *from == '0'))
        run->value = UINT64_MAX;
    else
        run->value = run->digits.n <= BLOCK ? value8(first, run->digits.n) : value_of(run->digits);
    return p;
}

static inline const char *pass_name(const char *p, const char *end, struct ms_str *name)
{
    const char *to = ms_scan_plain(p, end + MSTX_TRACE_TEXT_PAD);
    *name = (struct ms_str){p, (uint32_t)(to - p)};
    return *to == '"' && to - p <= UINT32_MAX / 2 ? to : NULL;
}

/* Returns the nanoseconds in the decimals of microseconds. */
static inline int64_t part_of(struct ms_str run)
{
    static const int16_t unit[PART_DIGITS + 1] = {0, 100, 10, 1};
    const uint32_t n = run.n < PART_DIGITS ? run.n : PART_DIGITS;
    return (int64_t)value_of((struct ms_str){run.p, n}) * unit[n];
}

static inline struct ms_str with_sign(const struct meant *m, struct ms_str run)
{
    return (struct ms_str){run.p - m->is_negative, run.n + m->is_negative};
}

static inline bool take_meaning(struct mstx_trace_item *it, const struct meant *m,
                                const struct mstx_text_run *run)
{
    const int64_t v = (int64_t)run->value;
    switch ((enum meaning)m->meaning) {
    case IS_PID:
        it->pid = with_sign(m, run->digits);
        return true;
    case IS_TID:
        it->tid = with_sign(m, run->digits);
        return true;
    case IS_ID:
        it->id = with_sign(m, run->digits);
        return true;
    case IS_TS:
        it->ts = (int64_t)((uint64_t)v * 1000);
        return run->digits.n <= WHOLE_DIGITS;
    case IS_TS_PART:
        it->ts += part_of(run->digits);
        return true;
    case IS_DUR:
        it->dur = (int64_t)((uint64_t)v * 1000);
        return run->digits.n <= WHOLE_DIGITS;
    case IS_DUR_PART:
        it->dur += part_of(run->digits);
        return true;
    case IS_FIELD:
        break;
    }
    *(int64_t *)((char *)it + m->field) = m->is_negative && run->digits.n <= VALUE_DIGITS ? -v : v;
    return run->digits.n <= VALUE_DIGITS;
}

static bool take_shape(struct mstx_trace_shapes *s, const struct mstx_shape *shape,
                       struct ms_str name, struct mstx_trace_item *it)
{
    *it = shape->item;
    it->name = name;
    it->args_runs = s->run + shape->args_first;
    for (uint32_t i = 0; i < shape->meant_count; i++) {
        if (!take_meaning(it, &shape->meant[i], &s->run[shape->meant[i].run]))
            return false;
    }
    return true;
}

const char *mstx__trace_shapes_read(struct mstx_trace_shapes *s, struct mstx_trace_item *it,
                                    const char *p, const char *end)
{
    struct mstx_shape_node **first = &s->first, *n;
    struct ms_str name = MS_STR("");
    uint32_t runs = 0;
    while ((n = find_node(first, p)) != NULL) {
        p += n->n;
        if (n->slot == SLOT_END)
            return take_shape(s, n->shape, name, it) ? p : NULL;
        if (n->slot == SLOT_NAME) {
            p = pass_name(p, end, &name);
        } else {
            ms_assert(runs < MSTX_SHAPE_RUNS);
            p = pass_run(p, &s->run[runs]);
            const struct ms_str run = s->run[runs++].digits;
            if (run.n > MSTX_TEXT_RUN_DIGITS ||
                (n->slot == SLOT_NUMBER && run.n > 1 && run.p[0] == '0'))
                return NULL;
        }
        if (p == NULL)
            return NULL;
        first = &n->child;
    }
    return NULL;
}

/* ---- learning ----------------------------------------------------------------------- */

/* An event that is taken apart. Its JSON is known to be whole and to have no escapes. */
struct lesson {
    struct mstx_trace_shapes *of;
    struct mstx_shape_node **at;  /* where the next node belongs */
    struct mstx_shape_node *last; /* the node before it */
    const char *p, *literal;      /* what has been passed, and where the next literal begins */
    uint32_t runs, meant_count, args_first, args_runs;
    bool has_args, is_lost;
    struct meant meant[MEANT_MOST];
};

/* Adds the literal that ends at p, followed by a slot, unless the node is there. */
static void add_node(struct lesson *l, enum slot slot)
{
    struct mstx_trace_shapes *s = l->of;
    const uint32_t n = (uint32_t)(l->p - l->literal);
    unsigned beside = 0;
    struct mstx_shape_node *x = *l->at;
    for (; x != NULL && (x->n != n || x->slot != slot || memcmp(x->text, l->literal, n) != 0);
         x = x->beside)
        beside++;
    if (x == NULL) {
        char *text = ms_arena_text(s->arena, (size_t)n + BLOCK);
        x = ms_arena_calloc(s->arena, 1, sizeof *x);
        l->is_lost |=
            text == NULL || x == NULL || beside >= BESIDE_MOST || s->bytes >= LITERALS_MOST;
        if (l->is_lost)
            return;
        memcpy(text, l->literal, n);
        memset(text + n, 0, BLOCK);
        *x = (struct mstx_shape_node){.text = text, .n = n, .slot = slot, .beside = *l->at};
        *l->at = x;
        s->bytes += n;
    }
    l->last = x;
    l->at = &x->child;
}

/* Adds what the digits at p mean besides. */
static void add_meaning(struct lesson *l, enum meaning meaning, size_t field)
{
    if (l->meant_count < MEANT_MOST)
        l->meant[l->meant_count++] = (struct meant){.meaning = (uint8_t)meaning,
                                                    .is_negative = l->p[-1] == '-',
                                                    .run = (uint16_t)l->runs,
                                                    .field = (uint16_t)field};
    else
        l->is_lost = true;
}

/* Makes a slot of the digits at p and passes them. */
static void pass_slot(struct lesson *l, bool is_in_text)
{
    const char before = l->p[-1];
    const bool is_later = before == '.' || before == '+' || (before | 0x20) == 'e' ||
                          (before == '-' && (l->p[-2] | 0x20) == 'e');
    add_node(l, is_in_text || is_later ? SLOT_DIGITS : SLOT_NUMBER);
    while (ms_is_digit(*l->p))
        l->p++;
    l->literal = l->p;
    l->is_lost |= ++l->runs >= MSTX_SHAPE_RUNS;
}

/* Passes what lies before `to`, with a slot for each run of digits. */
static void pass_slots(struct lesson *l, const char *to)
{
    bool is_in_text = false;
    while (l->p < to && !l->is_lost) {
        if (ms_is_digit(*l->p)) {
            pass_slot(l, is_in_text);
        } else {
            is_in_text ^= *l->p == '"';
            l->p++;
        }
    }
}

/* Returns the end of the value at p. */
static const char *value_end(const char *p)
{
    unsigned depth = 0;
    bool is_in_text = false;
    for (;; p++) {
        if (*p == '"')
            is_in_text = !is_in_text;
        else if (is_in_text)
            continue;
        else if (depth == 0 && (*p == ',' || *p == '}' || *p == ']' || ms_is_space(*p)))
            return p;
        else if (*p == '{' || *p == '[')
            depth++;
        else if (*p == '}' || *p == ']')
            depth--;
        if (depth == 0 && (*p == '"' ? !is_in_text : *p == '}' || *p == ']'))
            return p + 1;
    }
}

/* Tells whether the text from p to `end` is a whole number. */
static bool is_whole(const char *p, const char *end)
{
    p += *p == '-';
    return p < end &&
           (size_t)(end - p) == ms_str_digits((struct ms_str){p, (uint32_t)(end - p)}, 0);
}

/* Passes blanks and what separates values. */
static void pass_between(struct lesson *l, char what)
{
    while (ms_is_space(*l->p) || *l->p == what)
        l->p++;
}

static struct ms_str pass_key(struct lesson *l)
{
    const char *from = ++l->p;
    while (*l->p != '"')
        l->p++;
    return (struct ms_str){from, (uint32_t)(l->p++ - from)};
}

/* Passes the value of a member of args whose digits count. */
static void pass_attribute(struct lesson *l, struct ms_str key)
{
    const char *end = value_end(l->p);
    const enum ms_jtok kind = *l->p == '"'                         ? MS_J_STR
                              : *l->p == '-' || ms_is_digit(*l->p) ? MS_J_NUM
                                                                   : MS_J_NULL;
    size_t field;
    if (mstx__trace_item_place(key, kind, &field) == MSTX_MEMBER_TAKEN) {
        l->is_lost |= kind == MS_J_STR;
        if (is_whole(l->p, end)) {
            l->p += *l->p == '-';
            add_meaning(l, IS_FIELD, field);
        }
    }
    pass_slots(l, end);
}

static void pass_args(struct lesson *l)
{
    l->is_lost |= l->has_args || *l->p != '{';
    l->has_args = true;
    l->args_first = l->runs;
    l->p++;
    for (pass_between(l, ','); *l->p == '"' && !l->is_lost; pass_between(l, ',')) {
        const char *from = l->p;
        const struct ms_str key = pass_key(l);
        const char *to = l->p;
        l->p = from;
        pass_slots(l, to);
        pass_between(l, ':');
        pass_attribute(l, key);
    }
    l->args_runs = l->runs - l->args_first;
    l->p++;
}

/* Passes microseconds. */
static void pass_us(struct lesson *l, enum meaning whole, enum meaning part)
{
    const char *end = value_end(l->p);
    add_meaning(l, whole, 0);
    pass_slots(l, l->p + ms_str_digits((struct ms_str){l->p, (uint32_t)(end - l->p)}, 0));
    if (*l->p != '.')
        return;
    l->p++;
    add_meaning(l, part, 0);
    pass_slots(l, end);
}

static bool has_meaning(const struct lesson *l, enum meaning meaning)
{
    uint32_t i = 0;
    while (i < l->meant_count && l->meant[i].meaning != meaning)
        i++;
    return i < l->meant_count;
}

/* Passes a value that is a number, which counts, or a text, which is the same in each event of the shape.
 * A key that comes twice has the value that comes last. */
static void pass_either(struct lesson *l, enum meaning meaning)
{
    const char *end = value_end(l->p);
    if (*l->p == '"') {
        l->is_lost |= has_meaning(l, meaning);
        l->p = end;
        return;
    }
    l->is_lost |= !is_whole(l->p, end);
    l->p += *l->p == '-';
    add_meaning(l, meaning, 0);
    pass_slots(l, end);
}

static void pass_member(struct lesson *l)
{
    const struct ms_str key = pass_key(l);
    pass_between(l, ':');
    if (ms_str_is(key, "name")) {
        l->p++;
        add_node(l, SLOT_NAME);
        while (*l->p != '"')
            l->p++;
        l->literal = l->p++;
    } else if (ms_str_is(key, "ph") || ms_str_is(key, "cat")) {
        l->p = value_end(l->p);
    } else if (ms_str_is(key, "pid")) {
        pass_either(l, IS_PID);
    } else if (ms_str_is(key, "tid")) {
        pass_either(l, IS_TID);
    } else if (ms_str_is(key, "id")) {
        pass_either(l, IS_ID);
    } else if (ms_str_is(key, "ts")) {
        pass_us(l, IS_TS, IS_TS_PART);
    } else if (ms_str_is(key, "dur")) {
        pass_us(l, IS_DUR, IS_DUR_PART);
    } else if (ms_str_is(key, "args")) {
        pass_args(l);
    } else {
        pass_slots(l, value_end(l->p));
    }
}

/* Returns what all events of the shape have in common, with texts that live as long as the shapes. */
static struct mstx_trace_item common_of(struct lesson *l, const struct mstx_trace_item *it,
                                        uint32_t form)
{
    struct mstx_trace_item item = *it;
    struct ms_str *texts[] = {&item.phase, &item.category, &item.id, &item.pid, &item.tid};
    item.name = item.args = item.number = MS_STR("");
    item.args_form = form;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i]->n != 0)
            *texts[i] = ms_arena_str(l->of->arena, *texts[i]);
        l->is_lost |= texts[i]->n != 0 && texts[i]->p == NULL;
    }
    return item;
}

static void add_shape(struct lesson *l, const struct mstx_trace_item *it, uint32_t form)
{
    const size_t bytes = l->meant_count * sizeof *l->meant;
    struct mstx_shape *shape = ms_arena_alloc(l->of->arena, sizeof *shape + bytes);
    if (shape == NULL)
        return;
    shape->item = common_of(l, it, form);
    shape->args_first = (uint16_t)l->args_first;
    shape->meant_count = (uint16_t)l->meant_count;
    memcpy(shape->meant, l->meant, bytes);
    add_node(l, SLOT_END);
    if (l->is_lost)
        return;
    l->last->shape = shape;
    l->of->shapes++;
}

bool mstx__trace_shapes_wants(const struct mstx_trace_shapes *s, const struct mstx_trace_item *it)
{
    return s->shapes < SHAPES_MOST && s->lessons < LESSONS_MOST && it->has_ts && it->phase.n == 1 &&
           strchr("Xsf", it->phase.p[0]) != NULL;
}

void mstx__trace_shapes_learn(struct mstx_trace_shapes *s, const struct mstx_trace_item *it,
                              const struct mstx_args_form *form, const char *p, const char *end)
{
    struct lesson l = {.of = s, .at = &s->first, .literal = p, .p = p + 1};
    s->lessons++;
    if (end - p > EVENT_BYTES || (it->args.n != 0 && form->number == MSTX_TEXT_FORMLESS))
        return;
    for (pass_between(&l, ','); *l.p == '"' && !l.is_lost; pass_between(&l, ','))
        pass_member(&l);
    l.p++;
    if (l.is_lost || (it->args.n != 0 && l.args_runs != form->runs))
        return;
    ms_assert(l.p == end);
    add_shape(&l, it, it->args.n != 0 ? form->number : MSTX_TEXT_FORMLESS);
}
