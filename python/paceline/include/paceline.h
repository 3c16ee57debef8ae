/* Congestion controllers for Paceline in C, or in anything that can export a C function.
 *
 * A shared library exports `paceline_controllers`, which returns its controllers, each a struct of callbacks. Build it
 * with
 *
 *     cc -O2 -shared -fPIC -I"$(paceline include)" mine.c -o mine.so
 *
 * and name it in a scenario: cc = "library:./mine.so", or "library:./mine.so:NAME" if it has several controllers.
 *
 * The caller owns all memory: a controller's state is `state_size` bytes, zeroed; the library must keep no state
 * elsewhere. A controller is called by one thread at a time; two controllers may be called concurrently. Times are in
 * nanoseconds since the run's beginning, windows in segments of `paceline_path.segment` bytes, rates in bytes a second.
 *
 * Any change of a struct changes PACELINE_ABI, and a library with another one is refused with an error that names it.
 * Apache-2.0 OR MIT, as Paceline is.
 */
#ifndef PACELINE_H
#define PACELINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PACELINE_ABI 1

/* Unknown times. */
#define PACELINE_NONE UINT64_MAX

/* The protocol machine that a controller controls. */
enum { PACELINE_TCP = 1, PACELINE_TFRC = 2, PACELINE_RTP = 3 };

/* The default loss recovery (PACELINE_TCP); the flow or its profile may override it. */
enum {
    PACELINE_SACK = 0,    /* RFC 6675 */
    PACELINE_NEWRENO = 1, /* RFC 6582 */
    PACELINE_RENO = 2,    /* RFC 2581 */
    PACELINE_TAHOE = 3,
    PACELINE_RACK = 4 /* RFC 8985; required by PACELINE_DELIVERIES and PACELINE_PACING */
};

/* What a TCP controller needs besides events (`needs`, a sum of these). */
enum {
    PACELINE_DELIVERIES = 1, /* on_delivery and on_lost; it also sets the window during recovery */
    PACELINE_PACING = 2,     /* segments leave at paceline_window.pacing */
    PACELINE_RATE_LEADS = 4, /* pacing sets the rate; the window only limits what is in flight, well above the BDP */
    PACELINE_L4S = 8         /* segments are ECT(1) (RFC 9331) */
};

/* How a TCP receiver reports CE marks (`ecn`). */
enum { PACELINE_ECN_OFF = 0, PACELINE_ECN_CLASSIC = 1, PACELINE_ECN_DCTCP = 2, PACELINE_ECN_ACCURATE = 3 };

/* The profile (paceline_given.profile). */
enum { PACELINE_RFC = 0, PACELINE_NS2 = 1, PACELINE_NS2_LINUX = 2, PACELINE_LINUX = 3 };

/* The state of the path; all machines fill every field. */
typedef struct paceline_path {
    uint64_t now;
    uint64_t srtt;           /* RFC 6298; 0 before the first sample */
    uint64_t rttvar;         /* TCP only */
    uint64_t min_rtt;        /* minimum round-trip time so far */
    uint32_t in_flight;      /* segments sent and not yet acknowledged */
    uint32_t acked;          /* the next segment that the receiver expects */
    uint32_t next;           /* the next segment to send in order */
    uint32_t receive_window; /* in segments; UINT32_MAX if there is none */
    uint32_t segment;        /* payload of a segment in bytes */
    uint32_t reserved;
} paceline_path;

/* Events of TCP. */
enum {
    PACELINE_ESTABLISHED = 1, /* window: the initial window */
    PACELINE_ACKED = 2,       /* segments, in_flight before the ACK, rtt; outside recovery */
    PACELINE_REPAIRED = 3,    /* segments, rtt; during recovery, under profiles ns2-linux and linux */
    PACELINE_DUPLICATE = 4,
    PACELINE_LOST = 5,      /* at most once a window; count: segments to inflate by; flag: lost before */
    PACELINE_DEFLATE = 6,   /* segments: shrink by this number (RFC 6582, 3.2) */
    PACELINE_RECOVERED = 7, /* window: a larger one would send a burst */
    PACELINE_UNDO = 8,      /* window, threshold: before the last reduction, which was spurious */
    PACELINE_TIMEOUT = 9,   /* flag: cut the threshold too */
    PACELINE_ECN_ECHO = 10, /* at most once a window */
    PACELINE_RESUMED = 11,  /* rtt: time since the last segment; flag: application-limited; profile linux */
    PACELINE_IDLE = 12      /* window: the restart window (RFC 5681, 4.1) */
};

