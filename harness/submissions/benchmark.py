"""What a benchmark is, beside its submissions: counts and content hashes, page ids, relevance. No texts, no pictures.

    submissions/<benchmark>/benchmark.json    its data sets
    submissions/<benchmark>/pages.parquet     page ids in the corpus's order
    submissions/<benchmark>/qrels.parquet     graded relevance, whose hash is computed again and compared

With it every ranking can be judged again, offline. A benchmark of which only figures are reported has the first alone.
What the project itself knows of a benchmark is in the manifest of `minidocs` and, for ViDoRe and its kin, in
`harness/benchmarks/known.json`, written from mteb's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness import parquet
from harness.benchmarks.content import qrels_hash
from harness.benchmarks.embedded import EMBEDDED, NAMES
from harness.benchmarks.known import known
from harness.benchmarks.tables import PAGES, QRELS
from harness.parquet import TableError
from harness.submissions.folder import BENCHMARK, BENCHMARK_FILES, read_model, unsafe
from harness.submissions.judgements import Judgements
from harness.submissions.problems import Notes, SubmissionError, printable
from harness.submissions.schema import BenchmarkFacts, DataSetFacts, Submission

HIGHEST_GRADE = 1000


@dataclass(frozen=True)
class BenchmarkRecord:
    """A benchmark as it lies beside its submissions. `judged` is empty where only figures are reported."""

    facts: BenchmarkFacts
    judged: Mapping[str, Judgements] = field(default_factory=dict)

    @property
    def data_sets(self) -> dict[str, DataSetFacts]:
        return {data_set.name: data_set for data_set in self.facts.data_sets}


def read_benchmark(folder: Path) -> BenchmarkRecord:
    """The benchmark of a folder of submissions."""
    benchmark = read_model(folder / BENCHMARK, BenchmarkFacts)
    return BenchmarkRecord(benchmark, read_tables(folder) if (folder / "qrels.parquet").exists() else {})


def read_tables(folder: Path) -> dict[str, Judgements]:
    """Page ids and relevance by data set."""
    pages = _by_data_set(parquet.read(folder / "pages.parquet", PAGES))
    qrels = _by_data_set(parquet.read(folder / "qrels.parquet", QRELS))
    return {name: _judged(pages[name], qrels[name]) for name in pages if name in qrels}


def checked_benchmark(home: Path, notes: Notes) -> BenchmarkRecord | None:
    """A benchmark's record, if it holds together."""
    for name in BENCHMARK_FILES:
        if (home / name).exists() and (reason := unsafe(home / name, home.parent)):
            notes.error(name, reason, "put the file itself there")
    if not notes.clean:
        return None
    try:
        found = read_benchmark(home)
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "`harness submit` writes it from a run")
        return None
    except TableError as error:
        notes.error("tables", str(error), "`harness submit` writes them from a run")
        return None
    if found.facts.name != home.name:
        notes.error("name", f"is {printable(found.facts.name)}, the folder is {printable(home.name)}", "mend one")
    for where, what in table_differences(found):
        notes.error(printable(where), printable(what, 200), "the tables were changed: restore them")
    known = unknown_content(found.facts)
    for where, what in known or ():
        notes.error(printable(where), printable(what, 200), "measure on the known data, or name it otherwise")
    for where, what in known_counts(found):
        notes.error(printable(where), what, "measure on the known data, or name it otherwise")
    return found if notes.clean else None


def table_differences(record: BenchmarkRecord) -> list[tuple[str, str]]:
    """Where the tables are not what `benchmark.json` says: a field, and a sentence."""
    found = []
    for name, data_set in record.data_sets.items():
        if name not in record.judged:
            if record.judged or data_set.qrels is not None:
                found.append((name, "has no rows in pages.parquet and qrels.parquet"))
            continue
        judged = record.judged[name]
        unknown = {page for row in judged.qrels.values() for page in row} - set(judged.page_ids)
        if unknown:
            found.append((f"{name}.qrels", f"judges {len(unknown)} pages that pages.parquet has not"))
            continue
        stated = {"qrels": data_set.qrels, "pages": data_set.pages, "queries": data_set.queries}
        read = {
            "qrels": qrels_hash(judged.qrels),
            "pages": len(set(judged.page_ids)),
            "queries": len(judged.queries),
        }
        for what, value in stated.items():
            if value != read[what]:
                found.append((f"{name}.{what}", f"is {value}, but the tables give {read[what]}"))
        languages = tuple(sorted(set(judged.language_of) - {""}))
        if tuple(sorted(data_set.languages)) != languages:
            found.append((f"{name}.languages", f"are {data_set.languages}, but the tables give {languages}"))
    found += [(name, "is in the tables only") for name in sorted(set(record.judged) - set(record.data_sets))]
    return found


def _by_data_set(table: pa.Table) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for row in table.to_pylist():
        found.setdefault(row["data_set"], []).append(row)
    return found


