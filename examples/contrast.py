# A whole pruning method: keep the vectors that differ most from their page's mean.
from pruners import scorer


@scorer("contrast", needs=())
def contrast(page):
    """Distance from the page's mean vector."""
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1)
