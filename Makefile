# make demo   builds, installs what is missing, shows that it works, cleans up
# make check  the tests that need no root and no network, in under two minutes
# make test   every test; lists those that could not run here, and why
# make test-long  the same, with all rounds of random input and all labs of the demo
# make test-drivers  the labs' tests of drops, policies, traces and counters, and the attacks, on each
#             driver of pods' ports and of the tunnel, with offload and without
# make test-k8s  the agent's tests against a real API server, built when it is not
#             cached (hack/k8s/build); prints its figures for a large cluster
# make test-vm  network cards, VLANs, bonds, older and newer kernels, in virtual machines with Debian's kernels
# make test-deploy  the Kustomize base and the Helm chart are the same, and valid
# make lint   gofmt, go vet, staticcheck
# make vulncheck  known vulnerabilities in what the programs call (needs their database)
# make licences   THIRD-PARTY-NOTICES, from the modules that the programs link
# make release  dist/: static programs, Debian packages, images, the chart, SBOMs, sums
# make release-test  builds a release twice and compares; installs and removes the package
# make book   docs/pipeline and docs/configuration.md, from the tables, sample objects, packets and types
# make build  bin/antrail and bin/antrail-cni, the CNI plugin
# make demo-k8s  the same with pods of a real Kubernetes, which it builds once
# make image  bin/antrail-image.tar, which container runtimes import

IMAGE := docker.io/library/antrail:latest
NFT := /usr/sbin/nft
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Without paths of this checkout in them, compiled packages of other checkouts can be used here.
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -trimpath

.PHONY: all build image demo demo-k8s check test test-long test-drivers test-k8s test-vm test-deploy lint book clean vulncheck licences release release-test

all: build

build:
	hack/need-packages build
	CGO_ENABLED=0 go build -pgo=cmd/antrail/default.pgo -ldflags "$$(hack/version ldflags)" -o bin/ ./cmd/antrail ./cmd/antrail-cni

# Both programs are static. nft(8), which writes the Node's rules, is Debian's, with
# the libraries that it needs.
image: build
	hack/need-packages demo
	go run ./hack/image -o bin/antrail-image.tar -name $(IMAGE) -entrypoint /usr/local/bin/antrail \
		-env PATH=/usr/local/bin:/usr/sbin -link /run:/var/run \
		-add bin/antrail:/usr/local/bin/antrail -add bin/antrail-cni:/usr/local/bin/antrail-cni \
		-program $(NFT):/usr/sbin/nft

demo: build
	hack/need-packages demo
	hack/as-root bin/antrail demo

demo-k8s: image
	hack/need-packages k8s
	hack/demo-k8s/run

check:
	hack/need-packages build
	hack/check

test:
	hack/need-packages test
	hack/test

test-long:
	hack/need-packages test
	hack/test -long

test-drivers:
	hack/need-packages test
	hack/test-drivers

test-k8s:
	hack/test-k8s

test-vm:
	hack/need-packages vm
	hack/test-vm

# Manifests and chart: modules of their own, for Kustomize and Helm are large.
test-deploy:
	cd hack/deploy && go vet . && go test -count=1 .

lint:
	hack/need-packages build
	hack/lint $(STATICCHECK)

vulncheck:
	hack/need-packages build
	hack/vulncheck $(GOVULNCHECK)

licences:
	hack/need-packages build
	go run ./hack/licences THIRD-PARTY-NOTICES

release:
	hack/need-packages build
	hack/release

release-test:
	hack/need-packages release
	hack/release-test

book:
	go run ./docs/book
	go run ./docs/reference

clean:
	rm -rf bin dist
