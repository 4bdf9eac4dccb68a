/* SPDX-License-Identifier: MIT
 *
 * serve: the browser visualizer.
 */
#include "web/serve/guard.h"
#include "web/serve/server.h"

#include "viz/model/session.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct ms_cmd web_cmd_serve;
extern char **environ;

struct args {
    struct ms_opt_list path;
    const char *golden, *host;
    int64_t port;
    bool open;
};

static const struct ms_opt opts[] = {
    {"PATH", NULL, MS_OPT_REST, offsetof(struct args, path), .min = 1, .max = 1,
     .help =
         "a run directory, a dump, a .vis.db, a Chrome trace, a database of Ascend's "
         "profilers, a .trend.db, the folder of a training monitor, a table of a comparison, a "
         "record of memory, or a folder of several of these, of which the page lets you choose"},
    {"golden_path", "gp", MS_OPT_PATH, offsetof(struct args, golden), "PATH",
     .help = "a second dump to compare the first with; of two runs, the older one"},
    {"port", "p", MS_OPT_INT, offsetof(struct args, port), "N", .dflt = "8421", .max = 65535,
     .help = "port to listen on; 0 takes any that is free"},
    {"host", NULL, MS_OPT_TEXT, offsetof(struct args, host), "ADDRESS", .dflt = "127.0.0.1",
     .help = "address to listen on; 0.0.0.0 lets other machines ask, and prints the addresses "
             "that they can open"},
    {"open", NULL, MS_OPT_FLAG, offsetof(struct args, open),
     .help = "open the page in the browser of this desktop"},
    {0}};

/* Opens a URL with the desktop's default program; a failure is only reported. */
static void open_browser(char *address)
{
    char *const argv[] = {(char[]){"xdg-open"}, address, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        fprintf(stderr, "msprobe serve: no xdg-open here; open the address yourself\n");
}

static void print_address(const struct web_guard *g, bool open)
{
    char link[WEB_LINKS][WEB_LINK_MAX];
    const unsigned n = web_links(g, link);
    printf("%s\n", link[0]);
    for (unsigned i = 1; i < n; i++)
        printf("  or %s\n", link[i]);
    printf("  Ctrl-C ends\n");
    fflush(stdout);
    if (open)
        open_browser(link[0]);
}

/* Waits for the end; true: for a choice, which another thread announces by SIGUSR1. */
static bool wait_for_choice(const sigset_t *ends)
{
    int signal_number;
    do
        sigwait(ends, &signal_number);
    while (signal_number == SIGCHLD);
    return signal_number == SIGUSR1;
}

static void announce_choice(void)
{
    kill(getpid(), SIGUSR1);
}

/* Ends the program when an orderly shutdown takes too long because a request is being answered.
 * No partial file remains: a file being written has a temporary name until complete. */
static void *end_at_last(void *unused)
{
    enum { IN_ORDER_MS = 600 };
    (void)unused;
    usleep(IN_ORDER_MS * 1000);
    ms_tmp_unlink_all();
    _exit(MS_EXIT_OK);
}

static void limit_ending(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_at_last, NULL) == 0)
        pthread_detach(thread);
}

/* The server's threads inherit the mask, so the signals are delivered to this thread. */
static void block_ends(sigset_t *ends)
{
    sigemptyset(ends);
    sigaddset(ends, SIGINT);
    sigaddset(ends, SIGTERM);
    sigaddset(ends, SIGHUP);
    sigaddset(ends, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, ends, NULL);
}

/* What a page chose: a run of the folder, or the folder again (path NULL). */
struct choice {
    char *path, *golden;
};

/* Answers until the end; *choice: what to open then, *more false at the end. The guard of the last server is kept, so
 * that the next one has its port and its token. */
static enum ms_rc serve(const struct args *a, struct viz_session *session, struct web_guard *guard,
                        struct choice *choice, bool *more, struct ms_err *err)
{
    struct web_server *server;
    const bool is_first = guard->port == 0;
    struct web_server_conf conf = {a->host, is_first ? (uint16_t)a->port : guard->port, session,
                                   is_first ? NULL : guard->token};
    sigset_t ends;
    block_ends(&ends);
    MS_TRY(web_server_start(&server, &conf, err));
    *guard = *web_server_guard(server);
    if (is_first)
        print_address(guard, a->open);
    *more = wait_for_choice(&ends) && viz_session_chosen(session, &choice->path, &choice->golden);
    if (!*more)
        limit_ending();
    web_server_stop(server);
    return MS_OK;
}

/* Opens what was chosen, and the list again, with the reason, when that fails. */
static enum ms_rc open_choice(struct viz_session *s, const struct viz_conf *list,
                              const struct choice *choice, struct ms_err *err)
{
    struct ms_err why = {0};
    struct viz_conf conf = *list;
    conf.path = choice->path;
    conf.golden = choice->golden;
    conf.shelf = list->path;
    conf.can_choose = false;
    if (choice->path != NULL && viz_session_open(s, &conf, &why) == MS_OK)
        return MS_OK;
    MS_TRY(viz_session_open(s, list, err));
    if (choice->path != NULL)
        snprintf(s->failed, sizeof s->failed, "%s", why.msg);
    return MS_OK;
}

/* Serves one session after the other until the end. */
static enum ms_rc serve_choices(const struct args *a, const struct viz_conf *conf,
                                struct viz_session *session, struct ms_err *err)
{
    struct web_guard guard = {.port = 0};
    bool more = true;
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK) {
        struct choice choice = {NULL, NULL};
        rc = serve(a, session, &guard, &choice, &more, err);
        if (rc != MS_OK || !more)
            break;
        viz_session_close(session);
        rc = open_choice(session, conf, &choice, err);
        ms_free(choice.path);
        ms_free(choice.golden);
    }
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct args a = {.port = 8421, .host = "127.0.0.1"};
    struct viz_session session;
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&web_cmd_serve, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&web_cmd_serve, &err);
    if (done)
        return MS_EXIT_OK;
    ms_mem_give_back();
    struct viz_conf conf = {.path = a.path.items[0],
                            .golden = a.golden,
                            .can_choose = true,
                            .on_choice = announce_choice,
                            .progress = viz_print_progress,
                            .note = viz_print_note,
                            .ctx = (char[]){"serve"}};
    enum ms_rc rc = viz_session_open(&session, &conf, &err);
    if (rc != MS_OK)
        return ms_cmd_fail(&web_cmd_serve, &err);
    rc = serve_choices(&a, &conf, &session, &err);
    viz_session_close(&session);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&web_cmd_serve, &err);
}

const struct ms_cmd web_cmd_serve = {
    .name = "serve",
    .run = run_command,
    .brief = "show a run, a dump or a comparison in the browser",
    .opts = opts,
    .usage = "[options] PATH",
    .about = "Opens PATH and answers a browser on this machine: findings first, then the "
             "timeline, the graph of modules, the table of figures and the cluster.  Files stay as "
             "they are: pairs matched by hand last when they are written, into a file beside.\n\n"
             "  msprobe serve run1\n"
             "  msprobe serve .                         to choose of all runs in this folder\n"
             "  msprobe serve dump_npu --golden_path dump_gpu --open\n"
             "  ssh -L 8421:localhost:8421 node     for a run on another machine",
};
