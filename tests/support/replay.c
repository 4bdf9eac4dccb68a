/* SPDX-License-Identifier: MIT
 *
 * replay: runs a fuzz target over files, so that every build replays the
 * corpus, also with compilers that have no fuzzing engine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    /* Exactly the size, so that a sanitizer sees a read past the end. */
    uint8_t *p = malloc(n > 0 ? (size_t)n : 1);
    size_t got = p != NULL ? fread(p, 1, (size_t)n, f) : 0;
    fclose(f);
    LLVMFuzzerTestOneInput(p, got);
    free(p);
    return 0;
}

int main(int argc, char **argv)
{
    int rc = 0;
    for (int i = 1; i < argc; i++)
        rc |= run_file(argv[i]);
    printf("%d files\n", argc - 1);
    return rc;
}
