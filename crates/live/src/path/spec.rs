//! Defines a path: the links of a scenario file, of a named profile or of two mahimahi traces, from the near end to the
//! far end and back.
//!
//! A path file is a scenario file whose `duration` and flows may be missing. Access links and flows are ignored: the
//! ends' own links and the traffic are real. If the traffic is the file's flows ([`PathSpec::of_run`]), their own round
//! trips apply too.

use super::connections::Connections;
use super::flow_delays::OwnDelays;
use crate::scenario;
use paceline_scenario::loss::Loss;
use paceline_scenario::model::LinkDirection;
use paceline_scenario::{Document, Link, Scenario, ScenarioError};
use paceline_sim::expand::{ExpandError, expand};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A path profile built into this crate.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

impl Profile {
    /// A one-sentence summary: the file's `description`.
    #[must_use]
    pub fn summary(&self) -> String {
        let document = Document::parse(self.text, self.name);
        let spec =
            document.and_then(|document| PathSpec::of(document, &Folder::Profiles).map_err(PathError::into_scenario));
        spec.map(|spec| spec.description).unwrap_or_default()
    }
}

/// The named profiles.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    &[
        Profile { name: "wide-area", text: include_str!("../../profiles/wide-area.toml") },
        Profile { name: "umts", text: include_str!("../../profiles/umts.toml") },
        Profile { name: "lte", text: include_str!("../../profiles/lte.toml") },
        Profile { name: "wifi", text: include_str!("../../profiles/wifi.toml") },
    ]
}

/// The trace files that profiles use.
const TRACES: [(&str, &str); 2] = [
    ("lte-down.trace", include_str!("../../profiles/lte-down.trace")),
    ("lte-up.trace", include_str!("../../profiles/lte-up.trace")),
];

/// Location of a path's trace files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Folder {
    /// In a folder.
    Files(PathBuf),
    /// Built into this crate.
    Profiles,
}

impl Folder {
    fn read(&self, file: &str) -> Result<String, String> {
        match self {
            Folder::Files(folder) => scenario::trace(&folder.join(file)),
            Folder::Profiles => {
                let trace = TRACES.iter().find(|(name, _)| *name == file);
                // Not one of ours: a user's file, set on a profile's document.
                trace.map_or_else(|| scenario::trace(Path::new(file)), |(_, text)| Ok((*text).to_owned()))
            }
        }
    }
}

/// Why a path could not be created.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The file is missing or invalid.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// A link has keys that need named flows.
    #[error("{0}")]
    Named(String),
    /// The file's flows do not fit its links.
    #[error("{0}")]
    Expand(#[from] ExpandError),
    /// Neither a profile nor a file.
    #[error("`{0}` is neither a profile ({names}) nor a file, nor `trace:UP,DOWN`", names = names())]
    Unknown(String),
}

impl PathError {
    fn into_scenario(self) -> ScenarioError {
        match self {
            PathError::Scenario(error) => error,
            other => ScenarioError::of_file("path", &other.to_string()),
        }
    }
}

fn names() -> String {
    profiles().iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ")
}

/// Why no real path can have a scenario's links: they distinguish flows. Frames carry no flow's name, and other traffic
/// on the path has none.
#[must_use]
pub fn needs_names(scenario: &Scenario) -> Option<String> {
    let ways = |link: &Link| [("", link.forward.clone()), (".backward", link.backward.clone())];
    scenario.links().iter().flat_map(|link| ways(link).map(|(way, of)| (&link.name, way, of))).find_map(|(name, way, of)| {
        let (except, only) = of.loss.as_ref().map_or((None, None), Loss::flows);
        let keys = [("loss.except", except.is_some()), ("loss.only", only.is_some()), ("per_flow", of.per_flow)];
        let (key, _) = keys.into_iter().find(|(_, given)| *given)?;
        Some(format!(
            "link.{name}{way}.{key}: a path in real time does not know which flow a packet is of; leave the key out, or simulate"
        ))
    })
}

