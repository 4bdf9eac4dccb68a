/* SPDX-License-Identifier: MIT
 *
 * builtin: the list of all commands, and those about the program itself: version, help and completion.
 */
#include "probe/cli/cmds.h"

#include "probe/base/conf.h"
#include "probe/base/cpu.h"
#include "probe/base/jprint.h"
#include "probe/base/store.h"

#include "probe/dump/graph_dump.h"

#include "viz/words/words.h"

/* ---- version ---------------------------------------------------------- */

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#ifdef NDEBUG
#define ASSERTIONS "off"
#else
#define ASSERTIONS "on"
#endif

static void print_build(void)
{
    char cpu[128];
    printf("compiler    " COMPILER "\n");
    printf("flags       " MS_BUILD_FLAGS "\n");
    printf("assertions  " ASSERTIONS "\n");
    printf("sqlite      %s\n", ms_store_version());
    printf("cjson       %s\n", ms_conf_version());

    printf("processor   %u usable, kernels for %s\n", ms_cpu_count(), ms_cpu_text(cpu, sizeof cpu));
}

static enum ms_rc print_version_json(struct ms_err *err)
{
    char cpu[128];
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    ms_jwrite_kstr(&w, "version", MS_VERSION);
    ms_jwrite_kstr(&w, "compiler", COMPILER);
    ms_jwrite_kstr(&w, "flags", MS_BUILD_FLAGS);
    ms_jwrite_kbool(&w, "assertions", strcmp(ASSERTIONS, "on") == 0);
    ms_jwrite_kstr(&w, "sqlite", ms_store_version());
    ms_jwrite_kstr(&w, "cjson", ms_conf_version());
    ms_jwrite_ki64(&w, "processors", ms_cpu_count());
    ms_jwrite_kstr(&w, "kernels", ms_cpu_text(cpu, sizeof cpu));
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

struct version_args {
    int format;
};

static const struct ms_opt version_opts[] = {MS_OPT_FORMAT(struct version_args, format), {0}};

static int run_version(int argc, char **argv)
{
    struct version_args args = {0};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&cli_cmd_version, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_version, &err);
    if (done)
        return MS_EXIT_OK;
    if (args.format == MS_FORMAT_JSON)
        return print_version_json(&err) == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&cli_cmd_version, &err);
    puts("msprobe " MS_VERSION);
    if (ms_globals.verbose)
        print_build();
    return MS_EXIT_OK;
}

const struct ms_cmd cli_cmd_version = {
    .name = "version",
    .run = run_version,
    .brief = "print the version; with -v how it was built",
    .opts = version_opts,
    .usage = "[options]",
    .about = "Prints the version in one line. With -v it adds the compiler and its flags, the "
             "versions of the libraries and the instructions that the kernels may use: what a "
             "report of a bug should hold.\n"
             "\n"
             "  msprobe version -v\n",
};

/* ---- help ------------------------------------------------------------- */

struct help_args {
    struct ms_opt_list command;
};

static const struct ms_opt help_opts[] = {
    {"COMMAND", NULL, MS_OPT_REST, offsetof(struct help_args, command), .max = 1,
     .help = "what to explain; without it all commands are listed"},
    {0}};

