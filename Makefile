# make build | test | demo | format | check-format | tidy | reference | install PREFIX=...
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: build test demo format check-format tidy reference install bootstrap

build:
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

bootstrap:
	scripts/bootstrap

test: bootstrap
	$(MAKE) build
	ctest --test-dir build -j 2 --output-on-failure
	scripts/format --check

demo: bootstrap
	$(MAKE) build
	scripts/demo

format:
	scripts/format

check-format:
	scripts/format --check

tidy:
	scripts/tidy

reference:  # build/reference/html, from the headers' comments; doxygen comes with scripts/bootstrap --dev
	mkdir -p build/reference
	doxygen docs/Doxyfile

install: build
	cmake --install build --prefix $(PREFIX)
