"""The SAP paper's tables and figures as commands, on any backbone and benchmark.

`harness/paper/sap_paper.json` holds the figures that the paper printed (Liu, Hu, Zhang, Xiao, "Structural Anchor
Pruning"), rounded by its authors.
"""
