/* SPDX-License-Identifier: MIT
 *
 * bench_hook: what a hooked communication call costs over the bare one: CPU time of
 * ncclAllReduce of the stand-in library, without a stream, in processes of their own that take
 * turns; the least of all turns counts, as others on the machine only add.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS = 7 };

struct way {
    const char *name, *variables, *bar;
    double least;
};

static double run(const char *build, const struct way *w)
{
    char command[4000], line[64] = "";
    snprintf(command, sizeof command, "env %s %s/tests/programs/ccl_app cost 100000", w->variables,
             build);
    FILE *p = popen(command, "r");
    if (p == NULL || fgets(line, sizeof line, p) == NULL)
        line[0] = '\0';
    int status = p != NULL ? pclose(p) : -1;
    return status == 0 ? strtod(line, NULL) : -1;
}

int main(int argc, char **argv)
{
    char build[1024], on[1600], off[1200], waiting[1700], clean[200];
    (void)argc;
    snprintf(build, sizeof build, "%.1000s", argv[0]);
    for (int i = 0; i < 2 && strrchr(build, '/') != NULL; i++)
        *strrchr(build, '/') = '\0';
    snprintf(clean, sizeof clean, "/dev/shm/msprobe-bench-hook-%d", (int)getpid());
    /* As many variables in each: the stand-in library asks for some of its own at every call. */
    snprintf(off, sizeof off, "LD_PRELOAD=%s/libmstx_hook.so MSTX_A=1 MSTX_B=2 MSTX_C=3", build);
    snprintf(on, sizeof on, "LD_PRELOAD=%s/libmstx_hook.so MSTX_QUIET=2 MSTX_OUT=%s MSTX_C=3",
             build, clean);
    snprintf(waiting, sizeof waiting,
             "LD_PRELOAD=%s/libmstx_hook.so MSTX_QUIET=2 MSTX_OUT=%s MSTX_START=off", build, clean);
    struct way way[] = {{"bare", "MSTX_A=1 MSTX_B=2 MSTX_C=3 MSTX_D=4", "", 1e9},
                        {"hooked, recording", on, "<= 150 ns over bare", 1e9},
                        {"hooked, recording stopped", waiting, "<= 10 ns over bare", 1e9},
                        {"hooked, nothing asked for", off, "<= 10 ns over bare", 1e9}};
    enum { WAYS = sizeof way / sizeof *way };
    for (int t = 0; t < TURNS; t++) {
        for (int i = 0; i < WAYS; i++) {
            double ns = run(build, &way[i]);
            if (ns < 0) {
                fprintf(stderr, "bench_hook: %s failed\n", way[i].name);
                return 1;
            }
            way[i].least = ns < way[i].least ? ns : way[i].least;
        }
    }
    printf("  %-34s %8s %8s   %s\n", "CPU ns of ncclAllReduce", "min", "over", "bar");
    for (int i = 0; i < WAYS; i++)
        printf("  %-34s %8.1f %8.1f   %s\n", way[i].name, way[i].least, way[i].least - way[0].least,
               way[i].bar);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", clean);
    return system(command) != 0;
}
