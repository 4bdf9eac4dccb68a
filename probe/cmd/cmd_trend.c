/* SPDX-License-Identifier: MIT
 *
 * trend: what stands out in the figures of many steps.
 */
#include "probe/base/human.h"
#include "probe/base/io.h"
#include "probe/base/jwrite.h"
#include "probe/base/opt.h"
#include "probe/trend/notable.h"

struct args {
    const char *golden;
    struct ms_opt_list path;
    double tolerance;
    int format;
    bool exit_code;
};

static const char *const formats[] = {"text", "json", NULL};

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), "PATH", .min = 1, .max = 1,
     .help = "a file .trend.db, a monitor's folder, or a dump of many steps"},
    {"golden", NULL, MS_OPT_PATH, offsetof(struct args, golden), "PATH",
     .help =
         "a run that is right, in the same form: name the first step, rank and layer that differ"},
    {"tolerance", NULL, MS_OPT_REAL, offsetof(struct args, tolerance), "X", .dflt = "0.001",
     .help = "golden: the relative difference that counts, if it is also ten times what the runs "
             "differ by at their first step"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = formats, .help = "of the findings"},
    {"exit_code", NULL, MS_OPT_FLAG, offsetof(struct args, exit_code),
     .help = "exit with status 1 when there are findings"},
    {0}};

extern const struct ms_cmd probe_cmd_trend;

static void show_note(void *ctx, const struct ms_err *why)
{
    (void)ctx;
    ms_cmd_note("trend", "%s", why->msg);
}

/* ---- findings ----------------------------------------------------------- */

static void put_sentence(struct ms_buf *out, const struct probe_notable *n, const char *stat)
{
    struct ms_message m;
    probe_notable_tell(n, stat, &m);
    ms_message_speak(ms_message_stored(&m), out);
}

static const char *kind_of(enum probe_notable_kind kind)
{
    return kind == PROBE_NOTABLE_NOT_FINITE ? "overflow"
           : kind == PROBE_NOTABLE_SPIKE    ? "spike"
                                            : "deviation";
}

static void put_finding(struct ms_jwrite *w, const struct probe_notable *n, struct ms_str text)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "kind", kind_of(n->kind));
    ms_jwrite_kstr(w, "severity", n->kind == PROBE_NOTABLE_SPIKE ? "warning" : "error");
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, n->rank);
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("steps"));
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, n->step - n->lead);
    ms_jwrite_i64(w, n->step);
    ms_jwrite_arr_end(w);
    ms_jwrite_kf64(w, "value", n->value);
    ms_jwrite_ktext(w, "where", n->curve != NULL ? n->curve->name : MS_STR(""));
    ms_jwrite_ktext(w, "metric", n->curve != NULL ? n->curve->metric : MS_STR(""));
    ms_jwrite_ktext(w, "text", text);
    ms_jwrite_obj_end(w);
}

static enum ms_rc show_json(const struct probe_notables *f, const char *stat, struct ms_err *err)
{
    struct ms_jwrite w;
    struct ms_buf text = {.max = 1 << 20};
    ms_jwrite_init(&w, 1, (size_t)1 << 30);
    w.strict = true;
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, MS_STR("findings"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < f->all.n; i++) {
        ms_buf_clear(&text);
        put_sentence(&text, &f->all.p[i], stat);
        put_finding(&w, &f->all.p[i], ms_buf_slice(&text));
    }
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    enum ms_rc rc = ms_jwrite_finish(&w, err);
    if (rc == MS_OK)
        printf("%.*s\n", (int)w.buf.n, w.buf.p);
    ms_jwrite_free(&w);
    ms_buf_free(&text);
    return rc;
}

static enum ms_rc show_text(const struct probe_notables *f, const struct probe_curves *c,
                            struct ms_err *err)
{
    struct ms_buf text = {.max = 1 << 20};
    char curves[MS_HUMAN_MAX];
    for (size_t i = 0; i < f->all.n; i++) {
        ms_buf_clear(&text);
        put_sentence(&text, &f->all.p[i], c->stat);
        printf("%-9s %s\n", kind_of(f->all.p[i].kind), ms_buf_z(&text));
    }
    printf("%s: %s curves, steps %lld to %lld\n", f->all.n != 0 ? "of" : "nothing stands out",
           ms_human_count(curves, c->curves.n), (long long)c->first_step, (long long)c->last_step);
    enum ms_rc rc = ms_buf_check(&text, err);
    ms_buf_free(&text);
    return rc;
}

/* ---- the command -------------------------------------------------------- */

static enum ms_rc look_at(const struct args *args, const struct probe_curves *c, size_t *found,
                          struct ms_err *err)
{
    struct probe_notables f;
    struct probe_curves golden;
    if (args->golden == NULL) {
        MS_TRY(probe_notables_find(&f, c, err));
    } else {
        MS_TRY(probe_curves_read(&golden, args->golden, show_note, NULL, err));
        enum ms_rc rc = probe_notables_compare(&f, c, &golden, args->tolerance, err);
        probe_curves_free(&golden);
        MS_TRY(rc);
    }
    *found = f.all.n;
    enum ms_rc rc = args->format == 1 ? show_json(&f, c->stat, err) : show_text(&f, c, err);
    probe_notables_free(&f);
    return rc;
}

static enum ms_rc look(const struct args *args, size_t *found, struct ms_err *err)
{
    struct probe_curves c;
    MS_TRY(probe_curves_read(&c, args->path.items[0], show_note, NULL, err));
    enum ms_rc rc = look_at(args, &c, found, err);
    probe_curves_free(&c);
    return rc == MS_OK ? ms_stdout_finish(err) : rc;
}

static int run_command(int argc, char **argv)
{
    struct args args = {.tolerance = 1e-3};
    struct ms_err err = {0};
    size_t found = 0;
    bool done;
    if (ms_opt_parse(&probe_cmd_trend, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_trend, &err);
    if (done)
        return MS_EXIT_OK;
    if (look(&args, &found, &err) != MS_OK)
        return ms_cmd_fail(&probe_cmd_trend, &err);
    return args.exit_code && found != 0 ? MS_EXIT_FOUND : MS_EXIT_OK;
}

const struct ms_cmd probe_cmd_trend = {
    .name = "trend",
    .run = run_command,
    .job = MS_JOB_FIRST,
    .brief = "name the step, rank and layer where figures of many steps stand out",
    .opts = opts,
    .usage = "[options] PATH",
    .about = "Reads figures over steps, from the trend viewer's database, a training monitor's "
             "folder or a dump of many steps, and says where numbers end, where the gradient or "
             "the loss jumps and which layer moved before it, and with --golden where a run "
             "leaves another one.\n"
             "\n"
             "  msprobe trend monitor_output\n"
             "  msprobe trend trend/monitor_data.trend.db --golden right/monitor_data.trend.db\n",
};
