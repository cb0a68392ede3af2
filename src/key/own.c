/* SPDX-License-Identifier: Apache-2.0 */
/* What a user's own function is called and may hold. */
#include <gemmjit/own.h>

#include "base/error_build.h"
#include "base/hash.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

#define NAME_MAX_LENGTH 63
#define FILE_MAX_LENGTH 255
#define SOURCE_MAX_BYTES 65536
#define RAW_MAX_LENGTH 16 /* of a raw text's delimiter */

#define REFUSE(...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_KEY, __VA_ARGS__)

/* Words of C++ that a function of one line could not be called by; any other shows as an error of the
 * compiler. */
static const char *const reserved[] = {"own",    "auto",     "bool", "char",   "const",   "double", "float",
                                       "inline", "int",      "long", "main",   "short",   "signed", "static",
                                       "struct", "template", "void", "return", "unsigned"};

static enum gj_status check_name(const char *name, gj_error **error)
{
    if (name == NULL || *name == '\0')
        REFUSE("own function: its name is missing");
    const size_t length = strlen(name);
    bool good = length <= NAME_MAX_LENGTH && !isdigit((unsigned char)*name) && strstr(name, "__") == NULL;
    for (size_t i = 0; i < length; i++)
        good = good && (isalnum((unsigned char)name[i]) || name[i] == '_');
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        good = good && strcmp(name, reserved[i]) != 0;
    if (!good)
        REFUSE("own function: name \"%s\": must be an identifier of at most %d characters, without \"__\" "
               "and no word "
               "of C++",
               gj_utf8_quote(name, length).text, NAME_MAX_LENGTH);
    return GJ_OK;
}

/* -- The text, as far as a compiler takes it apart before it looks for directives and braces --------------
 */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Where a raw text ends whose quote is at `at`; `at` itself if it is no raw text, NULL if it does not end. */
static const char *skip_raw(const char *at)
{
    const size_t length = strcspn(at + 1, "() \\\t\v\f\n");
    if (at[1 + length] != '(' || length > RAW_MAX_LENGTH)
        return at;
    for (const char *end = at + 1 + length; (end = strchr(end + 1, ')')) != NULL;)
        if (strncmp(end + 1, at + 1, length) == 0 && end[1 + length] == '"')
            return end + 2 + length;
    return NULL;
}

/* Where a word or a number that starts at `at` ends; if it opens a raw text, where that ends. The quotes
 * between the digits of a number open nothing. */
static const char *skip_word(const char *at)
{
    static const char *const raw[] = {"R", "LR", "uR", "UR", "u8R"};
    const char *const start = at;
    const bool is_number = isdigit((unsigned char)at[*at == '.']);
    while (is_word(*at) || (is_number && *at == '.') || (is_number && *at == '\'' && is_word(at[1])) ||
           (is_number && at > start && (*at == '+' || *at == '-') && strchr("eEpP", at[-1])))
        at += *at == '\'' ? 2 : 1;
    for (size_t i = 0; i < sizeof raw / sizeof raw[0] && *at == '"'; i++)
        if (strlen(raw[i]) == (size_t)(at - start) && memcmp(raw[i], start, (size_t)(at - start)) == 0)
            return skip_raw(at);
    return at;
}

/* Where a comment, a literal or a word that starts at `at` ends; `at` itself if none starts there, NULL if it
 * does not end. */
static const char *skip_text(const char *at)
{
    if (at[0] == '/' && at[1] == '/') {
        at += strcspn(at, "\n");
    } else if (at[0] == '/' && at[1] == '*') {
        const char *const end = strstr(at + 2, "*/");
        return end ? end + 2 : NULL;
    } else if (*at == '"' || *at == '\'') {
        const char quote = *at++;
        while (*at != '\0' && *at != '\n' && *at != quote)
            at += *at == '\\' && at[1] != '\0' ? 2 : 1;
        at += *at == quote;
    } else {
        return skip_word(at);
    }
    return at;
}

