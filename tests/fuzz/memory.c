/* SPDX-License-Identifier: Apache-2.0 */
/* Counts memory: the linker leads the calls of everything that is linked into a target here (--wrap). */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "fuzz.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);

static _Thread_local bool counting;
static _Thread_local long long held, peak;

static void *count(void *block)
{
    if (counting && block) {
        held += (long long)malloc_usable_size(block);
        peak = held > peak ? held : peak;
    }
    return block;
}

static void discount(void *block)
{
    if (counting && block)
        held -= (long long)malloc_usable_size(block);
}

void *__wrap_malloc(size_t size)
{
    return count(__real_malloc(size));
}

void *__wrap_calloc(size_t number, size_t size)
{
    return count(__real_calloc(number, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    discount(block);
    return count(__real_realloc(block, size));
}

void __wrap_free(void *block)
{
    discount(block);
    __real_free(block);
}

char *__wrap_strndup(const char *text, size_t length)
{
    const size_t kept = strnlen(text, length);
    char *const copy = count(__real_malloc(kept + 1));
    if (copy) {
        memcpy(copy, text, kept);
        copy[kept] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

void fuzz_memory_begin(void)
{
    held = peak = 0;
    counting = true;
}

size_t fuzz_memory_end(void)
{
    counting = false;
    REQUIRE(held == 0);
    return (size_t)peak;
}

void fuzz_memory_of_cjson(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = __wrap_malloc, .free_fn = __wrap_free});
}
