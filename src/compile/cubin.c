/* SPDX-License-Identifier: Apache-2.0 */
/* A cubin reader that trusts no byte of its input. */
#include "compile/cubin.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error_build.h"
#include "base/strbuf.h"

/* Attributes of the .nv.info sections. */
enum attribute {
    ATTR_MAX_THREADS = 0x05,
    ATTR_FRAME_SIZE = 0x11,
    ATTR_MIN_STACK_SIZE = 0x12,
    ATTR_PARAM_BYTES = 0x19,
    ATTR_REGISTERS = 0x2f,
    ATTR_NUM_BARRIERS = 0x4c,
};

/* How an attribute carries its value. */
enum attribute_format { FORMAT_NONE = 1, FORMAT_BYTE = 2, FORMAT_HALF = 3, FORMAT_SIZED = 4 };

#define INSTRUCTION_BYTES 16
#define SYMBOL_IS_ENTRY 0x10     /* bit of st_other: a __global__ function */
#define RESERVED_SMEM_BYTES 1024 /* sm_90 keeps these for the system; .nv.shared counts them in */
#define FLAGS_BARRIERS_SHIFT 20  /* sh_flags of code before CUDA 13: number of barriers */
#define FLAGS_BARRIERS_MASK 0x7fu

/* What an error shows of the entries: damaged input may claim millions of them. */
#define MAX_NAMES_SHOWN 8
#define MAX_NAME_SHOWN 256

struct cubin {
    const unsigned char *data;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Shdr symbols, symbol_names, section_names;
};

/* -- Bounds ---------------------------------------------------------------------------------------------- */

static bool in_range(const struct cubin *cubin, uint64_t offset, uint64_t length)
{
    return offset <= cubin->size && length <= cubin->size - offset;
}

