/* SPDX-License-Identifier: MIT
 *
 * hang_watch: reports communication calls that do not end, with the stacks of the process.
 */
#include "mstx/rt/hang_watch.h"
#include "mstx/rt/comm_group.h"
#include "mstx/rt/string_file.h"
#include "probe/base/assert.h"
#include "probe/base/compat.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- stacks ----------------------------------------------------------------- */

/* The stacks of the threads of this process, without stopping or signalling them, and
 * without a lock that a hanging thread may hold.
 *
 * /proc/self/task/TID/syscall has the stack pointer and the program counter of a thread that sleeps
 * in the kernel.  From there its stack is read through the kernel, which cannot fault, and every
 * word that points behind a call instruction is taken for a return address.  Some of these words
 * are left over from calls that have returned: the list holds candidates, the innermost first, and
 * includes all true return addresses.  A running thread is sampled once by the kernel's performance
 * counters; where that is not allowed (perf_event_paranoid above 2, a strict container) only its
 * name is given.
 *
 * Addresses are given as file and offset, with the name of the function where the symbol table of
 * the file has one. */

#if defined(__x86_64__) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

enum {
    MAPS = 512,   /* executable mappings */
    WORDS = 4096, /* words of a stack that are examined */
    FRAMES = 32,  /* frames of a thread that are reported */
    THREADS = 512,
    PATH_LEN = 200,
};

struct mapping {
    uint64_t start, end, offset;
    char path[PATH_LEN];
};
struct out {
    char *p;
    size_t n, cap;
};
static struct { /* under the lock of hang_watch.c: one at a time */
    struct mapping map[MAPS];
    size_t n;
    uint64_t word[WORDS];
} st;

__attribute__((format(printf, 2, 3))) static void out_printf(struct out *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(o->p + o->n, o->cap - o->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        o->n = (size_t)n < o->cap - o->n ? o->n + (size_t)n : o->cap - 1;
}

/* ---- mappings ------------------------------------------------------------------------- */

static void read_maps(void)
{
    char line[512], mode[8];
    FILE *f = fopen("/proc/self/maps", "re");
    st.n = 0;
    while (f != NULL && st.n < MAPS && fgets(line, sizeof line, f) != NULL) {
        struct mapping *m = &st.map[st.n];
        int at = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &m->start, &m->end,
                   mode, &m->offset, &at) < 4 ||
            mode[2] != 'x')
            continue;
        snprintf(m->path, sizeof m->path, "%.*s", (int)strcspn(line + at, "\n"), line + at);
        st.n++;
    }
    if (f != NULL)
        fclose(f);
}

static const struct mapping *mapping_of(uint64_t address)
{
    for (size_t i = 0; i < st.n; i++) {
        if (address >= st.map[i].start && address < st.map[i].end)
            return &st.map[i];
    }
    return NULL;
}

/* ---- names ---------------------------------------------------------------------------------- */

struct image {
    const uint8_t *p;
    size_t n;
};

static const void *address_within(const struct image *im, uint64_t at, uint64_t n)
{
    return at <= im->n && n <= im->n - at ? im->p + at : NULL;
}

/* Converts a file offset to the address that the file's own tables use. */
static bool own_address(const struct image *im, const Elf64_Ehdr *eh, uint64_t offset,
                        uint64_t *out)
{
    const Elf64_Phdr *ph = address_within(im, eh->e_phoff, (uint64_t)eh->e_phnum * sizeof *ph);
    for (int i = 0; ph != NULL && i < eh->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD && offset >= ph[i].p_offset &&
            offset < ph[i].p_offset + ph[i].p_filesz) {
            *out = offset - ph[i].p_offset + ph[i].p_vaddr;
            return true;
        }
    }
    return false;
}

/* Returns the function of one symbol table that holds the address; best: the nearest so far. */
static const char *search_table(const struct image *im, const Elf64_Shdr *table,
                                const Elf64_Shdr *strings, uint64_t address, uint64_t *best)
{
    const char *found = NULL;
    size_t n = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *sym = address_within(im, table->sh_offset, n * sizeof *sym);
    for (size_t i = 0; sym != NULL && i < n; i++) {
        if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || sym[i].st_value > address ||
            sym[i].st_value < *best || address >= sym[i].st_value + sym[i].st_size)
            continue;
        const char *name = address_within(im, strings->sh_offset + sym[i].st_name, 1);
        uint64_t left = name != NULL ? im->n - (strings->sh_offset + sym[i].st_name) : 0;
        if (name != NULL && strnlen(name, left) < left) {
            *best = sym[i].st_value;
            found = name;
        }
    }
    return found;
}

