//! Builds a flow's application, player and client from the scenario.

use paceline_apps::cbr::Cbr;
use paceline_apps::client::Client;
use paceline_apps::encoder::{Burst, Encoder, EncoderModel, FrameNeeds, JitterLaw};
use paceline_apps::ftp::{Ftp, Limited};
use paceline_apps::game::GameModel;
use paceline_apps::onoff::{OnOff, OnOffModel};
use paceline_apps::playout::PlayoutModel;
use paceline_apps::relay::Relay;
use paceline_apps::server::{Content, Server};
use paceline_apps::stream::{Playout, StreamModel, StreamSender};
use paceline_apps::timed::Timed;
use paceline_apps::video::VideoModel;
use paceline_apps::voice::{Spurts, VoiceModel};
use paceline_apps::web::{Pareto, Web, WebArrivals, WebModel};
use paceline_apps::{Application, Period, Rounding};
use paceline_flow::Transport;
use paceline_flow::quic::Carriage;
use paceline_random::{Sequence, Stream};
use paceline_scenario::Flow;
use paceline_scenario::flow::{
    App, JitterLaw as JitterKey, Pause, Playout as PlayoutKey, RTP_HEADER, WebArrivals as ArrivalsKey,
};
use paceline_scenario::model::Voice;
use paceline_scenario::request::RequestTable;
use paceline_scenario::values::ClientBuffer;
use paceline_units::{Rate, Size, Span, Time};

/// With retransmissions, a key frame is requested after this wait (libwebrtc's `VideoReceiveStream2`).
const MAX_WAIT_FOR_FRAME: Span = Span::from_secs(3);

/// Fork of an encoder's random stream from which its phase is drawn.
const PHASE: u64 = 2;

/// E-model inputs of a voice flow; `None` if the packet size or the interval is overridden, since no codec has it.
pub(super) fn voice(app: &App) -> Option<Voice> {
    let App::Voice { codec, packet: None, interval: None, .. } = app else { return None };
    let (codec, interval) = (codec.impairment()?, app.ticks()?.1);
    Some(Voice { codec, interval })
}

/// What voice writes per packet: an RTP sender adds the header itself.
pub(super) fn voice_packet(packet: Size, transport: &Transport) -> Size {
    match transport {
        Transport::Rtp { config, .. } if config.header > 0 => {
            Size::from_bytes(packet.bytes().saturating_sub(RTP_HEADER))
        }
        _ => packet,
    }
}

/// The receiver's jitter buffer, if it has one.
pub(super) fn playout(flow: &Flow) -> Option<PlayoutModel> {
    let App::Encoder { jitter_buffer: Some(buffer), .. } = &flow.app else { return None };
    let nack = flow.rtp.as_ref().is_some_and(|rtp| rtp.nack);
    let usual = if nack { MAX_WAIT_FOR_FRAME } else { Span::ZERO };
    let patience = buffer.key_request_after.unwrap_or(usual);
    Some(PlayoutModel { min_margin: buffer.min_margin, max_margin: buffer.max_margin, patience })
}

/// What a player requests, and its client.
fn pieces(model: &StreamModel, request: &RequestTable, period: Period) -> (Content, Client) {
    let content = match request.piece {
        None => Content::Whole(*model),
        Some(piece) => {
            let bytes = model.media_rate * piece;
            Content::Pieces { total: model.total(), piece: Size::from_bytes(bytes.bytes().max(1)) }
        }
    };
    let seconds = |size: Size| Span::from_secs_f64(size.bits() as f64 / model.media_rate.bps());
    let room = model.client_buffer.map_or(Span::MAX, seconds);
    (content, Client::of_pieces(content, request.piece.unwrap_or(model.length), room, period))
}

/// An application, the stream that its player plays, and the client that requests it.
type Made = (Application, Option<StreamModel>, Option<Client>);

/// What the application of a flow instance is made with.
#[derive(Clone, Copy)]
struct Context<'a> {
    flow: &'a Flow,
    /// The application whose data the flow carries.
    origin: &'a App,
    transport: &'a Transport,
    /// Payload of a full packet.
    segment: Size,
    /// Header bytes of a packet.
    header: Size,
    /// How sizes of transfers are rounded.
    rounding: Rounding,
    period: Period,
    stream: Stream,
}

