/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a kernel. */
#include "plan/plan_name.h"

#include "base/strbuf.h"
#include "key/key_tables.h"

#include <stdio.h>
#include <string.h>

static const char *word(size_t offset, int value)
{
    for (int i = 0; i < gj_num_fields; i++)
        if (gj_fields[i].offset == offset && value >= 0 && value < gj_fields[i].words.count &&
            gj_fields[i].words.names[value] != NULL)
            return gj_fields[i].words.names[value];
    return "x";
}
#define WORD(key, member) word(offsetof(struct gj_key, member), (int)(key)->member)

/* Appends "_NAMEtype+major" for an operand that is there. */
static void add_operand(struct gj_strbuf *name, const char *operand, struct gj_format format)
{
    if (format.dtype != GJ_DTYPE_NONE)
        gj_strbuf_printf(name, "_%s_%s%s", operand, gj_dtype_name(format.dtype),
                         format.major == GJ_MAJOR_K   ? "k"
                         : format.major == GJ_MAJOR_M ? "m"
                                                      : "n");
}

static void add_epilogue(struct gj_strbuf *name, const struct gj_key *key)
{
    if (key->acc != GJ_DTYPE_F32)
        gj_strbuf_printf(name, "_acc_%s", gj_dtype_name(key->acc));
    if (key->alpha != GJ_SCALAR_ONE)
        gj_strbuf_printf(name, "_alpha_%s", WORD(key, alpha));
    if (key->beta != GJ_SCALAR_NONE && key->beta != GJ_SCALAR_ONE)
        gj_strbuf_printf(name, "_beta_%s", WORD(key, beta));
    if (key->bias != GJ_BIAS_NONE)
        gj_strbuf_printf(name, "_bias_%s", WORD(key, bias));
    if (key->scale != GJ_SCALE_NONE)
        gj_strbuf_printf(name, "_scale_%s", WORD(key, scale));
    if (key->quant != GJ_QUANT_NONE)
        gj_strbuf_printf(name, "_quant_%s", WORD(key, quant));
    if (key->fp8acc != GJ_FP8ACC_NONE)
        gj_strbuf_printf(name, "_%s", WORD(key, fp8acc));
}

void gj_plan_name(const struct gj_key *key, char *text, size_t capacity)
{
    struct gj_strbuf name = {0};
    gj_strbuf_printf(&name, "gj_%s_sm90", WORD(key, op));
    if (key->act == GJ_ACT_OWN)
        gj_strbuf_printf(&name, "_own_%08x%08x", key->own.high, key->own.low);
    else if (key->act != GJ_ACT_NONE)
        gj_strbuf_printf(&name, "_%s", WORD(key, act));
    if (key->gate == GJ_GATE_HALVES)
        gj_strbuf_puts(&name, "_halves");
    add_operand(&name, "a", key->a);
    add_operand(&name, "b", key->b);
    add_operand(&name, "c", key->c);
    add_operand(&name, "d", key->d);
    add_operand(&name, "p", key->p);
    add_epilogue(&name, key);
    gj_strbuf_printf(&name, "_%dx%d_c%dx%d_%s%s%s%s", key->tile_m, key->tile_n, key->cluster_m,
                     key->cluster_n, WORD(key, sched), key->tiles == GJ_TILES_STATIC ? "" : "_",
                     key->tiles == GJ_TILES_STATIC ? "" : WORD(key, tiles),
                     key->swap_ab == GJ_SWAP_AB_YES ? "_swap" : "");
    if (key->split_k != GJ_SPLIT_K_NONE)
        gj_strbuf_printf(&name, "_split%s", WORD(key, split_k));
    if (key->ctas_per_sm != GJ_CTAS_PER_SM_1)
        gj_strbuf_printf(&name, "_%sctas", WORD(key, ctas_per_sm));
    snprintf(text, capacity, "%s", name.text ? name.text : "");
    gj_strbuf_free(&name);
    for (char *dot = text; (dot = strchr(dot, '.')) != NULL;) /* of bias=col.f32 */
        *dot = '_';
}
