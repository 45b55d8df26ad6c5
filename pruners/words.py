"""Static baselines for text encoders, which know what a token spells: rare tokens first, and no stop words.

Reference: Lassance et al. 2021, "A Study on Token Pruning for ColBERT" (arXiv 2112.06540), which compares simple
heuristics with attention (read in its abstract; its own rules may differ). Frequencies are those of the calibration
pages, so that neither the indexed corpus nor a query is seen. Pages of patches have no tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from pruners import Page, PruneBoardError, Scorer, learned, scorer


@scorer("idf", needs=("token",), paper="Lassance et al. 2021, arXiv 2112.06540")
@dataclass(frozen=True)
class Idf(Scorer):
    """Tokens that few calibration pages have; of tokens that are as rare, the first on the page.

    Formula:
        s_{j} = ln (1 + P) / (1 + P_{t}), t the token at j, P_{t} of P calibration pages have it
        keep the k largest s_{j}
    """

    weights: torch.Tensor | None = learned()  # by number in the vocabulary; a token beyond them was on no page

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        if not pages:
            raise PruneBoardError(f"{self} needs at least one calibration page")
        found = np.concatenate([np.unique(page.signals["token"][-1].long()) for page in pages])
        weights = np.log((1 + len(pages)) / (1 + np.bincount(found)))
        return self.replace(weights=torch.from_numpy(np.append(weights, np.log(1 + len(pages)))))

    def score(self, page: Page) -> torch.Tensor:
        if self.weights is None:
            raise PruneBoardError("it has no frequencies yet; call calibrate(pages, budgets) first")
        token = page.signals["token"][-1]
        known = token.nan_to_num().long().clamp(0, len(self.weights) - 1)
        return self.weights[known].where(token.isfinite(), torch.nan)


@scorer("stopwords", needs=("stopword",), paper="Lassance et al. 2021, arXiv 2112.06540")
def stopwords(page: Page, rng: np.random.Generator) -> torch.Tensor:
    """Random among the tokens of words that are no stop words; stop words and punctuation only when those are used up.

    Formula:
        s_{j} ~ U(0,1) − 1 if the token at j belongs to a stop word or to no word
        keep the k largest s_{j}
    """
    return torch.from_numpy(rng.random(len(page))) - page.signals["stopword"][-1]
