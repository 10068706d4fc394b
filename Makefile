# Every target does its own set-up: on a fresh machine with Node.js >= 20 `make start` or `make test` is all there is to type.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CONF ?= etc/tidegate.conf
# Seconds for all fuzz limits targets together.
FUZZ_SECONDS ?= 60
# Minutes of `make churn`.
MINUTES ?= 10
# Options for the benchmark, e.g. BENCH="--only topics --rounds 3".
BENCH ?=
CHAOS ?= --rounds 300
# Architectures of Debian packages, empty for all.
ARCHS ?=

sources := $(shell find src docs -type f 2>/dev/null) README.md scripts/build.ts tsconfig.json package.json package-lock.json

.PHONY: help start build check test bench bench-check interop fuzz chaos docs pictures dist deb trydeb tryimage newcomer release reproduce site setup peers clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

start: build ## set up, build and run the gateway with etc/tidegate.conf (CONF=file for another)
	exec node dist/main.js start -c $(CONF)

build: dist/main.js ## build dist/main.js, the command

dist/main.js: $(sources) | setup
	npx tsx scripts/build.ts

check: setup ## types, lint, layers, generated files
	@failed=0; \
	for step in "tsc --noEmit" $(if $(wildcard src/console/web/tsconfig.json),"tsc --noEmit -p src/console/web") "biome check ." "tsx scripts/layers.ts" "tsx scripts/docs.ts --check" "tsx scripts/conformance.ts --check" "tsx scripts/maps.ts --check"; do \
	  echo "check: $$step"; npx --no-install $$step || failed=1; \
	done; exit $$failed

test: setup peers build ## set up and run all tests
	@code=0; rm -f test-report.json test-report.json.unhandled; \
	timeout --foreground 1800 npx vitest run --reporter=default --reporter=json --reporter=./scripts/unhandled.mjs --outputFile.json=test-report.json || code=$$?; \
	$(if $(CI),if [ $$code -ne 0 ]; then node scripts/again.mjs test-report.json && code=0; fi;) \
	node scripts/skips.mjs test-report.json $(if $(CI),--strict) || code=1; exit $$code

bench: setup peers build ## compare with mosquitto on this machine
	npx tsx test/bench/run.ts $(BENCH)

bench-check: setup build ## fail where this tree is slower than COMMIT=..., e.g. the last release
	npx tsx test/bench/check.ts $(COMMIT) $(BENCH)

interop: setup peers ## NNG bridges against nngcat, nanocat and the nanomsg package; writes docs/interop.md
	npx tsx test/interop/run.ts --write

limits: setup ## fill and hold a gateway by every means known: all kinds of memory at once, each attack on time ten times
	FULL=1 FIGURES=1 npx vitest run test/limits

fuzz: setup ## throw random bytes at every decoder
	npx tsx test/fuzz/run.ts --seconds $(FUZZ_SECONDS)

chaos: setup ## every path under kills, stops, flaps, stalls, clock jumps, a full store: CHAOS="--rounds 300 --seed N"
	npx tsx test/chaos/run.ts $(CHAOS)

churn: setup ## load that comes and goes for MINUTES=10 (60: an hour), and what memory keeps of it
	npx tsx test/churn/run.ts --minutes $(MINUTES)

docs: setup ## write etc/*.reference.*, docs/reference-* and docs/conformance.md from what stands in the code
	npx tsx scripts/docs.ts
	npx tsx scripts/conformance.ts
	npx tsx scripts/maps.ts

pictures: setup ## the pictures of docs/console.md (Chromium): one for each page of the console
	npx tsx scripts/pictures.ts

dist: build ## the npm package as release/tidegate-<version>.tgz
	npx tsx scripts/dist.ts

deb: build ## Debian packages in release/: amd64, arm64, armhf with their own Node.js, and slim (ARCHS="amd64 all" for some)
	npx tsx scripts/deb.ts $(ARCHS)

newcomer: ## ten minutes of somebody new: a fresh clone, make start, the sessions of docs/getting-started.md
	scripts/newcomer.sh

tryimage: ## build the container image and try it (root, buildah, debootstrap)
	scripts/tryimage.sh

trydeb: ## try the packages in fresh Debians (root, debootstrap, qemu-user-static for arm): ARCHS="amd64 arm64 armhf"
	@failed=0; for arch in $(or $(ARCHS),amd64 arm64 armhf); do scripts/trydeb.sh release/tidegate_*_$$arch.deb || failed=1; done; exit $$failed

release: build ## everything of a release in release/, with checksums: archive, packages, bill of materials
	rm -rf release
	npx tsx scripts/dist.ts
	npx tsx scripts/deb.ts $(ARCHS)
	cp dist/sbom.cdx.json release/tidegate.cdx.json
	cd release && rm -f SHA256SUMS && sha256sum *.tgz *.deb *.json > SHA256SUMS && cat SHA256SUMS

reproduce: setup ## build the release twice, under different circumstances, and compare every byte (ARCHS=all: without Node.js)
	ARCHS="$(ARCHS)" scripts/reproduce.sh

site: setup ## the documentation as a site in dist/docs, which the console serves at /docs
	npx tsx scripts/site.ts

setup: ## npm packages, if they are missing or other ones are wanted
	@scripts/setup.sh packages

peers: ## Debian packages of the programs that tests talk to, if root
	@scripts/setup.sh peers

clean: ## removes what was built
	rm -rf dist release coverage test-report.json
