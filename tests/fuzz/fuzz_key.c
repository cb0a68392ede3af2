/* SPDX-License-Identifier: Apache-2.0 */
/* Key text. What parses has one canonical text, which parses to the same key and is a fixed point; the order
 * of its fields does not count; it can be planned and checked. What does not parse is told, and leaves the
 * key. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gemmjit/key.h>

#include "plan/plan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The fields of a text from the last to the first. */
static char *reverse_fields(const char *text)
{
    const size_t length = strlen(text);
    char *const reversed = malloc(length + 1);
    REQUIRE(reversed != NULL);
    char *to = reversed + length;
    *to = '\0';
    for (const char *at = text; *at != '\0';) {
        const size_t field = strcspn(at, ",");
        memcpy(to -= field, at, field);
        at += field;
        if (*at == ',')
            *--to = *at++;
    }
    REQUIRE(to == reversed);
    return reversed;
}

/* What a field says is what the key holds: it stands in the canonical text as it was given, but for zeros
 * before a number and what is not printed while it is none. */
static void check_fields(const char *given, const char *text)
{
    while (*given != '\0') {
        char field[64] = ",", whole[GJ_KEY_TEXT_MAX + 2];
        const size_t length = strcspn(given, ",");
        REQUIRE(length < sizeof field - 3 || strstr(given, "=0") || strstr(given, "x0"));
        memcpy(field + 1, given, length < sizeof field - 3 ? length : 0);
        strcat(field, ",");
        snprintf(whole, sizeof whole, ",%s,", text);
        REQUIRE(strstr(whole, field) || strstr(field, "=0") || strstr(field, "x0") ||
                strstr(field, "=none,") || length >= sizeof field - 3);
        given += length + (given[length] == ',');
    }
}

static void check_format(const char *given, const struct gj_key *key)
{
    char text[GJ_KEY_TEXT_MAX], again[GJ_KEY_TEXT_MAX], cut[GJ_KEY_TEXT_MAX];
    struct gj_key parsed;
    const size_t length = gj_key_format(key, text, sizeof text);
    REQUIRE(length < sizeof text && strlen(text) == length);
    REQUIRE(gj_key_parse(text, &parsed, NULL) == GJ_OK);
    REQUIRE(memcmp(&parsed, key, sizeof parsed) == 0);
    REQUIRE(gj_key_format(&parsed, again, sizeof again) == length && strcmp(text, again) == 0);
    check_fields(given, text);
    for (size_t capacity = 0; capacity <= length + 1; capacity += 1 + length / 8) {
        memset(cut, '~', sizeof cut);
        REQUIRE(gj_key_format(key, cut, capacity) == length);
        REQUIRE(cut[capacity] == '~');
        REQUIRE(capacity == 0 || (strlen(cut) == capacity - 1 && memcmp(cut, text, capacity - 1) == 0) ||
                capacity > length);
    }
}

static void check_rules(const struct gj_key *key)
{
    gj_error *error = NULL;
    const enum gj_status status = gj_key_check(key, &error);
    REQUIRE(status == GJ_OK || status == GJ_ERR_UNSUPPORTED);
    REQUIRE((status == GJ_OK) == (error == NULL));
    if (error) {
        fuzz_check_error(error, status);
        REQUIRE(error->num_reasons > 0);
        for (size_t i = 0; i < error->num_reasons; i++)
            REQUIRE(error->reasons[i][0] != '\0');
    }
    REQUIRE(gj_key_check(key, NULL) == status);
    gj_error_free(&error);
    struct gj_plan plan;
    gj_plan_make(key, &plan);
    REQUIRE(memcmp(&plan.key, key, sizeof *key) == 0);
    REQUIRE(memchr(plan.entry_name, '\0', sizeof plan.entry_name) != NULL);
    REQUIRE(status != GJ_OK || (plan.smem_bytes > 0 && plan.smem_bytes <= GJ_SMEM_CTA_MAX));
}

static void check_refusal(const char *text, const struct gj_key *key)
{
    struct gj_key untouched;
    gj_error *error = NULL;
    memset(&untouched, 0xa5, sizeof untouched);
    REQUIRE(memcmp(&untouched, key, sizeof untouched) == 0);
    REQUIRE(gj_key_parse(text, &untouched, &error) == GJ_ERR_KEY);
    fuzz_check_error(error, GJ_ERR_KEY);
    REQUIRE(strlen(error->message) < 2048); /* what is quoted of the text is bounded */
    gj_error_free(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = fuzz_text(data, size);
    struct gj_key key;
    memset(&key, 0xa5, sizeof key);
    fuzz_memory_begin();
    const bool is_key = gj_key_parse(text, &key, NULL) == GJ_OK;
    if (is_key) {
        check_format(text, &key);
        check_rules(&key);
    } else {
        check_refusal(text, &key);
    }
    REQUIRE(fuzz_memory_end() <= 32768); /* of messages, and independent of the text */
    char *const reversed = reverse_fields(text);
    struct gj_key other;
    /* A comma at the start is an empty field, one at the end is a fault of its own: both are refused. */
    REQUIRE((gj_key_parse(reversed, &other, NULL) == GJ_OK) == is_key);
    REQUIRE(!is_key || memcmp(&other, &key, sizeof key) == 0);
    free(reversed);
    free(text);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    static const char full[] =
        "op=gemm,a=bf16.k,b=bf16.k,c=none,d=bf16.n,acc=f32,act=none,alpha=one,beta=none,batch=dense,"
        "gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no";
    static const char *const texts[] = {
        full,
        "a=e4m3.k,b=e5m2.k,c=f32.n,d=f16.m,alpha=host,beta=device,fp8acc=fast,tile=128x256,tiles=once",
        "op=gated,act=swiglu,gate=halves,p=bf16.n,bias=col.f32,scale=row_col,quant=amax",
        "op=act,act=own,own=0123456789abcdef,p=none,bias=row.bf16,tiles=dynamic,swap_ab=yes,cluster=1x2",
        "op=dgated,act=geglu,gate=interleaved,c=f16.n,batch=varlen_k,gather=a,acc=f16",
        "tile=9999x9999,cluster=9999x9999,a=f16.m,b=f16.n,sched=coop",
        "tile=128x192,tile=128x192",
        "a=bf16.k,",
    };
    if (idx >= COUNT(texts))
        return 0;
    const size_t length = strlen(texts[idx]);
    memcpy(data, texts[idx], length);
    return length;
}
