/* SPDX-License-Identifier: MIT
 *
 * complete: writes shell completion scripts from the tables.  The scripts hold
 * all they need: the shell does not run the program at each key press.
 */
#include "probe/base/opt.h"
#include <stdbool.h>
#include <string.h>

/* What the shell offers as completions of a value. */
enum offer { OFFER_NOTHING, OFFER_FILES, OFFER_CHOICES, OFFER_COMMANDS };

static enum offer offer_for(const struct ms_opt *o)
{
    if (o->choices != NULL)
        return OFFER_CHOICES;
    switch (o->kind) {
    case MS_OPT_REST:
        return strcmp(o->name, "COMMAND") == 0 ? OFFER_COMMANDS : OFFER_FILES;
    case MS_OPT_PATH:
    case MS_OPT_OPTIONAL:
        return OFFER_FILES;
    default:
        return OFFER_NOTHING;
    }
}

static void put_command_names(const struct ms_cmd *const *cmds, FILE *to)
{
    for (; *cmds != NULL; cmds++)
        fprintf(to, "%s%s", (*cmds)->name, cmds[1] != NULL ? " " : "");
}

/* ---- bash ------------------------------------------------------------- */

/* Writes shell code that sets `words` to the possible completions, or `files` when file names are
 * to be completed. */
static void bash_offer(const struct ms_opt *o, const struct ms_cmd *const *cmds, FILE *to)
{
    switch (offer_for(o)) {
    case OFFER_NOTHING:
        fputs("words=", to);
        break;
    case OFFER_FILES:
        fputs("words= files=y", to);
        break;
    case OFFER_CHOICES:
        fputs("words='", to);
        for (int i = 0; o->choices[i] != NULL; i++)
            fprintf(to, "%s%s", i != 0 ? " " : "", o->choices[i]);
        fputs("'", to);
        break;
    case OFFER_COMMANDS:
        fputs("words='", to);
        put_command_names(cmds, to);
        fputs("'", to);
        break;
    }
}

static void bash_options(const struct ms_cmd *cmd, FILE *to)
{
    const char *sep = "";
    fputs("        options='", to);
    for (const struct ms_opt *o = ms_opt_next(cmd, NULL); o != NULL; o = ms_opt_next(cmd, o)) {
        if (o->hidden)
            continue;
        fprintf(to, "%s--%s", sep, o->name);
        sep = " ";
        if (o->letters != NULL)
            fprintf(to, " -%s", o->letters);
    }
    fputs("'\n", to);
}

static void bash_values(const struct ms_cmd *cmd, const struct ms_cmd *const *cmds, FILE *to)
{
    fputs("        case $prev in\n", to);
    for (const struct ms_opt *o = ms_opt_next(cmd, NULL); o != NULL; o = ms_opt_next(cmd, o)) {
        if (o->hidden || o->kind == MS_OPT_FLAG)
            continue;
        fprintf(to, "        --%s", o->name);
        if (o->letters != NULL)
            fprintf(to, " | -%s", o->letters);
        fputs(") options= ", to);
        bash_offer(o, cmds, to);
        fputs(" ;;\n", to);
    }
    fputs("        esac\n", to);
}

static void bash_command(const struct ms_cmd *cmd, const struct ms_cmd *const *cmds, FILE *to)
{
    const struct ms_opt *rest = ms_opt_rest(cmd);
    fprintf(to, "    %s)\n", cmd->name);
    bash_options(cmd, to);
    if (rest != NULL) {
        fputs("        ", to);
        bash_offer(rest, cmds, to);
        fputc('\n', to);
    }
    bash_values(cmd, cmds, to);
    fputs("        ;;\n", to);
}

