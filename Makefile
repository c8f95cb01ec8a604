# make test is what CI runs; everything it needs is installed by scripts/setup.
SHELL := /bin/bash
export CGO_ENABLED ?= 0
SCHEMAS ?= $(abspath ../shared/schemas)
GO ?= go

.PHONY: help run test check bench conformance crash release setup

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## run the demo
	$(GO) run ./cmd/tributary demo

setup: ## install what the tests need (PostgreSQL server binaries and small tools, from the distribution)
	@scripts/setup

check: ## formatting, vet, staticcheck, house rules
	@scripts/check

test: setup check ## everything, on SQLite and PostgreSQL, with the race detector
	TRIBUTARY_TEST_POSTGRES=required TRIBUTARY_SCHEMAS=$${TRIBUTARY_SCHEMAS:-$(SCHEMAS)} CGO_ENABLED=1 \
		$(GO) test -race -timeout 20m ./...

bench: setup ## the benchmarks of the packages, one run each
	TRIBUTARY_TEST_POSTGRES=required $(GO) test -run '^$$' -bench . -benchtime 1x ./internal/db ./internal/secret ./internal/account ./internal/webhook ./internal/document ./internal/country/... ./internal/transaction ./internal/lookup

conformance: setup ## documents against official schemas and tools
	TRIBUTARY_SCHEMAS=$${TRIBUTARY_SCHEMAS:-$(SCHEMAS)} $(GO) test -count=1 ./internal/country/...

crash: setup ## kill runs against the real binary (long; KILLS=1000 for the full record)
	TRIBUTARY_CRASH_KILLS=$${KILLS:-200} CGO_ENABLED=0 $(GO) test -count=1 -timeout 2h -run 'TestCrashRun' -v ./cmd/tributary

release: ## static binaries into bin/
	@scripts/release
