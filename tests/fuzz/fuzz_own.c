/* SPDX-License-Identifier: Apache-2.0 */
/* Own functions. A text that is taken has no directive and leaves no brace or comment open, as a lexer by
 * states finds here, apart from the code; a refusal names a line that the text has and leaves the id. The
 * input is the text, or a name, a zero byte and the text. */
#include "fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gemmjit/own.h>

#include "generate/own_source.h"

/* -- A lexer of one character at a time -------------------------------------------------------------------
 */

enum state { CODE, LINE_COMMENT, BLOCK_COMMENT, STRING, CHARACTER, RAW };

struct lexer {
    enum state state;
    const char *word; /* start of the word or number that the last character belongs to, or NULL */
    const char *raw;  /* start of a raw text's delimiter */
    size_t raw_length;
    bool is_line_fresh; /* nothing but space so far */
    bool is_sound;
    int depth, line;
    int brace_line; /* of the first brace that closes none; 0: none */
};

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

static bool opens_raw(const char *word, const char *quote)
{
    const size_t length = word ? (size_t)(quote - word) : 0;
    static const char *const prefixes[] = {"R", "LR", "uR", "UR", "u8R"};
    bool is_prefix = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        is_prefix = is_prefix || (strlen(prefixes[i]) == length && memcmp(prefixes[i], word, length) == 0);
    if (!is_prefix)
        return false;
    const size_t delimiter = strcspn(quote + 1, "() \\\t\v\f\n");
    return delimiter <= 16 && quote[1 + delimiter] == '(';
}

/* Whether the character goes on with the number that *word is. */
static bool is_of_number(const char *word, const char *at)
{
    if (!word || !(isdigit((unsigned char)*word) || *word == '.'))
        return false;
    return *at == '.' || (*at == '\'' && is_letter(at[1])) ||
           ((*at == '+' || *at == '-') && strchr("eEpP", at[-1]));
}