typedef struct paceline_tcp_event {
    uint32_t kind;
    uint32_t segments;
    uint32_t in_flight;
    uint32_t count;
    uint32_t flag;
    uint32_t reserved;
    uint64_t rtt; /* PACELINE_NONE without a sample */
    double window;
    double threshold;
} paceline_tcp_event;

/* A delivery-rate sample (draft-ietf-ccwg-bbr), with PACELINE_DELIVERIES. Volumes in bytes. */
typedef struct paceline_delivery {
    uint64_t total;
    uint64_t newly_acked;
    uint64_t newly_lost;
    uint64_t prior_delivered;
    uint64_t delivered;
    uint64_t interval; /* 0 if it is too short to be reliable */
    uint64_t rtt;      /* PACELINE_NONE without a sample */
    uint64_t tx_in_flight;
    uint64_t lost;
    uint64_t prior_in_flight;
    uint64_t in_flight;
    uint32_t newly_marked;
    uint32_t app_limited;
    uint32_t window_limited;
    uint32_t reserved;
} paceline_delivery;

/* A segment that was declared lost, with PACELINE_DELIVERIES. */
typedef struct paceline_lost {
    uint64_t size;
    uint64_t total;
    uint64_t tx_in_flight;
    uint64_t lost;
    uint32_t seq;
    uint32_t app_limited;
} paceline_lost;

/* The decisions of a TCP controller; each call gets them as the previous call left them. */
typedef struct paceline_window {
    double window;       /* segments: finite, at least 1 */
    double threshold;    /* slow-start threshold, infinite at first */
    double pacing;       /* bytes of payload a second, or infinite */
    double base_rtt;     /* round-trip time without a queue in seconds; NaN: unknown */
    uint32_t quantum;    /* bytes that may leave in one burst while pacing */
    uint32_t holds_back; /* it limits its rate, so delivery-rate samples do not measure the path */
    const char *failed;  /* an error message, which ends the run; else NULL */
} paceline_window;

/* Events of TFRC. */
enum { PACELINE_TFRC_STARTED = 1, PACELINE_TFRC_REPORT = 2, PACELINE_TFRC_NO_FEEDBACK = 3 };

typedef struct paceline_tfrc_event {
    uint32_t kind;
    uint32_t data_limited; /* the application had too little to send */
    uint64_t rtt;
    uint64_t timeout;       /* t_RTO of the throughput equation */
    double receive_rate;    /* X_recv */
    double loss_event_rate; /* p */
} paceline_tfrc_event;

/* The decisions of a TFRC controller. */
typedef struct paceline_rate {
    double rate;   /* bytes of payload a second: finite, above 0 */
    double pacing; /* the rate at which packets leave now */
    uint32_t in_slow_start;
    uint32_t reserved;
    const char *failed;
} paceline_rate;

/* Events of RTP. */
enum {
    PACELINE_RTP_STARTED = 1,  /* size: of a full packet on the wire; time: between reports */
    PACELINE_RTP_REPORT = 2,   /* loss, rtt, since, bottleneck, data_limited */
    PACELINE_RTP_ARRIVALS = 3, /* packets, rtt, since, backlog, waiting, in_flight, data_limited */
    PACELINE_RTP_SILENCE = 4,
    PACELINE_RTP_TIMER = 5,
    PACELINE_RTP_FRAME = 6, /* size: of the frame that was written */
    PACELINE_RTP_SENT = 7   /* packets: the one that was sent; in_flight */
};

enum { PACELINE_ARRIVED = 1, PACELINE_GONE = 2, PACELINE_UNKNOWN = 3 };

typedef struct paceline_packet {
    uint64_t sent;
    uint64_t arrived; /* on the receiver's clock; PACELINE_NONE if it did not arrive, or if that is not reported */
    uint32_t number;
    uint32_t size;    /* on the wire */
    uint32_t payload; /* the application's bytes in it */
    uint32_t fate;
    uint32_t marked;
    uint32_t ends_frame;
} paceline_packet;

