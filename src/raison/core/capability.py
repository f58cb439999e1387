"""What a model may offer beyond its predictions. core/capabilities has one file for each."""

from abc import ABC
from typing import ClassVar


class Capability(ABC):
    """An object that an adapter may offer, and that a method asks for by its abstract class.

    A subclass in core/capabilities declares what it can do. An adapter offers an implementation of that subclass.
    """

    name: ClassVar[str]
    """Its name in lists and errors; also the name of its file."""
    absence: ClassVar[str]
    """The predicate for a model without it: "NAME ... "."""
    way_out: ClassVar[str] = ""
    """What to do on a model without it, as a sentence."""
