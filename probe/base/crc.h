/* SPDX-License-Identifier: MIT
 *
 * crc: digests of raw bytes: the CRC-32 of zip files and of md5-mode dumps, and
 * the XOR of xor-mode dumps.
 */
#ifndef PROBE_BASE_CRC_H
#define PROBE_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues zlib's CRC-32 over the next piece of data; the first call gets crc 0. */
uint32_t ms_crc32(uint32_t crc, const void *p, size_t n);
/* XOR of the bytes taken as little-endian 64-bit words, the last one padded with zeros. */
uint64_t ms_xor64(const void *p, size_t n);

#endif