/// The application, the stream that its player plays, and the client that requests it; `origin` is the application
/// whose data the flow carries.
pub(super) fn app((flow, origin): (&Flow, &App), transport: &Transport, period: Period, stream: Stream) -> Made {
    // QUIC's own headers are part of its full packet.
    let payload = if let Transport::Quic { config, .. } = transport { config.payload() } else { transport.segment() };
    let segment = Size::from_bytes(u64::from(payload));
    let header = Size::from_bytes(u64::from(transport.header() + (transport.segment() - payload)));
    let rounding = if transport.whole_segments() { Rounding::WholeSegments(segment) } else { Rounding::Exact };
    let with = Context { flow, origin, transport, segment, header, rounding, period, stream };
    let alone = |app| (app, None, None);
    match &flow.app {
        App::Game { jitter, .. } => alone(game(with, *jitter)),
        App::Voice { .. } => alone(voice_call(with)),
        App::Video { .. } => alone(video(with)),
        App::VideoTrace { .. } => alone(video_trace(with)),
        App::Ftp { .. } => alone(ftp(with)),
        App::Web { .. } => web(with),
        App::Encoder { .. } => alone(encoder(with)),
        App::Relay { .. } => alone(relay(with)),
        App::Cbr { rate } => alone(cbr(with, *rate)),
        App::Pareto { .. } => alone(pareto(with)),
        App::Stream { .. } => film(with),
    }
}

/// A game's packets at a tick.
fn game(Context { flow, period, stream, .. }: Context<'_>, jitter: Span) -> Application {
    let (packet, interval) = flow.app.ticks().unwrap_or_default();
    Application::Timed(Timed::game(GameModel { packet, interval, jitter }, stream, period))
}

/// A codec's packets.
fn voice_call(Context { flow, transport, period, stream, .. }: Context<'_>) -> Application {
    let App::Voice { spurts, talk, pause, packets, .. } = &flow.app else { unreachable!("`app` has matched its kind") };
    let (packet, interval) = flow.app.ticks().unwrap_or_default();
    let packet = voice_packet(packet, transport);
    let spurts = spurts.then_some(Spurts { talk: *talk, pause: *pause });
    Application::Timed(Timed::voice(VoiceModel { packet, interval, spurts }, stream, period).ending_after(*packets))
}

/// Video of drawn frame sizes.
fn video(Context { flow, period, stream, .. }: Context<'_>) -> Application {
    let App::Video { rate, frame_rate, group, key_size, variation, correlation, frames } = &flow.app else {
        unreachable!("`app` has matched its kind")
    };
    let model = VideoModel {
        rate: *rate,
        frame_rate: *frame_rate,
        group: *group,
        key_size: *key_size,
        variation: *variation,
        correlation: *correlation,
    };
    Application::Timed(Timed::video(model, stream, period).ending_after(*frames))
}

/// Video of recorded frame sizes.
fn video_trace(Context { flow, period, stream, .. }: Context<'_>) -> Application {
    let frames = flow.frames.clone().expect("a checked scenario has read its traces");
    Application::Timed(Timed::frames(frames, stream, period))
}

/// A greedy transfer.
fn ftp(Context { flow, segment, rounding, period, .. }: Context<'_>) -> Application {
    let App::Ftp { size, limited } = &flow.app else { unreachable!("`app` has matched its kind") };
    let limited = limited.iter().map(|part| Limited {
        period: Period { start: Time::ZERO + part.from, stop: Time::ZERO + part.to },
        rate: part.rate,
    });
    let ftp = Ftp::new(size.map(|size| rounding.up(size)), period).limited(limited.collect(), segment);
    Application::Ftp(ftp)
}

/// Web-like transfers, with their client if they are requested.
fn web(Context { flow, rounding, period, stream, .. }: Context<'_>) -> Made {
    let App::Web { gap, gap_shape, arrivals, mean_size, median_size, shape, max_size, request } = &flow.app else {
        unreachable!("`app` has matched its kind")
    };
    let law = match (mean_size, median_size) {
        (_, Some(median)) => Pareto::with_median(*median, *shape),
        (Some(mean), None) => Pareto::with_mean(*mean, *shape),
        (None, None) => None,
    };
    let law = law.expect("a checked scenario has a size, and for a mean a shape above 1");
    let model = WebModel {
        gap: *gap,
        gap_shape: *gap_shape,
        arrivals: match arrivals {
            ArrivalsKey::Think => WebArrivals::Think,
            ArrivalsKey::ThinkPersistent => WebArrivals::ThinkPersistent,
            ArrivalsKey::Open => WebArrivals::Open,
        },
        sizes: max_size.map_or(law, |max| law.cut_at(max)),
        rounding,
    };
    if request.is_none() {
        return (Application::Web(Web::new(model, stream, period)), None, None);
    }
    let server = Server::new(Content::pages(model, stream), period);
    let client = Client::of_pages(model, stream, period);
    (Application::Server(server), None, Some(client))
}