typedef struct paceline_rtp_event {
    uint32_t kind;
    uint32_t data_limited;
    uint64_t rtt;   /* PACELINE_NONE without one */
    uint64_t since; /* since the previous feedback */
    uint64_t time;
    uint64_t waiting; /* how long the oldest frame has waited at the sender */
    uint64_t size;
    uint64_t backlog; /* bytes in the sender's queue */
    uint64_t in_flight;
    double loss;
    double bottleneck; /* bytes a second; 0: unknown */
    const paceline_packet *packets;
    uint64_t packet_count;
} paceline_rtp_event;

/* The decisions of an RTP controller. Rates in bytes on the wire a second. */
typedef struct paceline_media {
    double rate;
    double target;   /* the encoder's target rate; 0: none given */
    double filling;  /* the rate up to which padding packets are sent */
    uint64_t window; /* bytes that may be in flight; PACELINE_NONE: no window */
    const char *failed;
} paceline_media;

/* A number that scenarios may set (`params`), from `least` to `most`. */
typedef struct paceline_parameter {
    const char *name;
    const char *unit; /* "1" if it has none */
    const char *doc;
    double initial;
    double least;
    double most;
    uint32_t whole; /* 1: an integer */
    uint32_t reserved;
} paceline_parameter;

/* A recorded and plotted value. Units: "1", "packets", "bytes", "s", "bps". */
typedef struct paceline_gauge {
    const char *name;
    const char *unit;
} paceline_gauge;

/* The arguments of a new controller. */
typedef struct paceline_given {
    const double *values; /* of the parameters, in their order */
    const char *flow;
    uint64_t random; /* initial state for paceline_random, from the run's seed and the flow's name */
    uint32_t profile;
    uint32_t reserved;
} paceline_given;

/* A controller. Unused members may be NULL or 0. */
typedef struct paceline_controller {
    uint32_t abi; /* PACELINE_ABI */
    uint32_t machine;
    const char *name;
    const char *summary;
    const char *source;
    uint32_t recovery;
    uint32_t needs;
    uint32_t ecn;
    uint32_t parameter_count;
    const paceline_parameter *parameters;
    const paceline_gauge *gauges;
    uint32_t gauge_count;
    uint32_t state_size; /* bytes; a struct's sizeof */

    /* RTP: the kind of feedback, and its interval. */
    uint32_t wants_reports;     /* 1: receiver reports instead of feedback on single packets */
    uint32_t transport_wide;    /* 1: transport-wide feedback instead of RFC 8888's */
    uint64_t feedback_interval; /* 0: 100 ms */
    uint64_t timer;             /* interval of PACELINE_RTP_TIMER; 0: none */
    uint32_t silence;           /* intervals without feedback before PACELINE_RTP_SILENCE; 0: never */
    uint32_t tells_sending;     /* 1: send PACELINE_RTP_FRAME and PACELINE_RTP_SENT */

    /* Initialises the zeroed state. */
    void (*begin)(void *state, const paceline_given *given);
    /* TCP. */
    void (*on_tcp)(void *state, const paceline_tcp_event *event, const paceline_path *path, paceline_window *decided);
    void (*on_delivery)(void *state, const paceline_delivery *sample, const paceline_path *path, paceline_window *decided);
    void (*on_lost)(void *state, const paceline_lost *lost, const paceline_path *path, paceline_window *decided);
    void (*on_marks)(void *state, uint32_t acked, uint32_t marked, const paceline_path *path, paceline_window *decided);
    /* TFRC and RTP. */
    void (*on_tfrc)(void *state, const paceline_tfrc_event *event, const paceline_path *path, paceline_rate *decided);
    void (*on_rtp)(void *state, const paceline_rtp_event *event, const paceline_path *path, paceline_media *decided);
    /* Writes the gauges' values in their order; NaN: not yet known. */
    void (*read_gauges)(const void *state, double *values);
    /* Called before the state is freed: release what the library has allocated itself. */
    void (*end)(void *state);
} paceline_controller;

/* The function that a library exports. The controllers must live as long as the library. `abi` is the caller's
 * PACELINE_ABI. */
const paceline_controller *paceline_controllers(uint32_t abi, uint32_t *count);

/* A random number, uniform in [0, 1): initialise `*state` with paceline_given.random (Steele, Lea and Flood,
 * SplitMix64, 2014). */
static inline double paceline_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

#ifdef __cplusplus
}
#endif

#endif
