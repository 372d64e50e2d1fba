#!/bin/sh
# Puts what a release consists of into build/release/: the solved course, the book, an image of the
# course for Docker and Podman, and the version's part of the changelog.
set -eu
cd "$(dirname "$0")/.."
version=$1
container=$(command -v docker || command -v podman) || {
    echo "error: the image of the course needs docker or podman; neither is on PATH" >&2
    exit 1
}
rm -rf build/release
mkdir -p build/release
awk -v heading="## $version " 'index($0, "## ") == 1 { inside = index($0, heading) == 1; next } inside' \
    CHANGELOG.md >build/release/notes.md
grep -q '[^[:space:]]' build/release/notes.md || {
    echo "error: CHANGELOG.md says nothing of version $version; add a section \"## $version - DATE\"" >&2
    exit 1
}
tar --create --gzip --file build/release/solved-course.tar.gz --directory build course
tar --create --gzip --file build/release/book.tar.gz --directory build/book html
"$container" build --file .devcontainer/Dockerfile --tag "hvdcourse:$version" .
"$container" save "hvdcourse:$version" | gzip >build/release/image.tar.gz
