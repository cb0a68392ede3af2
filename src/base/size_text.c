/* SPDX-License-Identifier: Apache-2.0 */
/* A whole number with K, M, G or T behind it. */
#include "base/size_text.h"

#include <string.h>

#define SIZE_MOST (INT64_C(1) << 50)

bool gj_size_text_read(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    const char *at = text;
    int64_t number = 0;
    while (*at >= '0' && *at <= '9' && number <= SIZE_MOST)
        number = number * 10 + (*at++ - '0');
    const char *const unit = *at ? strchr(units, *at) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (at == text || (unit ? at[1] != '\0' : *at != '\0') || number > SIZE_MOST >> shift)
        return false;
    *bytes = (uint64_t)number << shift;
    return true;
}
