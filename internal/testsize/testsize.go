// Package testsize scales tests. With -short, as `make test` runs, a test of random input or of a
// long list does a part. Without, as `make test-long` runs, it does everything.
package testsize

import "testing"

// Rounds is the number of repetitions of a test with random input: n, or with -short a quarter of
// it and at least 1.
func Rounds[N int | uint64](n N) N {
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

// Some are all cases of a list, or with -short every third one.
func Some[T any](all []T) (some []T) {
	if !testing.Short() {
		return all
	}
	for i := 0; i < len(all); i += 3 {
		some = append(some, all[i])
	}
	return some
}