void ms_opt_complete_bash(const struct ms_cmd *const *cmds, FILE *to)
{
    fputs("# bash completion for msprobe, written by 'msprobe completion bash'\n"
          "_msprobe() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local words= options= files=\n"
          "    # bash takes --name=value apart at the '='\n"
          "    if [[ $cur == = ]]; then\n"
          "        cur=\n"
          "    elif [[ $prev == = && COMP_CWORD -gt 2 ]]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        COMPREPLY=($(compgen -W '",
          to);
    put_command_names(cmds, to);
    fputs("' -- \"$cur\"))\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          to);
    for (const struct ms_cmd *const *c = cmds; *c != NULL; c++)
        bash_command(*c, cmds, to);
    fputs("    esac\n"
          "    [[ $cur == -* ]] && words=$options files=\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    # with nothing to offer, bash completes the names of files\n"
          "    [[ $files ]] || compopt +o default 2>/dev/null\n"
          "}\n"
          "complete -o default -F _msprobe msprobe\n",
          to);
}

/* ---- zsh -------------------------------------------------------------- */

/* Writes text for a single-quoted string; the characters in `special` are escaped with a
 * backslash. */
static void zsh_text(const char *text, const char *special, FILE *to)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", to);
        else
            fprintf(to, "%s%c", strchr(special, *text) != NULL ? "\\" : "", *text);
    }
}

/* Writes ":what:action", zsh's description of a value. */
static void zsh_value(const struct ms_opt *o, FILE *to)
{
    const char *what = o->kind == MS_OPT_REST ? o->name : o->value;
    fputs(o->kind == MS_OPT_OPTIONAL ? "::" : ":", to);
    zsh_text(what != NULL ? what : "WORD", ":[]", to);
    switch (offer_for(o)) {
    case OFFER_NOTHING:
        fputs(": ", to);
        break;
    case OFFER_FILES:
        fputs(":_files", to);
        break;
    case OFFER_CHOICES:
        for (int i = 0; o->choices[i] != NULL; i++)
            fprintf(to, "%s%s", i != 0 ? " " : ":(", o->choices[i]);
        fputs(")", to);
        break;
    case OFFER_COMMANDS:
        fputs(":($names)", to);
        break;
    }
}

static void zsh_spelling(const char *dashes, const char *name, const struct ms_opt *o, FILE *to)
{
    const char *equals = dashes[1] == '-' && o->kind != MS_OPT_FLAG ? "=" : "";
    fprintf(to, "            '%s%s%s[", dashes, name, equals);
    zsh_text(o->help, "[]", to);
    fputs("]", to);
    if (o->kind != MS_OPT_FLAG)
        zsh_value(o, to);
    fputs("' \\\n", to);
}

static void zsh_command(const struct ms_cmd *cmd, FILE *to)
{
    const struct ms_opt *rest = ms_opt_rest(cmd);
    fprintf(to, "    %s)\n        _arguments \\\n", cmd->name);
    for (const struct ms_opt *o = ms_opt_next(cmd, NULL); o != NULL; o = ms_opt_next(cmd, o)) {
        if (o->hidden)
            continue;
        zsh_spelling("--", o->name, o, to);
        if (o->letters != NULL)
            zsh_spelling("-", o->letters, o, to);
    }
    /* Only completion of COMMAND uses a shell variable ($names), which needs double quotes. */
    bool quoted = rest != NULL && offer_for(rest) == OFFER_COMMANDS;
    fprintf(to, "            %s", quoted ? "\"*" : "'*");
    if (rest != NULL)
        zsh_value(rest, to);
    else
        fputs(": : ", to);
    fprintf(to, "%s\n        ;;\n", quoted ? "\"" : "'");
}

void ms_opt_complete_zsh(const struct ms_cmd *const *cmds, FILE *to)
{
    fputs("#compdef msprobe\n"
          "# zsh completion for msprobe, written by 'msprobe completion zsh'\n"
          "_msprobe() {\n"
          "    local names='",
          to);
    put_command_names(cmds, to);
    fputs("' cmd=$words[2]\n"
          "    local -a commands\n"
          "    commands=(\n",
          to);
    for (const struct ms_cmd *const *c = cmds; *c != NULL; c++) {
        fprintf(to, "        '%s:", (*c)->name);
        zsh_text((*c)->brief, "", to);
        fputs("'\n", to);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $cmd in\n",
          to);
    for (const struct ms_cmd *const *c = cmds; *c != NULL; c++)
        zsh_command(*c, to);
    fputs("    esac\n"
          "}\n"
          "# a file of $fpath is the function itself; when sourced it registers one\n"
          "if [[ $funcstack[1] == _msprobe ]]; then\n"
          "    _msprobe \"$@\"\n"
          "else\n"
          "    compdef _msprobe msprobe\n"
          "fi\n",
          to);
}

