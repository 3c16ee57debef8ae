//! Rules for a scenario's network: links, rates, queues, and the requirements of each topology.

use super::Rules;
use crate::error::{hint, join, listed};
use crate::keys::cell::CellTable;
use crate::keys::file::{File, Topology};
use crate::keys::link::{Aggregation, BackwardTable, LinkTable, RateTrace, TraceEnd, TraceFormat, forward};
use crate::keys::loss::Loss;
use crate::keys::queue::{AdaptiveRed, Queue};
use paceline_units::{Ratio, Span};
use std::collections::BTreeSet;

/// Maximum hops of a parking lot.
const MAX_HOPS: u32 = 1000;

impl Rules {
    /// Rules for links; returns the nodes.
    pub(super) fn network(&mut self, file: &File) -> BTreeSet<String> {
        for (name, link) in &file.link {
            let path = join("link", name);
            self.name(&path, name);
            self.link(&path, link, file.topology);
            self.lossy_flows(file, &join(&path, "loss"), link.loss.as_ref());
            let backward = link.backward.as_ref().and_then(|backward| backward.loss.as_ref());
            self.lossy_flows(file, &join(&join(&path, "backward"), "loss"), backward);
        }
        if let Some(access) = &file.access {
            if let Some(queue) = &access.queue {
                self.queue("access.queue", queue);
            }
            if let Some(receiver) = &access.receiver {
                if let Some(queue) = &receiver.queue {
                    self.queue("access.receiver.queue", queue);
                }
                self.loss("access.receiver.loss", receiver.loss.as_ref());
                self.lossy_flows(file, "access.receiver.loss", receiver.loss.as_ref());
            }
        }
        if let Some(hops) = file.hops
            && file.topology != Topology::ParkingLot
        {
            self.note("hops", format!("`{hops}` has a meaning only with `topology = \"parking-lot\"`"));
        }
        let mut nodes = match file.topology {
            Topology::Dumbbell => self.dumbbell(file),
            Topology::ParkingLot => self.parking_lot(file),
            Topology::Graph => {
                if file.link.is_empty() && file.cell.is_empty() {
                    self.note("link", "a graph needs a link: add a table such as `[link.a-b]`");
                }
                file.link.values().filter_map(|link| link.between.clone()).flatten().collect()
            }
            Topology::Home => self.home(file),
        };
        self.cells(file, &mut nodes);
        nodes
    }

    /// Rules for a home: one cell, and a link for each server.
    fn home(&mut self, file: &File) -> BTreeSet<String> {
        if file.cell.len() != 1 {
            let problem =
                "a home has one cell: add `[cell.home.station.laptop]`, a cell `home` with a station `laptop`";
            let more = "a home has one cell; several need `topology = \"graph\"`";
            self.note("cell", if file.cell.is_empty() { problem } else { more });
        }
        let ends = |(name, link): (&String, &LinkTable)| match &link.between {
            Some(ends) => ends.to_vec(),
            None => vec![name.clone()],
        };
        let nodes: BTreeSet<String> = file.link.iter().flat_map(ends).collect();
        for (name, link) in &file.link {
            let taken = |cell: &CellTable| cell.access_point == *name || cell.station.contains_key(name);
            if link.between.is_none() && file.cell.values().any(taken) {
                let problem = format!("joins the server `{name}` and the access point, but `{name}` is in the cell");
                self.note(join("link", name), problem);
            }
        }
        nodes
    }

    fn dumbbell(&mut self, file: &File) -> BTreeSet<String> {
        if !file.link.contains_key("bottleneck") {
            self.note("link.bottleneck", "is required: a dumbbell's link has this name");
        }
        for name in file.link.keys().filter(|name| *name != "bottleneck") {
            let hint = hint(name, ["bottleneck"]);
            self.note(
                join("link", name),
                format!("a dumbbell has one link, `bottleneck`{hint} (other links need `topology = \"graph\"`)"),
            );
        }
        ["left".to_owned(), "right".to_owned()].into()
    }