/* A character of code; returns how many were taken. */
static size_t step_code(struct lexer *lexer, const char *at)
{
    const char *const word = lexer->word;
    const bool was_fresh = lexer->is_line_fresh;
    if (is_of_number(word, at))
        return *at == '\'' ? 2 : 1;
    if (is_letter(*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
        lexer->word = word && *at != '.' ? word : at; /* a number of its own */
        lexer->is_line_fresh = false;
        return 1;
    }
    lexer->word = NULL;
    if (isspace((unsigned char)*at)) {
        lexer->is_line_fresh = was_fresh || *at == '\n';
        return 1;
    }
    if (*at == '/' && (at[1] == '/' || at[1] == '*')) {
        lexer->state = at[1] == '/' ? LINE_COMMENT : BLOCK_COMMENT;
        return 2;
    }
    lexer->is_line_fresh = false;
    if (was_fresh && (*at == '#' || (*at == '%' && at[1] == ':')))
        lexer->is_sound = false;
    const bool is_digraph = (*at == '<' && at[1] == '%') || (*at == '%' && at[1] == '>');
    if (*at == '{' || (is_digraph && *at == '<'))
        lexer->depth++;
    if ((*at == '}' || (is_digraph && *at == '%')) && --lexer->depth < 0) {
        lexer->brace_line = lexer->brace_line ? lexer->brace_line : lexer->line;
        lexer->is_sound = false;
    }
    if (*at == '\'') {
        lexer->state = CHARACTER;
    } else if (*at == '"' && opens_raw(word, at)) {
        lexer->state = RAW;
        lexer->raw = at + 1;
        lexer->raw_length = strcspn(at + 1, "(");
        return 2 + lexer->raw_length;
    } else if (*at == '"') {
        lexer->state = STRING;
    }
    return is_digraph ? 2 : 1;
}

static size_t step(struct lexer *lexer, const char *at)
{
    const char quote = lexer->state == STRING ? '"' : '\'';
    switch (lexer->state) {
    case CODE:
        return step_code(lexer, at);
    case LINE_COMMENT:
        if (*at != '\n')
            return 1;
        lexer->state = CODE;
        return 0;
    case BLOCK_COMMENT:
        if (*at != '*' || at[1] != '/')
            return 1;
        lexer->state = CODE;
        return 2;
    case STRING:
    case CHARACTER:
        if (*at == '\\' && at[1] != '\0')
            return 2;
        if (*at == quote || *at == '\n')
            lexer->state = CODE;
        return *at == '\n' ? 0 : 1;
    case RAW:
        if (*at != ')' || strncmp(at + 1, lexer->raw, lexer->raw_length) != 0 ||
            at[1 + lexer->raw_length] != '"')
            return 1;
        lexer->state = CODE;
        return 2 + lexer->raw_length;
    }
    return 1;
}

/* For a text without joined lines. *brace_line is that of braces that do not match. */
static bool is_sound(const char *source, int *brace_line)
{
    struct lexer lexer = {.is_line_fresh = true, .is_sound = true, .line = 1};
    for (const char *at = source, *to; *at != '\0';)
        for (to = at + step(&lexer, at); at < to; at++)
            lexer.line += *at == '\n';
    *brace_line = lexer.brace_line ? lexer.brace_line : lexer.line;
    return lexer.is_sound && lexer.depth == 0 && lexer.state != BLOCK_COMMENT && lexer.state != RAW;
}

static bool has_joined_lines(const char *source)
{
    for (const char *at = source; (at = strchr(at, '\\')) != NULL; at++) {
        const size_t blanks = strspn(at + 1, " \t\v\f\r");
        if (at[1 + blanks] == '\n' || at[1 + blanks] == '\0')
            return true;
    }
    return false;
}

/* -- The target -------------------------------------------------------------------------------------------
 */

static int count_lines(const char *source)
{
    int lines = 1;
    for (; *source != '\0'; source++)
        lines += *source == '\n';
    return lines;
}

static void check_accepted(const struct gj_own *own, const struct gj_own_id *id)
{
    const char *const name = own->name;
    REQUIRE(strlen(name) >= 1 && strlen(name) <= 63 && !isdigit((unsigned char)*name) && !strstr(name, "__"));
    for (const char *at = name; *at != '\0'; at++)
        REQUIRE(isalnum((unsigned char)*at) || *at == '_');
    struct gj_own_id again;
    int line;
    REQUIRE(!has_joined_lines(own->source) && is_sound(own->source, &line));
    REQUIRE(gj_own_identify(&(struct gj_own){name, own->source, NULL}, &again, NULL) == GJ_OK);
    REQUIRE(id->high == again.high && id->low == again.low);
    const struct gj_own_source source = gj_own_source_make(own);
    REQUIRE(source.line >= 1 && source.line <= count_lines(own->source));
}

static void check_refused(const struct gj_own *own, const gj_error *error)
{
    static const char file[] = "a.cu:";
    fuzz_check_error(error, GJ_ERR_ARGUMENT);
    if (strncmp(error->message, file, sizeof file - 1) != 0)
        return; /* the name */
    const char *at = error->message + sizeof file - 1;
    if (*at == ' ')
        return; /* the size */
    const long line = fuzz_number(&at);
    int brace_line;
    const bool is_bad = !is_sound(own->source, &brace_line);
    REQUIRE(line >= 1 && line <= count_lines(own->source));
    if (strstr(at, "directive"))
        REQUIRE(strpbrk(own->source, "#%") != NULL);
    else if (strstr(at, "braces"))
        REQUIRE(is_bad && line == brace_line);
    else if (strstr(at, "backslash"))
        REQUIRE(has_joined_lines(own->source));
    else if (strstr(at, "comment"))
        REQUIRE(is_bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const first = fuzz_text(data, size);
    const size_t length = strlen(first);
    const bool has_name = length < size;
    char *const second = has_name ? fuzz_text(data + length + 1, size - length - 1) : NULL;
    const struct gj_own own = {has_name ? first : "f", has_name ? second : first, "a.cu"};
    struct gj_own_id id = {7, 8};
    gj_error *error = NULL;
    fuzz_memory_begin();
    if (gj_own_identify(&own, &id, &error) == GJ_OK) {
        REQUIRE(error == NULL);
        check_accepted(&own, &id);
    } else {
        REQUIRE(id.high == 7 && id.low == 8);
        check_refused(&own, error);
    }
    gj_error_free(&error);
    REQUIRE(fuzz_memory_end() <= 2 * size + 4096);
    free(second);
    free(first);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    static const char *const texts[] = {
        "float slope(float x) { return x > 0 ? 1.0f : 0.01f; }\nfloat f(float x) { return x * slope(x); }\n",
        "// \\\n/*\n#define x 1\n// */",
        "auto s = R\"(\"/*)\";\n#define x 1\n/* */",
        "auto s = R\"x(}\n#\" )\" )x\"; auto t = LR\"()\"; auto v = .5e+1'0;",
        "int x = 1'0; } namespace y { // '",
        "float f(float x) <% return x % 2 <1%>",
        "\n/* } */ %:define",
        "const char *s = /**/\"{\\\"\"u8\"{\"; char c = '\\'';",
    };
    if (idx >= sizeof texts / sizeof texts[0])
        return 0;
    memcpy(data, texts[idx], strlen(texts[idx]));
    return strlen(texts[idx]);
}
