/* Reno's window (RFC 5681) in C: under profile `rfc` it gives the same bits as the built-in `sack`.
 *
 *     cc -O2 -shared -fPIC -I"$(paceline include)" reno_twin.c -o reno_twin.so
 *     cc = "library:./reno_twin.so"
 */
#include <math.h>
#include <paceline.h>

static double lesser(double a, double b) { return a < b ? a : b; }
static double greater(double a, double b) { return a > b ? a : b; }

/* Half of what is in flight: in a long recovery more is unacknowledged than the window ever let in. */
static double half(const paceline_window *own, const paceline_path *path, double least) {
    return greater(lesser(path->in_flight, own->window) * 0.5, least);
}

static void on_tcp(void *state, const paceline_tcp_event *event, const paceline_path *path, paceline_window *own) {
    (void)state;
    switch (event->kind) {
    case PACELINE_ACKED:
        /* a window that is not used says nothing about the path (RFC 7661, 4.3) */
        if (event->in_flight + 1.0 > own->window)
            own->window += own->window < own->threshold ? 1.0 : lesser(event->segments / own->window, 1.0);
        break;
    case PACELINE_ESTABLISHED:
        own->window = greater(event->window, 1.0);
        own->threshold = INFINITY;
        break;
    case PACELINE_LOST:
        own->window = own->threshold = half(own, path, 2.0);
        break;
    case PACELINE_ECN_ECHO: {
        /* a mark may take the window down to one segment (RFC 3168, 6.1.2) */
        double window = half(own, path, 1.0);
        own->threshold = half(own, path, 2.0);
        own->window = window;
        break;
    }
    case PACELINE_DEFLATE:
        own->window = greater(own->window - event->segments, 1.0);
        break;
    case PACELINE_RECOVERED:
        own->window = greater(lesser(own->threshold, event->window), 1.0);
        break;
    case PACELINE_TIMEOUT:
        if (event->flag)
            own->threshold = half(own, path, 2.0);
        own->window = 1.0;
        break;
    case PACELINE_UNDO:
        own->window = greater(own->window, event->window);
        own->threshold = greater(own->threshold, event->threshold);
        break;
    case PACELINE_IDLE:
        own->window = greater(lesser(own->window, event->window), 1.0);
        break;
    }
}

static const paceline_controller CONTROLLERS[] = {{
    .abi = PACELINE_ABI,
    .machine = PACELINE_TCP,
    .name = "reno-twin",
    .summary = "Reno's window with selective acknowledgements",
    .source = "RFC 5681",
    .recovery = PACELINE_SACK,
    .on_tcp = on_tcp,
}};

const paceline_controller *paceline_controllers(uint32_t abi, uint32_t *count) {
    (void)abi;
    *count = 1;
    return CONTROLLERS;
}
