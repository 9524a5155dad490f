/* SPDX-License-Identifier: MIT
 *
 * Numbers in the byte order of networks, and back. The compiler computes constants.
 */
#ifndef PUREBPF_ENDIAN_H
#define PUREBPF_ENDIAN_H

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define __pb_big(bits, number) ((__u##bits)__builtin_bswap##bits((__u##bits)(number)))
#define __pb_little(bits, number) ((__u##bits)(number))
#else
#define __pb_big(bits, number) ((__u##bits)(number))
#define __pb_little(bits, number) ((__u##bits)__builtin_bswap##bits((__u##bits)(number)))
#endif

#define bpf_htons(number) __pb_big(16, number)
#define bpf_ntohs(number) __pb_big(16, number)
#define bpf_htonl(number) __pb_big(32, number)
#define bpf_ntohl(number) __pb_big(32, number)
#define bpf_cpu_to_be64(number) __pb_big(64, number)
#define bpf_be64_to_cpu(number) __pb_big(64, number)

#define bpf_cpu_to_be16(number) __pb_big(16, number)
#define bpf_be16_to_cpu(number) __pb_big(16, number)
#define bpf_cpu_to_be32(number) __pb_big(32, number)
#define bpf_be32_to_cpu(number) __pb_big(32, number)
#define bpf_cpu_to_le16(number) __pb_little(16, number)
#define bpf_le16_to_cpu(number) __pb_little(16, number)
#define bpf_cpu_to_le32(number) __pb_little(32, number)
#define bpf_le32_to_cpu(number) __pb_little(32, number)
#define bpf_cpu_to_le64(number) __pb_little(64, number)
#define bpf_le64_to_cpu(number) __pb_little(64, number)

#endif
