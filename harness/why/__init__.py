"""Why a method wins or loses: pages with what it kept drawn on them, and queries with what they lost.

canvas, tokens     a page as it is drawn, where its vectors lie on it, and the words of queries
kept, hits         what a method left of a page, and which vector each query token matches before and after
page_view          a page, its methods and budgets: what is drawn; figure (PNG, SVG) and html draw it
show               from names of pages and methods to a page view
record, explain    a run's own record, checked against what comes out now, and the page that explains it
"""