static const char *function_at(const struct image *im, uint64_t offset)
{
    const Elf64_Ehdr *eh = address_within(im, 0, sizeof *eh);
    uint64_t address, best = 0;
    const char *found = NULL;
    if (eh == NULL || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
        eh->e_ident[EI_CLASS] != ELFCLASS64 || !own_address(im, eh, offset, &address))
        return NULL;
    const Elf64_Shdr *sh = address_within(im, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof *sh);
    for (int i = 0; sh != NULL && i < eh->e_shnum; i++) {
        if ((sh[i].sh_type != SHT_SYMTAB && sh[i].sh_type != SHT_DYNSYM) ||
            sh[i].sh_link >= eh->e_shnum)
            continue;
        const char *name = search_table(im, &sh[i], &sh[sh[i].sh_link], address, &best);
        found = name != NULL ? name : found;
    }
    return found;
}

static void put_place(struct out *o, uint64_t address, const struct mapping *m)
{
    const char *slash = strrchr(m->path, '/');
    uint64_t offset = address - m->start + m->offset;
    struct stat info;
    int fd = m->path[0] == '/' ? open(m->path, O_RDONLY | O_CLOEXEC) : -1;
    struct image im = {NULL, 0};
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        im = (struct image){p == MAP_FAILED ? NULL : p, p == MAP_FAILED ? 0 : (size_t)info.st_size};
    }
    if (fd >= 0)
        close(fd);
    const char *function = im.p != NULL ? function_at(&im, offset) : NULL;
    out_printf(o, "  %s %s+%#" PRIx64 "\n", function != NULL ? function : "?",
               slash != NULL ? slash + 1 : m->path, offset);
    if (im.p != NULL) {
        void *p = NULL;
        memcpy(&p, &im.p, sizeof p);
        munmap(p, im.n);
    }
}

/* ---- one stack --------------------------------------------------------------------------------- */

/* Reads memory of this process that may be unmapped; returns the number of bytes read. */
static size_t read_self(uint64_t address, void *to, size_t n)
{
    struct iovec mine = {to, n}, theirs = {(void *)(uintptr_t)address, n};
    ssize_t got = process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Tells whether the address directly follows a call instruction. */
static bool is_return(uint64_t address)
{
#if defined(__x86_64__)
    uint8_t b[7];
    if (read_self(address - sizeof b, b, sizeof b) != sizeof b)
        return false;
    if (b[2] == 0xE8) /* call rel32 */
        return true;
    /* call through a register or memory: FF /2, followed by none, one or four bytes */
    return (b[5] == 0xFF && (b[6] & 0x38) == 0x10) || (b[4] == 0xFF && (b[5] & 0x38) == 0x10) ||
           (b[3] == 0xFF && (b[4] & 0x38) == 0x10) || (b[1] == 0xFF && (b[2] & 0x38) == 0x10) ||
           (b[0] == 0xFF && (b[1] & 0x38) == 0x10);
#elif defined(__aarch64__)
    uint32_t i;
    if (address % 4 != 0 || read_self(address - 4, &i, sizeof i) != sizeof i)
        return false;
    return (i & 0xFC000000u) == 0x94000000u || (i & 0xFFFFFC1Fu) == 0xD63F0000u;
#else
    (void)address;
    return false;
#endif
}

static void put_stack(struct out *o, uint64_t sp, uint64_t pc)
{
    ms_assert(o->n < o->cap);
    const struct mapping *m = mapping_of(pc);
    int frames = 0;
    size_t n = 0;
    if (m != NULL)
        put_place(o, pc, m);
    for (size_t part = WORDS; n == 0 && part >= 64; part /= 2) /* the stack may end before */
        n = read_self(sp, st.word, part * sizeof st.word[0]) / sizeof st.word[0];
    for (size_t i = 0; i < n && frames < FRAMES; i++) {
        m = mapping_of(st.word[i]);
        if (m == NULL || !is_return(st.word[i]))
            continue;
        put_place(o, st.word[i], m);
        frames++;
    }
}

/* ---- a thread that runs ------------------------------------------------------------------------ */

#if defined(__x86_64__)
enum { SP = PERF_REG_X86_SP, PC = PERF_REG_X86_IP };
#elif defined(__aarch64__)
enum { SP = PERF_REG_ARM64_SP, PC = PERF_REG_ARM64_PC };
#else
enum { SP = 0, PC = 1 };
#endif

enum {
    PAGES = 1 + 8,       /* the head and a ring */
    PERIOD_NS = 1000000, /* of the thread's time between samples */
    TRIES = 50,          /* of 2 ms each: the thread may get little processor time */
};

/* A sample with the two registers, in ascending order of their numbers. */
struct sample {
    struct perf_event_header head;
    uint64_t abi, low, high;
};

static bool read_sample(const struct perf_event_mmap_page *page, uint64_t *sp, uint64_t *pc)
{
    struct sample s;
    if (__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) < sizeof s)
        return false;
    memcpy(&s, (const char *)page + page->data_offset, sizeof s);
    if (s.head.type != PERF_RECORD_SAMPLE || s.abi == PERF_SAMPLE_REGS_ABI_NONE)
        return false;
    *sp = SP < PC ? s.low : s.high;
    *pc = SP < PC ? s.high : s.low;
    return true;
}

