/* SPDX-License-Identifier: Apache-2.0 */
/* Integer expressions of template directives: recursive descent with C's precedence. */
#include "generate/constants.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Nesting bound: templates are input when a directory overrides the built-in ones. */
#define DEPTH_MAX 32

struct parser {
    const char *at, *end;
    const struct gj_constants *constants;
    char *message;
    size_t capacity;
    bool failed;
    int depth;
};

/* Binary operators by precedence, loosest first; two-character ones before their prefixes. */
static const char *const levels[][5] = {
    {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"},
};
#define NUM_LEVELS ((int)(sizeof levels / sizeof levels[0]))

static long fail(struct parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

static long fail(struct parser *parser, const char *format, ...)
{
    if (!parser->failed) {
        va_list args;
        va_start(args, format);
        vsnprintf(parser->message, parser->capacity, format, args);
        va_end(args);
    }
    parser->failed = true;
    return 0;
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->end && isspace((unsigned char)*parser->at))
        parser->at++;
}

static const char *take_operator(struct parser *parser, int level)
{
    skip_space(parser);
    if (parser->at == parser->end)
        return NULL;
    for (int i = 0; i < 5 && levels[level][i] != NULL; i++) {
        const char *const operator= levels[level][i];
        if (*parser->at != operator[0])
            continue;
        if (operator[1] == '\0' ||(parser->at + 1 < parser->end && parser->at[1] == operator[1])) {
            parser->at += operator[1] == '\0' ? 1 : 2;
            return operator;
        }
    }
    return NULL;
}

static long apply(struct parser *parser, const char *operator, long a, long b)
{
    long result = 0;
    switch (operator[0]) {
    case '|':
        return a || b;
    case '&':
        return a && b;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '<':
        return operator[1] ? a <= b : a<b;
    case '>':
        return operator[1] ? a >= b : a> b;
    case '+':
        return __builtin_add_overflow(a, b, &result) ? fail(parser, "overflow") : result;
    case '-':
        return __builtin_sub_overflow(a, b, &result) ? fail(parser, "overflow") : result;
    case '*':
        return __builtin_mul_overflow(a, b, &result) ? fail(parser, "overflow") : result;
    default:
        if (b == 0)
            return fail(parser, "division by zero");
        if (a == LONG_MIN && b == -1)
            return fail(parser, "overflow");
        return operator[0] == '/' ? a / b : a % b;
    }
}

static long parse_level(struct parser *parser, int level);

static long parse_name(struct parser *parser)
{
    const char *const start = parser->at;
    while (parser->at < parser->end && (isalnum((unsigned char)*parser->at) || *parser->at == '_'))
        parser->at++;
    const size_t length = (size_t)(parser->at - start);
    const struct gj_constant *const constant = gj_constants_find(parser->constants, start, length);
    if (constant == NULL)
        return fail(parser, "\"%.*s\" is not a constant of the plan", (int)length, start);
    if (constant->text != NULL)
        return fail(parser, "%.*s is a word, not a number", (int)length, start);
    return constant->value;
}

static long parse_number(struct parser *parser)
{
    long value = 0;
    while (parser->at < parser->end && isdigit((unsigned char)*parser->at)) {
        if (value > (LONG_MAX - 9) / 10)
            return fail(parser, "number too large");
        value = value * 10 + (*parser->at++ - '0');
    }
    return value;
}

static long parse_primary(struct parser *parser)
{
    skip_space(parser);
    if (parser->at == parser->end)
        return fail(parser, "expression ends early");
    if (parser->depth >= DEPTH_MAX)
        return fail(parser, "expression is nested deeper than %d", DEPTH_MAX);
    const char c = *parser->at;
    if (isdigit((unsigned char)c))
        return parse_number(parser);
    if (isalpha((unsigned char)c) || c == '_')
        return parse_name(parser);
    if (c != '!' && c != '-' && c != '(')
        return fail(parser, "unexpected '%c'", c);
    parser->at++;
    parser->depth++;
    long value;
    if (c == '(') {
        value = parse_level(parser, 0);
        skip_space(parser);
        if (!parser->failed && (parser->at == parser->end || *parser->at++ != ')'))
            value = fail(parser, "')' is missing");
    } else {
        value = parse_primary(parser);
        value = c == '!' ? !value : value == LONG_MIN ? fail(parser, "overflow") : -value;
    }
    parser->depth--;
    return value;
}

static long parse_level(struct parser *parser, int level)
{
    if (level == NUM_LEVELS)
        return parse_primary(parser);
    long value = parse_level(parser, level + 1);
    const char *operator;
    while (!parser->failed && (operator= take_operator(parser, level)) != NULL)
        value = apply(parser, operator, value, parse_level(parser, level + 1));
    return value;
}

bool gj_expression_value(const char *text, size_t length, const struct gj_constants *constants, long *value,
                         char *message, size_t capacity)
{
    struct parser parser = {text, text + length, constants, message, capacity, false, 0};
    const long result = parse_level(&parser, 0);
    skip_space(&parser);
    if (!parser.failed && parser.at != parser.end)
        fail(&parser, "unexpected \"%.*s\"", (int)(parser.end - parser.at), parser.at);
    if (parser.failed)
        return false;
    *value = result;
    return true;
}
