"""Runs a suite for some schemes or queues, and judges the results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from paceline.emulator.realtime_queue import Runner
from paceline.errors import InternalError
from paceline.results.store import Store
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Progress
from paceline.statistics import Estimate
from paceline.studies import reproduction
from paceline.studies.paper import Paper
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import World
from paceline.suite.compiled import Refusal, Refused, claim_key, paper
from paceline.suite.suite import Case, Check, Subject, Suite
from paceline.suite.suite_folders import SuiteError
from paceline.suite.verdict import Outcome, Verdict, judge, together


@dataclass(frozen=True)
class Checked:
    """A subject's check: the measurement (None: nothing), also run by run, and the verdict."""

    check: Check
    ours: Estimate | None
    each: tuple[float, ...]
    verdict: Verdict


@dataclass(frozen=True)
class Answer:
    """A subject's case: its checks, and the command that runs it alone."""

    case: Case
    subject: Subject
    checks: tuple[Checked, ...]
    command: str
    refused: Refusal | None = None
    """Why it was not run."""

    @property
    def outcome(self) -> Outcome:
        """The combined outcome of its checks."""
        return together([checked.verdict.outcome for checked in self.checks])


@dataclass
class Result:
    """The results of a suite."""

    suite: Suite
    subjects: list[Subject]
    runs: int
    answers: list[Answer]
    made: Reproduction
    """The runs themselves: values, recordings, provenance."""
    seconds: float = 0.0
    chosen: list[str] = field(default_factory=list)
    """The requested cases; empty: all."""
    world: World = World.SIMULATED

    def counts(self) -> dict[Outcome, int]:
        """The number of cases by outcome."""
        found = [answer.outcome for answer in self.answers]
        return {outcome: found.count(outcome) for outcome in Outcome}

    @property
    def exit_code(self) -> int:
        """1 if a case fails; else 3 if one is undecided; else 0."""
        counts = self.counts()
        return FAILED if counts[Outcome.FAIL] else UNDECIDED if counts[Outcome.UNDECIDED] else 0

    @property
    def over(self) -> str:
        """Where it ran, as `--over` names it."""
        return OVER[self.world]

    @property
    def command(self) -> str:
        """The command line that runs it again."""
        return command(self.suite, self.subjects, self.chosen, self.runs, self.world)

    def of(self, case: Case) -> list[Answer]:
        """The answers of a case, subject by subject."""
        return [answer for answer in self.answers if answer.case is case]


FAILED, UNDECIDED = 1, 3
"""Exit codes; 2 is a mistake of the request, 130 a stop by Ctrl-C."""


def subjects_of(suite: Suite, named: Sequence[str]) -> list[Subject]:
    """The named schemes or queues, or the suite's own. Raises SuiteError."""
    return [Subject.parse(suite.kind, text) for text in dict.fromkeys(named or suite.default)]


OVER = {World.SIMULATED: "simulator", World.EMULATED: "emulator"}
"""The names of worlds in `--over`."""

REAL_RUNS = 5
"""Default runs of each point over the emulator, where a run takes its full duration."""


def runs_of(suite: Suite, world: World) -> int:
    """The default number of runs of each point."""
    return suite.runs if world is World.SIMULATED else min(suite.runs, REAL_RUNS)


def command(suite: Suite, subjects: Sequence[Subject], cases: Sequence[str], runs: int, world: World) -> str:
    """The command line that runs it again."""
    words = ["paceline", "suite", suite.name, *suite.given]
    if world is World.EMULATED:
        words += ["--over", OVER[world]]
    for subject in subjects:
        words += [f"--{suite.kind}", subject.text]
    for case in cases:
        words += ["--case", case]
    return shlex.join(words if runs == runs_of(suite, world) else [*words, "--runs", str(runs)])


def plan(suite: Suite, subjects: Sequence[Subject], world: World = World.SIMULATED) -> tuple[Paper, Refused]:
    """The runs, and the cases that cannot run. Raises SuiteError for a subject that can run in no case, PaperError for
    a mistake in the suite."""
    compiled, refused = paper(suite, subjects, world)
    for subject in subjects:
        open_to_it = [case for case in suite.cases if not case.refused]
        found = [refused.get((case.key, subject.text)) for case in open_to_it]
        reasons = [refusal.reason for refusal in found if refusal and refusal.applies]
        if reasons and len(reasons) == len(open_to_it):
            raise SuiteError(f"--{suite.kind} {subject.text}: no case can run with it. {reasons[0]}")
    return compiled, refused


def run(
    suite: Suite,
    subjects: Sequence[Subject],
    *,
    runs: int | None = None,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
    real_time: Runner | None = None,
) -> Result:
    """Runs a suite for these subjects and judges each case; with `real_time` (`realtime.Emulator()`) over emulated
    paths, where `progress` counts seconds. Finished runs in `store` are used again.

    Raises SuiteError and PaperError before anything runs, Interrupted on Ctrl-C (finished runs are in the store),
    StorageError. A case whose runs fail is undecided, with the reason.
    """
    world = World.SIMULATED if real_time is None else World.EMULATED
    runs = runs_of(suite, world) if runs is None else runs
    compiled, refused = plan(suite, subjects, world)
    broken: dict[str, Refusal] = {}

    def made_of(paper: Paper) -> Reproduction:
        return reproduction.run(
            paper,
            runs=runs,
            workers=workers,
            executor=executor,
            store=store,
            progress=progress,
            real_time=real_time,
        )

    try:
        made = made_of(compiled)
    except InternalError:
        # A defect in one run must not affect other cases: run case by case, using the runs that have finished.
        made, broken = _case_by_case(compiled, made_of)
    answers = [
        _answer(made, case, subject, command(suite, [subject], [case.key], runs, world), refused, broken)
        for case in suite.cases
        for subject in subjects
    ]
    return Result(suite, list(subjects), runs, answers, made, made.seconds, world=world)


def _case_by_case(
    compiled: Paper, made_of: Callable[[Paper], Reproduction]
) -> tuple[Reproduction, dict[str, Refusal]]:
    """All cases that run, as one reproduction, and the reasons why others do not."""
    whole: Reproduction | None = None
    broken: dict[str, Refusal] = {}
    for key, study in compiled.studies.items():
        own = tuple(claim for claim in compiled.claims if claim.study == key)
        try:
            made = made_of(replace(compiled, studies={key: study}, claims=own))
        except InternalError as error:
            broken[key] = Refusal(str(error))
            continue
        if whole is None:
            whole = made
        else:
            whole.values |= made.values
            whole.recorded |= made.recorded
            whole.results += made.results
            whole.scenarios |= made.scenarios
            whole.seconds += made.seconds
    if whole is None:
        raise SuiteError(f"no case could be run: {next(iter(broken.values())).reason}")
    whole.paper = replace(compiled, studies={k: s for k, s in compiled.studies.items() if k not in broken})
    return whole, broken


def _answer(
    made: Reproduction, case: Case, subject: Subject, again: str, refused: Refused, broken: dict[str, Refusal]
) -> Answer:
    refusal = refused.get((case.key, subject.text)) or broken.get(case.key)
    if refusal:
        verdict = Verdict(Outcome.UNDECIDED, str(refusal))
        return Answer(
            case, subject, tuple(Checked(check, None, (), verdict) for check in case.checks), again, refusal
        )
    by_key = {result.claim.key: result for result in made.results}
    found = []
    for check in case.checks:
        result = by_key[claim_key(case, check.key, subject)]
        each = () if result.sample is None else result.sample.each
        found.append(Checked(check, result.ours, each, judge(check.threshold, result.sample)))
    return Answer(case, subject, tuple(found), again)