static bool thread_sample(uint32_t tid, uint64_t *sp, uint64_t *pc)
{
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_SW_CPU_CLOCK,
                                .sample_period = PERIOD_NS,
                                .sample_type = PERF_SAMPLE_REGS_USER,
                                .exclude_kernel = 1,
                                .exclude_hv = 1,
                                .sample_regs_user = 1ull << SP | 1ull << PC};
    const struct timespec pause = {.tv_nsec = 2000000};
    const size_t bytes = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    int fd = (int)syscall(SYS_perf_event_open, &a, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return false;
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bool found = false;
    for (int i = 0; page != MAP_FAILED && i < TRIES && !found; i++) {
        nanosleep(&pause, NULL);
        found = read_sample(page, sp, pc);
    }
    if (page != MAP_FAILED)
        munmap(page, bytes);
    close(fd);
    return found;
}

/* ---- all threads -------------------------------------------------------------------------------- */

static size_t read_text(const char *tid, const char *file, char *out, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/%.20s", tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, cap - 1) : 0;
    if (fd >= 0)
        close(fd);
    n = n > 0 ? n : 0;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return strlen(out);
}

/* Parses /proc/self/task/TID/syscall: "NR a b c d e f SP PC" of a sleeping thread, or "running". */
static void put_thread(struct out *o, const char *tid)
{
    char name[32], call[256];
    long number = 0;
    uint64_t sp = 0, pc = 0;
    read_text(tid, "comm", name, sizeof name);
    read_text(tid, "syscall", call, sizeof call);
    if (sscanf(call, "%ld %*s %*s %*s %*s %*s %*s %" SCNx64 " %" SCNx64, &number, &sp, &pc) == 3) {
        out_printf(o, "thread %s %s, in system call %ld\n", tid, name, number);
        put_stack(o, sp, pc);
    } else {
        out_printf(o, "thread %s %s, %s\n", tid, name, call[0] != '\0' ? call : "unknown");
        if (thread_sample((uint32_t)strtoul(tid, NULL, 10), &sp, &pc))
            put_stack(o, sp, pc);
    }
}

/* Writes the stacks of all threads but the helper as text; returns its length. */
static size_t write_stacks(char *out, size_t cap)
{
    ms_assert(cap > 0);
    struct out o = {.p = out, .cap = cap};
    struct dirent *e;
    uint32_t self = (uint32_t)ms_gettid();
    int threads = 0;
    read_maps();
    DIR *d = opendir("/proc/self/task");
    while (d != NULL && (e = readdir(d)) != NULL && threads < THREADS) {
        if (e->d_name[0] == '.' || strtoul(e->d_name, NULL, 10) == self)
            continue;
        put_thread(&o, e->d_name);
        threads++;
    }
    if (d != NULL)
        closedir(d);
    return o.n;
}

/* ---- calls ------------------------------------------------------------------ */

/* Communication calls that do not return, and marks that a device does not reach.
 * Each is reported once: a line on stderr, and a HANG text in the capture, which a reader may show
 * while the program still hangs.  The program itself is not changed.
 *
 * An asynchronous operation (an Irecv) may stay open for long: the WAIT for it is checked instead.
 * When a WAIT hangs, the operations that it waits for are reported in its place: those of its
 * requests, with their peers, as far as the hook knows them, or else the collectives that its
 * thread had begun and that are still open. */

