"""From PDFs and images on disk to a benchmark in ViDoRe's layout: `harness import`.

Two ways lead here. With labels (`queries.jsonl`, `qrels.tsv`) every row is checked and nothing is left out silently;
without any, a PDF's own outline gives the queries: a heading asks for the page it points to.
"""
