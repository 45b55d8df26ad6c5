"""Guests: methods that are not built in. Each runs in a process that holds no queries, no scores and no benchmark.

host.py       what a user names or gives becomes pruners: built-in ones as they are, others as guests
guest.py      a pruner whose work is done in such a process, and whose results are checked here
process.py    that process, as seen from here
line.py       the talk with it, within a time; what it prints is shown in plain characters
template.py   the process that all of them are forked from: it has torch, and nothing of ours
child.py      what runs inside
frames.py     what goes to and fro: JSON and plain arrays, nothing that could run code here
sandbox.py    without writing, without reading what is not needed (Linux)
calls.py      without network, other processes, and whatever else a method has no use for
"""
