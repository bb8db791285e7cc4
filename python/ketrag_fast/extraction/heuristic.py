import re
from ketrag_fast.extraction.records import *

VERSION = 0


def extract(title, text):
    names = list(dict.fromkeys(re.findall(r"[A-Z][a-z]+(?: [A-Z][a-z]+)+", title + ". " + text)))
    return Extraction(
        tuple(EntityRecord(n, "name", n + " is here.") for n in names),
        tuple(RelationRecord(a, b, a + " with " + b, 1.0) for a, b in zip(names, names[1:])),
    )
