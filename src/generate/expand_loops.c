/* SPDX-License-Identifier: Apache-2.0 */
/* @for, @each and @join. */
#include "generate/expand_impl.h"

#include "base/error_build.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS_MAX 1024

/* `VAR in A .. B` at the start of a loop directive; *rest is what follows B's expression, up to a keyword. */
struct range {
    struct line variable, rest;
    long first, last;
};

/* Cuts text at a keyword standing as a word; the part before it, trimmed, goes to *before. */
static bool cut_at(struct line text, const char *keyword, struct line *before, struct line *after)
{
    const size_t length = strlen(keyword);
    for (size_t i = 0; i + length <= text.length; i++) {
        if (memcmp(text.at + i, keyword, length) == 0) {
            *before = gj_line_trim((struct line){text.at, i});
            *after = gj_line_trim((struct line){text.at + i + length, text.length - i - length});
            return true;
        }
    }
    return false;
}

static enum gj_status read_range(struct expander *expander, const struct source *source, int index,
                                 struct line text, struct range *range)
{
    struct line bounds, low, high, ignored;
    if (!cut_at(text, " in ", &range->variable, &bounds) || !cut_at(bounds, "..", &low, &high))
        return gj_expand_fail(expander, source, index, "expected VARIABLE in FIRST .. LAST");
    if (!cut_at(high, " sep ", &high, &ignored))
        range->rest = (struct line){high.at + high.length, 0};
    else
        range->rest = (struct line){ignored.at - strlen("sep "), ignored.length + strlen("sep ")};
    GJ_TRY(gj_expand_value(expander, source, index, low, &range->first));
    GJ_TRY(gj_expand_value(expander, source, index, high, &range->last));
    long span;
    if (__builtin_sub_overflow(range->last, range->first, &span) || span >= ITERATIONS_MAX)
        return gj_expand_fail(expander, source, index, "more than 1024 iterations");
    return GJ_OK;
}

/* Brings a loop variable into scope; drop_variable takes it out again. */
static enum gj_status push_variable(struct expander *expander, const struct source *source, int index,
                                    struct line name, char *storage, size_t capacity)
{
    bool good = name.length > 0 && name.length < capacity && !isdigit((unsigned char)*name.at);
    for (size_t i = 0; i < name.length; i++)
        good = good && (isalnum((unsigned char)name.at[i]) || name.at[i] == '_');
    if (!good || expander->constants.count == GJ_CONSTANTS_MAX)
        return gj_expand_fail(expander, source, index, "bad loop variable");
    memcpy(storage, name.at, name.length);
    storage[name.length] = '\0';
    expander->constants.items[expander->constants.count++] = (struct gj_constant){.name = storage};
    return GJ_OK;
}

enum gj_status gj_expand_for(struct expander *expander, const struct source *source, int index,
                             struct line text, int end)
{
    struct range range;
    char name[32];
    GJ_TRY(read_range(expander, source, index, text, &range));
    if (range.rest.length > 0)
        return gj_expand_fail(expander, source, index, "@for has no sep: it belongs to @join");
    GJ_TRY(push_variable(expander, source, index, range.variable, name, sizeof name));
    const int slot = expander->constants.count - 1;
    enum gj_status status = GJ_OK;
    for (long i = 0; i <= range.last - range.first && status == GJ_OK; i++) {
        expander->constants.items[slot].value = range.first + i;
        status = gj_expand_range(expander, source, index + 1, end);
    }
    expander->constants.count--;
    return status;
}

/* The next word of a text, cut off its front; empty when there is none. */
static struct line take_word(struct line *text)
{
    struct line word = {text->at, 0};
    while (word.length < text->length && !isspace((unsigned char)word.at[word.length]))
        word.length++;
    *text = gj_line_trim((struct line){text->at + word.length, text->length - word.length});
    return word;
}

#define EACH_VARIABLES_MAX 3
#define WORD_MAX 32

