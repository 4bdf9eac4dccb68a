/* SPDX-License-Identifier: MIT
 *
 * opt: one table of options per command, used for parsing, --help, shell completion and the check
 * of the man page.
 *
 *     static const struct ms_opt opts[] = {
 *         {"dump_path", "d", MS_OPT_TEXT, offsetof(struct args, path), "PATH", .required = true,
 *          .help = "file or directory to convert"},
 *         {0}};
 *
 * The syntax is that of the official Python tool: short names may have several letters behind one
 * dash (-tp); "--name value", "--name=value" and any unambiguous prefix of a long name are
 * accepted. '-' and '_' are the same inside long names, "--" ends the options, and the last of a
 * repeated option wins. A value that begins with '-' needs the form "--name=-x", except for
 * negative numbers and "-" alone, which stands for standard input or output where a file is expected.
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

/* What "-" alone is in the place of a file. */
enum ms_dash {
    MS_DASH_INPUT,  /* standard input */
    MS_DASH_OUTPUT, /* standard output */
    MS_DASH_FOLDER, /* nothing: the command reads or writes a folder */
    MS_DASH_WORD,   /* a word like others */
};

struct ms_opt {
    const char *name;    /* long name with underscores, without dashes */
    const char *letters; /* short name without dash, or NULL */
    enum ms_opt_kind kind;
    size_t into;       /* offset in the command's argument struct */
    const char *value; /* placeholder of the value in --help: PATH, N, SECONDS */
    const char *help;
    const char *dflt; /* shown in --help; the struct itself is set by the caller before parsing */
    const char *const *choices; /* NULL-terminated; of CHOICE and, where not NULL, of REST */
    const char *alias;          /* another accepted long name, not shown in --help */
    int64_t min, max;           /* INT: the value; LIST and REST: number of items; both 0: any */
    bool required;
    bool
        may_be_empty; /* PATH: "" counts as not given; LIST: it may have no value, then items is set
                          and n is 0 */
    enum ms_dash dash; /* PATH, OPTIONAL, LIST and REST */
    bool hidden;       /* left out of help and completion; needs its full name */
};

/* Text for people, or JSON for programs: the row of --format of most commands, and its values. */
enum ms_format { MS_FORMAT_TEXT, MS_FORMAT_JSON };
extern const char *const ms_formats[];
#define MS_OPT_FORMAT(type, member)                                                                \
    {                                                                                              \
        "format", NULL, MS_OPT_CHOICE, offsetof(type, member), "FORMAT",                           \
            .dflt = "text", .choices = ms_formats, .help = "text for people, json for programs"    \
    }

/* What the processes of an mpirun do with a command. */
enum ms_job {
    MS_JOB_EACH,   /* each runs it on its own */
    MS_JOB_FIRST,  /* the first one runs it, and the others wait until it has ended */
    MS_JOB_SHARED, /* all run it and divide its work by ms_globals.par; only the first one prints */
};

/* A command. Each folder has a list of its commands, as pointers ended by NULL (probe/cli/cmds.h).
 * In `about` a line that begins with a space is printed as it is; other lines up to an empty line
 * are one paragraph, filled to the width of the terminal. */
struct ms_cmd {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns an exit code */
    const char *brief;                 /* one line for `msprobe help` */
    const struct ms_opt *opts;
    const char *usage; /* after the name: "[options] PATH" */
    const char *about; /* paragraph for --help: what it does, an example */
    bool draws;        /* it sends control sequences of its own to the terminal */
    enum ms_job job;
};

enum ms_exit { MS_EXIT_OK = 0, MS_EXIT_FOUND = 1, MS_EXIT_USAGE = 2, MS_EXIT_FAIL = 3 };

/* Parses argv[1..] into args and applies the global options. With MS_OK the command goes on, unless
 * *done is set: then --help was printed, and the exit code is 0. Text stays in argv, whose entries
 * are reordered so that the positional arguments are neighbours. Failures are MS_E_ARG. */
enum ms_rc ms_opt_parse(const struct ms_cmd *cmd, int argc, char **argv, void *args, bool *done,
                        struct ms_err *err) MS_MUST_USE;
void ms_opt_help(const struct ms_cmd *cmd, FILE *to);
/* Prints "msprobe COMMAND: TEXT" on standard error. The text may quote a stranger's names: what
 * would command a terminal is shown as '?'. */
void ms_cmd_note(const char *command, const char *fmt, ...) MS_PRINTF(2, 3);
/* Prints "msprobe NAME: error" to stderr, with a hint at --help for a usage error (MS_E_ARG), and
 * returns the exit code for the error. cmd NULL: the program itself. Of processes that share a
 * command, the first one alone prints usage errors, which are the same in all. */
int ms_cmd_fail(const struct ms_cmd *cmd, const struct ms_err *err);
/* Says better what is wrong than an error does, and returns true, or false; set once when the program starts, to
 * tell a user whose path is of another kind which command reads it. May be NULL. */
extern bool (*ms_cmd_explain)(const struct ms_cmd *cmd, const struct ms_err *err);
/* Give the path of the file that "-" stands for; set once when the program starts. NULL: "-" is a name. */
extern enum ms_rc (*ms_opt_input)(const char **path, struct ms_err *err);
extern enum ms_rc (*ms_opt_output)(const char **path, struct ms_err *err);
/* Replaces "-" by the path of the file that it stands for; options and arguments do so by their row. */
enum ms_rc ms_opt_take_dash(const char **text, enum ms_dash dash, struct ms_err *err) MS_MUST_USE;
/* Returns the path as a user knows it: "-" for a file that stands for it. */
const char *ms_opt_shown(const char *path);
/* Returns the exit code of a command that processes share (MS_JOB_SHARED) and that all of them
 * ended with the same result; the first one prints an error. */
int ms_cmd_end(const struct ms_cmd *cmd, enum ms_rc rc, const struct ms_err *err);
/* Returns how many of n things are listed when `most` are wanted; 0: all. */
size_t ms_cmd_listed(size_t n, size_t most);
/* Prints how many things were not listed, "... and 1,003 more notes; --most 0 lists all"; nothing
 * when there are none. */
void ms_cmd_more(FILE *to, size_t more, const char *what);

/* Options of every command (-h, -v, --debug, --stats, --trace-self, --threads, --no-color). */
extern const struct ms_opt ms_global_opts[];
struct ms_globals {
    bool help, verbose, stats, no_color;
    const char *debug, *trace_self;
    const char *framework; /* "msprobe -f FRAMEWORK COMMAND": called as msprobe 1 is, else NULL */
    int64_t threads;       /* 0: one per processor */
    struct ms_par *par;    /* processes that share the command; NULL: this one alone */
};
extern struct ms_globals ms_globals;

/* Iterates over all options of cmd, its own and then the global ones, hidden ones included. The
 * first call passes NULL, each further call the previous result; NULL ends the loop. */
const struct ms_opt *ms_opt_next(const struct ms_cmd *cmd, const struct ms_opt *o);

/* Returns the row of the positional arguments, or NULL. */
const struct ms_opt *ms_opt_rest(const struct ms_cmd *cmd);

/* Write completion scripts for a NULL-terminated list of commands. */
void ms_opt_complete_bash(const struct ms_cmd *const *cmds, FILE *to);
void ms_opt_complete_zsh(const struct ms_cmd *const *cmds, FILE *to);
void ms_opt_complete_fish(const struct ms_cmd *const *cmds, FILE *to);
/* Writes lines "command" and "command --option", for the check of the man pages. */
void ms_opt_complete_list(const struct ms_cmd *const *cmds, FILE *to);

#endif