/// An encoder, whose rate follows its controller's.
fn encoder(Context { flow, transport, segment, header, period, stream, .. }: Context<'_>) -> Application {
    let App::Encoder {
        frame_rate,
        min_rate,
        max_rate,
        jitter,
        jitter_law,
        interval_jitter,
        phase,
        burst,
        traces: _, // already read into the flow's ladder
        skip_frames: _,
        reaction,
        key_interval,
        key_size,
        pauses,
        jitter_buffer,
        max_queue,
    } = &flow.app
    else {
        unreachable!("`app` has matched its kind")
    };
    // Carriage with a stream per group needs to know where groups begin.
    let groups =
        matches!(transport, Transport::Quic { config, .. } if config.track.carriage == Carriage::StreamPerGroup);
    let model = EncoderModel {
        frame_rate: *frame_rate,
        min_rate: *min_rate,
        max_rate: *max_rate,
        jitter: jitter.0,
        jitter_law: match jitter_law {
            JitterKey::Laplace => JitterLaw::Laplace,
            JitterKey::Uniform => JitterLaw::Uniform,
        },
        interval_jitter: interval_jitter.0,
        burst: burst.map(|burst| Burst { size: burst.size, frames: burst.frames, change: burst.change.0 }),
        reaction: *reaction,
        key_interval: *key_interval,
        key_size: *key_size,
        segment,
        header,
        needs: if jitter_buffer.is_some() || groups { FrameNeeds::Before } else { FrameNeeds::Nothing },
        max_queue: max_queue.unwrap_or(Span::MAX),
    };
    let pause = |p: &Pause| Period { start: Time::ZERO + p.from, stop: Time::ZERO + p.to };
    // Cameras do not run in step; in step, their frames would meet at a queue every time.
    let drawn = || Span::from_secs_f64(Sequence::new(stream.fork(PHASE)).unit() / frame_rate);
    let phase = phase.unwrap_or_else(drawn);
    let period = Period { start: period.start + phase, ..period };
    let mut encoder = Encoder::new(model, stream, period).pausing(pauses.iter().map(pause).collect());
    if let Some(ladder) = &flow.ladder {
        encoder = encoder.playing(ladder.clone());
    }
    Application::Encoder(encoder)
}

/// What a relay sends on.
fn relay(Context { origin, period, .. }: Context<'_>) -> Application {
    Application::Relay(Relay::new(matches!(origin, App::Encoder { .. }), period))
}

/// Whole segments at equal distances.
fn cbr(Context { segment, period, .. }: Context<'_>, rate: Rate) -> Application {
    Application::Cbr(Cbr::new(rate, segment, period))
}

/// Bursts and silences of Pareto lengths.
fn pareto(Context { flow, segment, period, stream, .. }: Context<'_>) -> Application {
    let App::Pareto { rate, burst, idle, shape } = &flow.app else { unreachable!("`app` has matched its kind") };
    let model = OnOffModel { rate: *rate, burst: *burst, idle: *idle, shape: *shape, packet: segment };
    Application::OnOff(OnOff::new(model, stream, period))
}

/// A medium that a player plays, with its client if it is requested.
fn film(Context { flow, segment, rounding, period, .. }: Context<'_>) -> Made {
    let App::Stream { media_rate, length, xfactor, heartbeat, buffer, playout, client_buffer, request } = &flow.app
    else {
        unreachable!("`app` has matched its kind")
    };
    let model = StreamModel {
        media_rate: *media_rate,
        length: *length,
        xfactor: *xfactor,
        heartbeat: *heartbeat,
        buffer: *buffer,
        playout: match playout {
            PlayoutKey::Clock => Playout::Clock,
            PlayoutKey::Stall => Playout::Stall,
        },
        client_buffer: match client_buffer {
            ClientBuffer::Unlimited => None,
            ClientBuffer::Limited(size) => Some(*size),
        },
        segment,
        rounding,
    };
    let Some(request) = request else {
        let sender = StreamSender::new(&model, period);
        return (Application::Stream(sender), Some(model), None);
    };
    let (content, client) = pieces(&model, request, period);
    (Application::Server(Server::new(content, period)), Some(model), Some(client))
}
