/* SPDX-License-Identifier: MIT
 *
 * reread: a config.json with the key dump_enable is looked at while the program
 * runs, so that a dump can be switched on and off, or asked for other things,
 * from outside.  A file that cannot be read switches it off.
 */
#include "probe/dumper_int.h"

#define MS_LOG_DOMAIN "dumper"
#include "probe/base/clock.h"
#include "probe/base/io.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/settings.h"

#include <sys/stat.h>

enum { FILE_MAX = 1 << 20 };
#define WHILE_ON_NS  INT64_C(500000000)
#define WHILE_OFF_NS INT64_C(3000000000)

/* Is the file another one than last time? */
static bool has_changed(struct probe__source *source)
{
    struct stat st;
    if (stat(source->path, &st) != 0)
        return false; /* between a removal and the file that takes its place */
    int64_t changed = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    bool is_other = changed != source->changed_ns || (uint64_t)st.st_size != source->size;
    source->changed_ns = changed;
    source->size = (uint64_t)st.st_size;
    return is_other;
}

void probe__source_set(struct probe_dumper *d, const char *path, struct ms_str over)
{
    d->source.over = ms_str_dup(over);
    if (d->source.over != NULL)
        d->source.path = ms_str_dup(ms_str_of(path)); /* without memory it is not looked at */
    if (d->source.path != NULL)
        has_changed(&d->source);
}

static enum ms_rc read_again(struct probe_dumper *d, struct ms_err *err)
{
    struct probe_settings *s;
    struct ms_file f;
    MS_TRY(ms_file_map(&f, d->source.path, FILE_MAX, err));
    enum ms_rc rc =
        probe__settings_parse_over(&s, d->source.path, f.p, f.n, ms_str_of(d->source.over), err);
    ms_file_unmap(&f);
    MS_TRY(rc);
    if (!s->is_watched) /* the key is gone: it stays as it was */
        s->disabled = d->s.disabled;
    rc = probe__adopt(d, s, err);
    probe_settings_free(s);
    return rc;
}

void probe__source_look(struct probe_dumper *d)
{
    struct ms_err err = {0};
    int64_t now = ms_clock_ns();
    if (d->source.path == NULL ||
        now - d->source.looked_ns < (d->s.disabled ? WHILE_OFF_NS : WHILE_ON_NS))
        return;
    d->source.looked_ns = now;
    if (!has_changed(&d->source))
        return;
    if (read_again(d, &err) == MS_OK)
        return;
    ms_warn("nothing is dumped until it is mended: %s", err.msg);
    d->s.disabled = true;
}
