/* What lets a congestion control of kernel-cc be called here, outside of a kernel, with numbers that a test chooses. */

/* A bit field's place is asked for in eBPF alone: `is_cwnd_limited` is the lowest bit of the byte after six words. */
#define __builtin_preserve_field_info(field, kind) ((kind) == 0 ? 24 : (kind) == 1 ? 1 : 63)
#include "cc.h"

/* The parts of a socket side by side; in the kernel each has its place by CO-RE. */
#undef TCP
#define TCP(sk) ((struct tcp_sock *)((char *)(sk) + 256))

/* How often the kernel's Reno was asked, and for how many acknowledged segments the last window grew by one. */
u32 asked_reno, asked_w;

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return TCP(sk)->snd_cwnd / 2;
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return TCP(sk)->snd_cwnd + 1000;
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	asked_reno++;
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd, grown = acked < room ? acked : room;

	tp->snd_cwnd += grown;
	return acked - grown;
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	asked_w = w;
	tp->snd_cwnd_cnt += acked;
}
