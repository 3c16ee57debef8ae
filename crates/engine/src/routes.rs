//! Compiled routes: the links that a packet crosses and the element it reaches, indexed by its cursor.

use paceline_packet::Packet;

/// One step of a route, before it is compiled.
#[derive(Clone, Copy, Debug)]
pub struct RouteStep {
    place: Place,
    /// For a link its id in the scenario; for the host at the end, the endpoint there.
    id: u32,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Folded(u32),
    Element(u32),
}

impl RouteStep {
    /// Through a folded link.
    #[must_use]
    pub const fn folded(index: u32, id: u32) -> RouteStep {
        RouteStep { place: Place::Folded(index), id }
    }

    /// Into an element.
    #[must_use]
    pub const fn element(index: u32, id: u32) -> RouteStep {
        RouteStep { place: Place::Element(index), id }
    }
}

/// Through a folded link, or none, and then into an element, or on to the next step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Number of the folded link; [`Step::NONE`], which is beyond all numbers, for none.
    pub(crate) hop: u32,
    /// Number of the element; [`Step::NONE`] if there is another folded link first.
    pub(crate) element: u32,
    /// The id of the link that delivers to the element.
    delivered_by: u32,
    /// The id of the element.
    id: u32,
}

impl Step {
    const NONE: u32 = u32::MAX;
}

/// All compiled paths of a run, one behind the other. A path is an origin (so that what a host sends has a "delivering
/// link" too), its links, and the element at its end.
#[derive(Default, Debug)]
pub struct Routes {
    pub(crate) steps: Vec<Step>,
}

impl Routes {
    /// Adds a path; returns the cursor with which packets start on it. `origin` takes part in the order of packets
    /// that arrive at one instant, as the ids of links do.
    pub fn add(&mut self, origin: u32, path: &[RouteStep]) -> u32 {
        let start = self.steps.len() as u32;
        let (mut hop, mut delivered_by) = (Step::NONE, origin);
        for way in path {
            match way.place {
                Place::Folded(next) => {
                    if hop != Step::NONE {
                        self.steps.push(Step { hop, element: Step::NONE, delivered_by, id: delivered_by });
                    }
                    hop = next;
                }
                Place::Element(element) => {
                    self.steps.push(Step { hop, element, delivered_by, id: way.id });
                    hop = Step::NONE;
                }
            }
            delivered_by = way.id;
        }
        start
    }

    /// The id of the link that brought this packet to where it is.
    #[inline]
    #[must_use]
    pub fn delivered_by(&self, packet: &Packet) -> u32 {
        self.steps[packet.cursor as usize - 1].delivered_by
    }

    /// The endpoint that this packet, now at its last host, is for.
    #[inline]
    #[must_use]
    pub fn endpoint(&self, packet: &Packet) -> u32 {
        self.steps[packet.cursor as usize - 1].id
    }

    /// The element that this packet, on its way from where it is, comes to next without a folded link between.
    #[must_use]
    pub fn next_element(&self, packet: &Packet) -> Option<u32> {
        let step = self.steps.get(packet.cursor as usize)?;
        (step.hop == Step::NONE && step.element != Step::NONE).then_some(step.element)
    }
}
