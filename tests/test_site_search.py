"""Newcomers' questions to the site's search, in their words: the first hit is a page that answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from needs import require
from test_site import site  # noqa: F401 (the built site)

pytestmark = pytest.mark.page

ANSWERS = {
    "how do I add ECN": "faq/#how-do-i-add-ecn links/ profiles/",
    "GCC vs NADA": "faq/#gcc-vs-nada calls/ tutorials/which-controller/",
    "live test my server": "faq/#how-do-i-live-test-my-server live/",
    "bufferbloat": "faq/#what-is-bufferbloat tutorials/queue-and-games/",
    "citing": "faq/#how-do-i-cite cite/",
    "units of rtt": "faq/#what-are-the-units measures/",
    "Windows": "faq/#windows install/",
    "python controller": "faq/#python-c-rust your-own-controller/",
    "jitter": "faq/#jitter links/ measures/",
    "wifi": "faq/#wifi wifi/",
    "install": "install/ faq/#how-do-i-install",
    "pip install": "install/ faq/#how-do-i-install",
    "bbr vs cubic": "faq/#bbr-vs-cubic controllers/bbr",
    "packet loss": "faq/#how-do-i-add-packet-loss links/",
    "wireshark": "faq/#how-do-i-open-the-packets capture/",
    "pcap": "faq/#how-do-i-open-the-packets capture/",
    "webrtc": "faq/#can-i-test-a-real-webrtc-call calls/ chromium/ controllers/gcc/",
    "starlink": "faq/#how-do-i-change-bandwidth links/",
    "seed": "faq/#seeds",
    "reproducible": "faq/#seeds decisions/same-bits/ papers/artefacts/",
    "bibtex": "faq/#how-do-i-cite cite/",
    "root": "faq/#root path-emulator/",
    "sudo": "faq/#root path-emulator/ kernel-cc/",
    "how many runs": "faq/#why-is-there-an-interval measures/ many-machines/",
    "ns-3": "faq/#how-does-it-compare-with-ns-2 speed/ wifi/ files/bench/",
    "mahimahi": "faq/#how-does-it-compare-with-mahimahi faq/#how-do-i-change links/",
    "dualpi2": "faq/#how-do-i-use-l4s links/ queues/ controllers/prague/ scenario/#kind--dualpi2",
    "plot a figure": "faq/#how-do-i-plot cli/",
    "reinforcement learning": "learning/ faq/#python-c-rust",
    "MoQ": "faq/#can-i-test-quic quic/",
    "router": "faq/#router gateway/",
    "goodput throughput": "faq/#what-is-the-difference-between-goodput measures/",
    "which queues": "faq/#which-queues links/",
    "csv": "faq/#csv links/ python/",
}
"""What is asked, and the beginnings of the places that answer it."""


def test_a_newcomer_finds_the_answer_first(site: Path) -> None:  # noqa: F811
    require("node")
    (worker,) = site.glob("assets/javascripts/workers/search*.js")
    done = subprocess.run(
        ["node", Path(__file__).with_name("site_search.mjs"), worker, site / "search.json"],
        input="\n".join(ANSWERS),
        capture_output=True,
        text=True,
        check=True,
    )
    missed = {
        question: found[:3]
        for (question, answers), found in zip(ANSWERS.items(), json.loads(done.stdout), strict=True)
        if not found or not found[0].startswith(tuple(answers.split()))
    }
    assert not missed


def test_a_page_of_something_else_is_no_answer() -> None:
    """What the test would say of a search that finds the changes first."""
    assert not "changes/#added".startswith(tuple(ANSWERS["units of rtt"].split()))