/* ---- fish ------------------------------------------------------------- */

/* Writes text in single quotes, in which fish takes \\' and \\\\. */
static void fish_text(const char *text, FILE *to)
{
    fputc('\'', to);
    for (; *text != '\0'; text++)
        fprintf(to, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    fputc('\'', to);
}

static void fish_value(const struct ms_opt *o, const struct ms_cmd *const *cmds, FILE *to)
{
    switch (offer_for(o)) {
    case OFFER_NOTHING:
        fputs(" -x", to);
        break;
    case OFFER_FILES:
        fputs(" -r -F", to);
        break;
    case OFFER_CHOICES:
        fputs(" -x -a '", to);
        for (int i = 0; o->choices[i] != NULL; i++)
            fprintf(to, "%s%s", i != 0 ? " " : "", o->choices[i]);
        fputc('\'', to);
        break;
    case OFFER_COMMANDS:
        fputs(" -x -a '", to);
        put_command_names(cmds, to);
        fputc('\'', to);
        break;
    }
}

static void fish_option(const struct ms_cmd *cmd, const struct ms_opt *o,
                        const struct ms_cmd *const *cmds, FILE *to)
{
    fprintf(to, "complete -c msprobe -n '__msprobe_in %s' -l %s", cmd->name, o->name);
    if (o->letters != NULL) /* fish calls several letters behind one dash an old option */
        fprintf(to, " -%c %s", o->letters[1] == '\0' ? 's' : 'o', o->letters);
    fputs(" -d ", to);
    fish_text(o->help, to);
    if (o->kind != MS_OPT_FLAG)
        fish_value(o, cmds, to);
    fputc('\n', to);
}

static void fish_command(const struct ms_cmd *cmd, const struct ms_cmd *const *cmds, FILE *to)
{
    const struct ms_opt *rest = ms_opt_rest(cmd);
    fprintf(to, "complete -c msprobe -n __msprobe_first -a %s -d ", cmd->name);
    fish_text(cmd->brief, to);
    fputc('\n', to);
    for (const struct ms_opt *o = ms_opt_next(cmd, NULL); o != NULL; o = ms_opt_next(cmd, o)) {
        if (!o->hidden)
            fish_option(cmd, o, cmds, to);
    }
    if (rest == NULL || offer_for(rest) == OFFER_NOTHING)
        return;
    fprintf(to, "complete -c msprobe -n '__msprobe_in %s'", cmd->name);
    fish_value(rest, cmds, to);
    fputc('\n', to);
}

void ms_opt_complete_fish(const struct ms_cmd *const *cmds, FILE *to)
{
    fputs("# fish completion for msprobe, written by 'msprobe completion fish'\n"
          "function __msprobe_first\n"
          "    test (count (commandline -opc)) -eq 1\n"
          "end\n"
          "function __msprobe_in\n"
          "    set -l words (commandline -opc)\n"
          "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
          "end\n"
          "complete -c msprobe -f\n"
          "complete -c msprobe -n __msprobe_first -F\n", /* a path is opened */
          to);
    for (const struct ms_cmd *const *c = cmds; *c != NULL; c++)
        fish_command(*c, cmds, to);
}

/* ---- list ------------------------------------------------------------- */

void ms_opt_complete_list(const struct ms_cmd *const *cmds, FILE *to)
{
    for (; *cmds != NULL; cmds++) {
        const struct ms_cmd *cmd = *cmds;
        fprintf(to, "%s\n", cmd->name);
        for (const struct ms_opt *o = ms_opt_next(cmd, NULL); o != NULL; o = ms_opt_next(cmd, o)) {
            if (o->hidden)
                continue;
            fprintf(to, "%s --%s\n", cmd->name, o->name);
            if (o->letters != NULL)
                fprintf(to, "%s -%s\n", cmd->name, o->letters);
        }
    }
}
