"""How figures and tables look: matplotlib styles, LaTeX, and the names of methods and measures for people."""
