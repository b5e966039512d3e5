// Package walktest gives tests of switches the flag -walk. With it, their switches have no
// exact-match cache, so every packet walks. The results must be those of replayed packets.
// hack/test runs the tests of packages with the flag both ways.
package walktest

import (
	"flag"

	"github.com/antrail/antrail/internal/testsize"
)

// All says that every packet walks.
var All = flag.Bool("walk", false, "run the tests with switches that have no exact-match cache")

// Some are all cases of a list. With -walk and -short they are every third one, because the run
// before has checked all.
func Some[T any](all []T) []T {
	if *All {
		return testsize.Some(all)
	}
	return all
}

// Cache is the value for dataplane.Config.Cache: the switch's own choice, or none with -walk.
func Cache() int {
	if *All {
		return -1
	}
	return 0
}
