/* SPDX-License-Identifier: MIT
 *
 * standard: "-" where a command takes a file: standard input, kept in a temporary file, since commands map files and
 * read them more than once, and standard output, kept likewise until the command has ended: what a command says
 * meanwhile goes to standard error.
 */
#include "probe/cli/cmds.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PART = 1 << 20, HEAD = 4096 };

static struct {
    char *folder, *input, *output;
    int results; /* standard output, while standard error is in its place */
} files = {.results = -1};

/* Messages name the file, so its folder says what it stands for. */
static enum ms_rc need_folder(const char *stands_for, struct ms_err *err)
{
    return files.folder != NULL ? MS_OK : ms_tmp_folder(&files.folder, stands_for, err);
}

/* ---- standard input ------------------------------------------------------------------------ */

static bool begins_with(struct ms_str head, const char *magic, uint32_t n)
{
    return head.n >= n && memcmp(head.p, magic, n) == 0;
}

/* Returns the name that such a file usually has, as commands tell files apart by name and content. */
static const char *name_for(struct ms_str head)
{
    static const struct {
        const char *magic;
        uint32_t n;
        const char *name;
    } kinds[] = {{"SQLite format 3", 15, "input.db"}, {"\x1f\x8b", 2, "trace.json.gz"},
                 {"PK\x03\x04", 4, "input.pt"},       {"\x93NUMPY", 6, "input.npy"},
                 {"\x80", 1, "input.pickle"},         {"\x0a", 1, "trace.perfetto"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (begins_with(head, kinds[i].magic, kinds[i].n))
            return kinds[i].name;
    }
    while (head.n != 0 &&
           (head.p[0] == ' ' || head.p[0] == '\n' || head.p[0] == '\r' || head.p[0] == '\t'))
        head = ms_str_sub(head, 1, head.n);
    if (head.n == 0 || (head.p[0] != '{' && head.p[0] != '['))
        return "input.csv";
    return ms_str_has(head, "\"task\"") ? "dump.json" : "trace.json";
}

static bool write_part(int fd, const char *p, size_t n)
{
    while (n != 0) {
        const ssize_t put = write(fd, p, n);
        if (put < 0 && errno != EINTR)
            return false;
        p += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

static ssize_t read_part(char *part, size_t room)
{
    ssize_t n;
    do
        n = read(STDIN_FILENO, part, room);
    while (n < 0 && errno == EINTR);
    return n;
}

static enum ms_rc copy_rest(int fd, char *part, size_t n, struct ms_err *err)
{
    for (;;) {
        if (!write_part(fd, part, n))
            return ms_fail_sys(err, "standard input cannot be kept in %s", files.folder);
        const ssize_t got = read_part(part, PART);
        if (got < 0)
            return ms_fail_sys(err, "standard input");
        if (got == 0)
            return MS_OK;
        n = (size_t)got;
    }
}

/* Reads what the name depends on: pipes give little at a time. */
static enum ms_rc read_head(char *part, size_t *n, struct ms_err *err)
{
    ssize_t got = 1;
    for (*n = 0; got > 0 && *n<HEAD; *n += got> 0 ? (size_t)got : 0)
        got = read_part(part + *n, HEAD - *n);
    if (got < 0)
        return ms_fail_sys(err, "standard input");
    return *n != 0 ? MS_OK
                   : ms_fail(err, MS_E_ARG, "standard input, which '-' stands for, is empty");
}

static enum ms_rc keep_input(char *part, struct ms_err *err)
{
    size_t n;
    MS_TRY(read_head(part, &n, err));
    MS_TRY(need_folder("standard-input", err));
    files.input = ms_path_join(files.folder, name_for((struct ms_str){part, (uint32_t)n}));
    if (files.input == NULL)
        return ms_no_memory(err);
    const int fd = open(files.input, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return ms_fail_sys(err, "%s", files.input);
    const enum ms_rc rc = copy_rest(fd, part, n, err);
    close(fd);
    return rc;
}

static enum ms_rc take_input(const char **path, struct ms_err *err)
{
    if (files.input != NULL)
        return ms_fail(err, MS_E_ARG, "'-' stands twice, and standard input can be read once");
    if (isatty(STDIN_FILENO))
        return ms_fail(err, MS_E_ARG,
                       "'-' is standard input, which is the terminal; a file named - is ./-");
    char *part = ms_alloc(PART);
    if (part == NULL)
        return ms_no_memory(err);
    const enum ms_rc rc = keep_input(part, err);
    ms_free(part);
    *path = files.input;
    return rc;
}

/* ---- standard output ------------------------------------------------------------------------ */

static enum ms_rc take_output(const char **path, struct ms_err *err)
{
    if (isatty(STDOUT_FILENO))
        return ms_fail(err, MS_E_ARG,
                       "'-' is standard output, which is the terminal; a file named - is ./-");
    if (files.output != NULL)
        return ms_fail(err, MS_E_ARG, "'-' stands for two outputs, and standard output is one");
    MS_TRY(need_folder("standard-output", err));
    files.output = ms_path_join(files.folder, "output");
    if (files.output == NULL)
        return ms_no_memory(err);
    *path = files.output;
    fflush(stdout);
    files.results = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (files.results < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return ms_fail_sys(err, "standard output");
    return MS_OK;
}

/* Gives standard output back to the command. */
static void restore_output(void)
{
    if (files.results < 0)
        return;
    fflush(stdout);
    dup2(files.results, STDOUT_FILENO);
    close(files.results);
    files.results = -1;
}

static enum ms_rc print_output(struct ms_err *err)
{
    struct ms_file f;
    if (files.output == NULL || ms_path_kind(files.output) == MS_KIND_NONE)
        return MS_OK;
    if (ms_path_kind(files.output) != MS_KIND_FILE)
        return ms_fail(err, MS_E_ARG,
                       "what was written is a folder, for which '-' cannot stand; give it a name");
    MS_TRY(ms_file_map(&f, files.output, SIZE_MAX, err));
    const bool is_written = write_part(STDOUT_FILENO, f.p, f.n);
    ms_file_unmap(&f);
    return is_written ? MS_OK : ms_fail_sys(err, "standard output");
}

/* ---- both ------------------------------------------------------------------------------------ */

void cli_take_standard_files(void)
{
    ms_opt_input = take_input;
    ms_opt_output = take_output;
}

enum ms_rc cli_end_standard_files(struct ms_err *err)
{
    restore_output();
    const enum ms_rc rc = print_output(err);
    ms_tmp_folder_remove(files.folder);
    files.folder = NULL;
    return rc; /* the names stay until the program ends: a last message may still show them as "-" */
}
