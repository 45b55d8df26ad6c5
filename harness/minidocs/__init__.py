"""minidocs: a page benchmark drawn by code and pinned in the repository, in ViDoRe's own parquet layout.

`vocabulary` has the words, `specs` what a page says, `drawing` and `layouts` how it looks, `queries` what is asked and
which pages answer, `benchmark` the named datasets, `files` the files on disk and their hashes. Nothing here knows a
model; the words of a page are recorded while drawing, so that a reader can be trained and facts can be checked.
"""
