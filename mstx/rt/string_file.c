/* SPDX-License-Identifier: MIT
 *
 * string_file: strings.seg, every text once.
 *
 * The file is mapped once over more addresses than it will ever have and grows in steps of a
 * megabyte ahead of the writer.  An index of (hash, place) words finds a text without a lock;
 * adding one takes text_lock.  Besides, every thread caches the texts that it used last by the
 * address of the caller's text (rt_text_id), so the hot path compares once and never hashes.
 */
#include "mstx/rt/string_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mstx/rt/segment_file.h"

enum {
    STEP = 1 << 20,    /* the file grows in such steps */
    FIRST = 1 << 16,   /* size of the file at the start */
    RESERVE = 1 << 10, /* kept back for notes when all else is full */
    INDEX_MIN = 1 << 12,
};
static const size_t map_sizes[] = {(size_t)1 << 30, (size_t)1 << 26, (size_t)1 << 23};

/* A word of the index: upper half hash, lower half place / 8 (0: empty). */
struct index {
    size_t mask;
    _Atomic uint64_t word[];
};

static struct {
    struct mstx_seg *seg;
    size_t mapped; /* addresses */
    size_t size;   /* of the file */
    uint32_t ids;
    _Atomic(struct index *) index;
    size_t used; /* words of the index */
} tx;

