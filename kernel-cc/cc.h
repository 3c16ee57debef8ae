/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a congestion control in eBPF sees of Linux, and no more than it needs.
 *
 * The structures have a few of the kernel's members, in any order: `KERNEL` has the loader find each by its name in the
 * running kernel's type information (CO-RE), so one source serves all kernels. Another member is a line here, with the
 * name and type that `bpftool btf dump file /sys/kernel/btf/vmlinux format c` shows. The verifier lets programs write
 * snd_cwnd, snd_cwnd_cnt, snd_ssthresh and icsk_ca_priv alone.
 */
#ifndef PACELINE_CC_H
#define PACELINE_CC_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))
#define FROM_KERNEL extern __attribute__((section(".ksyms")))
#define INLINE static inline __attribute__((always_inline))

struct sock {
	int sk_err;
} KERNEL;

struct inet_connection_sock {
	u64 icsk_ca_priv[13]; /* 104 bytes for the congestion control's own state, zero when a connection begins */
} KERNEL;

struct tcp_sock {
	u32 snd_nxt;	       /* sequence number of the next new byte */
	u32 snd_cwnd;	       /* segments */
	u32 snd_cwnd_cnt;      /* acknowledged segments, counted towards the next one of window */
	u32 snd_cwnd_clamp;    /* the most */
	u32 snd_ssthresh;      /* segments */
	u32 max_packets_out;   /* the most that was out in the last window */
	u8 is_cwnd_limited : 1; /* the window kept data from leaving */
} KERNEL;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* negative: none */
	u32 in_flight;
} KERNEL;

enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART };
enum tcp_ca_state { TCP_CA_Open };

#define TCP_CONG_NON_RESTRICTED 1 /* for every user, not only those with CAP_NET_ADMIN */

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 flags;
	char name[16];
};

/* The kernel's own Reno, for what a program leaves as it is (Linux 5.13). */
FROM_KERNEL u32 tcp_reno_ssthresh(struct sock *sk);
FROM_KERNEL u32 tcp_reno_undo_cwnd(struct sock *sk);
FROM_KERNEL void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
/* Slow start up to ssthresh; gives what is left of `acked`. */
FROM_KERNEL u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
/* One segment of window for every `w` acknowledged. */
FROM_KERNEL void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);

/* A program gets its arguments as an array of 64-bit words, the socket first. */
#define SOCK(args) ((struct sock *)(args)[0])
#define TCP(sk) ((struct tcp_sock *)(sk))
#define STATE(sk, type) ((type *)((struct inet_connection_sock *)(sk))->icsk_ca_priv)

#define NONE 0xffffffffU

INLINE u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

INLINE u32 most(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Whether sequence number a lies beyond b; they wrap around. */
INLINE int beyond(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

INLINE int in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* The place of a bit field has to be asked for: its word, then how far to shift it up and down (clang's documentation
 * of __builtin_preserve_field_info). Which sizes of word are read is settled when the program is loaded. */
INLINE u64 window_was_full(const struct tcp_sock *tp)
{
	const void *word = (const void *)tp + __builtin_preserve_field_info(tp->is_cwnd_limited, 0);
	u64 bits = 0;

	__asm__("" : "+r"(word)); /* one address, whatever the size */
	switch (__builtin_preserve_field_info(tp->is_cwnd_limited, 1)) {
	case 1:
		bits = *(const u8 *)word;
		break;
	case 2:
		bits = *(const unsigned short *)word;
		break;
	case 4:
		bits = *(const u32 *)word;
		break;
	case 8:
		bits = *(const u64 *)word;
		break;
	}
	bits <<= __builtin_preserve_field_info(tp->is_cwnd_limited, 4);
	return bits >> __builtin_preserve_field_info(tp->is_cwnd_limited, 5);
}

/* A window that is not used says nothing of the path (RFC 7661); slow start may be at twice what is used. */
INLINE int window_is_used(const struct tcp_sock *tp)
{
	if (window_was_full(tp))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
