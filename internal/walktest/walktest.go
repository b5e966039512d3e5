// Package walktest gives tests of switches the flag -walk: with it their
// switches have no exact-match cache, so that every packet walks and must come
// to what the replayed ones come to. hack/test runs the tests of packages that
// have it both ways.
package walktest

import (
	"flag"

	"github.com/antrail/antrail/internal/testsize"
)

// All says that every packet is to walk.
var All = flag.Bool("walk", false, "run the tests with switches that have no exact-match cache")

// Some are all cases of a list, or with -walk and -short every third one: what the cases
// want is known from the run before.
func Some[T any](all []T) []T {
	if *All {
		return testsize.Some(all)
	}
	return all
}

// Cache is what dataplane.Config.Cache is to be: the switch's own choice, or
// none with -walk.
func Cache() int {
	if *All {
		return -1
	}
	return 0
}