    fn parking_lot(&mut self, file: &File) -> BTreeSet<String> {
        let template = file.link.contains_key("hop");
        let hops = if template {
            for name in file.link.keys().filter(|name| *name != "hop") {
                self.note(join("link", name), "must not be given beside the template `[link.hop]`");
            }
            if file.hops.is_none() {
                self.note("hops", "is required with the template `[link.hop]`, for example `hops = 3`");
            }
            file.hops.unwrap_or(1)
        } else {
            let numbers = file.link.keys().filter_map(|name| name.strip_prefix("hop")?.parse().ok());
            let highest: u32 = numbers.filter(|&n| n <= MAX_HOPS).max().unwrap_or(file.link.len() as u32);
            let hops = file.hops.unwrap_or(highest);
            if hops == 0 {
                self.note(
                    "link",
                    "a parking lot needs links `hop1`, `hop2`, ... or a template `[link.hop]` and `hops`",
                );
            }
            for name in file.link.keys() {
                let number: Option<u32> = name.strip_prefix("hop").and_then(|n| n.parse().ok());
                if !number.is_some_and(|n| (1..=hops).contains(&n) && *name == format!("hop{n}")) {
                    self.note(
                        join("link", name),
                        format!("a parking lot of {hops} has the links `hop1` to `hop{hops}`"),
                    );
                }
            }
            for n in (1..=hops).filter(|n| !file.link.contains_key(&format!("hop{n}"))) {
                self.note(format!("link.hop{n}"), "is required");
            }
            hops
        };
        (0..=hops).map(|n| format!("r{n}")).collect()
    }

    fn link(&mut self, path: &str, link: &LinkTable, topology: Topology) {
        match (&link.between, topology) {
            (None, Topology::Graph) => {
                self.note(join(path, "between"), "is required in a graph, for example `between = [\"a\", \"b\"]`");
            }
            (Some(_), Topology::Dumbbell | Topology::ParkingLot) => {
                self.note(join(path, "between"), "must be given only with `topology = \"graph\"`");
            }
            (Some([from, to]), Topology::Graph | Topology::Home) => {
                let path = join(path, "between");
                self.name(&path, from);
                self.name(&path, to);
                if from == to {
                    self.note(path, format!("must name two different nodes, not `{from}` twice"));
                }
            }
            (None, _) => {}
        }
        let forward = forward(link);
        self.rate(path, &forward, true);
        self.direction(path, &forward);
        self.limit_schedule(path, &forward, forward.queue.as_ref());
        if let Some(backward) = &link.backward {
            let path = join(path, "backward");
            self.rate(&path, backward, link.rate_trace.is_some());
            self.direction(&path, backward);
            self.limit_schedule(&path, backward, backward.queue.as_ref().or(forward.queue.as_ref()));
        } else if link.rate_trace.is_some() {
            self.note(join(&join(path, "backward"), "rate"), "is required: a trace holds for one direction only");
        }
    }

    fn rate(&mut self, path: &str, way: &BackwardTable, required: bool) {
        let given: Vec<&str> = [
            way.rate.map(|_| "rate"),
            way.rate_schedule.as_ref().map(|_| "rate_schedule"),
            way.rate_trace.as_ref().map(|_| "rate_trace"),
        ]
        .into_iter()
        .flatten()
        .collect();
        match given.len() {
            0 if required => self.note(
                join(path, "rate"),
                "is required (or `rate_schedule`, or `rate_trace`), for example `rate = \"10 Mbit/s\"`",
            ),
            0 | 1 => {}
            _ => {
                let given = listed(given.into_iter());
                self.note(join(path, "rate"), format!("only one of {given} may be given"));
            }
        }
        if let Some(RateTrace { format: TraceFormat::Mahimahi, end: TraceEnd::Hold, .. }) = way.rate_trace {
            let problem = "`hold` has no meaning for a mahimahi trace, which always begins again: must be `loop`";
            self.note(join(&join(path, "rate_trace"), "end"), problem);
        }
        if let Some(steps) = &way.rate_schedule {
            let at: Vec<Span> = steps.iter().map(|step| step.at).collect();
            self.schedule(&join(path, "rate_schedule"), &at, "rate", "rate = \"1 Mbit/s\"");
        }
    }

    /// Rules for steps from 0 s on; `example` shows one.
    fn schedule(&mut self, path: &str, at: &[Span], what: &str, example: &str) {
        if let Some(first) = at.first().filter(|first| **first > Span::ZERO) {
            self.note(format!("{path}[0].at"), format!("`{first}` must be 0 s: what is the {what} before?"));
        }
        self.steps(path, at, example);
    }

