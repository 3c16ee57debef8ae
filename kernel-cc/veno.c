// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP Veno: Reno that cuts less when the queue is short, taking the loss for a random one.
 *
 * C. P. Fu, S. C. Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks", IEEE JSAC 21(2), 2003.
 * N = window - window * baseRTT / RTT is the number of segments in queues (section II). With N < beta the window grows as
 * Reno's and a loss cuts it to 4/5; otherwise it grows half as fast and a loss halves it (section III).
 *
 * As Linux has it, and other than in the paper: RTT is the least sample since the last acknowledgement that could grow the
 * window; the base is the connection's least, also after a loss; timeouts cut by N too; until three samples have come, and
 * while a loss is repaired, Reno rules.
 */
#include "cc.h"

enum {
	BETA = 3, /* fewer segments than this in queues: a loss is taken for a random one */
};

struct veno {
	u32 base_us;  /* least round trip of the connection */
	u32 least_us; /* least since the window could last grow */
	u32 samples;
	u32 queued;	/* N in half segments, as last reckoned */
	u32 measuring;	/* not while a loss is repaired */
};

INLINE void measure(struct veno *v)
{
	v->measuring = 1;
	v->least_us = NONE;
}

SECTION("struct_ops/pl_veno_init")
void pl_veno_init(u64 *args)
{
	struct veno *v = STATE(SOCK(args), struct veno);

	v->base_us = NONE;
	measure(v);
}

SECTION("struct_ops/pl_veno_state")
void pl_veno_state(u64 *args)
{
	struct veno *v = STATE(SOCK(args), struct veno);

	if ((u8)args[1] == TCP_CA_Open)
		measure(v);
	else
		v->measuring = 0;
}

/* After a pause the path may be another. */
SECTION("struct_ops/pl_veno_event")
void pl_veno_event(u64 *args)
{
	struct veno *v = STATE(SOCK(args), struct veno);
	u32 event = (u32)args[1];

	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART) {
		v->base_us = NONE;
		measure(v);
	}
}

SECTION("struct_ops/pl_veno_acked")
void pl_veno_acked(u64 *args)
{
	struct veno *v = STATE(SOCK(args), struct veno);
	const struct ack_sample *sample = (const struct ack_sample *)args[1];
	s32 rtt = sample->rtt_us;
	u32 us;

	if (rtt < 0)
		return;
	us = (u32)rtt + 1; /* never zero: it is divided by */
	v->base_us = least(v->base_us, us);
	v->least_us = least(v->least_us, us);
	if (v->samples < NONE)
		v->samples++;
}

SECTION("struct_ops/pl_veno_avoid")
void pl_veno_avoid(u64 *args)
{
	struct sock *sk = SOCK(args);
	struct tcp_sock *tp = TCP(sk);
	struct veno *v = STATE(sk, struct veno);
	u32 ack = (u32)args[1], acked = (u32)args[2];
	u32 cwnd;

	if (!v->measuring) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!window_is_used(tp))
		return;
	if (v->samples <= 2) {
		tcp_reno_cong_avoid(sk, ack, acked);
		v->least_us = NONE;
		return;
	}
	/* without a sample the last N stands */
	if (v->least_us != NONE && v->least_us) {
		u64 halves = 2ULL * tp->snd_cwnd;

		v->queued = (u32)(halves - halves * v->base_us / v->least_us);
	}
	v->least_us = NONE;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cwnd = tp->snd_cwnd;
	tcp_cong_avoid_ai(tp, v->queued < 2 * BETA ? cwnd : 2 * cwnd, acked);
}

SECTION("struct_ops/pl_veno_ssthresh")
u32 pl_veno_ssthresh(u64 *args)
{
	struct sock *sk = SOCK(args);
	const struct veno *v = STATE(sk, struct veno);
	u32 cwnd = TCP(sk)->snd_cwnd;

	return most(v->queued < 2 * BETA ? (u32)(4ULL * cwnd / 5) : cwnd / 2, 2);
}

SECTION("struct_ops/pl_veno_undo")
u32 pl_veno_undo(u64 *args)
{
	return tcp_reno_undo_cwnd(SOCK(args));
}

SECTION(".struct_ops")
struct tcp_congestion_ops pl_veno = {
	.init = (void *)pl_veno_init,
	.ssthresh = (void *)pl_veno_ssthresh,
	.cong_avoid = (void *)pl_veno_avoid,
	.set_state = (void *)pl_veno_state,
	.cwnd_event = (void *)pl_veno_event,
	.pkts_acked = (void *)pl_veno_acked,
	.undo_cwnd = (void *)pl_veno_undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "pl_veno",
};

SECTION("license") char LICENSE[] = "Dual MIT/GPL";
