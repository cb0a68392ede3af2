/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libcurl that are used, opened at run time: nothing of it is linked. */
#ifndef GJ_REMOTE_CURL_API_H
#define GJ_REMOTE_CURL_API_H

/* The checks are macros around the functions' names, which are members here. The options that later versions
 * deprecate (by their text twins) work in all versions. */
#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

/* The types come from curl.h, so a changed signature cannot go unnoticed. */
#define GJ_CURL_FUNCTIONS(X) \
    X(curl_global_init)      \
    X(curl_easy_init)        \
    X(curl_easy_reset)       \
    X(curl_easy_setopt)      \
    X(curl_easy_perform)     \
    X(curl_easy_getinfo)     \
    X(curl_easy_strerror)    \
    X(curl_easy_cleanup)     \
    X(curl_slist_append)     \
    X(curl_slist_free_all)

struct gj_curl_api {
#define GJ_CURL_MEMBER(name) __typeof__(name) *name;
    GJ_CURL_FUNCTIONS(GJ_CURL_MEMBER)
#undef GJ_CURL_MEMBER
};

/* The one table of the process, from libcurl.so.4 or else libcurl-gnutls.so.4; initialised once, mapped until
 * the process ends. Thread-safe. Returns NULL with *reason, a malloc'ed sentence (NULL: no memory); a later
 * call tries again. */
const struct gj_curl_api *gj_curl_open(char **reason);

#endif
