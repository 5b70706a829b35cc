"""What a mode would tell, before it is known what of it fits and is news."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memex.inject.choose import Judged
from memex.inject.fresh import fresh, keys_in
from memex.inject.render import Quotation
from memex.maintain.recalls import How


@dataclass(frozen=True, slots=True)
class Page:
    """Quotations, the most important first. `memories` are those of them that are memories.

    `keys` names what must not be told after a quotation, beside itself and its sentences.
    """

    quotations: tuple[Quotation, ...] = ()
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    memories: frozenset[str] = frozenset()
    how: How = "selected"
    judged: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()

    def keys_of(self, one: Quotation) -> frozenset[str]:
        """Name what a quotation says: what it stands for, and its sentences."""
        return self.keys.get(one.key, frozenset()) | {one.key} | keys_in(one.text)

    def news(self, given: frozenset[str]) -> Iterator[Quotation]:
        """Leave out what was given, and what is said twice on this page."""
        said = set(given)
        for quotation in self.quotations:
            one = None if quotation.key in given else fresh(quotation, said)
            if one:
                said |= self.keys_of(one)
                yield one
