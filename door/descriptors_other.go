//go:build !unix

package door

import "errors"

// Descriptors cannot cross to another process on this system.

const controlCut = 0

func controlSpace(int) int { return 0 }

func controlOf([]int) []byte { return nil }

// descriptors returns an error if there is a control message.
func descriptors(control []byte) ([]int, error) {
	if len(control) > 0 {
		return nil, errors.New("descriptors cross to another process on Unix only")
	}
	return nil, nil
}