static struct index *index_new(size_t words)
{
    ms_assert(words != 0 && (words & (words - 1)) == 0);
    struct index *x = mmap(NULL, sizeof *x + words * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (x == MAP_FAILED)
        return NULL;
    x->mask = words - 1;
    return x;
}

/* Hashes eight bytes at a time. The hash is not stored on disk, so it may depend on the byte
 * order. */
static uint64_t hash_of(const char *p, size_t n)
{
    uint64_t h = n * 0x9E3779B97F4A7C15u;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = (h ^ w) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    uint64_t w = 0;
    memcpy(&w, p, n);
    h = (h ^ w) * 0xFF51AFD7ED558CCDu;
    return h ^ h >> 29;
}

static const struct mstx_text *text_at(size_t place)
{
    return (const struct mstx_text *)(const void *)((const char *)tx.seg + place);
}

static const struct mstx_text *find(uint64_t hash, const char *text, size_t n)
{
    struct index *x = atomic_load_explicit(&tx.index, memory_order_acquire);
    if (x == NULL)
        return NULL;
    for (size_t i = hash & x->mask;; i = (i + 1) & x->mask) {
        uint64_t w = atomic_load_explicit(&x->word[i], memory_order_acquire);
        if (w == 0)
            return NULL;
        if (w >> 32 != hash >> 32)
            continue;
        const struct mstx_text *e = text_at((size_t)(uint32_t)w * 8);
        if (e->len == n && memcmp(e + 1, text, n) == 0)
            return e;
    }
}

static void place_word(struct index *x, size_t start, uint64_t w)
{
    size_t i = start & x->mask;
    while (atomic_load_explicit(&x->word[i], memory_order_relaxed) != 0)
        i = (i + 1) & x->mask;
    atomic_store_explicit(&x->word[i], w, memory_order_release);
}

/* Doubles the index. Other threads may still read the old index, so it stays mapped; all old ones
 * together are no larger than the new one. */
static bool index_grow(void)
{
    struct index *old = atomic_load(&tx.index);
    struct index *x = index_new((old->mask + 1) * 2);
    if (x == NULL)
        return false;
    for (size_t i = 0; i <= old->mask; i++) {
        uint64_t w = atomic_load(&old->word[i]);
        if (w == 0)
            continue;
        const struct mstx_text *e = text_at((size_t)(uint32_t)w * 8);
        place_word(x, hash_of((const char *)(e + 1), e->len), w);
    }
    atomic_store_explicit(&tx.index, x, memory_order_release);
    return true;
}

static bool allocate(size_t size)
{
    int fd = rt_file_open(MSTX_STRINGS);
    bool ok = fd >= 0 && rt_file_allocate(fd, size) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Extends the file to `size`, if the limit on the size of the capture and the disk allow that. */
static bool extend_file(size_t size)
{
    ms_assert(atomic_load(&rt.text_lock.held) == 1 && size > tx.size);
    const size_t next = (size + 4095) & ~(size_t)4095, more = next - tx.size;
    if (next > tx.mapped)
        return false;
    uint64_t all = atomic_fetch_add(&rt.bytes, more) + more;
    if ((rt.conf.max_bytes != 0 && all > rt.conf.max_bytes) || !allocate(next)) {
        atomic_fetch_sub(&rt.bytes, more);
        return false;
    }
    tx.size = next;
    return true;
}

/* Extends the file by a step, or by as much as is needed when there is no room for a step. */
static bool grow_to(size_t size)
{
    if (size <= tx.size)
        return true;
    return (tx.size + STEP > size && extend_file(tx.size + STEP)) || extend_file(size);
}

/* Appends an entry. Caller holds text_lock. NULL: no room. */
static struct mstx_text *append(enum mstx_text_kind kind, uint16_t domain, uint64_t key,
                                const void *bytes, size_t n)
{
    ms_assert(atomic_load(&rt.text_lock.held) == 1 && n <= MSTX_TEXT_MAX);
    if (tx.seg == NULL)
        return NULL;
    size_t head = tx.seg->head;
    size_t size = (sizeof(struct mstx_text) + n + 1 + 7) & ~(size_t)7;
    size_t reserve = kind == MSTX_NOTE ? 0 : RESERVE;
    if (!grow_to(MSTX_SEG_HEADER + head + size + reserve))
        return NULL;
    struct mstx_text *e = (struct mstx_text *)(void *)((char *)tx.seg + MSTX_SEG_HEADER + head);
    *e = (struct mstx_text){.size = (uint32_t)size,
                            .id = ++tx.ids,
                            .kind = (uint16_t)kind,
                            .domain = domain,
                            .len = (uint32_t)n,
                            .key = key};
    if (n > 0)
        memcpy(e + 1, bytes, n);
    __atomic_store_n(&tx.seg->head, head + size, __ATOMIC_RELEASE);
    return e;
}

static const struct mstx_text *add(uint64_t hash, const char *text, size_t n)
{
    const struct mstx_text *e = find(hash, text, n); /* another thread may have been faster */
    if (e != NULL)
        return e;
    struct index *x = atomic_load(&tx.index);
    if (x == NULL || (tx.used * 4 >= (x->mask + 1) * 3 && !index_grow()))
        return NULL;
    struct mstx_text *made = append(MSTX_TEXT, 0, 0, text, n);
    if (made == NULL)
        return NULL;
    uint64_t place = (uint64_t)((char *)made - (char *)tx.seg) / 8;
    place_word(atomic_load(&tx.index), hash, (hash >> 32 << 32) | place);
    tx.used++;
    return made;
}

const struct mstx_text *rt_text_intern(const char *text, size_t n)
{
    ms_assert(text != NULL);
    if (n > MSTX_TEXT_MAX)
        n = MSTX_TEXT_MAX;
    uint64_t hash = hash_of(text, n);
    const struct mstx_text *e = find(hash, text, n);
    if (e != NULL)
        return e;
    rt_lock(&rt.text_lock);
    e = add(hash, text, n);
    rt_unlock(&rt.text_lock);
    if (e == NULL)
        rt_say(RT_SAY_STRINGS, MSTX_WHY_NO_SPACE, "no room for new texts; they show without name");
    return e;
}

uint32_t rt_text_define(enum mstx_text_kind kind, uint16_t domain, uint64_t key, const void *bytes,
                        size_t n)
{
    if (n > MSTX_TEXT_MAX)
        n = MSTX_TEXT_MAX;
    rt_lock(&rt.text_lock);
    const struct mstx_text *e = append(kind, domain, key, bytes, n);
    rt_unlock(&rt.text_lock);
    return e != NULL ? e->id : 0;
}

static bool map_file(int fd)
{
    for (size_t i = 0; i < sizeof map_sizes / sizeof *map_sizes; i++) {
        void *p =
            mmap(NULL, map_sizes[i], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (p == MAP_FAILED)
            continue;
        tx.seg = p;
        tx.mapped = map_sizes[i];
        return true;
    }
    return false;
}

/* Searches from the beginning, as ids are in the order of the file; called seldom. */
bool rt_text_copy(uint32_t id, char *out, size_t cap)
{
    ms_assert(cap > 0);
    const struct mstx_seg *seg = tx.seg;
    const uint64_t head = seg != NULL ? __atomic_load_n(&seg->head, __ATOMIC_ACQUIRE) : 0;
    out[0] = '\0';
    for (uint64_t at = 0; at < head;) {
        const struct mstx_text *e =
            (const struct mstx_text *)(const void *)((const char *)seg + MSTX_SEG_HEADER + at);
        if (e->id == id) {
            size_t n = e->len < cap - 1 ? e->len : cap - 1;
            memcpy(out, e + 1, n);
            out[n] = '\0';
            return true;
        }
        at += e->size;
    }
    return false;
}

static void define_note(enum mstx_why why, const char *text, size_t n)
{
    rt_text_define(MSTX_NOTE, 0, why, text, n);
}

bool rt_text_start(void)
{
    ms_assert(tx.seg == NULL && !rt_is_running());
    int fd = rt_file_begin(MSTX_STRINGS, FIRST);
    struct index *x = index_new(INDEX_MIN);
    bool mapped = fd >= 0 && x != NULL && map_file(fd);
    if (fd >= 0)
        close(fd);
    if (!mapped) {
        if (fd >= 0)
            rt_file_give_up(MSTX_STRINGS);
        return false;
    }
    tx.size = FIRST;
    atomic_fetch_add(&rt.bytes, FIRST);
    tx.ids = 0;
    tx.used = 0;
    struct mstx_seg h = rt.proto;
    h.kind = MSTX_KIND_STRINGS;
    h.record_size = 1;
    h.capacity = tx.mapped - MSTX_SEG_HEADER;
    h.part = 1;
    memcpy(tx.seg, &h, sizeof h);
    atomic_store_explicit(&tx.index, x, memory_order_release);
    rt.define_note = define_note;
    return rt_file_name(MSTX_STRINGS);
}

void rt_text_close(void)
{
    rt_lock(&rt.text_lock);
    if (tx.seg != NULL) {
        __atomic_or_fetch(&tx.seg->state, MSTX_SEG_CLOSED | MSTX_SEG_LAST, __ATOMIC_RELEASE);
        /* A later text allocates blocks again. */
        tx.size = rt_file_trim(tx.seg, MSTX_STRINGS, tx.size);
    }
    rt_unlock(&rt.text_lock);
}

/* Unmaps the parent's texts in a forked child, where no other thread exists that could read
 * them. */
void rt_text_forget(void)
{
    if (tx.seg != NULL)
        munmap(tx.seg, tx.mapped);
    atomic_store(&tx.index, NULL);
    tx.seg = NULL;
}

uint64_t rt_text_count(void)
{
    rt_lock(&rt.text_lock);
    uint64_t n = tx.ids;
    rt_unlock(&rt.text_lock);
    return n;
}

/* ---- messages of marks -------------------------------------------------------- */

/* Refuses a message that a spreadsheet would run as a formula, as the original does. */
bool rt_message_ok(const char *m)
{
    return m != NULL && m[0] != '\0' && m[0] != '=' && m[0] != '+' && m[0] != '-' && m[0] != '@';
}

RT_COLD uint32_t rt_message_refuse(const char *m)
{
    rt_say(RT_SAY_MESSAGE, 0,
           m == NULL      ? "a mark without message (NULL) was refused"
           : m[0] == '\0' ? "a mark with an empty message was refused"
                          : "a message that begins with '%c' was refused",
           m != NULL ? m[0] : ' ');
    return 0;
}

RT_COLD uint32_t rt_text_slow(struct rt_ring *r, const char *text, size_t place)
{
    ms_assert(place < RT_NAMES);
    if (!rt_message_ok(text)) {
        rt_message_refuse(text);
        return RT_REFUSED_ID;
    }
    const struct mstx_text *e = rt_text_intern(text, strlen(text));
    if (e == NULL)
        return 0;
    r->names[place] = e;
    return e->id;
}

/* Caches the id of a text that is never freed. A signal handler that runs between the two stores
 * sees the entry as taken by another text and looks its own text up by rt_text_id. */
RT_COLD uint32_t rt_text_keep_id(struct rt_ring *r, const char *text, size_t line)
{
    ms_assert(text != NULL && line < RT_CALL_NAMES);
    static const char in_work[] = "";
    const uint32_t id = rt_text_id(r, text);
    for (int i = 0; id != 0 && i < 4; i++) {
        const char *none = NULL;
        if (!atomic_compare_exchange_strong(&r->call_names[line][i].text, &none, in_work))
            continue;
        r->call_names[line][i].id = id;
        atomic_store_explicit(&r->call_names[line][i].text, text, memory_order_release);
        break;
    }
    return id;
}

/* ---- memory that stays -------------------------------------------------------- */

static struct {
    char *p;
    size_t left;
} keep;

char *rt_keep(const void *bytes, size_t n)
{
    ms_assert(bytes != NULL);
    size_t need = (n + 1 + 15) & ~(size_t)15;
    enum { BLOCK = 1 << 16 };
    rt_lock(&rt.keep_lock);
    if (need > keep.left) {
        size_t size = need > BLOCK ? (need + 4095) & ~(size_t)4095 : BLOCK;
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        keep.p = p == MAP_FAILED ? NULL : p;
        keep.left = p == MAP_FAILED ? 0 : size;
    }
    char *to = need <= keep.left ? keep.p : NULL;
    if (to != NULL) {
        keep.p += need;
        keep.left -= need;
        memcpy(to, bytes, n);
        to[n] = '\0';
    }
    rt_unlock(&rt.keep_lock);
    return to;
}
