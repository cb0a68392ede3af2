/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a function in the user's text. */
#include "generate/own_source.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The first line in which the name stands before a parenthesis. */
static int definition_line(const char *source, const char *name)
{
    const size_t length = strlen(name);
    int line = 1;
    for (const char *at = source; *at != '\0'; at++) {
        if (strncmp(at, name, length) == 0 && (at == source || !is_word(at[-1]))) {
            const char *after = at + length;
            while (*after == ' ' || *after == '\t')
                after++;
            if (*after == '(')
                return line;
        }
        line += *at == '\n';
    }
    return 1;
}

struct gj_own_source gj_own_source_make(const struct gj_own *own)
{
    return (struct gj_own_source){
        .asset = {own->file ? own->file : "own", own->source, strlen(own->source)},
        .name = own->name,
        .line = definition_line(own->source, own->name),
    };
}