/// A complete path, with nothing left to look up.
#[derive(Clone, Debug)]
pub struct PathSpec {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Seed of its random draws.
    pub seed: u64,
    /// The links from the near end to the far end, in this order.
    pub there: Vec<LinkDirection>,
    /// The links from the far end to the near end.
    pub back: Vec<LinkDirection>,
    /// Flows' own delays before and after the links.
    pub own: OwnDelays,
    /// Which of its flows share a connection.
    pub connections: Connections,
    /// The ports at the near end of the flows that use it.
    pub ports: Range<u16>,
    /// Warnings about keys with no effect or an unlikely one: a line each, with file, line and key.
    pub warnings: Vec<String>,
}

impl PathSpec {
    /// Opens the path named by `word`: a profile, `trace:UP,DOWN` (mahimahi traces of the near end's sending and
    /// receiving), or a file. A file with a profile's name needs a path with a slash: `./lte`. Keys can be set on the
    /// returned document before it becomes a path with [`PathSpec::of`]; the folder locates its trace files.
    ///
    /// # Errors
    /// If there is no such path, or the file is not TOML.
    pub fn open(word: &str) -> Result<(Document, Folder), PathError> {
        if let Some(profile) = profiles().iter().find(|profile| profile.name == word) {
            return Ok((Document::parse(profile.text, profile.name)?, Folder::Profiles));
        }
        if let Some((up, down)) = word.strip_prefix("trace:").and_then(|files| files.split_once(',')) {
            return Ok((Document::parse(&of_traces(up, down), "trace")?, Folder::Files(PathBuf::new())));
        }
        let path = Path::new(word);
        let is_name = !word.contains(['/', '\\', '.']) || word.starts_with("trace:");
        if is_name && !path.exists() {
            return Err(PathError::Unknown(word.to_owned()));
        }
        Ok((scenario::open(path)?, Folder::Files(path.parent().unwrap_or(Path::new("")).to_owned())))
    }

    /// Creates the path of a document whose trace files are in `folder`.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn of(document: Document, folder: &Folder) -> Result<PathSpec, PathError> {
        PathSpec::of_run(document, folder, None, None)
    }

    /// The same for the run under `seed`, if that differs from the document's. With `ports`, the document's flows use
    /// the path: the first has this port at the near end, each further one the next, in the simulator's order; their
    /// `rtt` keys then apply.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn of_run(
        mut document: Document,
        folder: &Folder,
        seed: Option<u64>,
        ports: Option<u16>,
    ) -> Result<PathSpec, PathError> {
        document.complete_path()?;
        let scenario = Scenario::check(&document, &mut |file| folder.read(file))?;
        if let Some(problem) = needs_names(&scenario) {
            return Err(PathError::Named(format!("{}: {problem}", scenario.name())));
        }
        let seed = seed.unwrap_or(scenario.seed());
        let model = expand(&scenario, seed)?;
        // A dumbbell has one link; the hops of a parking lot are in order, with r0 and left at the near end. Links
        // added by expansion (hosts' access links) come after them.
        let links = &model.links[..2 * scenario.links().len()];
        let way = |direction| links.iter().filter(move |link| link.direction == direction).cloned();
        Ok(PathSpec {
            name: scenario.name().to_owned(),
            description: scenario.description().to_owned(),
            seed,
            there: way("forward").collect(),
            back: way("backward").rev().collect(),
            own: ports.map(|first| OwnDelays::of(&scenario, &model, first)).unwrap_or_default(),
            connections: ports.map(|first| Connections::of(&model, first)).unwrap_or_default(),
            ports: ports.map_or(0..0, |first| first..first.saturating_add(model.flows.len() as u16)),
            warnings: scenario.warnings_of_links(&document),
        })
    }

    /// [`PathSpec::open`] and [`PathSpec::of`].
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn load(word: &str) -> Result<PathSpec, PathError> {
        let (document, folder) = PathSpec::open(word)?;
        PathSpec::of(document, &folder)
    }
}

