# `make lab` to learn, `make test` to prove that it works. The rest is for those who change the course.
SHELL := /bin/sh
BIN := .venv/bin
# What the Open MPI wheel and TensorFlow read; a terminal in JupyterLab inherits it.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export OPAL_PREFIX := $(CURDIR)/.venv
unexport VIRTUAL_ENV
PYTHON_FILES := book hvdcourse notebooks slides source_code solutions tests tools
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help lab test test-fast test-pythons course setup setup-tests gpu clean lint format exercises \
	figures notebooks verdicts mistakes book slides links browser-test class-server cluster-packages \
	cluster-test bench bench-startup try-next new-exercise release publish

help:
	@echo "make lab           set everything up and open the course in JupyterLab"
	@echo "make test          set everything up and prove that it works"
	@echo "make test-fast     prove in a minute and a half what needs no ranks"
	@echo "make test-pythons  test on Python 3.10 and 3.13, which must be installed"
	@echo "make course        run every notebook, solved; results in build/course/"
	@echo "make book          build the book, a static site, in build/book/html/"
	@echo "make setup         set everything up: .venv with the locked packages"
	@echo "make gpu           set everything up anew, for GPUs; needs the CUDA toolkit"
	@echo "make clean         remove .venv, .uv and build; your work and progress stay"
	@echo "make lint          check format, imports, types and spelling"
	@echo "make format        put code and notebooks into that format"
	@echo "make exercises     make source_code/ and the after_step files from solutions/"
	@echo "make new-exercise NAME=my_exercise  lay out the files of a new exercise"
	@echo "make figures       draw the figures in images/ anew"
	@echo "make notebooks     run every notebook, solved, and store its outputs in place"
	@echo "make verdicts      record the verdicts that the lessons show"
	@echo "make mistakes      record what checks say of each mistake that the tests make"
	@echo "make slides        build a deck for each lesson, with notes for the speaker, in build/slides/"
	@echo "make links         ask the hosts that the book links to whether the pages are still there"
	@echo "make browser-test  try the book, the slides and the first lesson in a real browser"
	@echo "make class-server  try a class of 20 on a real JupyterHub on this machine"
	@echo "make cluster-test  test several hosts and Slurm on this machine; needs root"
	@echo "make cluster-packages  install what cluster-test needs, of Debian's packages"
	@echo "make release       put the book, the solved course, an image and notes into build/release/"
	@echo "make publish       make a release on GitHub of build/release/, for the tag that is checked out"
	@echo "make try-next      build and check against the newest TensorFlow, in build/try-next/"
	@echo "make bench         measure the training of a ResNet on CIFAR-10, in several forms"
	@echo "make bench-startup measure what starting two ranks costs, in several ways"

# A login shell, which Jupyter starts where nobody watches its output, would set PATH anew.
lab: setup
	@$(if $(AS_ROOT),echo "JupyterLab runs as root: so does all that a notebook starts.")
	jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb \
		--ServerApp.terminado_settings="shell_command=['$${SHELL:-/bin/sh}']" \
		--LabApp.app_settings_dir=tools/jupyterlab $(AS_ROOT) $(LAB_ARGUMENTS)

# Two tests at a time: one by one they use two thirds of the time of two cores. nbval runs solved,
# quick copies of the notebooks beside the tests, and compares what is the same everywhere.
test: setup-tests lint
	python tools/course.py --prepare
	python -m pytest tests build/*.ipynb --nbval-lax --nbval-current-env -n 2 \
		--dist loadgroup $(TEST_ARGUMENTS)

test-fast: setup-tests lint
	python -m pytest tests -m "not ranks" -n 2 $(TEST_ARGUMENTS)

# The lowest and the highest Python that pyproject.toml promises.
test-pythons:
	tools/test-python.sh 3.10
	tools/test-python.sh 3.13

# What lessons do on several hosts of this machine, for which it takes root, cluster-test tests.
course: setup
	HVDCOURSE_CLUSTER=$${HVDCOURSE_CLUSTER:-0} python tools/course.py build/course

setup:
	@tools/setup.sh

setup-tests:
	@WITH_ORACLE=1 tools/setup.sh

gpu:
	@tools/build-for-gpus.sh

clean:
	rm -rf .venv .uv build .pytest_cache .ruff_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lint:
	ruff format --check $(PYTHON_FILES)
	ruff check $(PYTHON_FILES)
	lint-imports --no-logo
	mypy
	nb-clean check $(NOTEBOOK_FORMAT) notebooks
	codespell *.md .github book hvdcourse notebooks slides solutions tests tools

format:
	ruff format $(PYTHON_FILES)
	ruff check --fix $(PYTHON_FILES)
	nb-clean clean $(NOTEBOOK_FORMAT) notebooks

NOTEBOOK_FORMAT := --preserve-cell-outputs --preserve-execution-counts --preserve-cell-metadata tags jupyter --

exercises:
	python -m hvdcourse.checks.stages

# LESSON=3 puts it into lesson 3.
new-exercise: setup
	@python tools/new_exercise.py "$(NAME)" --lesson "$(or $(LESSON),1)"

figures:
	cd tools && python -m figures

notebooks: setup
	python tools/course.py --in-place

slides:
	@tools/setup.sh --group book
	sphinx-build -b revealjs -E -W --keep-going -q -d build/slides-doctrees slides build/slides

# No cell is run. A broken link or a page that nothing leads to is a warning, and so an error.
book:
	@tools/setup.sh --group book
	PYTHONPATH=tests python book/pages.py
	sphinx-build -q -W --keep-going -c book build/book/source build/book/html
	@echo "The book is in build/book/html/index.html"

# Sphinx prints a line for each broken link, and build/book/links/output.txt lists them.
links: book
	sphinx-build -b linkcheck -q -c book build/book/source build/book/links

browser-test: book slides
	@tools/setup.sh --group browser --group book
	tools/browser-test.sh

verdicts: setup
	python tools/record_verdicts.py

# NAME=cifar records those of this exercise alone.
mistakes: setup-tests
	python -m pytest tests/checks/test_mistakes.py -k "each_mistake and $(or $(NAME),each)" -n 2 \
		--junitxml=build/mistakes.xml
	PYTHONPATH=book:tests python tools/record_mistakes.py build/mistakes.xml

class-server:
	@tools/setup.sh --group hub
	python tools/class_server/trial.py

cluster-packages:
	tools/cluster-packages.sh install

cluster-test: setup
	@tools/cluster-test.sh $(TEST_ARGUMENTS)

try-next: setup
	python tools/try_next.py $(TRY_ARGUMENTS)

bench: setup
	python tools/bench_cifar.py $(BENCH_ARGUMENTS)

bench-startup: setup
	python tools/bench_startup.py

VERSION = $(shell python -c "from importlib.metadata import version; print(version('hvdcourse'))")

release: course book
	tools/release.sh "$(VERSION)"

# --verify-tag: only for a version whose tag was pushed.
publish:
	gh release create "v$(VERSION)" --verify-tag --title "$(VERSION)" --notes-file build/release/notes.md \
		build/release/*.tar.gz
