"""Writing what belongs to submissions: the same content is the same bytes."""

from __future__ import annotations

import json

import pydantic


def to_json(model: pydantic.BaseModel) -> bytes:
    """As it is written: what is at its default is left out."""
    fields = model.model_dump(mode="json", exclude_defaults=True)
    return (json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
