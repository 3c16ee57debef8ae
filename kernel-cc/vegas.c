// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP Vegas: as many segments in the queue as asked for, no more.
 *
 * L. Brakmo, L. Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC 13(8), 1995.
 * Once a round trip the segments in queues are reckoned as (expected - actual) * baseRTT, with expected = window / baseRTT
 * and actual = window / RTT: that is window * (RTT - baseRTT) / baseRTT when multiplied by RTT, as here.
 *
 * As Linux has always run it, and other than in the paper:
 * - RTT is the least of the round trip's samples: delayed acknowledgements lengthen the others. With two samples or
 *   fewer, which may all have been delayed, Reno takes the round trip's decision.
 * - Slow start grows in every round trip, not in every other one, and leaves the window at what the path held.
 * - Losses are found, repaired and answered as Reno does; the paper's fine-grained timeouts are not there.
 * - The base is measured anew after a pause.
 * - alpha and beta are 2 and 4.
 */
#include "cc.h"

enum {
	ALPHA = 2, /* fewer segments than this in queues: one more */
	BETA = 4,  /* more than this: one less */
	GAMMA = 1, /* more than this in slow start: it ends */
};

struct vegas {
	u32 base_us;  /* least round trip of the connection */
	u32 least_us; /* least of this round trip's samples */
	u32 samples;
	u32 end;	/* this round trip ends when more than this is acknowledged */
	u32 measuring;	/* not while a loss is repaired */
};

INLINE void begin_round(struct sock *sk, struct vegas *v)
{
	v->end = TCP(sk)->snd_nxt;
	v->samples = 0;
	v->least_us = NONE;
}

INLINE void begin(struct sock *sk, struct vegas *v)
{
	v->base_us = NONE;
	v->measuring = 1;
	begin_round(sk, v);
}

SECTION("struct_ops/pl_vegas_init")
void pl_vegas_init(u64 *args)
{
	struct sock *sk = SOCK(args);
	struct vegas *v = STATE(sk, struct vegas);

	begin(sk, v);
}

SECTION("struct_ops/pl_vegas_state")
void pl_vegas_state(u64 *args)
{
	struct sock *sk = SOCK(args);
	struct vegas *v = STATE(sk, struct vegas);

	v->measuring = (u8)args[1] == TCP_CA_Open;
	if (v->measuring)
		begin_round(sk, v);
}

/* After a pause no round trip is under way, and the path may be another. */
SECTION("struct_ops/pl_vegas_event")
void pl_vegas_event(u64 *args)
{
	struct sock *sk = SOCK(args);
	struct vegas *v = STATE(sk, struct vegas);
	u32 event = (u32)args[1];

	if (event == CA_EVENT_TX_START || event == CA_EVENT_CWND_RESTART)
		begin(sk, v);
}

SECTION("struct_ops/pl_vegas_acked")
void pl_vegas_acked(u64 *args)
{
	struct vegas *v = STATE(SOCK(args), struct vegas);
	const struct ack_sample *sample = (const struct ack_sample *)args[1];
	s32 rtt = sample->rtt_us;
	u32 us;

	if (rtt < 0)
		return;
	us = (u32)rtt + 1; /* never zero: it is divided by */
	v->base_us = least(v->base_us, us);
	v->least_us = least(v->least_us, us);
	v->samples++;
}

/* The decision of a round trip that had samples enough. */
INLINE void decide(struct tcp_sock *tp, const struct vegas *v, u32 acked)
{
	u64 window = tp->snd_cwnd;
	u32 base = v->base_us, rtt = v->least_us, cwnd = tp->snd_cwnd, ssthresh = tp->snd_ssthresh;
	u32 queued;

	queued = (u32)(window * (rtt - base) / base);
	if (cwnd < ssthresh) {
		if (queued <= GAMMA) {
			tcp_slow_start(tp, acked);
			return;
		}
		/* what the path holds without a queue, and one */
		cwnd = least(cwnd, (u32)(window * base / rtt) + 1);
		ssthresh = least(ssthresh, cwnd);
	} else if (queued > BETA) {
		cwnd--;
		ssthresh = least(ssthresh, cwnd);
	} else if (queued < ALPHA) {
		cwnd++;
	}
	cwnd = most(least(cwnd, tp->snd_cwnd_clamp), 2);
	tp->snd_cwnd = cwnd;
	/* what RFC 2861 has a window leave behind as its threshold */
	tp->snd_ssthresh = most(ssthresh, cwnd / 2 + cwnd / 4);
}

SECTION("struct_ops/pl_vegas_avoid")
void pl_vegas_avoid(u64 *args)
{
	struct sock *sk = SOCK(args);
	struct tcp_sock *tp = TCP(sk);
	struct vegas *v = STATE(sk, struct vegas);
	u32 ack = (u32)args[1], acked = (u32)args[2];

	if (!v->measuring) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!beyond(ack, v->end)) {
		if (in_slow_start(tp))
			tcp_slow_start(tp, acked);
		return;
	}
	if (v->samples <= 2)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		decide(tp, v, acked);
	begin_round(sk, v);
}

SECTION("struct_ops/pl_vegas_ssthresh")
u32 pl_vegas_ssthresh(u64 *args)
{
	return tcp_reno_ssthresh(SOCK(args));
}

SECTION("struct_ops/pl_vegas_undo")
u32 pl_vegas_undo(u64 *args)
{
	return tcp_reno_undo_cwnd(SOCK(args));
}

SECTION(".struct_ops")
struct tcp_congestion_ops pl_vegas = {
	.init = (void *)pl_vegas_init,
	.ssthresh = (void *)pl_vegas_ssthresh,
	.cong_avoid = (void *)pl_vegas_avoid,
	.set_state = (void *)pl_vegas_state,
	.cwnd_event = (void *)pl_vegas_event,
	.pkts_acked = (void *)pl_vegas_acked,
	.undo_cwnd = (void *)pl_vegas_undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "pl_vegas",
};

SECTION("license") char LICENSE[] = "Dual MIT/GPL";