/// A path of two mahimahi traces, with mahimahi's unlimited queues and without its own delay.
fn of_traces(up: &str, down: &str) -> String {
    let quoted = |file: &str| format!("{:?}", file.trim());
    format!(
        "name = \"trace\"\n[link.bottleneck]\nrate_trace = {{ file = {} }}\nqueue = {{ kind = \"unlimited\" }}\n\
         backward = {{ rate_trace = {{ file = {} }} }}\n",
        quoted(up),
        quoted(down)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Result<PathSpec, PathError> {
        PathSpec::of(Document::parse(text, "path.toml")?, &Folder::Files(PathBuf::new()))
    }

    #[test]
    fn a_chain_goes_there_and_back() {
        let path = spec(
            "topology = \"parking-lot\"\n[link.hop1]\nrate = \"1 Mbit/s\"\n[link.hop2]\nrate = \"2 Mbit/s\"\n\
             backward = { delay = \"5 ms\" }\n",
        )
        .unwrap();
        let names = |way: &[LinkDirection]| way.iter().map(LinkDirection::label).collect::<Vec<_>>();
        assert_eq!(names(&path.there), ["hop1.forward", "hop2.forward"]);
        assert_eq!(names(&path.back), ["hop2.backward", "hop1.backward"]);
        assert_eq!(path.back[0].model.propagation, paceline_units::Span::from_millis(5));
    }

    #[test]
    fn a_scenario_file_is_a_path_without_its_access_links() {
        let path = spec(
            "duration = \"10 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[access]\ndelay = \"9 ms\"\n\
             [flow.a]\ncount = 3\nrtt = \"100 ms\"\n",
        )
        .unwrap();
        assert_eq!((path.there.len(), path.back.len()), (1, 1));
        assert_eq!(path.there[0].label(), "bottleneck.forward");
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        let of = |text| spec(text).unwrap_err().to_string();
        let error = of("[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelai = \"1 ms\"\n");
        assert!(error.starts_with("path.toml:3: link.bottleneck.delai: "), "{error}");
        let error = of("topology = \"graph\"\n[link.a-b]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n");
        assert!(error.starts_with("path.toml:1: topology: a path is a dumbbell"), "{error}");
        assert!(matches!(PathSpec::load("trace:/nowhere/up"), Err(PathError::Unknown(_))));
        let error = PathSpec::load("umtz").unwrap_err().to_string();
        assert_eq!(error, "`umtz` is neither a profile (wide-area, umts, lte, wifi) nor a file, nor `trace:UP,DOWN`");
        assert!(PathSpec::load("./nowhere.toml").unwrap_err().to_string().contains("cannot be read"));
        assert!(PathSpec::load("trace:/nowhere/up,/nowhere/down").unwrap_err().to_string().contains("/nowhere/up"));
    }

    #[test]
    fn links_that_say_what_has_no_effect_are_warned_of() {
        let of = |queue: &str| {
            let text = format!("[link.bottleneck]\nrate = \"1 Mbit/s\"\nqueue = {queue}\n");
            spec(&text).unwrap().warnings
        };
        assert_eq!(of("{ kind = \"pie\", ecn = true }"), [""; 0]);
        let said = of("{ kind = \"pie\", mark_below = 0.2 }");
        assert!(said.len() == 1 && said[0].starts_with("path.toml:3: link.bottleneck.queue.mark_below: "), "{said:?}");
    }

    #[test]
    fn what_needs_the_names_of_flows_is_refused() {
        let of = |more: &str| {
            let text = format!("duration = \"1 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n{more}\n[flow.call]\n");
            spec(&text).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(of("loss = { rate = \"1 %\" }"), Ok(()));
        for (more, key) in [
            ("loss = { rate = \"1 %\", except = [\"call\"] }", "loss.except"),
            ("backward = { loss = { rate = \"1 %\", only = [\"call\"] } }", "backward.loss.only"),
            ("per_flow = true", "per_flow"),
        ] {
            let error = of(more).unwrap_err();
            let expected = format!("path: link.bottleneck.{key}: a path in real time does not know which flow");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn profiles_are_whole() {
        for profile in profiles() {
            let path = PathSpec::load(profile.name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((path.name.as_str(), path.there.len()), (profile.name, path.back.len()));
            assert!(!profile.summary().is_empty());
        }
    }
}
