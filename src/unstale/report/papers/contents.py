"""The order of the report: chapters by paper, groups by place, each with its items and figures."""

from __future__ import annotations

from unstale.frozen import dataclass
from unstale.report.papers.item import matching


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Items that stand together in a paper, what they are about, and the figures that show it."""

    title: str
    about: str
    patterns: tuple[str, ...]
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def ids(self) -> list[str]:
        """The ids of its items, in the order of the patterns."""
        return [id_ for pattern in self.patterns for id_ in matching(pattern)]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One paper, or two versions of the same one."""

    key: str
    papers: tuple[str, ...]
    title: str
    about: str
    groups: tuple[ItemGroup, ...]


CHAPTERS = (
    Chapter(
        "cho",
        ("000", "001"),
        "Cho, Garcia-Molina: Synchronizing a database to improve freshness",
        "000 is the long version (1999), 001 the conference version (2000); tables have the same numbers in both. "
        "λ is the change rate, f = 1/I the sync rate, r = λ/f; in Theorem 5 and footnote 10, μ is the price.",
        (
            ItemGroup(
                "Section 2: after a poll",
                "Until the next poll, expected freshness falls from 1 and age grows.",
                ("C.E[F],E[A]",),
                ("000 Figure 2", "000 Figure 3"),
            ),
            ItemGroup(
                "Table 2: orders of polls",
                "Freshness and age of sources that all change equally often, polled in fixed, random and purely "
                "random order. The table prints formulas; here they are evaluated and simulated.",
                ("C.T2.F.*", "C.T2.A.*", "C.T2.limits", "C.T2.finiteN.*", "C.L2"),
                ("000 Figure 5", "000 Figure 6", "000 Figure 14"),
                ("000 Table 2",),
            ),
            ItemGroup("Section 4: what the orders mean in practice", "Claims read off Figure 6.", ("C.S4.*",)),
            ItemGroup(
                "Table 3: uniform against proportional polling",
                "Change rates of a fleet follow a gamma law with coefficient of variation δ. Polling everything "
                "equally often beats polling in proportion to change rates, for every law (Theorems 3 and 4).",
                ("C.Ex1", "C.T3.*", "C.F7.*", "C.Thm3-4"),
                ("000 Figure 4", "000 Figure 7"),
                ("000 Table 3",),
            ),
            ItemGroup(
                "Table 4: two sources, counted by hand",
                "One source changes nine times a day, the other once; gains are exact fractions.",
                ("C.T4.*",),
                (),
                ("000 Table 4",),
            ),
            ItemGroup(
                "Figure 9: two sources, any split",
                "The same two sources with Poisson changes. A small budget is best spent on the slow source alone.",
                ("C.F9.*",),
                ("000 Figure 9",),
            ),
            ItemGroup(
                "Table 5: the optimum for five sources",
                "Change rates 1 to 5 a day, five polls a day. For freshness the busiest source is abandoned; for "
                "age nothing is. All optimal points lie on one curve, scaled by the price.",
                ("C.T5.*", "C.Thm5.*", "C.fn10", "C.concl.importance"),
                ("000 Figure 10", "000 Figure 17", "000 Figure 18"),
                ("000 Table 5",),
            ),
            ItemGroup(
                "Table 6: the web of 1999",
                "Of the histogram of change intervals only 23 % (daily) and 15 % (weekly) are quoted in the text; "
                "16, 17 and 29 % are assumed. Other histograms fit as well, so the match does not prove this one.",
                ("C.T6.*", "C.6.3.pct"),
                ("000 Figure 11", "000 Figure 12"),
                ("000 Table 6",),
            ),
        ),
    ),
    Chapter(
        "azar",
        ("002",),
        "Azar, Horvitz, Lubetzky, Peres, Shahaf: Tractable near-optimal policies for crawling",
        "Δ is the change rate, μ the weight, p the sync rate and R the budget.",
        (
            ItemGroup(
                "Algorithms 1 and 2: optimal random polls",
                "Closed forms for polls at random times, in slots and in continuous time, and their edge cases.",
                ("A.Alg1*", "A.Alg2*", "A.eq6.opt", "A.Delta=0", "A.eq3", "A.eq5<=6", "A.eq11", "A.burnin", "A.Rem4.*"),
                ("002 Figure 2",),
            ),
            ItemGroup("Algorithm 3: the carousel", "Rates laid out as an even sequence of slots.", ("A.Alg3.*",)),
            ItemGroup(
                "Figure 1: ninety-nine percent of the optimum",
                "1000 sources, change rates uniform on [0, 1], weights Zipf (exponent 2, range 10000) or uniform; "
                "means over 20 synthetic fleets.",
                ("A.Fig1.*",),
                ("002 Figure 1",),
            ),
        ),
    ),
    Chapter(
        "li3",
        ("003",),
        "Li, Cline, Loguinov: On sample-path staleness in lazy data replication",
        "μ is the change rate, λ the sync rate, U and D the gaps between changes and polls, w the penalty. "
        "Example (a) has Pareto changes and even polls, example (b) even changes and Pareto polls; α = 3.",
        (
            ItemGroup(
                "Equations 36–48: how stale, and by how much",
                "Share of time stale, share within a tolerance, law of the lag, and mean age.",
                ("L3.36.*", "L3.38", "L3.40", "L3.41.*", "L3.42x.*", "L3.47", "L3.48", "L3.49"),
                ("003 Figure 4", "003 Figure 6", "003 Figure 7"),
            ),
            ItemGroup(
                "Equations 50–57: penalty of all missed changes",
                "Under an update penalty only the gaps between polls matter. In example (b) the variance of "
                "missed changes is infinite, so a simulation has no error to quote.",
                ("L3.50.*", "L3.54", "L3.55", "L3.56-57.*", "L3.57.sing", "L3.text"),
                ("003 Figure 8",),
            ),
            ItemGroup(
                "Theorems and counter-examples",
                "Which polls are best, when ages have a law, and when changes and polls do not lock.",
                ("L3.23", "L3.28", "L3.Thm8-10.matrix", "L3.Thm8", "L3.equidist", "L3.Thm11", "L3.VI-D.bw"),
            ),
            ItemGroup(
                "Equations 69–75: many sources",
                "Optimal rates under an update penalty.",
                ("L3.Thm12", "L3.69", "L3.71-72", "L3.73-75"),
            ),
            ItemGroup(
                "Wikipedia",
                "What the paper quotes of edits, and what follows from it.",
                ("L3.Lambda*", "L3.Gbps", "L3.wiki.inconsistent", "L3.GWB.*", "L3.Hurst"),
                ("003 Figure 9", "003 Figure 10"),
            ),
        ),
    ),
    Chapter(
        "li4",
        ("004",),
        "Li, Loguinov: Stochastic models of pull-based data replication in P2P systems",
        "Letters as in 003; p is freshness, V the length of a fresh period.",
        (
            ItemGroup(
                "One hop",
                "Freshness, what irregular polls cost, and how long a copy stays fresh.",
                ("L4.8.lam3", "L4.bw.*", "L4.12", "L4.16", "L4.19", "L4.FV"),
                ("004 Figure 3", "004 Figure 4", "004 Figure 7"),
            ),
            ItemGroup(
                "Cascades",
                "Replicas of replicas: what is held at a depth is what the source held when the ages of all polls "
                "above it began.",
                ("L4.24", "L4.28.*", "L4.29", "L4.superlin"),
                ("004 Figure 9",),
            ),
            ItemGroup(
                "Cooperation",
                "Ten replicas that poll the source and ask each other. Random peers are a chain, solved exactly; "
                "recent peers and irregular contacts are drawn, with a fixed seed.",
                ("L4.coop.*", "L4.fig11d", "L4.Thm6"),
                ("004 Figure 11",),
            ),
            ItemGroup(
                "Table I: service rate",
                "B = 10, μ = 1, with and without cooperation. The paper simulated; the chain gives the optimum "
                "itself, and a much larger one at freshness 0.4.",
                ("L4.32.*", "L4.TableI.*", "L4.Fig12"),
                ("004 Figure 12",),
                ("004 Table I",),
            ),
            ItemGroup(
                "Table II: redundant queries",
                "Each request asks k = 20 replicas and takes the freshest copy; B = 1000. Evenly polled replicas "
                "lose requests by it, those with bursts of polls gain.",
                ("L4.TableII.*", "L4.34-35"),
                (),
                ("004 Table II",),
            ),
        ),
    ),
    Chapter(
        "general",
        (),
        "Derived: the price of a poll, for every objective",
        "Not printed in any of the papers: staleness is convex in the sync rate for every change process and every "
        "non-decreasing penalty, so one price decides every rate. λ is the change rate, f the sync rate, q the "
        "weight, ν the price.",
        (
            ItemGroup(
                "Optimal rates",
                "Five sources, a budget of 4, by objective and order.",
                ("G.convex", "G.alloc.*", "G.threshold.poisson", "G.pareto3.alloc"),
            ),
            ItemGroup(
                "Inverses",
                "Changes per interval at which a poll is worth s, by objective and order.",
                ("G.P2inv.*", "G.ageinv.*", "G.roinv.*", "G.roAinv.*", "G.prAinv.*"),
            ),
        ),
    ),
)
