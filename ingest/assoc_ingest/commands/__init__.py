"""The commands of the program, one module each: parse arguments, call one function, print.

A module here imports nothing heavy at its top: `--help` reads all of them.
"""
