/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit show: every stage of one key, as text or as JSON. */
#include <string.h>

#include "base/utf8.h"
#include "cli.h"
#include "compile/cubin.h"
#include "plan/plan.h"

/* The key of this call and what is made of it. */
struct subject {
    struct cli *cli;
    struct gj_key key;
    cJSON *document; /* with --json; holds the key so far */
};

static enum gj_status finish(struct subject *subject, gj_error **error)
{
    cJSON *const document = subject->document;
    subject->document = NULL;
    return document ? cli_json_finish(subject->cli, document, error) : GJ_OK;
}

/* A stage that is one text. */
static enum gj_status emit_text(struct subject *subject, const char *name, const char *text, size_t length,
                                gj_error **error)
{
    if (subject->document)
        cli_json_text(subject->cli, subject->document, name, text);
    else
        gj_strbuf_add(&subject->cli->out, text, length);
    return finish(subject, error);
}

static enum gj_status emit_key(struct subject *subject, gj_error **error)
{
    if (subject->document) {
        cli_json_add(subject->cli, subject->document, "fields", cli_key_fields(subject->cli, &subject->key));
        return finish(subject, error);
    }
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(&subject->key, text, sizeof(text));
    gj_strbuf_printf(&subject->cli->out, "%s\n", text);
    return GJ_OK;
}

static void add_plan_numbers(struct cli *cli, cJSON *object, const struct gj_plan *plan)
{
    cli_json_text(cli, object, "entry_name", plan->entry_name);
#define NUMBER(name) cli_json_number(cli, object, #name, plan->name)
    NUMBER(mma_warp_groups);
    NUMBER(split_m);
    NUMBER(split_n);
    NUMBER(threads);
    NUMBER(load_registers);
    NUMBER(mma_registers);
    NUMBER(acc_registers);
    NUMBER(m_blocks);
    NUMBER(mma_n);
    NUMBER(mma_k);
    NUMBER(tile_k);
    NUMBER(stages);
    NUMBER(stage_bytes);
    NUMBER(box_a_rows);
    NUMBER(box_b_rows);
    NUMBER(epi_m);
    NUMBER(epi_n);
    NUMBER(epi_stages);
    NUMBER(epi_c_stages);
    NUMBER(staging_bytes);
    NUMBER(c_bytes);
    NUMBER(slab_n);
    NUMBER(slab_bytes);
    NUMBER(tail_n);
    NUMBER(slab_buffers);
    NUMBER(full_arrivals);
    NUMBER(empty_arrivals);
    NUMBER(smem_a);
    NUMBER(smem_b);
    NUMBER(smem_staging);
    NUMBER(smem_barriers);
    NUMBER(smem_bytes);
#undef NUMBER
}

static enum gj_status emit_plan(struct subject *subject, gj_error **error)
{
    struct gj_plan plan;
    gj_plan_make(&subject->key, &plan);
    if (subject->document) {
        cJSON *const object = cli_json_object(subject->cli);
        add_plan_numbers(subject->cli, object, &plan);
        cli_json_add(subject->cli, subject->document, "plan", object);
    } else {
        gj_plan_format(&plan, &subject->cli->out);
    }
    return finish(subject, error);
}

/* A context that knows --act-source and has no cache. */
static enum gj_status open_bare(struct cli *cli, gj_context **context, gj_error **error)
{
    const struct gj_context_params params = {.no_disk_cache = 1, .log = cli_log, .log_user = cli};
    GJ_TRY(gj_context_open(&params, context, error));
    return cli_own_add(cli, *context, error);
}

static enum gj_status emit_source(struct subject *subject, gj_error **error)
{
    gj_context *context = NULL;
    char *source = NULL;
    size_t bytes = 0;
    enum gj_status status = open_bare(subject->cli, &context, error);
    if (status == GJ_OK)
        status = gj_context_source(context, &subject->key, &source, &bytes, error);
    if (status == GJ_OK)
        status = emit_text(subject, "source", source, bytes, error);
    gj_free(source);
    gj_context_close(&context);
    return status;
}

static enum gj_status emit_ptx(struct subject *subject, gj_error **error)
{
    gj_context *context = NULL;
    void *ptx = NULL;
    size_t bytes = 0;
    enum gj_status status = open_bare(subject->cli, &context, error);
    if (status == GJ_OK)
        status = gj_context_compile(context, &subject->key, GJ_IMAGE_PTX, &ptx, &bytes, error);
    if (status == GJ_OK)
        status = emit_text(subject, "ptx", ptx, bytes, error);
    gj_free(ptx);
    gj_context_close(&context);
    return status;
}

static enum gj_status emit_sass(struct subject *subject, const struct gj_kernel_info *info, gj_error **error)
{
    struct gj_strbuf text = {0};
    enum gj_status status = cli_disassemble(info->cubin, info->cubin_bytes, &text, error);
    if (status == GJ_OK && (text.failed || text.text == NULL))
        status = gj_error_make(error, text.failed ? GJ_ERR_NO_MEMORY : GJ_ERR_SYSTEM, GJ_STAGE_NONE, 0, "",
                               text.failed ? "no memory for the SASS" : "nvdisasm printed nothing");
    if (status == GJ_OK)
        status = emit_text(subject, "sass", text.text, text.length, error);
    gj_strbuf_free(&text);
    return status;
}

