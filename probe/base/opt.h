/* SPDX-License-Identifier: MIT
 *
 * opt: one table of options per command drives parsing, --help, shell
 * completion and the check of the man page.
 *
 *     static const struct ms_opt opts[] = {
 *         {"dump_path", "d", MS_OPT_TEXT, offsetof(struct args, path), "PATH", .required = true,
 *          .help = "file or directory to convert"},
 *         {0}};
 *
 * Spellings follow the official Python tool: short names may have several
 * letters behind one dash (-tp), "--name value", "--name=value" and any
 * unambiguous start of a long name are accepted.  '-' and '_' are the same
 * inside long names, "--" ends the options, and of a repeated option the last
 * one wins.  A value that begins with '-' needs the form "--name=-x", except
 * for negative numbers and "-" alone.
 */
#ifndef PROBE_BASE_OPT_H
#define PROBE_BASE_OPT_H

#include "probe/base/err.h"
#include "probe/base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ms_opt_kind {
    MS_OPT_FLAG,     /* bool */
    MS_OPT_TEXT,     /* const char * */
    MS_OPT_PATH,     /* const char *, never empty, completed as a file name */
    MS_OPT_INT,      /* int64_t within [min, max] */
    MS_OPT_REAL,     /* double */
    MS_OPT_CHOICE,   /* int: index into choices */
    MS_OPT_OPTIONAL, /* const char *: a path that may be left out, then it is "" (-lm [FILE]) */
    MS_OPT_LIST,     /* struct ms_opt_list: one or more values up to the next option */
    MS_OPT_REST,     /* struct ms_opt_list: positional arguments, none empty; name is shown in the
                        usage line, and one called COMMAND is completed with the commands */
    MS_OPT_HEAD,     /* nothing to parse: name is a heading in --help for the rows that follow */
};

struct ms_opt_list {
    char **items; /* part of argv */
    size_t n;
};

struct ms_opt {
    const char *name;    /* long name with underscores, without dashes */
    const char *letters; /* short name without dash, or NULL */
    enum ms_opt_kind kind;
    size_t into;       /* offset in the command's argument struct */
    const char *value; /* what the value is called in --help: PATH, N, SECONDS */
    const char *help;
    const char *dflt; /* shown in --help; the struct itself is set by the caller before parsing */
    const char *const *choices; /* NULL-terminated; of CHOICE and, where not NULL, of REST */
    const char *alias;          /* another accepted long name, not shown in --help */
    int64_t min, max;           /* INT: the value; LIST and REST: how many; both 0: any */
    bool required;
    bool may_be_empty; /* of a path: "" is as if it were not given */
    bool hidden;       /* left out of help and completion, and known by its whole name only */
};

/* A command.  A folder lists its own as pointers ended by NULL (probe/cli/cmds.h).
 * In `about` a line that begins with a space is printed as it is, other lines are one paragraph
 * up to an empty line and are filled to the width of the terminal. */
struct ms_cmd {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns an exit code */
    const char *brief;                 /* one line for `msprobe help` */
    const struct ms_opt *opts;
    const char *usage; /* after the name: "[options] PATH" */
    const char *about; /* paragraph for --help: what it does, an example */
};

enum ms_exit { MS_EXIT_OK = 0, MS_EXIT_FOUND = 1, MS_EXIT_USAGE = 2, MS_EXIT_FAIL = 3 };

/* Parse argv[1..] into args and put the global options into effect.  MS_OK: go on, unless *done is
 * set: --help was printed, exit 0.  Text stays in argv, whose entries are reordered so that the
 * positional arguments are neighbours.  Failures are MS_E_ARG. */
enum ms_rc ms_opt_parse(const struct ms_cmd *cmd, int argc, char **argv, void *args, bool *done,
                        struct ms_err *err) MS_MUST_USE;
void ms_opt_help(const struct ms_cmd *cmd, FILE *to);
/* Print "msprobe NAME: error" to stderr, with a hint at --help where it was a usage error (MS_E_ARG),
 * and return the exit code for it.  cmd NULL: the program itself. */
int ms_cmd_fail(const struct ms_cmd *cmd, const struct ms_err *err);

/* Options every command takes (-h, -v, --debug, --stats, --trace-self, --threads, --no-color). */
extern const struct ms_opt ms_global_opts[];
struct ms_globals {
    bool help, verbose, stats, no_color;
    const char *debug, *trace_self;
    const char *framework; /* "msprobe -f FRAMEWORK COMMAND": called as msprobe 1 is, else NULL */
    int64_t threads;       /* 0: as many as processors */
};
extern struct ms_globals ms_globals;

/* All options that a user may write for cmd, its own and then the global ones: call with NULL first,
 * then with what came back, until NULL comes back.  Hidden ones are included. */
const struct ms_opt *ms_opt_next(const struct ms_cmd *cmd, const struct ms_opt *o);

/* The row of the positional arguments, or NULL. */
const struct ms_opt *ms_opt_rest(const struct ms_cmd *cmd);

/* Completion scripts for a NULL-terminated list of commands. */
void ms_opt_complete_bash(const struct ms_cmd *const *cmds, FILE *to);
void ms_opt_complete_zsh(const struct ms_cmd *const *cmds, FILE *to);
/* The same as lines "command" and "command --option", for the check of the man pages. */
void ms_opt_complete_list(const struct ms_cmd *const *cmds, FILE *to);

#endif
