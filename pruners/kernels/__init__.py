"""The compiled loops that methods call. `reference.py` says in plain numpy what each of them computes, and a test
(`tests/pruners/test_kernels.py`) holds the two together, so that a method can be read without reading its loops.

They are plain loops on purpose: a sort, an index array or an assignment of arrays in one of them takes a second to
compile, which every first run would wait for.
"""