static uint32_t read_u16(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t read_u32(const unsigned char *at)
{
    return read_u16(at) | read_u16(at + 2) << 16;
}

static int clamp_int(uint64_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

/* Header of section `index`, which must be below e_shnum; open_cubin has checked the table. */
static Elf64_Shdr section_at(const struct cubin *cubin, size_t index)
{
    Elf64_Shdr section;
    memcpy(&section, cubin->data + cubin->header.e_shoff + index * sizeof(section), sizeof(section));
    return section;
}

/* A zero-terminated string of a string section, or NULL. */
static const char *string_at(const struct cubin *cubin, const Elf64_Shdr *strings, uint64_t offset)
{
    if (offset >= strings->sh_size)
        return NULL;
    const char *const text = (const char *)cubin->data + strings->sh_offset + offset;
    return memchr(text, '\0', strings->sh_size - offset) ? text : NULL;
}

/* Finds the section called prefix + suffix. */
static bool find_section(const struct cubin *cubin, const char *prefix, const char *suffix,
                         Elf64_Shdr *section)
{
    const size_t prefix_length = strlen(prefix);
    for (size_t i = 0; i < cubin->header.e_shnum; i++) {
        const Elf64_Shdr candidate = section_at(cubin, i);
        const char *const name = string_at(cubin, &cubin->section_names, candidate.sh_name);
        if (name && strncmp(name, prefix, prefix_length) == 0 && strcmp(name + prefix_length, suffix) == 0) {
            *section = candidate;
            return true;
        }
    }
    return false;
}

/* -- Opening --------------------------------------------------------------------------------------------- */

#define FAIL_CUBIN(...) GJ_FAIL(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, __VA_ARGS__)

static enum gj_status read_header(struct cubin *cubin, gj_error **error)
{
    Elf64_Ehdr *const header = &cubin->header;
    if (cubin->size < sizeof(*header))
        FAIL_CUBIN("the cubin has %zu bytes, an ELF header has %zu", cubin->size, sizeof(*header));
    memcpy(header, cubin->data, sizeof(*header));
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB)
        FAIL_CUBIN("the cubin is not a 64-bit little-endian ELF");
    if (header->e_machine != EM_CUDA)
        FAIL_CUBIN("the ELF is for machine %d, a cubin is for %d", header->e_machine, EM_CUDA);
    if (header->e_shentsize != sizeof(Elf64_Shdr) ||
        !in_range(cubin, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
        FAIL_CUBIN("the cubin is truncated: %d section headers at %llu, %zu bytes in all", header->e_shnum,
                   (unsigned long long)header->e_shoff, cubin->size);
    if (header->e_phnum > 0 && (header->e_phentsize != sizeof(Elf64_Phdr) ||
                                !in_range(cubin, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr))))
        FAIL_CUBIN("the cubin is truncated: %d program headers at %llu, %zu bytes in all", header->e_phnum,
                   (unsigned long long)header->e_phoff, cubin->size);
    return GJ_OK;
}

/* Checks the header, both tables and the place of every section, so that later code may follow offsets. */
static enum gj_status open_cubin(struct cubin *cubin, gj_error **error)
{
    GJ_TRY(read_header(cubin, error));
    bool has_symbols = false;
    for (size_t i = 0; i < cubin->header.e_shnum; i++) {
        const Elf64_Shdr section = section_at(cubin, i);
        if (section.sh_type != SHT_NOBITS && !in_range(cubin, section.sh_offset, section.sh_size))
            FAIL_CUBIN("the cubin is truncated: section %zu has %llu bytes at %llu, %zu bytes in all", i,
                       (unsigned long long)section.sh_size, (unsigned long long)section.sh_offset,
                       cubin->size);
        if (section.sh_type == SHT_SYMTAB) {
            cubin->symbols = section;
            has_symbols = true;
        }
    }
    if (!has_symbols || cubin->symbols.sh_link >= cubin->header.e_shnum ||
        cubin->header.e_shstrndx >= cubin->header.e_shnum)
        FAIL_CUBIN("the cubin has no symbol table, or no names for it");
    cubin->symbol_names = section_at(cubin, cubin->symbols.sh_link);
    cubin->section_names = section_at(cubin, cubin->header.e_shstrndx);
    if (cubin->symbol_names.sh_type != SHT_STRTAB || cubin->section_names.sh_type != SHT_STRTAB)
        FAIL_CUBIN("the cubin's names are not in string sections");
    return GJ_OK;
}

/* CUDA 13 (ABI version 8) moved the architecture from the lowest byte of the flags to the next one. */
static int read_sm(const Elf64_Ehdr *header)
{
    return header->e_ident[EI_ABIVERSION] >= 8 ? (int)(header->e_flags >> 8 & 0xff)
                                               : (int)(header->e_flags & 0xff);
}

/* -- The entry ------------------------------------------------------------------------------------------- */

struct entry {
    Elf64_Sym symbol;
    uint32_t index; /* in the symbol table; 0: none */
};

/* Finds the entry and counts all of them. A cubin without it is an error that names those there are. */
static enum gj_status find_entry(const struct cubin *cubin, const char *name, struct entry *entry,
                                 int *num_entries, gj_error **error)
{
    struct gj_strbuf names = {0};
    const size_t num_symbols = cubin->symbols.sh_size / sizeof(Elf64_Sym);
    for (size_t i = 1; i < num_symbols; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, cubin->data + cubin->symbols.sh_offset + i * sizeof(symbol), sizeof(symbol));
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & SYMBOL_IS_ENTRY))
            continue;
        const char *const text = string_at(cubin, &cubin->symbol_names, symbol.st_name);
        if (!text)
            continue;
        ++*num_entries;
        if (*num_entries <= MAX_NAMES_SHOWN)
            gj_strbuf_printf(&names, "%s%.*s", names.length ? ", " : "", MAX_NAME_SHOWN, text);
        if (strcmp(text, name) == 0)
            *entry = (struct entry){symbol, (uint32_t)i};
    }
    enum gj_status status = GJ_OK;
    if (entry->index == 0)
        status = gj_error_make(error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "",
                               "the cubin has no entry %s; it has: %s", name,
                               names.length && !names.failed ? names.text : "none");
    gj_strbuf_free(&names);
    return status;
}

