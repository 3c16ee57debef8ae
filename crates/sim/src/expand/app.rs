//! Builds a flow's application, player and client from the scenario.

use crate::e_model::Voice;
use crate::scenario::Flow;
use crate::scenario::flow::{
    App, JitterLaw as JitterKey, Pause, Playout as PlayoutKey, RTP_HEADER, WebArrivals as ArrivalsKey,
};
use crate::scenario::request::RequestTable;
use crate::scenario::values::ClientBuffer;
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
use paceline_apps::{Period, Rounding};
use paceline_flow::Transport;
use paceline_flow::quic::Carriage;
use paceline_random::{Sequence, Stream};
use paceline_units::{Size, Span, Time};

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

/// The application, the stream that its player plays, and the client that requests it; `origin` is the application
/// whose data the flow carries.
pub(super) fn app(
    (flow, origin): (&Flow, &App),
    transport: &Transport,
    period: Period,
    stream: Stream,
) -> (paceline_apps::Application, Option<StreamModel>, Option<Client>) {
    // QUIC's own headers are part of its full packet.
    let payload = if let Transport::Quic { config, .. } = transport { config.payload() } else { transport.segment() };
    let segment = Size::from_bytes(u64::from(payload));
    let header = transport.header() + (transport.segment() - payload);
    let rounding = if transport.whole_segments() { Rounding::WholeSegments(segment) } else { Rounding::Exact };
    let alone = |app| (app, None, None);
    let timed = |source: Timed| alone(paceline_apps::Application::Timed(source));
    match &flow.app {
        App::Game { jitter, .. } => {
            let (packet, interval) = flow.app.ticks().unwrap_or_default();
            timed(Timed::game(GameModel { packet, interval, jitter: *jitter }, stream, period))
        }
        App::Voice { spurts, talk, pause, packets, .. } => {
            let (packet, interval) = flow.app.ticks().unwrap_or_default();
            let packet = voice_packet(packet, transport);
            let spurts = spurts.then_some(Spurts { talk: *talk, pause: *pause });
            timed(Timed::voice(VoiceModel { packet, interval, spurts }, stream, period).ending_after(*packets))
        }
        App::Video { rate, frame_rate, group, key_size, variation, correlation, frames } => {
            let model = VideoModel {
                rate: *rate,
                frame_rate: *frame_rate,
                group: *group,
                key_size: *key_size,
                variation: *variation,
                correlation: *correlation,
            };
            timed(Timed::video(model, stream, period).ending_after(*frames))
        }
        App::VideoTrace { .. } => {
            let frames = flow.frames.clone().expect("a checked scenario has read its traces");
            timed(Timed::frames(frames, stream, period))
        }
        App::Ftp { size, limited } => {
            let limited = limited.iter().map(|part| Limited {
                period: Period { start: Time::ZERO + part.from, stop: Time::ZERO + part.to },
                rate: part.rate,
            });
            let ftp = Ftp::new(size.map(|size| rounding.up(size)), period).limited(limited.collect(), segment);
            alone(paceline_apps::Application::Ftp(ftp))
        }
        App::Web { gap, gap_shape, arrivals, mean_size, median_size, shape, max_size, request } => {
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
                return alone(paceline_apps::Application::Web(Web::new(model, stream, period)));
            }
            let server = Server::new(Content::pages(model, stream), period);
            let client = Client::of_pages(model, stream, period);
            (paceline_apps::Application::Server(server), None, Some(client))
        }
        App::Encoder {
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
        } => {
            // Carriage with a stream per group needs to know where groups begin.
            let groups = matches!(transport, Transport::Quic { config, .. } if config.track.carriage == Carriage::StreamPerGroup);
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
                header: Size::from_bytes(u64::from(header)),
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
            alone(paceline_apps::Application::Encoder(encoder))
        }
        App::Relay { .. } => {
            let relay = Relay::new(matches!(origin, App::Encoder { .. }), period);
            alone(paceline_apps::Application::Relay(relay))
        }
        App::Cbr { rate } => alone(paceline_apps::Application::Cbr(Cbr::new(*rate, segment, period))),
        App::Pareto { rate, burst, idle, shape } => {
            let model = OnOffModel { rate: *rate, burst: *burst, idle: *idle, shape: *shape, packet: segment };
            alone(paceline_apps::Application::OnOff(OnOff::new(model, stream, period)))
        }
        App::Stream { media_rate, length, xfactor, heartbeat, buffer, playout, client_buffer, request } => {
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
                return (paceline_apps::Application::Stream(sender), Some(model), None);
            };
            let (content, client) = pieces(&model, request, period);
            (paceline_apps::Application::Server(Server::new(content, period)), Some(model), Some(client))
        }
    }
}
