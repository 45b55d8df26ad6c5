# Names for type checkers: `__init__.py` loads them on first use. A method that is missing here works all the same.

from typing import Any

from .agc import agc as agc
from .anchorfold import anchorfold_indegree as anchorfold_indegree
from .controls import first_k as first_k
from .controls import ink as ink
from .controls import uniform_grid as uniform_grid
from .core.apply import prune as prune
from .core.apply import require as require
from .core.budget import STANDARD as STANDARD
from .core.budget import SWEEP as SWEEP
from .core.budget import keep_count as keep_count
from .core.catalog import catalogue as catalogue
from .core.catalog import parse as parse
from .core.catalog import resolve as resolve
from .core.codec import Codec as Codec
from .core.codec import codec as codec
from .core.contract import Diagnostic as Diagnostic
from .core.contract import Merged as Merged
from .core.contract import Preset as Preset
from .core.contract import Pruner as Pruner
from .core.contract import Reducer as Reducer
from .core.contract import Scorer as Scorer
from .core.contract import Subset as Subset
from .core.contract import unit as unit
from .core.contract_check import check_contract as check_contract
from .core.contract_check import synthetic_page as synthetic_page
from .core.decorators import diagnostic as diagnostic
from .core.decorators import preset as preset
from .core.decorators import pruner as pruner
from .core.decorators import reducer as reducer
from .core.decorators import scorer as scorer
from .core.errors import PruneBoardError as PruneBoardError
from .core.errors import PrunerError as PrunerError
from .core.page import SIGNALS as SIGNALS
from .core.page import Page as Page
from .core.single_page import Pruned as Pruned
from .core.text_form import learned as learned
from .core.window import Window as Window
from .coverage import kcenter as kcenter
from .eos import docpruner as docpruner
from .eos import eos as eos
from .fair_ward import fair_ward as fair_ward
from .kmeans import kmeans as kmeans
from .leverage import pca_leverage as pca_leverage
from .linkage import agglomerative as agglomerative
from .linkage import token_pooling as token_pooling
from .linkage import ward as ward
from .merge import prune_then_merge as prune_then_merge
from .oracle import oracle as oracle
from .random import random as random
from .random import random_nonblank as random_nonblank
from .sap import sap as sap
from .sap import sap_adaptive as sap_adaptive
from .sap import sap_all_to_visual as sap_all_to_visual
from .sap import sap_max as sap_max
from .sap import sap_then_merge as sap_then_merge
from .voronoi import voronoi as voronoi
from .words import stopwords as stopwords

adamerge: Any
adaptive: Any
attn_fps: Any
docmerger: Any
dominance: Any
hpc: Any
idf: Any
merge: Any
mmr: Any
row_pool: Any
tile_pool: Any
tome: Any
