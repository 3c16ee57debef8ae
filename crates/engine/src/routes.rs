//! Compiled routes: the links that a packet crosses and the element it reaches, indexed by its cursor.

use paceline_packet::Packet;

/// One step of a route, before compilation.
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
    /// A step through a folded link.
    #[must_use]
    pub const fn folded(index: u32, id: u32) -> RouteStep {
        RouteStep { place: Place::Folded(index), id }
    }

    /// A step into an element.
    #[must_use]
    pub const fn element(index: u32, id: u32) -> RouteStep {
        RouteStep { place: Place::Element(index), id }
    }
}

/// A compiled step: through an optional folded link, then into an element or on to the next step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The index of the folded link; [`Step::NONE`], above all indices, for none.
    pub(crate) hop: u32,
    /// The index of the element; [`Step::NONE`] if another folded link follows.
    pub(crate) element: u32,
    /// The id of the link that delivers to the element.
    delivered_by: u32,
    /// The id of the element in the scenario; for the host at the end, the endpoint there.
    id: u32,
}

impl Step {
    const NONE: u32 = u32::MAX;
}

/// All compiled paths of a run, one after the other. A path is an origin (so that a host's packets have a "delivering
/// link" too), its links, and the element at its end.
#[derive(Default, Debug)]
pub struct Routes {
    pub(crate) steps: Vec<Step>,
}

impl Routes {
    /// Adds a path; returns the cursor at which packets start on it. `origin` takes part in the order of simultaneous
    /// arrivals, as link ids do.
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

    /// The id of the link that delivered this packet to where it is.
    #[inline]
    #[must_use]
    pub fn delivered_by(&self, packet: &Packet) -> u32 {
        self.steps[packet.cursor as usize - 1].delivered_by
    }

    /// The destination endpoint of this packet, which is at its last host.
    #[inline]
    #[must_use]
    pub fn endpoint(&self, packet: &Packet) -> u32 {
        self.steps[packet.cursor as usize - 1].id
    }

    /// The element that this packet reaches next, if there is no folded link before it.
    #[must_use]
    pub fn next_element(&self, packet: &Packet) -> Option<u32> {
        let step = self.steps.get(packet.cursor as usize)?;
        (step.hop == Step::NONE && step.element != Step::NONE).then_some(step.element)
    }
}