/* -- Attributes ------------------------------------------------------------------------------------------ */

/* What the attributes said; -1: nothing yet. */
struct attributes {
    int registers, frame_bytes, min_stack_bytes, max_threads, param_bytes, num_barriers;
};

static int product_of_3(const unsigned char *at)
{
    uint64_t product = 1;
    for (int i = 0; i < 3; i++) {
        product *= read_u32(at + 4 * i);
        if (product > INT_MAX)
            return INT_MAX;
    }
    return (int)product;
}

/* One attribute. Those of .nv.info carry (symbol, value); those of .nv.info.ENTRY are about the entry. */
static void take_attribute(struct attributes *found, uint32_t symbol, unsigned format, unsigned attribute,
                           const unsigned char *value, size_t length)
{
    const bool of_symbol = format == FORMAT_SIZED && length >= 8 && read_u32(value) == symbol;
    switch (attribute) {
    case ATTR_REGISTERS:
        if (of_symbol)
            found->registers = clamp_int(read_u32(value + 4));
        break;
    case ATTR_FRAME_SIZE:
        if (of_symbol)
            found->frame_bytes = clamp_int(read_u32(value + 4));
        break;
    case ATTR_MIN_STACK_SIZE:
        if (of_symbol)
            found->min_stack_bytes = clamp_int(read_u32(value + 4));
        break;
    case ATTR_MAX_THREADS:
        if (format == FORMAT_SIZED && length >= 12)
            found->max_threads = product_of_3(value);
        break;
    case ATTR_PARAM_BYTES:
        if (format == FORMAT_HALF)
            found->param_bytes = (int)read_u16(value);
        break;
    case ATTR_NUM_BARRIERS:
        if (format == FORMAT_BYTE)
            found->num_barriers = value[0];
        break;
    default: /* dozens more, none of interest here */
        break;
    }
}

/* Returns false when the section is not a sequence of attributes. */
static bool read_attributes(const struct cubin *cubin, const Elf64_Shdr *section, uint32_t symbol,
                            struct attributes *found)
{
    if (section->sh_type == SHT_NOBITS)
        return false;
    const unsigned char *const data = cubin->data + section->sh_offset;
    size_t left = section->sh_size;
    for (const unsigned char *at = data; left >= 4; at = data + (section->sh_size - left)) {
        const unsigned format = at[0];
        if (format < FORMAT_NONE || format > FORMAT_SIZED)
            return false;
        const size_t length = format == FORMAT_SIZED ? read_u16(at + 2) : 0;
        if (length > left - 4)
            return false;
        take_attribute(found, symbol, format, at[1], format == FORMAT_SIZED ? at + 4 : at + 2, length);
        left -= 4 + length;
    }
    return left == 0;
}

/* -- Code ------------------------------------------------------------------------------------------------ */

enum opcode {
    OPCODE_STSM = 0x044,
    OPCODE_LDL = 0x183,
    OPCODE_STL = 0x187,
    OPCODE_UTMALDG = 0x1b4,
    OPCODE_UTMASTG = 0x1b5,
    OPCODE_WARPGROUP = 0x1c5,
    OPCODE_USETMAXREG = 0x1c8,
    OPCODE_HGMMA = 0x1f0,
    OPCODE_QGMMA = 0x1f3,
};

