/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds, and random mutations of them that repeat for the same number. */
#include "mutate.h"

#include <stdlib.h>
#include <string.h>

bool seeds_add(struct seeds *seeds, const char *name, const uint8_t *data, size_t size)
{
    struct seed *const grown = realloc(seeds->items, (seeds->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    seeds->items = grown;
    grown[seeds->count++] = (struct seed){.name = strdup(name), .data = fuzz_copy(data, size), .size = size};
    return grown[seeds->count - 1].name != NULL;
}

void seeds_free(struct seeds *seeds)
{
    for (size_t i = 0; i < seeds->count; i++) {
        free(seeds->items[i].name);
        free(seeds->items[i].data);
    }
    free(seeds->items);
    *seeds = (struct seeds){0};
}

/* -- Random numbers (splitmix64) --------------------------------------------------------------------------
 */

static uint64_t next(struct random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t below(struct random *random, size_t limit)
{
    return limit > 0 ? (size_t)(next(random) % limit) : 0;
}

/* -- Mutations --------------------------------------------------------------------------------------------
 */

struct input {
    uint8_t *data; /* MUTATE_MAX bytes */
    size_t size;
};

static void change_byte(struct random *random, struct input *input)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '\n', ' ',
                                     '"',  '\\', '{',  '}',  ',',  '0',  '9'};
    const size_t at = below(random, input->size);
    const size_t choice = below(random, 2 * sizeof values);
    if (input->size > 0)
        input->data[at] = choice < sizeof values ? values[choice] : (uint8_t)next(random);
}

static void flip_bit(struct random *random, struct input *input)
{
    const size_t bit = below(random, 8 * input->size);
    if (input->size > 0)
        input->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* A number of four bytes, the lowest first. */
static void change_number(struct random *random, struct input *input)
{
    static const uint32_t values[] = {0,  1,          2,          15,         16,        17,
                                      40, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0};
    uint32_t value = values[below(random, sizeof values / sizeof values[0])];
    const size_t at = 4 * below(random, input->size / 4);
    for (size_t i = 0; i < 4 && at + 4 <= input->size; i++, value >>= 8)
        input->data[at + i] = (uint8_t)value;
}

/* Digits become another number. */
static void change_digits(struct random *random, struct input *input)
{
    static const char *const values[] = {"0",
                                         "1",
                                         "2",
                                         "7",
                                         "15",
                                         "64",
                                         "128",
                                         "-1",
                                         "256",
                                         "1000000007",
                                         "2147483647",
                                         "2147483648",
                                         "9999",
                                         "4294967297",
                                         "1e9",
                                         "0.5",
                                         "99999999999999999999"};
    size_t from = below(random, input->size);
    while (from < input->size && (input->data[from] < '0' || input->data[from] > '9'))
        from++;
    size_t to = from;
    while (to < input->size && input->data[to] >= '0' && input->data[to] <= '9')
        to++;
    const char *const value = values[below(random, sizeof values / sizeof values[0])];
    const size_t length = strlen(value);
    if (from == to || input->size + length > MUTATE_MAX)
        return;
    memmove(input->data + from + length, input->data + to, input->size - to);
    memcpy(input->data + from, value, length);
    input->size = input->size + length - (to - from);
}

static void remove_part(struct random *random, struct input *input)
{
    const size_t at = below(random, input->size);
    const size_t length = below(random, 1 + (input->size - at) / (1 + below(random, 8)));
    memmove(input->data + at, input->data + at + length, input->size - at - length);
    input->size -= length;
}

/* Puts bytes of some seed in, or over what is there. */
static void copy_part(struct random *random, const struct seeds *seeds, struct input *input)
{
    const struct seed *const from = &seeds->items[below(random, seeds->count)];
    const size_t start = below(random, from->size);
    size_t length = below(random, 1 + (from->size - start) / (1 + below(random, 8)));
    const size_t at = below(random, input->size + 1);
    const bool is_over = next(random) & 1;
    const size_t room = is_over ? input->size - at : MUTATE_MAX - input->size;
    length = length < room ? length : room;
    if (!is_over) {
        memmove(input->data + at + length, input->data + at, input->size - at);
        input->size += length;
    }
    memcpy(input->data + at, from->data + start, length);
}

size_t mutate(struct random *random, const struct seeds *seeds, uint8_t data[MUTATE_MAX])
{
    const struct seed *const seed = &seeds->items[below(random, seeds->count)];
    struct input input = {data, seed->size};
    memcpy(data, seed->data, seed->size);
    for (size_t left = 1 + below(random, 6); left > 0; left--) {
        switch (below(random, 6)) {
        case 0:
            change_byte(random, &input);
            break;
        case 1:
            flip_bit(random, &input);
            break;
        case 2:
            change_number(random, &input);
            break;
        case 3:
            remove_part(random, &input);
            break;
        case 4:
            change_digits(random, &input);
            break;
        default:
            copy_part(random, seeds, &input);
            break;
        }
    }
    return input.size;
}
