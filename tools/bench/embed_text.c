/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: writes a text file as a C array. Usage: embed_text INPUT NAME SOURCE */
#include <stdio.h>

static int write_source(const char *path, const char *name, FILE *input)
{
    FILE *const source = fopen(path, "w");
    if (source == NULL)
        return -1;
    fprintf(source, "extern const char %s_text[];\nconst char %s_text[] = {", name, name);
    int c;
    for (int column = 0; (c = getc(input)) != EOF; column++)
        fprintf(source, "%s%d,", column % 24 ? "" : "\n    ", c);
    fprintf(source, "0};\n");
    const int failed = ferror(input);
    return fclose(source) != 0 || failed;
}

int main(int argc, char **argv)
{
    FILE *const input = argc == 4 ? fopen(argv[1], "r") : NULL;
    if (input == NULL) {
        fprintf(stderr, "usage: embed_text INPUT NAME SOURCE\n");
        return 2;
    }
    const int failed = write_source(argv[3], argv[2], input) != 0;
    fclose(input);
    if (failed)
        perror(argv[3]);
    return failed;
}
