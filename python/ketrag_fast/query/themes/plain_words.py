"""English words that name no theme: small talk and auxiliaries that are not stop words."""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
able absolutely after again ago also amazing another around ask asked away awesome back bad became become
before begin begins best better big bit bring bye call called case come comes coming day days definitely
done dr during etc example examples fantastic feel felt first following forward found gave get gets
getting give given gives glad go goes going gonna good got great guess guy guys happen happened hello help
helps hey hi hope however including keep kind know known last later left let lets like likes look looked
looking looks lot lots love made make makes making many may maybe mean means met might mr mrs ms much must
need needed needs new next nice nope often ok okay old one ones others part people perfect perfectly
please plus put really right said saw say saying says see seeing seems seen shall show shows since someone
something sometimes soon sorry start started still stuff sure take taken takes taking talk tell thank
thanks thing things think thought time times today told tomorrow tonight took totally tried try trying two
understand us use used user uses using usually various via wait wanna want wanted wants way ways week well
went whether while whose wish within without wonder wonderful wow yeah year years yep yes yesterday yet
"""
PLAIN_WORDS: Final = frozenset(_WORDS.split())
_FOR_DOCUMENTS: Final = """
about article articles book books chat chats chiefly collection common content contents conversation
conversations corpus cover covered covers data dataset deal deals describe described describes discuss
discussed discusses document documentation documents everything file files folder frequent general gist here
idea ideas important index inside key knowledge letters library list main mainly mention mentioned mentions
message messages note notes outline overall overview page pages paper papers passage passages point points
project record records recur recurring repeated report reports section sections set sets short sources
subject subjects summarise summarize summary talked text texts theme themes together topic topics treat
treated what whole write written
"""
WORDS_FOR_DOCUMENTS: Final = frozenset(_FOR_DOCUMENTS.split())
"""English words in questions about a whole collection, such as "What are the main topics of these texts?"."""