    /// Rules for steps in ascending order.
    fn steps(&mut self, path: &str, at: &[Span], example: &str) {
        if at.is_empty() {
            self.note(path, format!("needs at least one step, `{{ at = \"0 s\", {example} }}`"));
        }
        for (index, pair) in at.windows(2).enumerate() {
            if pair[1] <= pair[0] {
                let key = format!("{path}[{}].at", index + 1);
                self.note(key, format!("`{}` must be later than the step before, {}", pair[1], pair[0]));
            }
        }
    }

    /// Rules for changes of the queue's limit; `queue` is the queue in effect.
    fn limit_schedule(&mut self, path: &str, way: &BackwardTable, queue: Option<&Queue>) {
        let Some(steps) = &way.limit_schedule else { return };
        let path = join(path, "limit_schedule");
        let at: Vec<Span> = steps.iter().map(|step| step.at).collect();
        self.steps(&path, &at, "limit = \"50 packets\"");
        if let Some(Queue::Unlimited {}) = queue {
            self.note(path, "needs a queue with a limit");
        }
    }

    /// Rules for keys that may be constant or scheduled.
    fn delays(&mut self, path: &str, way: &BackwardTable) {
        let only = |key: &str| format!("only one of `{key}` and `{key}_schedule` may be given");
        if let Some(steps) = &way.delay_schedule {
            let at: Vec<Span> = steps.iter().map(|step| step.at).collect();
            self.schedule(&join(path, "delay_schedule"), &at, "delay", "delay = \"10 ms\"");
            if way.delay.is_some() {
                self.note(join(path, "delay"), only("delay"));
            }
        }
        if let Some(steps) = &way.delay_variation_schedule {
            let at: Vec<Span> = steps.iter().map(|step| step.at).collect();
            let example = "variation = { max = \"5 ms\" }";
            self.steps(&join(path, "delay_variation_schedule"), &at, example);
            if way.delay_variation.is_some() {
                self.note(join(path, "delay_variation"), only("delay_variation"));
            }
        }
    }

    fn direction(&mut self, path: &str, way: &BackwardTable) {
        self.delays(path, way);
        if let Some(queue) = &way.queue {
            self.queue(&join(path, "queue"), queue);
        }
        if let (true, Some(Queue::Unlimited {})) = (way.occupancy, &way.queue) {
            self.note(join(path, "occupancy"), "needs a queue with a limit, of which it counts the tenths");
        }
        if let (true, Some(Queue::Unlimited {})) = (way.per_flow, &way.queue) {
            self.note(join(path, "per_flow"), "needs a queue with a limit: one without is not measured");
        }
        if way.recovery.is_some_and(|recovery| recovery.block_error.0 >= 1.0) {
            let key = join(&join(path, "recovery"), "block_error");
            self.note(key, "a link on which every block fails carries nothing: less than 100 %");
        }
        self.loss(&join(path, "loss"), way.loss.as_ref());
        if let Some(Aggregation { from, to: Some(to), .. }) = way.aggregation
            && from >= to
        {
            let key = join(&join(path, "aggregation"), "to");
            self.note(key, format!("`{to}` must be later than `from`, {from}"));
        }
        let spikes = way.delay_spike.iter().map(|spike| (spike.from, spike.to));
        self.apart(&join(path, "delay_spike"), spikes, "delay spike");
        self.apart(&join(path, "outage"), way.outage.iter().map(|outage| (outage.from, outage.to)), "outage");
    }

    /// Rules for time ranges, which must be in order and disjoint.
    pub(super) fn apart(&mut self, path: &str, times: impl Iterator<Item = (Span, Span)>, what: &str) {
        let mut last = None;
        for (index, (from, to)) in times.enumerate() {
            if from >= to {
                self.note(format!("{path}[{index}].to"), format!("`{to}` must be later than `from`, {from}"));
            }
            if last.is_some_and(|last| from < last) {
                let problem = format!("`{from}` must not be before the end of the {what} before");
                self.note(format!("{path}[{index}].from"), problem);
            }
            last = Some(to);
        }
    }