/* `@each V [W [X]] of WORDS`: the body once for each word, or for each group of words. */
enum gj_status gj_expand_each(struct expander *expander, const struct source *source, int index,
                              struct line text, int end)
{
    char names[EACH_VARIABLES_MAX][WORD_MAX], words[EACH_VARIABLES_MAX][WORD_MAX];
    struct line variables, list;
    int count = 0;
    if (!cut_at(text, " of ", &variables, &list) || list.length == 0)
        return gj_expand_fail(expander, source, index, "expected VARIABLE of WORDS");
    const int first = expander->constants.count;
    enum gj_status status = GJ_OK;
    for (; variables.length > 0 && status == GJ_OK; count++)
        status = count == EACH_VARIABLES_MAX
                     ? gj_expand_fail(expander, source, index, "more than three variables")
                     : push_variable(expander, source, index, take_word(&variables), names[count], WORD_MAX);
    while (list.length > 0 && status == GJ_OK) {
        for (int i = 0; i < count; i++) {
            const struct line word = take_word(&list);
            if (word.length == 0 || word.length >= WORD_MAX)
                return gj_expand_fail(expander, source, index, "a word is missing or too long");
            memcpy(words[i], word.at, word.length);
            words[i][word.length] = '\0';
            expander->constants.items[first + i].text = words[i];
        }
        status = gj_expand_range(expander, source, index + 1, end);
    }
    expander->constants.count = first;
    return status;
}

/* Options of @join, each a quoted text or a number. */
struct join {
    struct line separator, begin, end;
    long per;
};

static enum gj_status read_join(struct expander *expander, const struct source *source, int index,
                                struct line text, struct join *join)
{
    *join = (struct join){.per = 1};
    while (text.length > 0) {
        struct line rest;
        bool good;
        if (gj_line_starts_with(text, "sep", &rest)) {
            good = gj_line_take_quoted(&rest, &join->separator);
        } else if (gj_line_starts_with(text, "begin", &rest)) {
            good = gj_line_take_quoted(&rest, &join->begin);
        } else if (gj_line_starts_with(text, "end", &rest)) {
            good = gj_line_take_quoted(&rest, &join->end);
        } else if (gj_line_starts_with(text, "per", &rest)) {
            char *stop;
            join->per = strtol(rest.at, &stop, 10);
            good = rest.length > 0 && isdigit((unsigned char)*rest.at) && join->per > 0;
            if (good)
                rest = gj_line_trim((struct line){stop, rest.length - (size_t)(stop - rest.at)});
        } else {
            good = false;
        }
        if (!good)
            return gj_expand_fail(expander, source, index,
                                  "expected sep \"TEXT\" [per N] [begin \"TEXT\"] [end \"TEXT\"]");
        text = rest;
    }
    return GJ_OK;
}

/* Writes the items of a @join, `per` of them on a line, in the indentation of the body line. */
static enum gj_status write_join(struct expander *expander, const struct source *source, int index,
                                 const struct range *range, const struct join *join, int slot)
{
    const struct line body = source->lines[index + 1], item = gj_line_trim(body);
    struct gj_strbuf text = {0};
    enum gj_status status = GJ_OK;
    for (long position = 0; position <= range->last - range->first && status == GJ_OK; position++) {
        if (position % join->per == 0)
            gj_strbuf_add(&text, body.at, (size_t)(item.at - body.at));
        if (position == 0)
            gj_strbuf_add(&text, join->begin.at, join->begin.length);
        expander->constants.items[slot].value = range->first + position;
        status = gj_expand_substitute(expander, source, index + 1, item, &text);
        const bool last = position == range->last - range->first,
                   line_ends = last || (position + 1) % join->per == 0;
        const struct line tail = last        ? join->end
                                 : line_ends ? gj_line_trim(join->separator)
                                             : join->separator;
        gj_strbuf_add(&text, tail.at, tail.length);
        if (line_ends) {
            gj_lines_add(expander->out, text.text, text.length, source->asset, index + 2);
            expander->out->failed |= text.failed;
            text.length = 0;
        }
    }
    gj_strbuf_free(&text);
    return status;
}

enum gj_status gj_expand_join(struct expander *expander, const struct source *source, int index,
                              struct line text, int end)
{
    struct range range;
    struct join join;
    char name[32];
    if (end != index + 2)
        return gj_expand_fail(expander, source, index, "the body of @join is one line");
    GJ_TRY(read_range(expander, source, index, text, &range));
    GJ_TRY(read_join(expander, source, index, range.rest, &join));
    GJ_TRY(push_variable(expander, source, index, range.variable, name, sizeof name));
    const enum gj_status status =
        write_join(expander, source, index, &range, &join, expander->constants.count - 1);
    expander->constants.count--;
    return status;
}
