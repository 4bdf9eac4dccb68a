/* SPDX-License-Identifier: MIT
 *
 * bisect_record: see the header.
 */
#include "compare/bisect/bisect_record.h"

#include "probe/base/io.h"
#include "probe/base/jwrite.h"
#include "probe/base/mem.h"
#include "probe/dump/find.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- the configuration ------------------------------------------------------------------------ */

static void put_empty(struct ms_jwrite *w, const char *key)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    ms_jwrite_arr_end(w);
}

/* An operator of the backward pass is computed again from its forward record, so both are dumped. */
static void put_names(struct ms_jwrite *w, const struct bisect_record *r)
{
    ms_jwrite_key(w, MS_STR("list"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < r->n; i++) {
        const struct ms_str own = r->names[i], end = MS_STR(".backward");
        const int64_t at = ms_str_find_str(own, end);
        struct ms_buf name = {.max = 1 << 16};
        ms_jwrite_str(w, own);
        if (at >= 0) {
            const struct ms_str head = ms_str_sub(own, 0, (uint32_t)at),
                                tail = ms_str_sub(own, (uint32_t)at + end.n, own.n);
            ms_buf_printf(&name, "%.*s.forward%.*s", MS_STR_ARG(head), MS_STR_ARG(tail));
            ms_jwrite_str(w, ms_buf_slice(&name));
        }
        ms_buf_free(&name);
    }
    ms_jwrite_arr_end(w);
}

static void put_task(struct ms_jwrite *w, const struct bisect_record *r)
{
    const char *task = r->names != NULL ? "tensor" : "statistics";
    ms_jwrite_kstr(w, "task", task);
    ms_jwrite_kstr(w, "dump_path", r->dir);
    ms_jwrite_kstr(w, "level", "mix");
    put_empty(w, "rank");
    ms_jwrite_key(w, MS_STR("step"));
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, r->step);
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, ms_str_of(task));
    ms_jwrite_obj(w);
    put_empty(w, "scope");
    put_names(w, r);
    ms_jwrite_key(w, MS_STR("data_mode"));
    ms_jwrite_arr(w);
    ms_jwrite_str(w, MS_STR("all"));
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

enum ms_rc bisect_write_config(const struct bisect_record *r, const char *path, struct ms_err *err)
{
    struct ms_jwrite w;
    struct ms_out *out;
    MS_TRY(ms_out_create(&out, path, err));
    ms_jwrite_init(&w, 0, 1 << 20);
    ms_jwrite_obj(&w);
    put_task(&w, r);
    ms_jwrite_obj_end(&w);
    enum ms_rc rc = ms_jwrite_finish(&w, err);
    if (rc == MS_OK)
        ms_out_write(out, w.buf.p, w.buf.n);
    ms_jwrite_free(&w);
    if (rc == MS_OK)
        return ms_out_commit(out, err);
    ms_out_abort(out);
    return rc;
}

/* ---- the program -------------------------------------------------------------------------------- */

/* Starts `msprobe run --dump CONFIG -- sh -c COMMAND`, of this program, with its output in a log. */
static int start(const char *command, const char *config, const char *dir, const char *log,
                 pid_t *pid)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return errno;
    self[n] = '\0';
    const char *const argv[] = {self, "run",     "-o", dir,     "--dump", config,
                                "--", "/bin/sh", "-c", command, NULL};
    posix_spawn_file_actions_t fds;
    posix_spawn_file_actions_init(&fds);
    posix_spawn_file_actions_addopen(&fds, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fds, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&fds, 1, 2);
    const int rc = posix_spawn(pid, self, &fds, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&fds);
    return rc;
}

static enum ms_rc wait_for(pid_t pid, const char *log, struct ms_err *err)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return ms_fail_sys(err, "cannot wait for the program");
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return MS_OK;
    if (WIFSIGNALED(status))
        return ms_fail(err, MS_E_IO, "the program ended by signal %d; see %s", WTERMSIG(status),
                       log);
    return ms_fail(err, MS_E_IO, "the program ended with status %d; see %s", WEXITSTATUS(status),
                   log);
}

static enum ms_rc want_dump(const struct bisect_record *r, struct ms_err *err)
{
    struct probe_places found;
    enum ms_rc rc = probe_find(&found, r->dir, err);
    if (rc == MS_OK)
        probe_places_free(&found);
    else
        ms_err_hint(err,
                    "the program made no dump of step %lld: does it train that far with PyTorch or "
                    "MindSpore?",
                    (long long)r->step);
    return rc;
}

enum ms_rc bisect_record(const struct bisect_record *r, struct ms_err *err)
{
    pid_t pid;
    MS_TRY(ms_mkdirs(r->dir, err));
    char *config = ms_path_join(r->dir, "config.json"), *log = ms_path_join(r->dir, "log"),
         *run = ms_path_join(r->dir, "run");
    enum ms_rc rc = config != NULL && log != NULL && run != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = bisect_write_config(r, config, err);
    if (rc == MS_OK) {
        const int failed = start(r->command, config, run, log, &pid);
        errno = failed;
        rc = failed == 0 ? wait_for(pid, log, err) : ms_fail_sys(err, "msprobe run");
    }
    ms_free(config);
    ms_free(log);
    ms_free(run);
    return rc == MS_OK ? want_dump(r, err) : rc;
}
