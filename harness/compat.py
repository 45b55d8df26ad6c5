"""Makes a CPU build of torch work beside a CUDA build of torchvision.

Package indexes that carry a CPU torch often carry only the CUDA build of torchvision. Its operators then do not load,
and importing torchvision dies with `operator torchvision::nms does not exist`; colpali-engine hides that behind a
misleading `Gemma3Model` error. transformers, mteb, colpali-engine and sentence-transformers all import torchvision,
so any module that uses one of them has `import harness.compat  # noqa: F401` above it; the linter keeps it there.

Nothing here ever runs the two operators: they belong to object detection. Declaring them is enough for the import.
"""

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def declare_missing_operators() -> torch.library.Library | None:
    """Declare torchvision's operators if its own library cannot. Returns the handle that keeps them alive, or None."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
    else:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    return library


DECLARED = declare_missing_operators()
