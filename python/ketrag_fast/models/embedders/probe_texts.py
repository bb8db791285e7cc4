"""The built-in sample texts for comparing models: short, long, foreign, numeric, code.

They never change: their vectors are compared between precisions, and between building and opening an index.
"""

from __future__ import annotations

from typing import Final

RULE: Final = "sample/1"

SAMPLE: Final[tuple[str, ...]] = (
    "Where was the composer born?",
    "The bridge was opened in 1931 and crosses the river twice, once for trains and once for cars.",
    "A mixture of flour, water, salt and yeast is kneaded, left to rise for two hours, shaped, and baked "
    "in a very hot oven until the crust is dark. Bakers in the valley add rye to keep the loaf moist "
    "for a week.",
    "In 1912 the expedition reached the plateau with 3 sledges, 11 dogs and 48 days of food; its leader, "
    "E. M. Harlow, had planned for 60. The return took 71 days.",
    "def area(width, height):\n    return width * height  # square metres",
    "Die Brücke wurde 1931 eröffnet und überquert den Fluss zweimal.",
    "東京の人口は約千四百万人である。",
    "Interest rates rose by 0.25 percentage points to 4.75 % (source: central bank, 2 May, table 3b).",
    "Photosynthesis",
    "She is the daughter of a surgeon and a violinist, grew up in a port town, studied law without joy, "
    "and published her first novel at the age of fifty-one. Critics compared it with the great family "
    "chronicles of the north; she herself said that she had only written down what the neighbours told "
    "each other across the hedge. A film of the book was shot on the island where it is set, with the "
    "islanders as extras, and ran for forty weeks in the capital. Her second book, shorter and angrier, "
    "describes a winter strike in the harbour.",
)
