/* SPDX-License-Identifier: Apache-2.0 */
/* Opens libcurl and initialises it, once a process. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/strbuf.h"
#include "remote/curl_api.h"

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define ROW(name) {#name, offsetof(struct gj_curl_api, name)},
    GJ_CURL_FUNCTIONS(ROW)
#undef ROW
};

/* The opened library. It is written once, by whoever holds the mutex: libcurl is initialised per process. */
static struct {
    pthread_mutex_t mutex;
    bool is_ready;
    struct gj_curl_api api;
} opened = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *open_library(struct gj_strbuf *reason)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *const library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) {
            gj_strbuf_free(reason);
            return library;
        }
        const char *const message = dlerror();
        if (!first) {
            first = message ? message : "no reason given";
            gj_strbuf_printf(reason, "libcurl.so.4 cannot be opened (%s), nor libcurl-gnutls.so.4", first);
        }
    }
    return NULL;
}

/* Returns the first name that the library lacks, or NULL. */
static const char *read_symbols(void *library, struct gj_curl_api *api)
{
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *const symbol = dlsym(library, functions[i].name);
        if (!symbol && !missing)
            missing = functions[i].name;
        /* ISO C has no cast from object to function pointer; POSIX says that the bytes are the same. */
        memcpy((char *)api + functions[i].offset, &symbol, sizeof(symbol));
    }
    return missing;
}

static bool open_once(struct gj_strbuf *reason)
{
    void *const library = open_library(reason);
    if (!library)
        return false;
    /* Whatever comes, the library stays mapped: TLS libraries do not bear being unloaded. */
    const char *const missing = read_symbols(library, &opened.api);
    if (missing) {
        gj_strbuf_printf(reason, "libcurl is not usable: it lacks %s", missing);
        return false;
    }
    const CURLcode result = opened.api.curl_global_init(CURL_GLOBAL_DEFAULT);
    if (result != CURLE_OK)
        gj_strbuf_printf(reason, "libcurl cannot be initialised: %s", opened.api.curl_easy_strerror(result));
    return result == CURLE_OK;
}

const struct gj_curl_api *gj_curl_open(char **reason)
{
    struct gj_strbuf text = {0};
    pthread_mutex_lock(&opened.mutex);
    if (!opened.is_ready)
        opened.is_ready = open_once(&text);
    const bool is_ready = opened.is_ready;
    pthread_mutex_unlock(&opened.mutex);
    if (!is_ready)
        *reason = gj_strbuf_take(&text);
    return is_ready ? &opened.api : NULL;
}
