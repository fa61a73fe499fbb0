"""The what-if curve: how fresh the fleet would be at other budgets."""

from __future__ import annotations

from unstale.core.checks import Floats
from unstale.report.picture import checked, save


def draw(curve: tuple[Floats, Floats], spent: float, freshness: float, path: str) -> None:
    """Freshness against budget, with the present plan marked."""
    path = checked(path, "curve")
    from matplotlib.figure import Figure

    budgets, fresh = curve
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.semilogx(budgets, 100 * fresh, color="#1f6feb", linewidth=2)
    axes.plot([spent], [100 * freshness], "o", color="#d1242f", markersize=8)
    axes.annotate(
        f"now: {spent:,.6g} per day, {100 * freshness:.1f} %",
        (spent, 100 * freshness),
        xytext=(8, -16),
        textcoords="offset points",
    )
    axes.set_xlabel("budget (cost of polls per day)")
    axes.set_ylabel("freshness of the fleet (%)")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    save(figure, path, "Freshness of the fleet by budget")
