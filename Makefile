# make build | test | demo | format | check-format | tidy | install PREFIX=...
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: build test demo format check-format tidy install bootstrap

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

install: build
	cmake --install build --prefix $(PREFIX)