/* Reports at most CALLS_A_LOOK hung calls in one scan, because resolving a name can be slow.  The next
 * scan reports the rest. */
enum { STACKS = 64 << 10, CALLS_A_LOOK = 32, WAITS_A_LOOK = 64, REQUESTS_A_WAIT = 32 };

static struct {
    struct rt_lock lock;
    uint64_t stacks_at; /* when stacks were written last */
    char text[sizeof(struct mstx_hang) + 512 + STACKS];
} hang;

bool rt_hang_is_long(uint64_t ticks)
{
    const uint64_t hz =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return rt.conf.hang_s > 0 && hz != 0 && (double)ticks > rt.conf.hang_s * (double)hz;
}

static int64_t ns_of(uint64_t ticks)
{
    const uint64_t hz =
        rt_clock_kind == MSTX_CLOCK_MONOTONIC ? 1000000000 : atomic_load(&rt.tick_hz);
    return hz != 0 ? (int64_t)((double)ticks / (double)hz * 1e9) : 0;
}

/* Writes the line on stderr. c: the call; c->group: the communicator, or the stream of a device. */
static void tell_people(const struct mstx_hang *h, const struct mstx_comm_description *c)
{
    char line[512], who[32] = "this process", call[MSTX_COMM_SPOKEN];
    const double s = (double)h->waited_ns / 1e9;
    int n;
    if (rt.conf.rank >= 0)
        snprintf(who, sizeof who, "rank %" PRId32, rt.conf.rank);
    mstx_comm_speak(call, c);
    if (h->on_device)
        n = snprintf(line, sizeof line,
                     "mstx: the device of %s has not come to %s on %s for %.1f s\n", who, c->name,
                     c->group, s);
    else
        n = snprintf(line, sizeof line, "mstx: %s waits in %s for %.1f s\n", who, call, s);
    if (rt.conf.quiet < 2 && n > 0)
        (void)!write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Caller holds the lock. */
static size_t append(size_t at, const char *text, uint16_t *len)
{
    ms_assert(atomic_load(&hang.lock.held) == 1 && at + 250 <= sizeof hang.text - STACKS);
    size_t n = strnlen(text, 250);
    memcpy(hang.text + at, text, n);
    *len = (uint16_t)n;
    return at + n;
}

/* Writes the HANG text and the line on stderr. Calls that hang at the same moment share the stacks
 * of the first. */
static void report_hang(struct mstx_hang *h, uint64_t id, const struct mstx_comm_description *c)
{
    rt_lock(&hang.lock);
    h->op = c->op;
    h->seq = c->seq;
    h->size = c->size;
    h->peer_plus_1 = c->peer + 1;
    size_t at = append(sizeof *h, c->name, &h->name_len);
    at = append(at, c->group, &h->group_len);
    uint64_t now = rt_ticks();
    if (hang.stacks_at == 0 || ns_of(now - hang.stacks_at) > 5000000000) {
        hang.stacks_at = now;
        at += write_stacks(hang.text + at, STACKS);
    }
    memcpy(hang.text, h, sizeof *h);
    rt_text_define(MSTX_HANG, 0, id, hang.text, at);
    tell_people(h, c);
    rt_unlock(&hang.lock);
}

/* Describes a call for messages; the range of a framework is described by its text. */
static void what_is(const struct mstx_comm_open *o, struct mstx_comm_description *c)
{
    char text[1024];
    *c = (struct mstx_comm_description){.op = o->rec.op, .size = o->size, .peer = o->peer};
    if (o->name == NULL) {
        rt_text_copy(o->text, text, sizeof text);
        mstx_comm_message_read(text, c);
    } else {
        snprintf(c->name, sizeof c->name, "%s", o->name);
        snprintf(c->group, sizeof c->group, "%s", o->group);
    }
    c->seq = o->rec.seq;
}

static uint64_t group_of(const struct mstx_comm_open *o, const struct mstx_comm_description *c)
{
    if (o->name != NULL || c->group[0] == '\0')
        return o->uid;
    return mstx_group_hash(0, c->group, strlen(c->group));
}

/* ---- scan of open calls --------------------------------------------------------------------- */

/* A call that waits for requests, and hangs. */
struct wait {
    uint32_t tid, ranges;
    uint64_t since;
    uint64_t range[REQUESTS_A_WAIT]; /* ranges that it waits for, as far as known */
};
struct look {
    uint64_t now;
    uint32_t told, waits;
    struct wait wait[WAITS_A_LOOK];
};

static bool is_hanging(const struct look *l, const struct mstx_comm_open *o)
{
    ms_assert(l->now != 0);
    return (o->rec.flags & MSTX_CF_ASYNC) == 0 && o->ticks <= l->now &&
           rt_hang_is_long(l->now - o->ticks);
}

/* Finds the ranges that a WAIT waits for. The handles are on the stack of a thread that may return
 * at any moment, so they are read through the kernel. */
static void find_ranges(struct wait *w, const struct mstx_comm_open *o)
{
    mstx_comm_request_fn *range_of = rt_comm_requests_by();
    uint64_t handle[REQUESTS_A_WAIT];
    const size_t n = o->rec.count < REQUESTS_A_WAIT ? o->rec.count : REQUESTS_A_WAIT;
    if (o->requests == NULL || range_of == NULL)
        return;
    const size_t got = read_self((uintptr_t)o->requests, handle, n * sizeof *handle);
    for (size_t i = 0; i < got / sizeof *handle; i++) {
        const uint64_t range = range_of(handle[i]);
        if (range != 0)
            w->range[w->ranges++] = range;
    }
}

static void find_waits(void *arg, const struct mstx_comm_open *o)
{
    struct look *l = arg;
    if (o->rec.op != MSTX_COMM_WAIT || l->waits == WAITS_A_LOOK || !is_hanging(l, o))
        return;
    struct wait *w = &l->wait[l->waits++];
    w->tid = o->tid;
    w->since = o->ticks;
    find_ranges(w, o);
}

static bool waits_for(const struct wait *w, const struct mstx_comm_open *o)
{
    for (uint32_t i = 0; i < w->ranges; i++) {
        if (w->range[i] == o->id)
            return true;
    }
    return w->ranges == 0 && w->tid == o->tid && o->ticks <= w->since &&
           mstx_comm_op_class(o->rec.op) == MSTX_CLASS_COLL;
}

/* Ticks since which a hung call has waited for this operation; 0: none waits for it. */
static uint64_t waited_since(const struct look *l, const struct mstx_comm_open *o)
{
    for (uint32_t i = 0; (o->rec.flags & MSTX_CF_ASYNC) != 0 && i < l->waits; i++) {
        if (waits_for(&l->wait[i], o))
            return l->wait[i].since;
    }
    return 0;
}

/* Tells whether the ranges that this WAIT waits for are known; they are then reported in its
 * place. */
static bool has_ranges(const struct look *l, const struct mstx_comm_open *o)
{
    for (uint32_t i = 0; o->rec.op == MSTX_COMM_WAIT && i < l->waits; i++) {
        if (l->wait[i].tid == o->tid && l->wait[i].since == o->ticks)
            return l->wait[i].ranges != 0;
    }
    return false;
}

static void look_at(void *arg, const struct mstx_comm_open *o)
{
    struct look *l = arg;
    struct mstx_comm_description c;
    const uint64_t since = is_hanging(l, o) ? o->ticks : waited_since(l, o);
    if (since == 0 || o->is_told || l->told == CALLS_A_LOOK || has_ranges(l, o))
        return;
    l->told++;
    rt_comm_set_reported(o->id);
    what_is(o, &c);
    struct mstx_hang h = {
        .uid = group_of(o, &c), .waited_ns = ns_of(l->now - since), .tid = o->tid};
    report_hang(&h, o->id, &c);
}

void rt_hang_look(void)
{
    static struct look l; /* used by the helper thread only */
    if (rt.conf.hang_s <= 0)
        return;
    memset(&l, 0, sizeof l);
    l.now = rt_ticks();
    mstx_comm_each_open(find_waits, &l);
    mstx_comm_each_open(look_at, &l);
}

void rt_hang_on_device(const struct rt_hang_mark *m)
{
    struct mstx_hang h = {.waited_ns = ns_of(rt_ticks() - m->ticks), .on_device = 1};
    struct mstx_comm_description c = {.size = -1, .peer = -1};
    rt_text_copy(m->name, c.name, sizeof c.name);
    snprintf(c.group, sizeof c.group, "%s", m->stream);
    report_hang(&h, m->id, &c);
}
