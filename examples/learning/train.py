"""Trains the policy of policy.py by CMA-ES (Hansen, 2016), and holds it beside CUBIC and NADA.

    pip install "paceline[gym]" cma
    python examples/learning/train.py

Less than a minute on two cores. Each generation's candidates run side by side, a vector environment for each link; a
candidate's worth is what it is paid: "power", goodput by delay. What comes out lies in policy.json.
"""

import argparse
import json
import sys
from pathlib import Path

import cma
import gymnasium
import numpy as np

import paceline
import paceline.gym

sys.path.insert(0, str(Path(__file__).parent))
from policy import CENTRE, HISTORY, OBSERVED, STEP_S, WEIGHTS

LINKS = (
    {"rate": "3 Mbit/s", "delay": "30 ms"},
    {"rate": "12 Mbit/s", "delay": "15 ms"},
    {"rate": "40 Mbit/s", "delay": "10 ms"},
)
CANDIDATES = 32
EPISODE_S = 15


def environments(episode_s):
    """A vector environment for each link, with a place for each candidate."""
    made = []
    for link in LINKS:
        changes = {f"link.bottleneck.{key}": value for key, value in link.items()}
        changes |= {
            "duration": f"{episode_s} s",
            "link.bottleneck.queue": {"kind": "droptail", "limit": "100 ms"},
        }
        made.append(
            gymnasium.make_vec(
                "paceline/Link-v0",
                CANDIDATES,
                "vector_entry_point",
                action="rate_factor",
                observation=OBSERVED,
                history=HISTORY,
                step_s=STEP_S,
                reward="power",
                changes=changes,
                workers=2,
            )
        )
    return made


def worth(candidates, envs, seed):
    """What each candidate is paid, on the mean of the links and steps."""
    weights = np.array(candidates)
    centre = np.tile(CENTRE, HISTORY)
    paid = np.zeros(CANDIDATES)
    for env in envs:
        # all candidates see the same draws
        observation, _ = env.reset(seed=[seed] * CANDIDATES)
        steps = round(EPISODE_S / STEP_S) - 20
        for _ in range(steps):
            action = np.tanh(((observation - centre) * weights[:, :-1]).sum(axis=1) + weights[:, -1])
            observation, reward, *_ = env.step(action[:, None].astype(np.float32))
            paid += reward / steps / len(envs)
    return paid


def train(generations, seed, out):
    """Searches, saves the mean of the last generation's best, and gives what it was paid, generation by generation."""
    search = cma.CMAEvolutionStrategy(
        np.zeros(WEIGHTS), 0.5, {"popsize": CANDIDATES, "seed": seed, "verbose": -9, "maxiter": generations}
    )
    envs = environments(EPISODE_S)
    history = []
    for generation in range(generations):
        candidates = search.ask()
        paid = worth(candidates, envs, seed=1000 * seed + generation)
        search.tell(candidates, (-paid).tolist())
        history.append(float(paid.mean()))
        print(f"generation {generation + 1}: mean {paid.mean():.3f}, best {paid.max():.3f}", flush=True)
    kept = {
        "weights": [round(float(weight), 6) for weight in search.mean],
        "generations": generations,
        "seed": seed,
    }
    out.write_text(json.dumps(kept) + "\n")
    return history


SCENARIO = """
name = "learned"
duration = "30 s"
warmup = "5 s"
[link.bottleneck]
rate = "8 Mbit/s"
delay = "20 ms"
queue = { kind = "droptail", limit = "100 ms" }
[flow.test]
cc = "cubic"
"""


def beside(policy):
    """The learned one beside others, each alone on a link that it was not trained on, with intervals."""
    call = {"kind": "encoder", "frame_rate": 30, "max_rate": "8 Mbit/s"}
    for name, changes in {
        "learned": {"flow.test.cc": f"python:{policy}:Learned"},
        "cubic": {},
        "nada": {"flow.test.cc": "nada", "flow.test.params": {"max_rate": 8e6}, "flow.test.app": call},
    }.items():
        results = paceline.run(SCENARIO, runs=10, set=changes)
        (row,) = results.statistics("flows", measures=["goodput_bps"]).iter_rows(named=True)
        (delay,) = results.statistics("flows", measures=["rtt_mean_s"]).iter_rows(named=True)
        # of a call's means there is no interval that holds, of medians always
        rate, late = (
            [of[key] * scale for key in ("median", "median_low", "median_high")]
            for of, scale in ((row, 1e-6), (delay, 1e3))
        )
        print(
            f"{name:8} {rate[0]:5.2f} [{rate[1]:.2f} to {rate[2]:.2f}] Mbit/s, round trip {late[0]:6.1f} "
            f"[{late[1]:.1f} to {late[2]:.1f}] ms"
        )


def main():
    """Trains, and compares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("policy.json"))
    args = parser.parse_args()
    train(args.generations, args.seed, args.out)
    policy = args.out.with_name("policy.py")
    if not policy.exists():
        policy.write_text(Path(__file__).with_name("policy.py").read_text())
    beside(policy)


if __name__ == "__main__":
    main()
