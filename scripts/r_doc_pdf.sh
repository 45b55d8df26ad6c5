#!/bin/sh
# Real pages and a real transformer, offline: the manuals of Debian's r-doc-pdf, from PDF to leaderboard.
#
#   apt-get install r-doc-pdf                 # GPL; nothing of it is stored in this repository but figures
#   pip install -e '.[minilm]'
#   scripts/r_doc_pdf.sh [FOLDER]             # default: runs/r-doc-pdf; goes on where it was interrupted
#   SUBMITTER=you SUBMISSIONS=submissions scripts/r_doc_pdf.sh      # into the project's own submissions
#
# Evaluated: the seven manuals R-*.pdf. Calibrated on 500 pages of the reference manual, another book by the same
# authors, whose headings are names of functions (hence --min-words 1). `harness evaluate` checks that they share no page.
set -eu
here=${1:-runs/r-doc-pdf}
manuals=${R_MANUALS:-/usr/share/R/doc/manual}
harness=${HARNESS:-harness}

if [ ! -f "$manuals/refman.pdf" ]; then
  echo "there are no R manuals in $manuals: apt-get install r-doc-pdf, or set R_MANUALS" >&2
  exit 2
fi

started=$(date +%s)
step() {
  echo
  echo "[$(($(date +%s) - started)) s] $harness $*"
  $harness "$@"
}

[ -d "$here/r-doc-pdf" ] || step import "$manuals"/R-*.pdf --queries outline --out "$here/r-doc-pdf"
[ -d "$here/r-doc-pdf-calibration" ] ||
  step import "$manuals/refman.pdf" --queries outline --min-words 1 --pairs 500 --out "$here/r-doc-pdf-calibration"
step calibrate --backbone minilm --benchmark "$here/r-doc-pdf-calibration" --store "$here/stores"
step evaluate --backbone minilm --benchmark "$here/r-doc-pdf" --calibration "$here/r-doc-pdf-calibration" \
  --store "$here/stores" --out "$here/run"
submissions=${SUBMISSIONS:-$here/submissions}
step submit "$here/run" --submitter "${SUBMITTER:-local}" --out "$submissions"
step validate "$submissions"
step leaderboard --submissions "$submissions" --out "$here/site"
echo
echo "[$(($(date +%s) - started)) s] done: $here/site/index.html"
