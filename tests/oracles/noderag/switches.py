"""Where our NodeRAG differs from the code its authors published: one named switch for each difference."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Core = Literal["kcore", "none"]


@dataclass(frozen=True)
class Switches:
    """True is ours, False is the published code. The number is the section of the specification.

    `core`: the published code computes the true k-core and fails with a KeyError where it is not empty, so a
    run that ends used none.
    """

    typed_keys: bool = True
    """3.3: the kind is part of a node's key. Published: nodes of any kind with one text are one node."""
    fold_names: bool = True
    """3.3 step 2: names are compared in NFKC, trimmed, in capitals. Published: as written."""
    drop_empty: bool = True
    """3.3 steps 2 and 3: empty names and relations with an empty part are dropped. Published: kept."""
    every_origin: bool = True
    """3.3 step 1: a repeated unit belongs to each of its chunks. Published: to the first."""
    join_middle: bool = True
    """3.3 step 3: four or more parts between two names of the unit: their middle is joined.
    Published: repaired."""
    count_repeats: bool = True
    """3.3 step 3: a repeated relation weighs one more and joins its unit to both names. Published: no."""
    plain_repeats: bool = True
    """3.3: a repeated relation's text is added as it is. Published: a blank between all characters."""
    single_self_edge: bool = True
    """3.3 step 3: a relation of a name to itself has an edge of weight 1. Published: 2."""
    floor: bool = True
    """3.4: k0 and betweenness's scale are rounded down, the scale at least 1. Published: to the nearest."""
    core: Core = "kcore"
    """3.4 step 1."""
    skip_empty_communities: bool = True
    """3.7 step 2: a community without units or attributes is not described. Published: it is."""
    title_lists: bool = True
    """3.7 step 4: a repeated title leads to all its descriptions. Published: to the last, with weight 1."""
    share_repeats: bool = True
    """3.7 step 4: a repeated description gets its new title and the edges of its new community.
    Published: the title only where it is known, and no edges."""
    bare_chunks: bool = True
    """3.8, 3.14: a chunk without units is a node. Published: only where a semantic edge leads to it, then
    without a type."""
    isolated_stay: bool = True
    """3.10 step 2: a walk stays on a node without edges. Published: it goes to any other node."""
    drop_empty_terms: bool = True
    """3.11 step 2: an empty term matches nothing. Published: every name and title with a word in it."""
    token_phrases: bool = True
    """3.11 step 2: a term is found as a run of tokens. Published: by Python's regular expressions."""
    teleport: bool = True
    """3.11 step 4: the walk returns to the entry points. Published: a lazy walk that never does."""
    fixed_steps: bool = True
    """3.11 step 4: exactly t steps. Published: fewer where scores change by less than 1e-5."""
    positive_only: bool = True
    """3.11 step 5: cross nodes have a score above 0. Published: small graphs are padded with others."""


OURS = Switches()
PUBLISHED = Switches(**{f.name: "none" if f.name == "core" else False for f in fields(Switches)})  # type: ignore[arg-type]
