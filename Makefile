# make demo   builds, installs what is missing, shows that it works, cleans up
# make test   every test, and says which could not run here and why
# make test-k8s  the agent's tests against a real API server, built when it is not
#             cached (hack/k8s/build); prints what it holds of a large cluster
# make test-vm  network cards, VLANs, bonds, older and newer kernels, in virtual machines with Debian's kernels
# make test-deploy  the Kustomize base and the Helm chart are the same, and valid
# make lint   gofmt, go vet, staticcheck
# make book   docs/pipeline, written anew from the tables, the sample objects and packets
# make build  bin/antrail and bin/antrail-cni, the CNI plugin
# make demo-k8s  the same with pods of a real Kubernetes, which it builds once
# make image  bin/antrail-image.tar, which container runtimes import

IMAGE := docker.io/library/antrail:latest
NFT := /usr/sbin/nft
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all build image demo demo-k8s test test-k8s test-vm test-deploy lint book clean

all: build

build:
	CGO_ENABLED=0 go build -pgo=cmd/antrail/default.pgo -o bin/ ./cmd/antrail ./cmd/antrail-cni

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

test:
	hack/need-packages test
	hack/test

test-k8s:
	hack/test-k8s

test-vm:
	hack/need-packages vm
	hack/test-vm

# Manifests and chart: modules of their own, for Kustomize and Helm are large.
test-deploy:
	cd hack/deploy && go vet . && go test -count=1 .

lint:
	hack/lint $(STATICCHECK)

book:
	go run ./docs/book

clean:
	rm -rf bin
