"""Figures as a table, and bounds that fail the run."""

from dataclasses import dataclass, field


@dataclass
class Report:
    """Collects what was measured; ``missed`` names the bounds that did not hold."""

    missed: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        """A new part."""
        print(f"\n## {text}\n", flush=True)

    def row(self, name: str, *figures: str) -> None:
        """One line of figures."""
        print(f"  {name:<44}" + "".join(f"{figure:>16}" for figure in figures), flush=True)

    def bound(self, what: str, value: float, *, least: float | None = None, most: float | None = None) -> None:
        """A figure with its bound; a missed one fails the run at the end."""
        held = (least is None or value >= least) and (most is None or value <= most)
        wanted = f">= {least:g}" if least is not None else f"<= {most:g}"
        print(f"  {'ok  ' if held else 'MISS'} {what}: {value:.3g} (wanted {wanted})", flush=True)
        if not held:
            self.missed.append(what)
