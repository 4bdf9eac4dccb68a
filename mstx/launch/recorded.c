/* SPDX-License-Identifier: MIT
 *
 * recorded: see the header.
 */
#include "mstx/launch/recorded.h"

#include "mstx/format/capture.h"
#include "mstx/format/stage.h"
#include "mstx/read/control.h"

#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <stdio.h>
#include <unistd.h>

/* ---- before the program ---------------------------------------------------------------------- */

static enum ms_rc count_ended(void *arg, const char *path, struct ms_err *err)
{
    struct mstx_link *l = NULL;
    size_t *ended = arg;
    enum ms_rc rc = mstx_link_open(&l, path, err);
    *ended += rc == MS_OK && l != NULL &&
              !mstx_link_alive(l); /* processes of other ranks of this run are alive */
    mstx_link_close(l);
    return MS_OK;
}

/* Warns of a finished run in the directory: the new run would be merged with it, which is seldom
 * intended. */
void mstx__show_earlier(const char *out)
{
    size_t ended = 0;
    if (mstx_each_process(out, -1, count_ended, &ended, NULL) != MS_OK || ended == 0)
        return;
    fprintf(stderr,
            "msprobe: %s holds %zu process%s of an earlier run; every command will show them "
            "together with this one (-o FOLDER keeps runs apart)\n",
            out, ended, ended == 1 ? "" : "es");
}

/* ---- after the program ---------------------------------------------------------------------- */

struct sum {
    size_t processes, segments;
    uint64_t records, dropped, bytes;
    int unstaged;
};

static void add_segment(struct sum *s, const char *path)
{
    struct mstx_seg h;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    if (fread(&h, sizeof h, 1, f) == 1 &&
        mstx_seg_check(&h, sizeof h, MSTX_KIND_RING) == MSTX_SEG_GOOD && h.part != 0) {
        s->segments++;
        s->records += h.ring != 0 ? h.head : 0;
        s->dropped += h.dropped;
        s->bytes += sizeof h + h.head * MSTX_REC_SIZE;
    }
    fclose(f);
}

static enum ms_rc add_process(void *arg, const char *path, struct ms_err *err)
{
    struct sum *s = arg;
    struct ms_dir d;
    if (mstx_stage_recover(path) != 0)
        s->unstaged++;
    MS_TRY(ms_dir_list(&d, path, err));
    s->processes++;
    for (size_t i = 0; i < d.names.n; i++) {
        char *file = ms_path_join(path, d.names.p[i].p);
        if (file != NULL && d.names.p[i].p[0] == 'r' && ms_str_ends(d.names.p[i], MS_STR(".seg")))
            add_segment(s, file);
        ms_free(file);
    }
    ms_dir_free(&d);
    return MS_OK;
}

/* Prints on stderr: standard output belongs to the program. */
enum ms_rc mstx__show_recorded(const char *out, bool has_dump, struct ms_err *err)
{
    struct sum s = {0};
    char size[MS_HUMAN_MAX];
    MS_TRY(mstx_each_process(out, -1, add_process, &s, err));
    if (s.processes == 0) {
        bool is_empty = rmdir(out) == 0;
        if (!has_dump)
            fprintf(stderr, "msprobe: the program made no mark; nothing was recorded\n");
        else if (!is_empty)
            fprintf(stderr, "msprobe: the dump is in %s\n", out);
        return MS_OK;
    }
    fprintf(stderr, "msprobe: %s: %llu records of %zu process%s, %s", out,
            (unsigned long long)s.records, s.processes, s.processes == 1 ? "" : "es",
            ms_human_bytes(size, s.bytes));
    if (s.dropped > 0)
        fprintf(stderr, ", %llu dropped", (unsigned long long)s.dropped);
    if (s.unstaged > 0)
        fprintf(stderr, ", %d still on the stage", s.unstaged);
    fprintf(stderr, "; next: msprobe report %s\n", out);
    return MS_OK;
}
