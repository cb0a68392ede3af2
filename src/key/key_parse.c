/* SPDX-License-Identifier: Apache-2.0 */
/* Reading key text: every refusal names the field, its value and what is allowed. */
#include <gemmjit/key.h>

#include "base/error_build.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "key/key_tables.h"

#include <stdlib.h>
#include <string.h>

/* Largest extent that a tile or cluster field may spell; gj_key_check refuses far smaller ones with numbers.
 */
#define PAIR_MAX 9999

#define FAIL_KEY(error, ...) GJ_FAIL(error, GJ_ERR_KEY, GJ_STAGE_KEY, __VA_ARGS__)

/* A stretch of the text being read. */
struct span {
    const char *at;
    size_t length;
};

/* The span as a message quotes it. */
#define QUOTE(span) gj_utf8_quote((span).at, (span).length).text

static const struct gj_field *find_field(struct span name)
{
    for (int i = 0; i < gj_num_fields; i++)
        if (strlen(gj_fields[i].name) == name.length && memcmp(gj_fields[i].name, name.at, name.length) == 0)
            return &gj_fields[i];
    return NULL;
}

static void list_words(struct gj_strbuf *buf, struct gj_words words)
{
    for (int i = 0; i < words.count; i++)
        if (words.names[i] != NULL)
            gj_strbuf_printf(buf, "%s%s", buf->length ? ", " : "", words.names[i]);
}

/* What a field allows, as text for messages. Free it with free; NULL when memory runs out. */
static char *allowed_text(const struct gj_field *field)
{
    struct gj_strbuf buf = {0};
    if (field->kind == GJ_FIELD_WORD) {
        list_words(&buf, field->words);
    } else if (field->kind == GJ_FIELD_PAIR) {
        gj_strbuf_printf(&buf, "MxN with M and N from 1 to %d", PAIR_MAX);
    } else if (field->kind == GJ_FIELD_ID) {
        gj_strbuf_puts(&buf, "16 hexadecimal digits in lower case");
    } else {
        gj_strbuf_puts(&buf, "TYPE.MAJOR with TYPE one of");
        for (int i = GJ_DTYPE_NONE + 1; i < gj_dtype_words.count; i++)
            if (field->dtypes & (1u << i))
                gj_strbuf_printf(&buf, " %s", gj_dtype_words.names[i]);
        gj_strbuf_printf(&buf, " and MAJOR one of %s %s", gj_major_words.names[field->majors[0]],
                         gj_major_words.names[field->majors[1]]);
        if (field->dtypes & (1u << GJ_DTYPE_NONE))
            gj_strbuf_puts(&buf, ", or none");
    }
    return gj_strbuf_take(&buf);
}

static enum gj_status fail_value(const struct gj_field *field, struct span value, gj_error **error)
{
    char *const allowed = allowed_text(field);
    const enum gj_status status =
        gj_error_make(error, GJ_ERR_KEY, GJ_STAGE_KEY, 0, "", "%s=%s: allowed is %s", field->name,
                      QUOTE(value), allowed ? allowed : "?");
    free(allowed);
    return status;
}

static bool read_int(struct span *value, int *number)
{
    int n = 0;
    size_t digits = 0;
    while (digits < value->length && value->at[digits] >= '0' && value->at[digits] <= '9') {
        n = n * 10 + (value->at[digits] - '0');
        if (n > PAIR_MAX)
            return false;
        digits++;
    }
    if (digits == 0 || n == 0)
        return false;
    value->at += digits;
    value->length -= digits;
    *number = n;
    return true;
}

static bool read_pair(struct span value, int pair[2])
{
    if (!read_int(&value, &pair[0]) || value.length == 0 || *value.at != 'x')
        return false;
    value.at++;
    value.length--;
    return read_int(&value, &pair[1]) && value.length == 0;
}