    fn loss(&mut self, path: &str, loss: Option<&Loss>) {
        let all = "a link that loses everything carries nothing: less than 100 %";
        let times = loss.map(Loss::during).unwrap_or_default();
        self.apart(&join(path, "during"), times.iter().map(|time| (time.from, time.to)), "time of loss");
        let note = |rules: &mut Rules, key: &str, problem: &str| rules.note(join(path, key), problem);
        match loss {
            Some(Loss::Uniform { rate, .. }) if rate.0 >= 1.0 => note(self, "rate", all),
            None | Some(Loss::Uniform { .. } | Loss::Periodic { .. }) => {}
            Some(Loss::GilbertElliott { good_rate, bad_rate, to_bad, to_good, .. }) => {
                if good_rate.0 >= 1.0 {
                    note(self, "good_rate", all);
                }
                if to_bad.0 <= 0.0 {
                    note(self, "to_bad", "must be more than 0 %, or the link is always good: use `kind = \"uniform\"`");
                }
                if to_good.0 <= 0.0 && bad_rate.0 >= 1.0 {
                    note(self, "to_good", "must be more than 0 %, or the link carries nothing once it is bad");
                }
            }
            Some(Loss::TwoState { good_rate, change, .. }) => {
                if good_rate.0 >= 1.0 {
                    note(self, "good_rate", all);
                }
                if change.0 <= 0.0 {
                    note(self, "change", "must be more than 0 %, or the state never changes: use `kind = \"uniform\"`");
                }
            }
        }
    }

    /// Rules for the flows and groups that a loss model excludes or covers.
    fn lossy_flows(&mut self, file: &File, path: &str, loss: Option<&Loss>) {
        let Some((except, only)) = loss.map(Loss::flows) else { return };
        if except.is_some() && only.is_some() {
            self.note(join(path, "only"), "only one of `except` and `only` may be given");
        }
        let known: BTreeSet<&str> =
            file.flow.iter().flat_map(|(name, flow)| [Some(name.as_str()), flow.group.as_deref()]).flatten().collect();
        for (key, names) in [("except", except), ("only", only)] {
            let key = join(path, key);
            if names.is_some_and(<[String]>::is_empty) {
                self.note(&key, "names no flow: leave the key out, or name one");
            }
            for (index, name) in
                names.into_iter().flatten().enumerate().filter(|(_, name)| !known.contains(name.as_str()))
            {
                let hint = hint(name, known.iter().copied());
                let all = listed(known.iter().copied());
                let problem = format!("`{name}` must be the name of a flow or of a group{hint} (there are {all})");
                self.note(format!("{key}[{index}]"), problem);
            }
        }
    }

    pub(super) fn queue(&mut self, path: &str, queue: &Queue) {
        let Queue::Red { min_threshold, max_threshold, min_share, max_share, weight, automatic, adaptive, .. } = queue
        else {
            return;
        };
        if let Some(AdaptiveRed { top, bottom: Some(bottom), .. }) = adaptive
            && bottom.0 >= top.0
        {
            let key = join(&join(path, "adaptive"), "bottom");
            self.note(key, format!("`{bottom}` must be less than top, {top}"));
        }
        let shares = [("min_share", min_share), ("max_share", max_share)];
        if *automatic {
            let given = [("min_threshold", min_threshold), ("max_threshold", max_threshold), ("weight", weight)];
            let given = given.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| *key);
            let shares = shares.iter().filter(|(_, share)| share.is_some()).map(|(key, _)| *key);
            for key in given.chain(shares) {
                self.note(join(path, key), "must not be given with `automatic = true`");
            }
            return;
        }
        self.shares(path, shares, min_threshold.is_some() || max_threshold.is_some());
        match (min_threshold, max_threshold) {
            (None, Some(_)) => {
                self.note(join(path, "min_threshold"), "is required where `max_threshold` is given");
            }
            (Some(min), Some(max)) if min >= max => {
                self.note(join(path, "min_threshold"), format!("`{min}` must be less than max_threshold, {max}"));
            }
            _ => {}
        }
    }
}

impl Rules {
    /// RED's thresholds as shares of the limit: both or none, and not beside absolute ones.
    fn shares(&mut self, path: &str, shares: [(&str, &Option<Ratio>); 2], absolute: bool) {
        match shares.map(|(_, share)| *share) {
            [None, None] => {}
            _ if absolute => {
                let given = shares.iter().filter(|(_, share)| share.is_some());
                for (key, _) in given {
                    self.note(join(path, key), "must not be given beside `min_threshold` or `max_threshold`");
                }
            }
            [Some(min), Some(max)] if min.0 <= 0.0 || min.0 >= max.0 => {
                self.note(
                    join(path, "min_share"),
                    format!("`{min}` must be more than 0 % and less than max_share, {max}"),
                );
            }
            [Some(_), Some(_)] => {}
            [None, _] => self.note(join(path, "min_share"), "is required where `max_share` is given"),
            [_, None] => self.note(join(path, "max_share"), "is required where `min_share` is given"),
        }
    }
}