/* The first line that a backslash joins with the next one, or 0. */
static int joined_line(const char *source)
{
    int line = 1;
    for (const char *at = source; *at != '\0'; at++) {
        const char *const after = at + 1 + strspn(at + 1, " \t\v\f\r");
        if (*at == '\\' && (*after == '\n' || *after == '\0'))
            return line;
        line += *at == '\n';
    }
    return 0;
}

/* The line of a comment or a raw text that would go on in the kernel, or 0. */
static int open_line(const char *source)
{
    int line = 1;
    for (const char *at = source; *at != '\0';) {
        const char *const end = skip_text(at);
        if (end == NULL)
            return line;
        for (const char *const stop = end > at ? end : at + 1; at < stop; at++)
            line += *at == '\n';
    }
    return 0;
}

/* The first line that begins with a directive, or 0; comments before it count as space. */
static int directive_line(const char *source)
{
    int line = 1;
    bool at_start = true;
    for (const char *at = source; *at != '\0';) {
        const char *const end = skip_text(at);
        if (end > at) {
            at_start = at_start && *at == '/';
            for (; at < end; at++) {
                line += *at == '\n';
                at_start = at_start || *at == '\n';
            }
            continue;
        }
        if (at_start && (*at == '#' || (*at == '%' && at[1] == ':'))) /* %: is its digraph */
            return line;
        line += *at == '\n';
        at_start = *at == '\n' || (at_start && isspace((unsigned char)*at));
        at++;
    }
    return 0;
}

/* 1 for a brace that opens, -1 for one that closes, 0 for what is none. <% and %> are their digraphs. */
static int brace(const char *at)
{
    return (*at == '{' || strncmp(at, "<%", 2) == 0) - (*at == '}' || strncmp(at, "%>", 2) == 0);
}

/* The line of a brace that would leave the namespace, or of the end while one is open; 0: none. */
static int unbalanced_line(const char *source)
{
    int line = 1, depth = 0;
    for (const char *at = source; *at != '\0';) {
        const char *end = skip_text(at);
        if (end == at) {
            depth += brace(at);
            end += brace(at) && (*at == '<' || *at == '%') ? 2 : 1;
        }
        if (depth < 0)
            return line;
        for (; at < end; at++)
            line += *at == '\n';
    }
    return depth ? line : 0;
}

enum gj_status gj_own_identify(const struct gj_own *own, struct gj_own_id *id, gj_error **error)
{
    GJ_TRY(check_name(own->name, error));
    const char *const file = own->file ? own->file : "own";
    if (own->source == NULL)
        REFUSE("own function %s: its source is missing", own->name);
    if (strlen(file) > FILE_MAX_LENGTH || *file == '\0')
        REFUSE("own function %s: the name of its file must have 1 to %d bytes", own->name, FILE_MAX_LENGTH);
    const size_t length = strnlen(own->source, SOURCE_MAX_BYTES + 1);
    if (length > SOURCE_MAX_BYTES)
        REFUSE("%s: more than %d bytes", file, SOURCE_MAX_BYTES);
    const int joined = joined_line(own->source), open = joined ? 0 : open_line(own->source);
    if (joined > 0)
        REFUSE("%s:%d: ends in a backslash, which joins it with the next line: none may", file, joined);
    if (open > 0)
        REFUSE("%s:%d: a comment or a raw text does not end", file, open);
    const int line = directive_line(own->source);
    if (line > 0)
        REFUSE("%s:%d: a preprocessor directive, which would act on the kernel too: none is allowed", file,
               line);
    const int unbalanced = unbalanced_line(own->source);
    if (unbalanced > 0)
        REFUSE("%s:%d: braces do not match", file, unbalanced);
    const struct gj_hash_field fields[] = {{"name", own->name, strlen(own->name)},
                                           {"source", own->source, length}};
    int ok = 0;
    const struct gj_hash hash = gj_hash_fields(fields, 2, &ok);
    if (!ok)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_KEY, "no memory for the hash of %s", file);
    *id = (struct gj_own_id){0, 0};
    for (int i = 0; i < 4; i++) {
        id->high = id->high << 8 | hash.bytes[i];
        id->low = id->low << 8 | hash.bytes[4 + i];
    }
    return GJ_OK;
}
