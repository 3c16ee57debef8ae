//! Arbitrary packets past an access point, in both directions: none is lengthened, no window is raised, and only a
//! window and its checksum may change.

use paceline_live::gateway::table::Control;
use paceline_live::gateway::window_clamp::WindowClamp;

/// The target `gateway`.
pub fn gateway(bytes: &[u8]) {
    let Some((&window, mut rest)) = bytes.split_first() else { return };
    let mut keeper = WindowClamp::new();
    keeper.control = Control { deadline: u64::MAX, window: u32::from(window) * 100, interval: 1, ..Control::default() };
    let mut now = 0;
    while let [head, len, more @ ..] = rest {
        let (frame, next) = more.split_at(usize::from(*len).min(more.len()));
        rest = next;
        now += u64::from(*head) << 12;
        if head & 1 == 0 {
            keeper.forward(now, frame);
            continue;
        }
        let mut after = frame.to_vec();
        if !keeper.back(now, &mut after) {
            assert_eq!(frame, after);
            continue;
        }
        let changed: Vec<usize> = (0..frame.len()).filter(|&at| frame[at] != after[at]).collect();
        // Window and checksum are adjacent.
        assert!(changed[changed.len() - 1] - changed[0] < 4, "{changed:?}");
        assert_eq!(frame.len(), after.len());
    }
    assert!(keeper.flows().count() <= 128);
}
