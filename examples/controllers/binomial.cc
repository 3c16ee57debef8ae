// Binomial controllers in C++: windows that grow by alpha / w^k a round trip and shrink by beta w^l at a loss
// (D. Bansal, H. Balakrishnan, "Binomial congestion control algorithms", INFOCOM 2001). Two in one library: IIAD and SQRT.
//
//     c++ -O2 -shared -fPIC -I"$(paceline include)" binomial.cc -o binomial.so
//     cc = "library:./binomial.so:sqrt"
#include <algorithm>
#include <cmath>
#include <limits>
#include <paceline.h>

namespace {

struct Binomial {
    double k, l, alpha, beta;
    double cut; // the last one, in segments: a gauge
};

void at_loss(Binomial &own, paceline_window &decided) {
    // slow start has doubled the window past what the path holds: its end halves it
    bool doubled = decided.window < decided.threshold;
    own.cut = doubled ? decided.window / 2 : own.beta * std::pow(decided.window, own.l);
    decided.threshold = std::max(decided.window - own.cut, 2.0);
}

template <typename K> void begin(void *state, const paceline_given *given) {
    *static_cast<Binomial *>(state) =
        Binomial{K::k, K::l, given->values[0], given->values[1], std::numeric_limits<double>::quiet_NaN()};
}

void on_tcp(void *state, const paceline_tcp_event *event, const paceline_path *, paceline_window *decided) {
    auto &own = *static_cast<Binomial *>(state);
    switch (event->kind) {
    case PACELINE_ESTABLISHED:
        decided->window = std::max(event->window, 1.0);
        break;
    case PACELINE_ACKED:
        for (uint32_t n = 0; n < event->segments; n++)
            decided->window += decided->window < decided->threshold
                                   ? 1.0
                                   : own.alpha / (decided->window * std::pow(decided->window, own.k));
        break;
    case PACELINE_LOST:
    case PACELINE_ECN_ECHO:
        at_loss(own, *decided);
        decided->window = decided->threshold;
        break;
    case PACELINE_RECOVERED:
        decided->window = std::max(std::min(decided->threshold, event->window), 1.0);
        break;
    case PACELINE_TIMEOUT:
        if (event->flag)
            at_loss(own, *decided);
        decided->window = 1.0;
        break;
    case PACELINE_DEFLATE:
        decided->window = std::max(decided->window - event->segments, 1.0);
        break;
    case PACELINE_UNDO:
        decided->window = std::max(decided->window, event->window);
        decided->threshold = std::max(decided->threshold, event->threshold);
        break;
    case PACELINE_IDLE:
        decided->window = std::max(std::min(decided->window, event->window), 1.0);
        break;
    }
}

void read_gauges(const void *state, double *values) { values[0] = static_cast<const Binomial *>(state)->cut; }

struct Iiad {
    static constexpr double k = 1.0, l = 0.0;
};
struct Sqrt {
    static constexpr double k = 0.5, l = 0.5;
};

const paceline_parameter PARAMETERS[] = {
    {"alpha", "1", "growth in a round trip, times w^-k", 1.0, 0.01, 10.0, 0, 0},
    {"beta", "1", "cut at a loss, times w^l", 0.5, 0.01, 1.0, 0, 0},
};
const paceline_gauge GAUGES[] = {{"last_cut", "packets"}};

template <typename K> paceline_controller controller(const char *name, const char *summary) {
    paceline_controller own{};
    own.abi = PACELINE_ABI;
    own.machine = PACELINE_TCP;
    own.name = name;
    own.summary = summary;
    own.source = "Bansal and Balakrishnan, INFOCOM 2001";
    own.recovery = PACELINE_SACK;
    own.parameters = PARAMETERS;
    own.parameter_count = 2;
    own.gauges = GAUGES;
    own.gauge_count = 1;
    own.state_size = sizeof(Binomial);
    own.begin = begin<K>;
    own.on_tcp = on_tcp;
    own.read_gauges = read_gauges;
    return own;
}

const paceline_controller CONTROLLERS[] = {
    controller<Iiad>("iiad", "Binomial: inverse increase, additive decrease"),
    controller<Sqrt>("sqrt", "Binomial: grows and shrinks with the square root of the window"),
};

} // namespace

const paceline_controller *paceline_controllers(uint32_t, uint32_t *count) {
    *count = 2;
    return CONTROLLERS;
}
