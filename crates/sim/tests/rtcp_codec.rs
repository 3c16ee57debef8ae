//! What the simulator moves and the bytes on a wire carry the same content: every RTP and RTCP packet of a run goes
//! through the codec and back, and is as long on the links as its bytes with the headers of IPv4 and UDP.

use paceline_packet::rtcp::App;
use paceline_packet::wire::{rtcp, rtp};
use paceline_packet::{Extra, UDP_IPV4};
use paceline_scenario::{Document, Scenario};
use paceline_sim::{Capture, Captured, RunOptions, expand, run_captured};
use std::ops::ControlFlow;

/// What has been seen, each kind once at the least when the run is over.
#[derive(Default, Debug)]
struct Seen {
    data: u32,
    sender_reports: u32,
    report_blocks: u32,
    probes: u32,
    bottlenecks: u32,
    losses: u32,
    byes: u32,
    arrivals: u32,
    numbered: u32,
    transport: u32,
    alone: u32,
}

impl Capture for Seen {
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()> {
        let mut bytes = Vec::new();
        match &captured.extra {
            Some(Extra::Rtp(data)) => {
                rtp::encode(data, &mut bytes).expect("in range");
                assert_eq!(rtp::decode(&bytes), Ok((*data, &[][..])));
                self.data += 1;
                self.numbered += u32::from(data.transport.is_some());
                let most = if data.transport.is_some() { 1452 } else { 1460 };
                assert!(usize::from(captured.packet.size) <= bytes.len() + UDP_IPV4 + most);
            }
            Some(Extra::Rtcp(report)) => {
                rtcp::encode(report, &mut bytes).unwrap_or_else(|error| panic!("{error}: {report:?}"));
                assert_eq!(rtcp::decode(&bytes).as_ref(), Ok(&**report));
                assert_eq!(usize::from(captured.packet.size), bytes.len() + UDP_IPV4, "{report:?}");
                self.sender_reports += u32::from(report.sender.is_some());
                self.report_blocks += report.reports.len() as u32;
                self.byes += u32::from(report.bye.is_some());
                self.arrivals += u32::from(report.arrivals.is_some());
                self.transport += report.transport.len() as u32;
                self.alone += u32::from(report.reduced);
                for app in &report.apps {
                    match app {
                        App::Probe(_) => self.probes += 1,
                        App::Bottleneck(_) => self.bottlenecks += 1,
                        App::Loss(_) => self.losses += 1,
                        App::Other(other) => panic!("whose is this? {other:?}"),
                    }
                }
            }
            other => assert!(matches!(other, None | Some(Extra::Tcp(_))), "{other:?}"),
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn every_simulated_packet_goes_through_the_codec_and_back() {
    let text = "duration = \"120 s\"\n[link.bottleneck]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n\
                queue = { kind = \"droptail\", limit = \"20 packets\" }\nloss = { kind = \"uniform\", rate = \"1 %\" }\n\
                [flow.media]\ncount = 3\ncc = \"lda-plus\"\nstart = { uniform = [\"0 s\", \"2 s\"] }\nstop = \"100 s\"\n\
                rtp = { report_interval = \"1 s\", loss_field = \"32 bits\" }\n[flow.bulk]\ncc = \"sack\"\n";
    let seen = seen(text);
    let Seen { data, sender_reports, report_blocks, probes, bottlenecks, losses, byes, .. } = seen;
    assert!(data > 5_000, "{seen:?}");
    for number in [sender_reports, report_blocks, probes, bottlenecks, losses] {
        assert!(number > 100, "{seen:?}");
    }
    assert!(byes >= 3 && seen.numbered + seen.transport + seen.alone + seen.arrivals == 0, "{seen:?}");
}

fn seen(text: &str) -> Seen {
    let document = Document::parse(text, "rtp.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut seen = Seen::default();
    run_captured(&expand(&scenario, 1).unwrap(), &RunOptions::default(), &mut seen).unwrap();
    seen
}

/// Feedback of both kinds, alone and with reports, over a path that loses, copies and reorders.
#[test]
fn so_does_feedback_on_arrivals() {
    let path = "duration = \"60 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
                queue = { kind = \"droptail\", limit = \"20 packets\" }\nloss = { kind = \"uniform\", rate = \"1 %\" }\n\
                duplicate = { rate = \"2 %\" }\nreorder = { rate = \"2 %\", extra = \"30 ms\" }\n";
    let flow = |name: &str, rtp: &str| {
        format!("[flow.{name}]\ncc = \"nada\"\nstop = \"50 s\"\nrtp = {{ {rtp} }}\napp = {{ kind = \"encoder\" }}\n")
    };
    let text = [
        path.to_owned(),
        flow("whole", "feedback = \"twcc\""),
        flow("alone", "feedback = \"twcc\", reduced_size = true, feedback_packets = 16, feedback_frames = true"),
        flow("rfc8888", "reduced_size = true, feedback_share = \"5 %\""),
    ]
    .concat();
    let seen = seen(&text);
    for number in [seen.arrivals, seen.numbered, seen.transport, seen.alone, seen.data - seen.numbered] {
        assert!(number > 300, "{seen:?}");
    }
    assert!(seen.byes >= 3 && seen.alone < seen.arrivals + seen.transport, "{seen:?}");
}
