"""A measure of memory for coding agents: it finds the conversation, or says that there is none.

    make bench-memory                                  what this program answers
    python -m benchmarks.memory build entireio/cli     a set of published transcripts
    python -m benchmarks.memory score ANSWERS          what another program answered

A case is a question whose true answer is known without a judge: it was written by hand, or a
repository states it of its own commits. `case` has the format and the figures, `published` makes
cases from public repositories, `ours` asks this program. The README says how to measure others.
"""