static bool read_format(const struct gj_field *field, struct span value, struct gj_format *format)
{
    const char *const dot = memchr(value.at, '.', value.length);
    const size_t dtype_length = dot ? (size_t)(dot - value.at) : value.length;
    const int dtype = gj_words_find(gj_dtype_words, value.at, dtype_length);
    if (dtype < 0 || !(field->dtypes & (1u << dtype)))
        return false;
    if (dtype == GJ_DTYPE_NONE) {
        *format = (struct gj_format){GJ_DTYPE_NONE, GJ_MAJOR_NONE};
        return dot == NULL;
    }
    if (dot == NULL)
        return false;
    const int major = gj_words_find(gj_major_words, dot + 1, value.length - dtype_length - 1);
    if (major < 0 || ((enum gj_major)major != field->majors[0] && (enum gj_major)major != field->majors[1]))
        return false;
    *format = (struct gj_format){(enum gj_dtype)dtype, (enum gj_major)major};
    return true;
}

static bool read_id(struct span value, struct gj_own_id *id)
{
    static const char digits[] = "0123456789abcdef";
    unsigned half[2] = {0, 0};
    if (value.length != 16)
        return false;
    for (size_t i = 0; i < 16; i++) {
        const char *const digit = memchr(digits, value.at[i], 16);
        if (digit == NULL)
            return false;
        half[i / 8] = half[i / 8] << 4 | (unsigned)(digit - digits);
    }
    *id = (struct gj_own_id){half[0], half[1]};
    return true;
}

static bool read_value(const struct gj_field *field, struct span value, struct gj_key *key)
{
    char *const target = (char *)key + field->offset;
    switch (field->kind) {
    case GJ_FIELD_WORD: {
        const int word = gj_words_find(field->words, value.at, value.length);
        if (word >= 0)
            memcpy(target, &word, sizeof word);
        return word >= 0;
    }
    case GJ_FIELD_FORMAT: {
        struct gj_format format;
        if (!read_format(field, value, &format))
            return false;
        memcpy(target, &format, sizeof format);
        return true;
    }
    case GJ_FIELD_PAIR: {
        int pair[2];
        if (!read_pair(value, pair))
            return false;
        memcpy(target, pair, sizeof pair);
        return true;
    }
    case GJ_FIELD_ID: {
        struct gj_own_id id;
        if (!read_id(value, &id))
            return false;
        memcpy(target, &id, sizeof id);
        return true;
    }
    }
    return false;
}

static enum gj_status fail_unknown(struct span name, gj_error **error)
{
    struct gj_strbuf names = {0};
    for (int i = 0; i < gj_num_fields; i++)
        gj_strbuf_printf(&names, "%s%s", i ? ", " : "", gj_fields[i].name);
    char *const text = gj_strbuf_take(&names);
    const enum gj_status status =
        gj_error_make(error, GJ_ERR_KEY, GJ_STAGE_KEY, 0, "", "unknown field \"%s\": the fields are %s",
                      QUOTE(name), text ? text : "?");
    free(text);
    return status;
}

/* Reads one `name=value` and notes the field in *seen, a bit set over gj_fields. */
static enum gj_status read_field(struct span text, struct gj_key *key, unsigned *seen, gj_error **error)
{
    const char *const equals = memchr(text.at, '=', text.length);
    if (equals == NULL)
        FAIL_KEY(error, "\"%s\" is not name=value", QUOTE(text));
    const struct span name = {text.at, (size_t)(equals - text.at)};
    const struct span value = {equals + 1, text.length - name.length - 1};
    const struct gj_field *const field = find_field(name);
    if (field == NULL)
        return fail_unknown(name, error);
    const unsigned bit = 1u << (field - gj_fields);
    if (*seen & bit)
        FAIL_KEY(error, "field %s is given twice, the second time as %s", field->name, QUOTE(value));
    *seen |= bit;
    if (!read_value(field, value, key))
        return fail_value(field, value, error);
    return GJ_OK;
}

static unsigned bit_of(size_t offset)
{
    for (int i = 0; i < gj_num_fields; i++)
        if (gj_fields[i].offset == offset)
            return 1u << i;
    return 0;
}

static const struct gj_field *field_at(size_t offset)
{
    return &gj_fields[__builtin_ctz(bit_of(offset))];
}

