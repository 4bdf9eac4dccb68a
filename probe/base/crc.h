/* SPDX-License-Identifier: MIT
 *
 * crc: digests of raw bytes: the CRC-32 of zip files and of md5-mode dumps, and
 * the XOR of xor-mode dumps.
 */
#ifndef PROBE_BASE_CRC_H
#define PROBE_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* zlib's CRC-32; start with 0 and feed pieces in order. */
uint32_t ms_crc32(uint32_t crc, const void *p, size_t n);
/* All bytes as little-endian 64-bit words, padded with zeros, XORed. */
uint64_t ms_xor64(const void *p, size_t n);

#endif