def _judged(pages: list[dict], qrels: list[dict]) -> Judgements:
    grades: dict[str, dict[str, int]] = {}
    if wild := next((row for row in qrels if abs(row["grade"]) > HIGHEST_GRADE), None):
        raise TableError(f"qrels.parquet: the grade {wild['grade']} is beyond {HIGHEST_GRADE}")
    for row in qrels:
        grades.setdefault(row["query"], {})[row["page"]] = row["grade"]
    languages = {row["query"]: row["language"] for row in qrels}
    return Judgements(tuple(row["page"] for row in pages), grades, languages)


def known_data_sets(name: str) -> dict[str, DataSetFacts] | None:
    """The data sets of a known benchmark, with all that is known of them; None for others."""
    if name in NAMES:
        manifest = json.loads((EMBEDDED / "manifest.json").read_text(encoding="utf-8"))
        parts = ((f"{part}/{data_set}", hashes) for part in NAMES[name] for data_set, hashes in manifest[part].items())
        return {name: _embedded(name, hashes) for name, hashes in parts}
    facts = known()
    if name in facts["benchmarks"]:
        return {task: _of_mteb(task, facts["tasks"][task]) for task in facts["benchmarks"][name]}
    return None


def unknown_content(benchmark: BenchmarkFacts) -> list[tuple[str, str]] | None:
    """Where a pinned benchmark is not the known one of its name: a field, and a sentence. None if nothing is known."""
    wanted = known_data_sets(benchmark.name)
    if wanted is None:
        return None
    held = {data_set.name: data_set for data_set in benchmark.data_sets}
    found = [(name, "is missing") for name in wanted if not _parts(name, held)]
    for name, data_set in held.items():
        task = name if name in wanted else name.partition("/")[0]
        if task not in wanted:
            found.append((name, "is no data set of this benchmark"))
        elif task == name:
            found += [
                (f"{name}.{what}", f"is {getattr(data_set, what)}, {value} is known")
                for what, value in wanted[name].model_dump().items()
                if value not in (None, ()) and getattr(data_set, what) not in (None, (), value)
            ]
    return found


def known_counts(record: BenchmarkRecord) -> list[tuple[str, str]]:
    """Where the tables have more queries or judged pairs than mteb counts in a task: a field, and a sentence.

    Fewer are possible: queries without a relevant page are left out.
    """
    facts, found = known(), []
    for task in facts["benchmarks"].get(record.facts.name, ()):
        parts = [record.judged[name] for name in _parts(task, record.data_sets) if name in record.judged]
        subsets = facts["tasks"][task]["subsets"].values()
        read = {
            "queries": sum(len(judged.qrels) for judged in parts),
            "qrels": sum(len(pages) for judged in parts for pages in judged.qrels.values()),
        }
        found += [
            (f"{task}.{what}", f"has {count}, {most} are known")
            for what, count in read.items()
            if count > (most := sum(subset[what] for subset in subsets))
        ]
    return found


def _parts(task: str, held: Mapping[str, DataSetFacts]) -> list[str]:
    """A task whose languages have pages of their own is several data sets, `task/language`."""
    return [name for name in held if name == task or name.startswith(f"{task}/")]


def _embedded(name: str, hashes: Mapping[str, str]) -> DataSetFacts:
    return DataSetFacts(name=name, corpus=hashes["corpus"], query_texts=hashes["queries"], qrels=hashes["qrels"])


def _of_mteb(task: str, facts: Mapping[str, Any]) -> DataSetFacts:
    subsets = facts["subsets"]
    content = facts.get("content", {}).get(task, {})
    return DataSetFacts(
        name=task,
        revision=facts["revision"],
        pages=next(iter(subsets.values()))["pages"],
        languages=tuple(sorted(subsets)) if len(subsets) > 1 else (),
        corpus=content.get("corpus"),
        query_texts=content.get("queries"),
        qrels=content.get("qrels"),
    )


def coverage(submission: Submission, record: BenchmarkRecord) -> dict[float, tuple[int, int]]:
    """Budget -> data sets with all their languages, and data sets of the benchmark.

    Papers print the mean over a data set's languages: in reported figures a cell without a language stands for all.
    """
    found: dict[float, dict[str, set[str]]] = {}
    for cell in submission.cells:
        found.setdefault(cell.budget, {}).setdefault(cell.data_set, set()).add(cell.language)
    wanted = {name: set(data_set.languages) or {""} for name, data_set in record.data_sets.items()}
    return {
        budget: (
            sum(_whole(submission, here.get(name, set()), languages) for name, languages in wanted.items()),
            len(wanted),
        )
        for budget, here in sorted(found.items())
    }


def _whole(submission: Submission, found: set[str], wanted: set[str]) -> bool:
    return found == wanted or (submission.claim == "reported" and found == {""})


def missing(submission: Submission, record: BenchmarkRecord, budget: float) -> list[str]:
    """What a row lacks, in words."""
    here: dict[str, set[str]] = {}
    for cell in submission.cells:
        if cell.budget == budget:
            here.setdefault(cell.data_set, set()).add(cell.language)
    lacking = []
    for name, data_set in record.data_sets.items():
        if name not in here:
            lacking.append(name)
        elif not (submission.claim == "reported" and here[name] == {""}):
            lacking += [f"{name} in {language}" for language in data_set.languages if language not in here[name]]
    return lacking
