/* SPDX-License-Identifier: MIT
 *
 * nvtx_text: the forms of NVTX messages: ASCII, wide, and handles of registered strings.
 */
#include "mstx/rt/nvtx/nvtx.h"

enum { STRINGS = 1 << 16, WIDE_BYTES = 4096 };

const char *nvtx_narrow(const wchar_t *wide, char *to, size_t cap)
{
    ms_assert(cap > 0);
    size_t n = 0;
    for (; wide != NULL && *wide != L'\0' && n + 5 < cap; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c >= 0x110000 || (c >= 0xD800 && c < 0xE000))
            c = 0xFFFD;
        unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const uint8_t lead[] = {0, 0xC0, 0xE0, 0xF0};
        to[n++] = (char)(lead[more] | c >> 6 * more);
        while (more-- > 0)
            to[n++] = (char)(0x80 | (c >> 6 * more & 0x3F));
    }
    to[n] = '\0';
    return to;
}

uint32_t nvtx_text(const char *text)
{
    struct rt_ring *r = text == NULL ? NULL : rt_ring_of_thread();
    if (r == NULL)
        return 0;
    if (RT_LIKELY(rt_message_ok(text)))
        return rt_text_id(r, text);
    /* Only mstx refuses such texts. */
    const struct mstx_text *e = rt_text_intern(text, strlen(text));
    return e != NULL ? e->id : 0;
}

/* Registered strings. The address of an entry is the handle, valid in any domain. */
static struct string {
    const char *text;
    _Atomic uint32_t epoch, id;
} strings[STRINGS];
static _Atomic uint32_t string_count;

void *nvtx_text_register(const char *text)
{
    const char *kept = rt_keep(text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    uint32_t i = atomic_fetch_add(&string_count, 1);
    if (i >= STRINGS - 1) { /* the last entry is shared by all strings beyond the table */
        atomic_fetch_sub(&string_count, 1);
        rt_say(RT_SAY_NVTX, 0, "more than %d registered strings; the rest has no name", STRINGS);
        return &strings[STRINGS - 1];
    }
    strings[i].text = kept;
    return &strings[i];
}

static struct string *registered_string(const void *handle)
{
    uintptr_t off = (uintptr_t)handle - (uintptr_t)strings;
    if (off >= sizeof strings || off % sizeof strings[0] != 0)
        return NULL;
    return &strings[off / sizeof strings[0]];
}

static uint32_t registered_id(const void *handle)
{
    struct string *s = registered_string(handle);
    if (RT_UNLIKELY(s == NULL))
        return 0;
    if (RT_LIKELY(atomic_load_explicit(&s->epoch, memory_order_acquire) == rt.epoch))
        return atomic_load_explicit(&s->id, memory_order_relaxed);
    uint32_t id = nvtx_text(s->text);
    atomic_store_explicit(&s->id, id, memory_order_relaxed);
    atomic_store_explicit(&s->epoch, rt.epoch, memory_order_release);
    return id;
}

uint32_t nvtx_message(int32_t type, const void *message)
{
    char buf[WIDE_BYTES];
    if (type == NVTX_MESSAGE_ASCII)
        return nvtx_text(message);
    if (type == NVTX_MESSAGE_WIDE && message != NULL)
        return nvtx_text(nvtx_narrow(message, buf, sizeof buf));
    return type == NVTX_MESSAGE_REGISTERED ? registered_id(message) : 0;
}

const char *nvtx_message_text(int32_t type, const void *message, char *buf, size_t cap)
{
    if (type == NVTX_MESSAGE_ASCII)
        return message;
    if (type == NVTX_MESSAGE_WIDE && message != NULL)
        return nvtx_narrow(message, buf, cap);
    const struct string *s = type == NVTX_MESSAGE_REGISTERED ? registered_string(message) : NULL;
    return s != NULL ? s->text : NULL;
}