static int run_help(int argc, char **argv)
{
    struct help_args args = {0};
    struct ms_err err = {0};
    const struct ms_cmd *cmd = &cli_cmd_help;
    bool done;
    if (ms_opt_parse(cmd, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(cmd, &err);
    if (done)
        return MS_EXIT_OK;
    if (args.command.n == 0) {
        cli_overview(stdout);
        return MS_EXIT_OK;
    }
    if (cli_find(args.command.items[0], &cmd, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_help, &err);
    ms_opt_help(cmd, stdout);
    return MS_EXIT_OK;
}

const struct ms_cmd cli_cmd_help = {
    .name = "help",
    .run = run_help,
    .brief = "list the commands, or explain one",
    .opts = help_opts,
    .usage = "[options] [COMMAND]",
    .about = "Lists the commands. With the name of one it prints the same as that command does "
             "with --help.\n"
             "\n"
             "  msprobe help completion\n",
};

/* ---- completion ------------------------------------------------------- */

struct completion_args {
    struct ms_opt_list shell;
    bool list;
};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const struct ms_opt completion_opts[] = {
    {"SHELL", NULL, MS_OPT_REST, offsetof(struct completion_args, shell), .max = 1,
     .choices = shells, .help = "the shell that will read the script"},
    {"list", NULL, MS_OPT_FLAG, offsetof(struct completion_args, list), .hidden = true,
     .help = "print all commands and options, one per line"},
    {0}};

static enum ms_rc print_completion(const struct completion_args *args, struct ms_err *err)
{
    if (args->list)
        ms_opt_complete_list(cli_commands(), stdout);
    else if (args->shell.n == 0)
        return ms_fail(err, MS_E_ARG, "missing argument SHELL: bash, zsh or fish");
    else if (strcmp(args->shell.items[0], "bash") == 0)
        ms_opt_complete_bash(cli_commands(), stdout);
    else if (strcmp(args->shell.items[0], "zsh") == 0)
        ms_opt_complete_zsh(cli_commands(), stdout);
    else
        ms_opt_complete_fish(cli_commands(), stdout);
    return MS_OK;
}

static int run_completion(int argc, char **argv)
{
    struct completion_args args = {0};
    struct ms_err err = {0};
    bool done;
    if (ms_opt_parse(&cli_cmd_completion, argc, argv, &args, &done, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_completion, &err);
    if (done)
        return MS_EXIT_OK;
    if (print_completion(&args, &err) != MS_OK)
        return ms_cmd_fail(&cli_cmd_completion, &err);
    return MS_EXIT_OK;
}

const struct ms_cmd cli_cmd_completion = {
    .name = "completion",
    .run = run_completion,
    .brief = "print a completion script for a shell",
    .opts = completion_opts,
    .usage = "[options] bash|zsh|fish",
    .about = "Prints a script that makes the shell complete commands, options and their values. "
             "For bash, now and in every new shell:\n"
             "\n"
             "  source <(msprobe completion bash)\n"
             "  msprobe completion bash > ~/.local/share/bash-completion/completions/msprobe\n"
             "\n"
             "For zsh, in a directory of $fpath:\n"
             "\n"
             "  msprobe completion zsh > ~/.zfunc/_msprobe\n"
             "\n"
             "For fish:\n"
             "\n"
             "  msprobe completion fish > ~/.config/fish/completions/msprobe.fish\n",
};

/* ---- all commands ------------------------------------------------------- */

/* In the order of `msprobe help`. X(FOLDER, NAME) is `const struct ms_cmd FOLDER_cmd_NAME`, defined in
 * FOLDER/cmd/cmd_NAME.c. */
#define COMMANDS(X)                                                                                \
    X(probe, stat)                                                                                 \
    X(probe, parse)                                                                                \
    X(probe, overflow_check)                                                                       \
    X(probe, data2db)                                                                              \
    X(probe, monitor)                                                                              \
    X(probe, trend)                                                                                \
    X(mstx, run)                                                                                   \
    X(mstx, ctl)                                                                                   \
    X(mstx, import)                                                                                \
    X(mstx, report)                                                                                \
    X(mstx, whatif)                                                                                \
    X(mstx, memory)                                                                                \
    X(mstx, dryrun)                                                                                \
    X(mstx, cluster)                                                                               \
    X(mstx, export)                                                                                \
    X(mstx, sql)                                                                                   \
    X(compare, compare)                                                                            \
    X(compare, config_check)                                                                       \
    X(compare, quantise)                                                                           \
    X(compare, check)                                                                              \
    X(compare, judge)                                                                              \
    X(compare, reproduce)                                                                          \
    X(compare, bisect)                                                                             \
    X(compare, calibrate)                                                                          \
    X(compare, merge_result)                                                                       \
    X(compare, graph_visualize)                                                                    \
    X(viz, view)                                                                                   \
    X(web, serve)                                                                                  \
    X(probe, drop_in)                                                                              \
    X(cli, version)                                                                                \
    X(cli, doctor)                                                                                 \
    X(cli, selftest)                                                                               \
    X(cli, help)                                                                                   \
    X(cli, completion)

#define DECLARE(folder, name) extern const struct ms_cmd folder##_cmd_##name;
COMMANDS(DECLARE)
#define POINT_TO(folder, name) &folder##_cmd_##name,
static const struct ms_cmd *const commands[] = {COMMANDS(POINT_TO) NULL};

static const struct cli_program program = {commands, true, cli_show_folder, cli_command_of_path,
                                           cli_end_standard_files};

int cli_main(int argc, char **argv)
{
    viz_words_install();
    probe_graph_dump_register();
    cli_explain_paths(argc, argv);
    cli_take_standard_files();
    return cli_run(&program, argc, argv);
}