static enum gj_status finish_beta(struct gj_key *key, unsigned seen, gj_error **error)
{
    const size_t beta = offsetof(struct gj_key, beta);
    const bool has_c = key->c.dtype != GJ_DTYPE_NONE;
    if (!(seen & bit_of(beta)))
        key->beta = has_c ? GJ_SCALAR_ONE : GJ_SCALAR_NONE;
    if (has_c && key->beta == GJ_SCALAR_NONE)
        FAIL_KEY(error, "beta=none contradicts c=%s: allowed is one, host, device",
                 gj_dtype_name(key->c.dtype));
    if (!has_c && key->beta != GJ_SCALAR_NONE)
        FAIL_KEY(error, "beta=%s contradicts c=none, an absent operand: allowed is none",
                 field_at(beta)->words.names[key->beta]);
    return GJ_OK;
}

static enum gj_status finish_fp8acc(struct gj_key *key, unsigned seen, gj_error **error)
{
    const struct gj_field *const field = field_at(offsetof(struct gj_key, fp8acc));
    const bool is_seen = seen & bit_of(field->offset);
    if (gj_key_has_field(key, field) && !is_seen)
        key->fp8acc = GJ_FP8ACC_PROMOTED;
    if (!gj_key_has_field(key, field) && is_seen)
        FAIL_KEY(error, "fp8acc=%s contradicts a=%s and b=%s: it is allowed only when both are 8-bit",
                 field->words.names[key->fp8acc], gj_dtype_name(key->a.dtype), gj_dtype_name(key->b.dtype));
    return GJ_OK;
}

/* What belongs to some operations or functions only: p, gate, own. */
static enum gj_status finish_operation(struct gj_key *key, unsigned seen, gj_error **error)
{
    const struct gj_field *const gate = field_at(offsetof(struct gj_key, gate));
    const bool p_seen = seen & bit_of(offsetof(struct gj_key, p)), gate_seen = seen & bit_of(gate->offset);
    const bool own_seen = seen & bit_of(offsetof(struct gj_key, own));
    const char *const op = field_at(offsetof(struct gj_key, op))->words.names[key->op];
    if (p_seen && key->op == GJ_OP_GEMM && key->p.dtype != GJ_DTYPE_NONE)
        FAIL_KEY(error, "p=%s contradicts op=gemm, which has no PostAct: allowed is none",
                 gj_dtype_name(key->p.dtype));
    if (!p_seen && key->op != GJ_OP_GEMM)
        key->p = (struct gj_format){GJ_DTYPE_BF16, GJ_MAJOR_N};
    if (gj_op_is_gated(key->op) && !gate_seen)
        key->gate = GJ_GATE_INTERLEAVED;
    if (!gj_op_is_gated(key->op) && gate_seen)
        FAIL_KEY(error, "gate=%s contradicts op=%s: it is allowed only with op=gated and op=dgated",
                 gate->words.names[key->gate], op);
    if (key->act == GJ_ACT_OWN && !own_seen)
        FAIL_KEY(error, "act=own needs own=ID, the 16 digits that name the function and its source");
    if (key->act != GJ_ACT_OWN && own_seen)
        FAIL_KEY(error, "own=%08x%08x contradicts act=%s: it is allowed only with act=own", key->own.high,
                 key->own.low, field_at(offsetof(struct gj_key, act))->words.names[key->act]);
    return GJ_OK;
}

/* Defaults that depend on other fields, and contradictions between fields. */
static enum gj_status finish_key(struct gj_key *key, unsigned seen, gj_error **error)
{
    GJ_TRY(finish_beta(key, seen, error));
    GJ_TRY(finish_fp8acc(key, seen, error));
    return finish_operation(key, seen, error);
}

enum gj_status gj_key_parse(const char *text, struct gj_key *key, gj_error **error)
{
    struct gj_key parsed = gj_key_default();
    unsigned seen = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        GJ_TRY(read_field((struct span){at, length}, &parsed, &seen, error));
        at += length;
        if (*at == ',' && *++at == '\0')
            FAIL_KEY(error, "key text ends with a comma");
    }
    GJ_TRY(finish_key(&parsed, seen, error));
    *key = parsed;
    return GJ_OK;
}
