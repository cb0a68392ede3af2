/* SPDX-License-Identifier: Apache-2.0 */
/* GJ_API marks what the shared library exports; everything else is hidden. */
#ifndef GEMMJIT_EXPORT_H
#define GEMMJIT_EXPORT_H

#if defined(__GNUC__)
#define GJ_API __attribute__((visibility("default")))
#else
#define GJ_API
#endif

#endif