static enum gj_status emit_resources(struct subject *subject, const struct gj_kernel_info *info,
                                     gj_error **error)
{
    struct gj_cubin_facts facts;
    GJ_TRY(gj_cubin_read(info->cubin, info->cubin_bytes, info->entry_name, &facts, error));
    const struct {
        const char *name;
        int value;
    } rows[] = {
        {"registers", info->registers},
        {"threads", info->threads},
        {"smem_bytes", info->smem_bytes},
        {"static_smem_bytes", facts.static_smem_bytes},
        {"stages", info->stages},
        {"spill_bytes", info->spill_bytes},
        {"frame_bytes", facts.frame_bytes},
        {"param_bytes", facts.param_bytes},
        {"named_barriers", facts.num_barriers},
        {"cubin_bytes", (int)info->cubin_bytes},
        {"instructions", facts.census.instructions},
        {"mma", facts.census.mma},
        {"warpgroup", facts.census.warpgroup},
        {"tma_load", facts.census.tma_load},
        {"tma_store", facts.census.tma_store},
        {"stmatrix", facts.census.stmatrix},
        {"set_max_register", facts.census.set_max_register},
        {"local_load", facts.census.local_load},
        {"local_store", facts.census.local_store},
    };
    struct gj_strbuf *const out = &subject->cli->out;
    cJSON *const object = subject->document ? cli_json_object(subject->cli) : NULL;
    if (!object)
        gj_strbuf_printf(out, "%-18s %s\n%-18s %s\n", "entry", info->entry_name, "compiler", info->compiler);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (object)
            cli_json_number(subject->cli, object, rows[i].name, rows[i].value);
        else
            gj_strbuf_printf(out, "%-18s %d\n", rows[i].name, rows[i].value);
    }
    if (object) {
        cli_json_text(subject->cli, object, "entry_name", info->entry_name);
        cli_json_text(subject->cli, object, "compiler", info->compiler);
        cli_json_add(subject->cli, subject->document, "resources", object);
    }
    return finish(subject, error);
}

typedef enum gj_status emit_cubin_fn(struct subject *subject, const struct gj_kernel_info *info,
                                     gj_error **error);

/* What is read from a cubin: from the cache, or compiled into it. */
static enum gj_status emit_from_cubin(struct subject *subject, emit_cubin_fn *emit, gj_error **error)
{
    gj_context *context = NULL;
    gj_kernel *kernel = NULL;
    enum gj_status status = cli_context_open(subject->cli, &context, error);
    if (status == GJ_OK)
        status = gj_kernel_get(context, &subject->key, 0, &kernel, error);
    if (status == GJ_OK) {
        struct gj_kernel_info info;
        gj_kernel_info(kernel, &info);
        status = emit(subject, &info, error);
    }
    gj_context_close(&context);
    return status;
}

static const struct {
    const char *name;
    enum gj_status (*emit)(struct subject *subject, gj_error **error); /* or, from a cubin: */
    emit_cubin_fn *emit_cubin;
    bool any_key; /* also of a key that is refused */
} stages[] = {
    {"source", emit_source, NULL, false}, {"ptx", emit_ptx, NULL, false},
    {"sass", NULL, emit_sass, false},     {"plan", emit_plan, NULL, false},
    {"key", emit_key, NULL, true},        {"resources", NULL, emit_resources, false},
};
#define NUM_STAGES (sizeof(stages) / sizeof(stages[0]))

static enum gj_status find_stage(const char *name, size_t *stage, gj_error **error)
{
    static const char *const allowed = "allowed is source, ptx, sass, plan, key, resources";
    if (name == NULL)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--emit is needed: %s", allowed);
    for (size_t i = 0; i < NUM_STAGES; i++) {
        if (strcmp(stages[i].name, name) == 0) {
            *stage = i;
            return GJ_OK;
        }
    }
    GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--emit %s: %s", gj_utf8_quote(name, strlen(name)).text,
            allowed);
}

enum gj_status cli_show(struct cli *cli, gj_error **error)
{
    struct subject subject = {.cli = cli};
    size_t stage = 0;
    GJ_TRY(find_stage(cli->options.text[CLI_EMIT], &stage, error));
    GJ_TRY(cli_key_read(cli, &subject.key, error));
    if (!stages[stage].any_key)
        GJ_TRY(gj_key_check(&subject.key, error));
    if (cli->json) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&subject.key, text, sizeof(text));
        subject.document = cli_json_object(cli);
        cli_json_text(cli, subject.document, "key", text);
    }
    const enum gj_status status = stages[stage].emit
                                      ? stages[stage].emit(&subject, error)
                                      : emit_from_cubin(&subject, stages[stage].emit_cubin, error);
    cJSON_Delete(subject.document);
    return status;
}
