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
/* CRC of two joined pieces from theirs; n2 is the length of the second. */
uint32_t ms_crc32_join(uint32_t crc1, uint32_t crc2, uint64_t n2);
/* All bytes as little-endian 64-bit words, padded with zeros, XORed. */
uint64_t ms_xor64(const void *p, size_t n);

#endif
