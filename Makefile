# make demo   builds, installs what is missing, shows that it works, cleans up
# make test   every test, and says which could not run here and why
# make lint   gofmt, go vet, staticcheck
# make build  bin/antrail and bin/antrail-cni, the CNI plugin

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: all build demo test lint clean

all: build

build:
	CGO_ENABLED=0 go build -o bin/ ./cmd/antrail ./cmd/antrail-cni

demo: build
	hack/need-packages demo
	hack/as-root bin/antrail demo

test:
	hack/need-packages test
	hack/test

lint:
	hack/lint $(STATICCHECK)

clean:
	rm -rf bin