static void count_instruction(struct gj_cubin_census *census, unsigned opcode)
{
    census->instructions++;
    census->stmatrix += opcode == OPCODE_STSM;
    census->local_load += opcode == OPCODE_LDL;
    census->local_store += opcode == OPCODE_STL;
    census->tma_load += opcode == OPCODE_UTMALDG;
    census->tma_store += opcode == OPCODE_UTMASTG;
    census->warpgroup += opcode == OPCODE_WARPGROUP;
    census->set_max_register += opcode == OPCODE_USETMAXREG;
    census->mma += opcode == OPCODE_HGMMA || opcode == OPCODE_QGMMA;
}

static enum gj_status read_code(const struct cubin *cubin, const char *name, const Elf64_Sym *symbol,
                                Elf64_Shdr *code, struct gj_cubin_census *census, gj_error **error)
{
    if (symbol->st_shndx >= cubin->header.e_shnum)
        FAIL_CUBIN("the cubin's entry %s is in section %d of %d", name, symbol->st_shndx,
                   cubin->header.e_shnum);
    *code = section_at(cubin, symbol->st_shndx);
    if (code->sh_type != SHT_PROGBITS || symbol->st_value > code->sh_size ||
        symbol->st_size > code->sh_size - symbol->st_value || symbol->st_size == 0 ||
        symbol->st_size % INSTRUCTION_BYTES != 0)
        FAIL_CUBIN("the code of the cubin's entry %s (%llu bytes at %llu) is not in its section (%llu bytes)",
                   name, (unsigned long long)symbol->st_size, (unsigned long long)symbol->st_value,
                   (unsigned long long)code->sh_size);
    const unsigned char *const start = cubin->data + code->sh_offset + symbol->st_value;
    for (uint64_t at = 0; at < symbol->st_size; at += INSTRUCTION_BYTES)
        count_instruction(census, read_u16(start + at) & 0x1ff);
    return GJ_OK;
}

/* -- All of it ------------------------------------------------------------------------------------------- */

enum gj_status gj_cubin_read(const void *image, size_t bytes, const char *entry_name,
                             struct gj_cubin_facts *facts, gj_error **error)
{
    struct cubin cubin = {.data = image, .size = bytes};
    GJ_TRY(open_cubin(&cubin, error));

    struct gj_cubin_facts read = {.sm = read_sm(&cubin.header)};
    struct entry entry = {.index = 0};
    GJ_TRY(find_entry(&cubin, entry_name, &entry, &read.num_entries, error));
    Elf64_Shdr code = {0}, section;
    GJ_TRY(read_code(&cubin, entry_name, &entry.symbol, &code, &read.census, error));

    struct attributes found = {-1, -1, -1, -1, -1, -1};
    if (!find_section(&cubin, ".nv.info", "", &section) ||
        !read_attributes(&cubin, &section, entry.index, &found) ||
        !find_section(&cubin, ".nv.info.", entry_name, &section) ||
        !read_attributes(&cubin, &section, entry.index, &found))
        FAIL_CUBIN("the cubin's attributes of %s are missing or malformed", entry_name);
    /* Zero must never stand for "not said": it would let a kernel that spills pass. */
    if (found.registers < 0 || found.frame_bytes < 0)
        FAIL_CUBIN("the cubin tells no registers or no frame size for %s", entry_name);

    read.registers = found.registers;
    read.frame_bytes = found.min_stack_bytes > found.frame_bytes ? found.min_stack_bytes : found.frame_bytes;
    read.max_threads = found.max_threads > 0 ? found.max_threads : 0;
    read.param_bytes = found.param_bytes > 0 ? found.param_bytes : 0;
    read.num_barriers = found.num_barriers >= 0
                            ? found.num_barriers
                            : (int)(code.sh_flags >> FLAGS_BARRIERS_SHIFT & FLAGS_BARRIERS_MASK);
    if (find_section(&cubin, ".nv.shared.", entry_name, &section) && section.sh_size > RESERVED_SMEM_BYTES)
        read.static_smem_bytes = clamp_int(section.sh_size - RESERVED_SMEM_BYTES);
    *facts = read;
    return GJ_OK;
}
