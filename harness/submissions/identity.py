"""The id of a submission: a hash of everything that was measured, and of what it was measured on.

So a changed score cannot keep its id, wherever it was changed, and no list of known ids has to be kept. Who submits,
when, with which links and remarks, and on which machine, may be corrected without becoming another submission.
"""

from __future__ import annotations

import hashlib
import json

from harness.submissions.schema import Submission

MEASURED = ("format", "claim", "benchmark", "backbone", "method", "cells", "per_query", "kept", "reproduces")


def content_id(submission: Submission) -> str:
    """The id that belongs to this content. Defaults are left out, so that a new optional field changes no old id."""
    content = submission.model_dump(mode="json", include=set(MEASURED), exclude_defaults=True)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def with_id(submission: Submission) -> Submission:
    return submission.model_copy(update={"id": content_id(submission)})
