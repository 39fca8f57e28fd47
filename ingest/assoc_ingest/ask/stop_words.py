"""English words that say nothing about what a question is about."""

from __future__ import annotations

_WORDS = """
    a about after again all also am an and any are aren as at be because been before being but by
    can could did didn do does doesn doing don done during each either else etc ever every few for
    from get gets getting give given go goes going got had has hasn have haven having he her here
    hers him his how i if in into is isn it its itself just know last later let like ll look made
    make makes many may maybe me might mine more most much must my need needed needs neither no nor
    not now of off on once one only or other our ours out over own per please possible put quite
    rather re really s said same say see seem shall she should shouldn so some somehow something
    still such t tell than that the their them then there these they thing things think this those
    though through to too try trying under until up upon us use used uses using ve very via want
    wants was wasn way we well were weren what when where whether which while who whom whose why
    will with within without won would wouldn yes yet you your yours
"""
STOP_WORDS = frozenset(_WORDS.split())
"""In lower case; the index takes `don't` for two words."""
