/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets and their two drivers share.
 *
 * A target is one file fuzz_NAME.c. It is linked twice: with replay.c as replay_NAME, which tools/check runs,
 * and with clang's libFuzzer as fuzz_NAME, which tools/fuzz runs. */
#ifndef GJ_TESTS_FUZZ_FUZZ_H
#define GJ_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gemmjit/error.h>

/* -- What a target defines ------------------------------------------------------------------------------- */

/* The standard entry. Returns 0; ends the process when a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes seed `idx` of those that the target makes by itself, besides the files of its corpus. Returns its
 * bytes; 0 when there are no more. */
enum { FUZZ_SEED_MAX = 4096 };
size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX]);

/* -- Properties (properties.c) ----------------------------------------------------------------------------
 */

#define REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* The bytes in a block of their own, so that a read beyond them shows; with a zero behind them if they are to
 * be a text. Freed with free. */
uint8_t *fuzz_copy(const uint8_t *data, size_t size);
char *fuzz_text(const uint8_t *data, size_t size);

/* An error as it must be: this status, one line of valid UTF-8 that is not empty. */
void fuzz_check_error(const gj_error *error, enum gj_status status);

/* The number at *at, which moves behind it; 0 where there is none. */
long fuzz_number(const char **at);

/* A readable file without a name. */
struct fuzz_file {
    int file;
    char path[32];
};
struct fuzz_file fuzz_file_make(const void *data, size_t size);
void fuzz_file_close(struct fuzz_file *file);

/* What an error of a reader of JSON says of a place is in the document, whose file has this path. */
void fuzz_check_json_error(const gj_error *error, const char *path, const uint8_t *data, size_t size);

/* -- Memory (memory.c) ------------------------------------------------------------------------------------
 */

/* Counts from here what the code under test allocates. */
void fuzz_memory_begin(void);
/* The most bytes that were held at once since then; what is still held must be nothing. */
size_t fuzz_memory_end(void);
/* Has cJSON allocate where it is counted. */
void fuzz_memory_of_cjson(void);

#endif
