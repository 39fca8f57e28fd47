"""Benchmarks, and the generator of the homes they run on."""
