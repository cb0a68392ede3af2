/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: writes the template files as C arrays. Usage: embed_assets ROOT PATH... > assets_builtin.c
 */
#include <stdio.h>
#include <stdlib.h>

static void embed(const char *root, const char *path, int index)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", root, path);
    FILE *const file = fopen(name, "rb");
    if (file == NULL) {
        perror(name);
        exit(1);
    }
    printf("static const char text_%d[] = {", index);
    int c;
    for (int column = 0; (c = getc(file)) != EOF; column++)
        printf("%s%d,", column % 24 ? "" : "\n    ", c);
    printf("0};\n");
    if (ferror(file) || fclose(file) != 0) {
        perror(name);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: embed_assets ROOT PATH...\n");
        return 2;
    }
    printf("#include \"generate/assets.h\"\n");
    for (int i = 2; i < argc; i++)
        embed(argv[1], argv[i], i);
    printf("static const struct gj_asset items[] = {\n");
    for (int i = 2; i < argc; i++)
        printf("    {\"%s\", text_%d, sizeof text_%d - 1},\n", argv[i], i, i);
    printf("};\n"
           "const struct gj_assets *gj_assets_builtin(void)\n{\n"
           "    static const struct gj_assets assets = {items, sizeof items / sizeof items[0]};\n"
           "    return &assets;\n}\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
